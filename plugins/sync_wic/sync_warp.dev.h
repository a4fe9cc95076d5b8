/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp: WIC as far as a GPU's stock driver allows it. A worker that waits asks the block's monitor, a warp
 * that does nothing else, and is parked by the hardware: it takes no issue slots until the monitor has seen what
 * it waits for. So k waiting workers of a block cost one polling warp, not k. Device code.
 *
 * Flags lie packed, 32 to a line, in the memory of the device whose workers wait: producers push them there,
 * and one load of the monitor's lanes sees those of neighbours. Where devices are apart (struct loom_layout) no word
 * has two writers: flags and staged items lie in the host's memory, a producer stores how many rounds there are, and an
 * item whose consumers are on a GPU is copied to them.
 *
 * A post is one worker's, in shared memory. The worker writes it and then `asked` (release); the monitor reads
 * it after that (acquire), writes the answer, and resumes the worker through the barrier, which orders the
 * answer, and what the monitor has acquired at the flag, before what the worker does next. From sm_90 on the monitor
 * has an item copied into the shared memory of the worker: the barrier then also counts the bytes, so that the
 * worker wakes when they are there, and the monitor need not wait for them. tests/models/wave.pml. */
#ifndef SYNC_WARP_DEV_H
#define SYNC_WARP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_OP(op) sync_warp_##op
#define SYNC_ELSEWHERE

/* Settings: what a monitor sleeps between two looks; bytes of a worker's private memory, for one item. */
enum { SYNC_WARP_PAUSE_NS = 0, SYNC_WARP_LOCAL };

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
	if (!k->count)
		return (uint32_t *)((char *)h + k->word_at) + slot;
	return sync_warp_flag((char *)loom_public(c, LOOM_SYNC, sync_warp_home(k, slot)), k, slot);
}

LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	if (!k->count)
		return (uint32_t *)((char *)c->on_device[LOOM_SYNC] + k->done_at) + tag % k->slots;
	return &sync_slot(h, k, tag)->done;
}

LOOM_FN void sync_raise(const struct sync_channel *k, uint32_t *word, uint32_t rounds)
{
	if (k->count)
		loom_fetch_add_acq_rel_sys(word, 1u); /* keeps poison */
	else
		loom_store_release_sys(word, rounds & SYNC_ROUNDS); /* over a link it is posted, and nobody waits for it */
}

/* Where a consumer's device keeps its copy of an item. */
LOOM_FN char *sync_near(const struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	return (char *)c->on_device[LOOM_SYNC] + k->near_at + tag % k->slots * k->stride;
}

LOOM_FN char *sync_staged(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (char *)h + k->data_at + tag % k->slots * k->stride;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* the monitor looks */
}

/* One look at *word. 1 when the wait is over; *result says how. */
LOOM_FN int sync_warp_over(const struct loom_ctx *c, uint32_t *word, uint32_t want, uint64_t until_ns, int *result)
{
	*result = sync_judge(c, sync_glance(word), want);
	if (*result == 1 && until_ns && loom_clock_ns(c) >= until_ns)
		*result = LOOM_ETIMEDOUT;
	return *result != 1;
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
	sync_tell(c, polls, polls);
	return result;
}

#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#define sync_warp_brought(c, item) NULL

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
	const char *from; /* the item that comes with the resume ... */
	uint32_t bytes;	  /* ... a multiple of 16; 0: none */
	uint32_t to;	  /* its place in shared memory */
	const char *held; /* the item that lies there; the worker's lane 0 */
};

static __shared__ struct sync_warp_post sync_warp_posts[LOOM_WORKERS_PER_BLOCK];
static __shared__ uint32_t sync_warp_ended; /* workers */

LOOM_FN struct sync_warp_post *sync_warp_post(void)
{
	return &sync_warp_posts[threadIdx.x / LOOM_LANES];
}

/* At the block: between a worker and its monitor. */
LOOM_FN void sync_warp_fence(void)
{
	asm volatile("fence.acq_rel.cta;" ::: "memory");
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

/* One item of a worker at a time: what it has still to release keeps the place. */
LOOM_FN void sync_fetch(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	struct sync_warp_post *p = sync_warp_post();
	if (!k->brings || p->held || k->bytes > h->setting[SYNC_WARP_LOCAL])
		return;
	p->from = sync_staged(h, k, tag);
	p->to = (uint32_t)__cvta_generic_to_shared(c->local[LOOM_SYNC]);
	p->bytes = ((uint32_t)k->bytes + 15u) & ~15u;
}

LOOM_FN void sync_drop(struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	struct sync_warp_post *p = sync_warp_post();
	if (p->held == sync_staged(sync_head(c), k, tag))
		p->held = NULL;
}

LOOM_FN const void *sync_warp_brought(struct loom_ctx *c, const char *item)
{
	int held = c->lane == 0 && sync_warp_post()->held == item;
	return loom_from_lane0(c, (uint64_t)held) ? c->local[LOOM_SYNC] : NULL;
}
#else
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#define sync_warp_brought(c, item) NULL
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
	while (loom_load_relaxed_dev(&p->asked))
		loom_nanosleep(LOOM_PAUSE_NS);
	sync_warp_fence(); /* pairs with that in sync_warp_watch */
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
#ifdef SYNC_WARP_MBARRIER
		asm volatile("fence.proxy.async;" ::: "memory"); /* what lay in the item's place before */
#endif
		sync_warp_fence(); /* release: pairs with the monitor's */
		loom_store_relaxed_dev(&p->asked, 1u);
	}
	if (c->lane < 32) {
		__syncwarp();
		sync_warp_park(p);
		__syncwarp();
	}
	if (c->lane == 0) {
		p->phase ^= 1;
		p->held = p->bytes && !p->result ? p->from : p->held;
		p->bytes = 0;
		sync_tell(c, polls, p->polls);
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
	uint32_t bytes = over && !p->result ? p->bytes : 0;
	if (bytes)
		/* The copy reads what this lane has acquired, in a way of its own. The worker goes on when the bytes
		 * have come, too. */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "fence.proxy.async;\n\t"
			     "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t"
			     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];\n\t"
			     "}" ::"r"(sync_warp_at(p)),
			     "r"(bytes), "r"(p->to), "l"(__cvta_generic_to_global(p->from))
			     : "memory");
	else if (over) /* release, at the block */
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
			if (i < LOOM_WORKERS_PER_BLOCK && loom_load_relaxed_dev(&p->asked)) {
				sync_warp_fence(); /* acquire: pairs with the worker's release */
				busy = 1;
				p->polls++;
				over = sync_warp_over(c, p->word, p->want, p->until_ns, &result);
			}
			if (over) {
				p->result = result;
				sync_warp_fence();
				loom_store_relaxed_dev(&p->asked, 0u);
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

/* The item of a wait that is over: where the worker reads it. */
LOOM_FN const void *sync_bring(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	const char *item = sync_staged(h, k, tag);
	const void *at = k->brings ? sync_warp_brought(c, item) : item;
	if (at)
		return at;
	sync_copy(c, sync_near(c, k, tag), item, k->bytes);
	loom_barrier_lanes(c);
	return sync_near(c, k, tag);
}

#endif
