/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange engine: common code of the ten applications in table 2 of the WIC paper. Device code.
 *
 * An application is a kernel that each worker runs. A worker owns a part of the data. First it computes what needs no
 * other worker's data (C1). Then it waits for messages, computes the remaining part (C2) and publishes its data.
 * Workers access each other's data only through messages.
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
	uint64_t at[EX_ARRAYS];    /* offsets of the arrays in bytes from the head */
	uint64_t param[EX_PARAMS]; /* parameters of the application */
	uint32_t iterations;
	uint32_t work_c, work_p; /* rounds of ex_work() in C1, and before a message */
	uint32_t channels;
	uint64_t ready_at; /* offset of struct ex_ready[channels] and its words; 0: times are not recorded */
	uint64_t pad[5];
};

/* Where the words of a channel are: their offset from the head, and their number. A word has the time at which an
 * item was ready. The last EX_TAG_BITS bits of the word are the last bits of the item's tag. A channel has words for
 * two rounds, because a producer may be a round ahead of the reader. If producers are further ahead, the tag shows
 * that the word is for another item. */
struct ex_ready {
	uint64_t words_at, words;
};
enum { EX_TAG_BITS = 20 };

/* A worker's block: its log. It has the times of the first EX_INTERVALS waits, for the overlap. */
enum { EX_INTERVALS = 1024, EX_SET = 16 };
struct ex_interval {
	uint64_t begin_ns, end_ns;
};
struct ex_log {
	uint64_t begin_ns, end_ns; /* start and end of the kernel */
	uint64_t waits, wait_ns, send_ns;
	uint64_t cpu_ns;      /* CPU time of the kernel, in ns */
	uint64_t wait_cpu_ns; /* CPU time of the kernel's waits, in ns */
	uint64_t work;        /* result of ex_work(), stored so that the compiler keeps the work */
	struct ex_interval wait[EX_INTERVALS];
};
/* With times = yes, uint64_t [EX_INTERVALS] follow the log: when the item of each wait was ready; 0: not known. */

/* A message that one worker sends to another in every iteration. */
struct ex_message {
	uint32_t from, to;     /* numbers of the workers */
	uint32_t channel;
	uint32_t slot, stride; /* the tag in iteration i is i * stride + slot */
	uint32_t first, count; /* range of values in the message; the application gives it a meaning */
	uint32_t pad;
};

/* The device of a worker, the worker's index on that device, and the number of workers there. */
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

/* Returns the start of worker w's share of n elements, which is the end of the previous worker's share. */
LOOM_FN uint64_t ex_share(uint64_t n, uint64_t w, uint64_t workers)
{
	return n * w / workers;
}

/* Computes a row of a grid from this row and its two neighbours. A row has n columns; the first and the last stay
 * unchanged. */
typedef void ex_row_fn(const struct loom_ctx *c, double *to, const double *up, const double *row, const double *down,
		       uint64_t n);

/* Called by all lanes after an iteration that has computed *next from *now. Exchanges the two grids. */
LOOM_FN void ex_swap(struct loom_ctx *c, double **now, double **next)
{
	double *swap = *now;
	*now = *next;
	*next = swap;
	loom_barrier_lanes(c);
}

/* A loop whose indices are divided among the lanes. */
#define EX_EACH(c, i, from, to) for (uint64_t i = (from) + (c)->lane; i < (uint64_t)(to); i += (c)->lanes)

/* Returns the CPU time of the calling thread in ns. GPUs do not measure it. */
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

/* Does a fixed amount of dependent work, about 1 us per round on a current core. */
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

/* If rc says that the run was stopped, does nothing. Otherwise fails the run with this error. Returns rc. */
LOOM_FN int ex_fail(struct loom_ctx *c, int rc, uint64_t info)
{
	if (rc != LOOM_EINTR && c->lane == 0)
		loom_worker_fail(c, rc, info);
	return rc;
}

/* Returns the word for an item's time. Its producer stores the time at WIC's Tp: the item is complete, and is about
 * to be published. Accesses are relaxed, because publish() and wait() order them. */
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

/* Returns the time at which the last of the items was ready, or 0 if it is not known. `now` is the current time. */
LOOM_FN uint64_t ex_last_ready(struct ex_head *h, uint32_t channel, const uint32_t *tag, uint32_t n, uint64_t now)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t word = loom_load_relaxed_sys(ex_ready_word(h, channel, tag[i]));
		/* ns since the item was ready; the word lacks the first bits of the time */
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

/* Channel `gather` has a slot per worker. Channel `spread` + d has one slot, which all workers of device d read.
 * Terms are added in the order of the workers, so the result is reproducible to the bit. */
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
		/* This device comes last, because a worker that the item resumes may take this core. */
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
