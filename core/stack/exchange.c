/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { ROOM = 496 };

struct loom__frame {
	int32_t failed; /* 0, or the error by which this rank has ended the call */
	uint32_t call;
	uint64_t bytes;  /* size of the data; if it is larger than ROOM, a second allgather() has the data */
	char data[ROOM]; /* the data, or the text of the error */
};

int loom__exchange_create(struct loom__exchange *x, const struct loom_ranks *ranks, struct loom_error *err)
{
	*x = (struct loom__exchange){0};
	if (!ranks)
		return 0;
	if (!LOOM_HAS(ranks, ranks) || !ranks->ranks || ranks->rank >= ranks->ranks ||
	    (ranks->ranks > 1 && !LOOM_HAS(ranks, allgather)))
		return LOOM__FAIL(err, LOOM_EINVAL, "struct loom_ranks needs its size, the number of ranks, a "
				"smaller number of this rank, and allgather()");
	if (ranks->ranks == 1 && !LOOM_HAS(ranks, allgather))
		return 0;
	x->frame = calloc(ranks->ranks + (size_t)1, sizeof(*x->frame));
	x->ranks = ranks;
	return x->frame ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for %u ranks", ranks->ranks);
}

void loom__exchange_destroy(struct loom__exchange *x)
{
	free(x->frame);
	x->frame = NULL;
}

void loom__exchange_begin(struct loom__exchange *x)
{
	x->call++;
	x->open = x->ranks != NULL;
	x->failed = 0;
}

void loom__exchange_close(struct loom__exchange *x)
{
	x->open = 0;
}

static int swap(struct loom__exchange *x, int failed, const void *data, uint64_t bytes, uint64_t inside,
		struct loom_error *err)
{
	const struct loom_ranks *ranks = x->ranks;
	struct loom__frame *own = &x->frame[ranks->ranks];
	*own = (struct loom__frame){.failed = failed, .call = x->call, .bytes = bytes};
	if (inside)
		memcpy(own->data, data, inside);
	return ranks->allgather(ranks->self, own, x->frame, sizeof(*own), err);
}

int loom__exchange_end(struct loom__exchange *x, int rc, struct loom_error *err)
{
	/* Ranks that are threads of this process have a launcher, too. */
	int others_end = LOOM_HAS(x->ranks, job) || LOOM_HAS(x->ranks, launched);
	if (rc && x->open && !x->failed && !others_end) {
		struct loom_error unused;
		size_t length = strlen(err->text);
		(void)swap(x, rc, err->text, 0, length < ROOM ? length : ROOM - 1, &unused);
	}
	x->open = 0;
	x->failed = 0;
	return rc;
}

/* Returns the error of another rank, or an error if the ranks are in different exchanges. */
static int judge(struct loom__exchange *x, uint64_t bytes, struct loom_error *err)
{
	uint32_t rank = x->ranks->rank, most = x->call;
	int rc = 0;
	for (uint32_t r = 0; r < x->ranks->ranks; r++) {
		struct loom__frame *f = &x->frame[r];
		if (!rc && f->failed) {
			loom__clean(f->data, sizeof(f->data));
			rc = LOOM__FAIL(err, f->failed < 0 ? f->failed : LOOM_EINTERNAL, "rank %u: %s", r, f->data);
		}
		most = f->call > most ? f->call : most;
	}
	for (uint32_t r = 0; r < x->ranks->ranks && !rc; r++)
		if (x->frame[r].call != x->call)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "rank %u has begun %u calls of the stack and rank %u has "
					"begun %u: a call has ended early on one of them, or they make other calls",
					r, x->frame[r].call, rank, x->call);
		else if (x->frame[r].bytes != bytes)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "rank %u exchanges %llu bytes and rank %u %llu: start "
					"all ranks with the same conf and calls", r,
					(unsigned long long)x->frame[r].bytes, rank, (unsigned long long)bytes);
	x->call = most; /* so that the next call of all ranks has the same number */
	return rc;
}

int loom__exchange(struct loom__exchange *x, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	if (!x->ranks) {
		memmove(all, mine, bytes);
		return 0;
	}
	int rc = x->failed;
	if (!rc) {
		LOOM__FAIL(&x->why, LOOM_EDIED, "allgather() of the program has failed and gives no reason");
		rc = swap(x, 0, mine, bytes, bytes <= ROOM ? bytes : 0, &x->why);
		rc = rc ? rc : judge(x, bytes, &x->why);
		if (!rc && bytes > ROOM)
			rc = x->ranks->allgather(x->ranks->self, mine, all, bytes, &x->why);
	}
	if (rc) {
		x->failed = x->open ? rc : 0;
		if (err)
			*err = x->why;
		return rc;
	}
	for (uint32_t r = 0; bytes <= ROOM && r < x->ranks->ranks; r++)
		memcpy((char *)all + r * bytes, x->frame[r].data, bytes);
	return 0;
}
