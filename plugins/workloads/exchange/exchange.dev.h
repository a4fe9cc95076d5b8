/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange engine: common code of the ten applications of the paper's table 2. Device code.
 *
 * An application is a kernel that each worker runs. A worker owns a part of the data, and computes what needs no other
 * worker's data (C1). It waits for messages, computes the remaining part (C2) and publishes its data. Workers access
 * each other's data only through messages.
 *
 * The global block has struct ex_head, then the arrays of the application, which the host lays out. */
#ifndef EXCHANGE_DEV_H
#define EXCHANGE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/sync.h>
#endif

enum { EX_ARRAYS = 24, EX_PARAMS = 24 };

struct ex_head {
	uint64_t at[EX_ARRAYS];    /* offsets of the arrays */
	uint64_t param[EX_PARAMS]; /* parameters of the application */
	uint32_t iterations;
	uint32_t work_c, work_p; /* additional rounds of work in C1 and before a message: ex_work() */
	uint32_t channels;
	uint64_t ready_at; /* struct ex_ready[channels], and their words; 0: no times */
	uint64_t pad[5];
};

/* Where the words of a channel are, counted from the head. A word has the time at which an item was ready, and, in
 * its last EX_TAG_BITS bits, the item's tag: a producer may be a round ahead of the reader, hence two rounds of words,
 * and producers of one slot may be further apart. */
struct ex_ready {
	uint64_t words_at, words;
};
enum { EX_TAG_BITS = 20 };

/* A worker's block: its log. Intervals are for the overlap and the timeline. */
enum { EX_INTERVALS = 1024, EX_SET = 16 };
struct ex_interval {
	uint64_t begin_ns, end_ns;
};
struct ex_log {
	uint64_t begin_ns, end_ns; /* start and end of the kernel */
	uint64_t waits, wait_ns, send_ns;
	uint64_t cpu_ns;      /* CPU time of the kernel */
	uint64_t wait_cpu_ns; /* CPU time of the kernel's waits */
	uint64_t work;        /* result of ex_work(), stored so that it is not optimised away */
	struct ex_interval wait[EX_INTERVALS];
};
/* Behind the log, with times = yes: uint64_t [EX_INTERVALS], when the item of each wait was ready; 0: not known. */

/* A message of every iteration, from one worker to another. */
struct ex_message {
	uint32_t from, to;     /* numbers of the workers */
	uint32_t channel;
	uint32_t slot, stride; /* the tag in iteration i is i * stride + slot */
	uint32_t first, count; /* the values of the message; used by the application */
	uint32_t pad;
};

/* A worker's device, its number there, and the number of workers of that device. */
struct ex_place {
	uint32_t device, place, count, pad;
};

LOOM_FN struct ex_head *ex_head(const struct loom_ctx *c)
{
	return (struct ex_head *)c->global[LOOM_WORKLOAD];
}

LOOM_FN void *ex_at(const struct loom_ctx *c, uint32_t array)
{
	struct ex_head *h = ex_head(c);
	return (char *)h + h->at[array];
}

LOOM_FN struct ex_log *ex_log(const struct loom_ctx *c)
{
	return (struct ex_log *)c->own[LOOM_WORKLOAD];
}

/* Returns where worker w's share of n elements starts, which is the end of the previous worker's share. */
LOOM_FN uint64_t ex_share(uint64_t n, uint64_t w, uint64_t workers)
{
	return n * w / workers;
}

/* Computes a row of a grid from itself and the two next to it. A row has n columns; the borders stay unchanged. */
typedef void ex_row_fn(const struct loom_ctx *c, double *to, const double *up, const double *row, const double *down,
		       uint64_t n);

/* Called after an iteration on two grids: the lanes exchange the grids. */
LOOM_FN void ex_swap(struct loom_ctx *c, double **now, double **next)
{
	double *swap = *now;
	*now = *next;
	*next = swap;
	loom_barrier_lanes(c);
}

/* A loop in which the lanes share the indices. */
#define EX_EACH(c, i, from, to) for (uint64_t i = (from) + (c)->lane; i < (uint64_t)(to); i += (c)->lanes)

/* Returns the CPU time of the calling thread, which GPUs do not measure. */
LOOM_FN uint64_t ex_cpu_ns(void)
{
#ifdef LOOM_DEVICE_COMPILE
	return 0;
#else
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

/* Does a fixed amount of dependent work: about 1 us per round on a current core. */
LOOM_FN void ex_work(struct loom_ctx *c, uint32_t rounds)
{
	if (c->lane != 0 || !rounds)
		return;
	struct ex_log *log = ex_log(c);
	uint64_t x = log->work | 1;
	for (uint32_t r = 0; r < rounds; r++)
		for (uint32_t i = 0; i < 700; i++)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
	log->work = x;
}

LOOM_FN void ex_begin(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	struct ex_log *log = ex_log(c);
	log->begin_ns = loom_clock_ns(c);
	log->cpu_ns = ex_cpu_ns();
}

LOOM_FN void ex_end(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	struct ex_log *log = ex_log(c);
	log->cpu_ns = ex_cpu_ns() - log->cpu_ns;
	log->end_ns = loom_clock_ns(c);
}

/* Ends the run with an error, unless it was already stopped. */
LOOM_FN int ex_fail(struct loom_ctx *c, int rc, uint64_t info)
{
	if (rc != LOOM_EINTR && c->lane == 0)
		loom_worker_fail(c, rc, info);
	return rc;
}

/* WIC's Tp: the item is complete, and its producer is about to publish it. Relaxed: publish() and wait() order it. */
LOOM_FN uint64_t *ex_ready_word(struct ex_head *h, uint32_t channel, uint32_t tag)
{
	const struct ex_ready *r = (const struct ex_ready *)((const char *)h + h->ready_at) + channel;
	return (uint64_t *)((char *)h + r->words_at) + tag % r->words;
}

LOOM_FN void ex_set_ready(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t now)
{
	struct ex_head *h = ex_head(c);
	if (h->ready_at)
		loom_store_relaxed_sys(ex_ready_word(h, channel, tag),
				       now << EX_TAG_BITS | (tag & ((1u << EX_TAG_BITS) - 1)));
}

/* When the last of the items was ready, seen at `now`; 0: not known. */
LOOM_FN uint64_t ex_last_ready(struct ex_head *h, uint32_t channel, const uint32_t *tag, uint32_t n, uint64_t now)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t word = loom_load_relaxed_sys(ex_ready_word(h, channel, tag[i]));
		/* the time without its first bits, which are those of `now`, or of one less */
		uint64_t ago = ((now << EX_TAG_BITS) - (word >> EX_TAG_BITS << EX_TAG_BITS)) >> EX_TAG_BITS;
		if ((word ^ tag[i]) & ((1u << EX_TAG_BITS) - 1) || !word)
			return 0;
		last = now - ago > last ? now - ago : last;
	}
	return last;
}

LOOM_FN int ex_recv_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			const void **data)
{
	struct ex_log *log = ex_log(c);
	uint64_t begin = 0, cpu = 0;
	if (c->lane == 0) {
		begin = loom_clock_ns(c);
		cpu = ex_cpu_ns();
	}
	int rc = LOOM_CALL(sync, wait_all, c, channel, tag, n, 0, data);
	if (c->lane == 0) {
		uint64_t end = loom_clock_ns(c);
		log->wait_cpu_ns += ex_cpu_ns() - cpu;
		log->wait_ns += end - begin;
		if (log->waits < EX_INTERVALS) {
			log->wait[log->waits].begin_ns = begin;
			log->wait[log->waits].end_ns = end;
			if (ex_head(c)->ready_at)
				((uint64_t *)(log + 1))[log->waits] =
					rc ? 0 : ex_last_ready(ex_head(c), channel, tag, n, end);
		}
		log->waits++;
	}
	return rc ? ex_fail(c, rc, tag[0]) : 0;
}

LOOM_FN int ex_recv(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void **data)
{
	return ex_recv_all(c, channel, &tag, 1, data);
}

LOOM_FN void ex_release(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	LOOM_CALL(sync, release, c, channel, tag);
}

LOOM_FN int ex_send(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes)
{
	uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
	if (c->lane == 0)
		ex_set_ready(c, channel, tag, begin);
	int rc = LOOM_CALL(sync, publish, c, channel, tag, from, bytes, 0);
	if (c->lane == 0)
		ex_log(c)->send_ns += loom_clock_ns(c) - begin;
	return rc ? ex_fail(c, rc, tag) : 0;
}

LOOM_FN int ex_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, void **at)
{
	int rc = LOOM_CALL(sync, reserve, c, channel, tag, 0, at);
	return rc ? ex_fail(c, rc, tag) : 0;
}

LOOM_FN uint32_t ex_tag(const struct ex_message *m, uint32_t iteration)
{
	return iteration * m->stride + m->slot;
}

LOOM_FN int ex_send_message(struct loom_ctx *c, const struct ex_message *m, uint32_t iteration,
			    const void *from, uint64_t bytes)
{
	return ex_send(c, m->channel, ex_tag(m, iteration), from, bytes);
}

LOOM_FN int ex_recv_message(struct loom_ctx *c, const struct ex_message *m, uint32_t iteration,
			    const void **data)
{
	return ex_recv(c, m->channel, ex_tag(m, iteration), data);
}

LOOM_FN void ex_release_message(struct loom_ctx *c, const struct ex_message *m, uint32_t iteration)
{
	ex_release(c, m->channel, ex_tag(m, iteration));
}

/* ---- sums: all workers send to worker 0, which answers with one item per device ---- */

/* Channels: `gather` has a slot per worker; `spread` + d has one slot that all workers of device d read. Terms are
 * added in the order of the workers, so the result is reproducible to the bit. */
LOOM_FN int ex_sum(struct loom_ctx *c, uint32_t gather, uint32_t spread, uint32_t round, double mine,
		   double *sum)
{
	const void *data;
	double total = 0;
	int rc = ex_send(c, gather, round * c->workers + c->worker, &mine, sizeof(mine));
	if (c->worker == 0) {
		for (uint32_t w = 0; w < c->workers && !rc; w += EX_SET) {
			const void *part[EX_SET];
			uint32_t tag[EX_SET], n = c->workers - w < EX_SET ? c->workers - w : EX_SET;
			for (uint32_t i = 0; i < n; i++)
				tag[i] = round * c->workers + w + i;
			rc = ex_recv_all(c, gather, tag, n, part);
			for (uint32_t i = 0; i < n && !rc; i++) {
				total += *(const double *)part[i];
				ex_release(c, gather, tag[i]);
			}
		}
		/* This device comes last: a worker that the item resumes may take this core. */
		for (uint32_t d = c->devices; d-- > 0 && !rc;)
			rc = ex_send(c, spread + d, round, &total, sizeof(total));
	}
	if (!rc)
		rc = ex_recv(c, spread + c->device, round, &data);
	if (rc)
		return rc;
	*sum = *(const double *)data;
	ex_release(c, spread + c->device, round);
	return 0;
}

#endif
