/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp: WIC as far as a GPU's stock driver allows it. A worker that waits asks the block's monitor, a warp
 * that does nothing else, and is parked by the hardware: it takes no issue slots until the monitor has seen what
 * it waits for. So k waiting workers of a block cost one polling warp, not k. Device code.
 *
 * Flags lie packed, 32 to a line, in the memory of the device whose workers wait: producers push them there,
 * and one load of the monitor's lanes sees those of neighbours.
 *
 * A post is one worker's, in shared memory. The worker writes it and then `asked` (release); the monitor reads
 * it after that (acquire), writes the answer, and resumes the worker through the barrier, which orders the
 * answer, and what the monitor has acquired at the flag, before what the worker does next. */
#ifndef SYNC_WARP_DEV_H
#define SYNC_WARP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_OP(op) sync_warp_##op
#define SYNC_FULL

enum { SYNC_WARP_PAUSE_NS = 0 }; /* setting: between two looks of a monitor, or of a CPU's worker */

#define SYNC_WARP_LINE 32u /* flags */
#define SYNC_WARP_LINE_BYTES 128u

/* Whose block has a slot's flag, behind the tally: lines take turns among the workers of the device. */
LOOM_FN uint32_t sync_warp_home(const struct sync_channel *k, uint32_t slot)
{
	return k->first + slot / SYNC_WARP_LINE % k->count;
}

LOOM_FN uint32_t *sync_warp_flag(char *block, const struct sync_channel *k, uint32_t slot)
{
	return (uint32_t *)(block + k->flag_at + slot / SYNC_WARP_LINE / k->count * SYNC_WARP_LINE_BYTES) +
	       slot % SYNC_WARP_LINE;
}

LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	uint32_t slot = tag % k->slots;
	(void)h;
	return sync_warp_flag((char *)loom_public(c, LOOM_SYNC, sync_warp_home(k, slot)), k, slot);
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* the monitor looks */
}

/* One look at *word. 1 when the wait is over; *result says how. */
LOOM_FN int sync_warp_over(const struct loom_ctx *c, uint32_t *word, uint32_t want, uint64_t until_ns, int *result)
{
	/* Acquire: pairs with the release of publish, or of the last reader. */
	uint32_t now = loom_load_acquire_sys(word);
	if (now & SYNC_POISON)
		*result = LOOM_EDIED;
	else if (sync_reached(now, want))
		*result = 0;
	else if (loom_stopped(c))
		*result = LOOM_EINTR;
	else if (until_ns && loom_clock_ns(c) >= until_ns)
		*result = LOOM_ETIMEDOUT;
	else
		return 0;
	return 1;
}

#ifndef LOOM_DEVICE_COMPILE

/* A CPU parks nobody in hardware: it looks, and gives way. */
LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint64_t polls = 0;
	int result;
	(void)sleepers;
	for (; !sync_warp_over(c, word, want, until_ns, &result); polls++)
		loom_give_way(c);
	sync_tally(c)->polls += polls;
	return result;
}

#else

#define SYNC_TOGETHER

struct sync_warp_post {
	uint64_t barrier; /* an mbarrier of one arrival: the monitor's */
	uint32_t phase;   /* of it that comes next: parity; the worker's lane 0 */
	uint32_t asked;
	uint32_t *word;
	uint64_t until_ns, polls;
	uint32_t want;
	int result;
};

static __shared__ struct sync_warp_post sync_warp_posts[LOOM_WORKERS_PER_BLOCK];
static __shared__ uint32_t sync_warp_ended; /* workers */

LOOM_FN struct sync_warp_post *sync_warp_post(void)
{
	return &sync_warp_posts[threadIdx.x / LOOM_LANES];
}

/* How a warp is parked. From sm_90 on the wait for an mbarrier suspends it. Before, a named barrier does, which
 * a monitor joins without waiting; there are 16, and two are in use. With more workers in a block than that
 * they sleep, and look at their post, not at memory. */
#if __CUDA_ARCH__ >= 900
#define SYNC_WARP_MBARRIER
#elif LOOM_WORKERS_PER_BLOCK <= 14
#define SYNC_WARP_NAMED
#endif

#ifdef SYNC_WARP_MBARRIER
LOOM_FN uint32_t sync_warp_at(const struct sync_warp_post *p)
{
	return (uint32_t)__cvta_generic_to_shared(&p->barrier);
}

LOOM_FN int sync_warp_passed(const struct sync_warp_post *p, uint32_t parity)
{
	uint32_t done;
	/* Acquire, at the block: pairs with the arrival's release. It may end early, after a time. */
	asm volatile("{\n\t"
		     ".reg .pred p;\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000000;\n\t"
		     "selp.u32 %0, 1, 0, p;\n\t"
		     "}"
		     : "=r"(done)
		     : "r"(sync_warp_at(p)), "r"(parity)
		     : "memory");
	return (int)done;
}
#endif

/* The lanes of the worker's first warp, together, until the monitor has answered. */
LOOM_FN void sync_warp_park(struct sync_warp_post *p)
{
#ifdef SYNC_WARP_MBARRIER
	uint32_t parity = p->phase;
	LOOM_NO_UNROLL
	while (!sync_warp_passed(p, parity))
		;
#elif defined(SYNC_WARP_NAMED)
	asm volatile("bar.sync %0, 64;" ::"r"(2u + threadIdx.x / LOOM_LANES) : "memory");
	loom_fence_acquire_sys(); /* pairs with the fence before the monitor's bar.arrive */
#else
	LOOM_NO_UNROLL
	while (loom_load_acquire_dev(&p->asked)) /* pairs with the release in sync_warp_watch */
		loom_nanosleep(LOOM_PAUSE_NS);
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	struct sync_warp_post *p = sync_warp_post();
	uint64_t result = 0;
	(void)sleepers;
	if (c->lane == 0) {
		p->word = word;
		p->want = want;
		p->until_ns = until_ns;
		p->polls = 0;
		/* Release: pairs with the monitor's acquire. */
		loom_store_release_dev(&p->asked, 1u);
	}
	if (c->lane < 32) {
		__syncwarp();
		sync_warp_park(p);
		__syncwarp();
	}
	if (c->lane == 0) {
		p->phase ^= 1;
		sync_tally(c)->polls += p->polls;
		result = (uint64_t)(int64_t)p->result;
	}
	return (int)loom_from_lane0(c, result);
}

/* ---- the monitor ------------------------------------------------------------------------------ */

LOOM_FN void sync_warp_watch_begin(void)
{
	struct sync_warp_post none = {};
	LOOM_NO_UNROLL
	for (uint32_t i = threadIdx.x; i < LOOM_WORKERS_PER_BLOCK; i += blockDim.x) {
		sync_warp_posts[i] = none;
#ifdef SYNC_WARP_MBARRIER
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sync_warp_at(&sync_warp_posts[i])) : "memory");
#endif
	}
	if (threadIdx.x == 0)
		sync_warp_ended = 0;
	__syncthreads();
}

LOOM_FN void sync_warp_watch_end(struct loom_ctx *c)
{
	if (c->lane == 0)
		loom_fetch_add_relaxed_dev(&sync_warp_ended, 1u);
}

/* The lanes whose workers' waits are over resume them. */
LOOM_FN void sync_warp_resume(struct sync_warp_post *p, uint32_t worker, int over)
{
#ifdef SYNC_WARP_MBARRIER
	(void)worker;
	/* Release, at the block. */
	if (over)
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "mbarrier.arrive.shared::cta.b64 state, [%0];\n\t"
			     "}" ::"r"(sync_warp_at(p))
			     : "memory");
#elif defined(SYNC_WARP_NAMED)
	(void)p;
	uint32_t lanes = __ballot_sync(0xffffffffu, over), first = worker - (threadIdx.x & 31);
	loom_fence_release_sys();
	LOOM_NO_UNROLL
	for (; lanes; lanes &= lanes - 1)
		asm volatile("bar.arrive %0, 64;" ::"r"(2u + first + (uint32_t)__ffs((int)lanes) - 1) : "memory");
#else
	(void)p, (void)worker, (void)over;
#endif
}

/* A lane for a worker, or several. Until all workers have left the kernel: who has left does not wait. */
LOOM_FN void sync_warp_watch(struct loom_ctx *c)
{
	uint32_t pause = sync_head(c)->setting[SYNC_WARP_PAUSE_NS];
	uint32_t ended = 0;
	LOOM_NO_UNROLL
	while (ended != LOOM_WORKERS_PER_BLOCK) {
		int busy = 0;
		LOOM_NO_UNROLL
		for (uint32_t i = c->lane; i < (LOOM_WORKERS_PER_BLOCK + 31u) / 32u * 32u; i += 32) {
			struct sync_warp_post *p = &sync_warp_posts[i % LOOM_WORKERS_PER_BLOCK];
			int over = 0, result = 0;
			/* Acquire: pairs with the worker's release. */
			if (i < LOOM_WORKERS_PER_BLOCK && loom_load_acquire_dev(&p->asked)) {
				busy = 1;
				p->polls++;
				over = sync_warp_over(c, p->word, p->want, p->until_ns, &result);
			}
			if (over) {
				p->result = result;
				loom_store_release_dev(&p->asked, 0u);
			}
			sync_warp_resume(p, i, over);
		}
		ended = __shfl_sync(0xffffffffu, loom_load_relaxed_dev(&sync_warp_ended), 0);
		if (!__any_sync(0xffffffffu, busy))
			loom_nanosleep(LOOM_PAUSE_NS);
		else if (pause)
			loom_nanosleep(pause);
	}
}

#endif
#endif
