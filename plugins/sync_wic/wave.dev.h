/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU waits: WIC as far as a GPU's stock driver allows it. A worker that waits asks the block's monitor, a warp
 * that does nothing else, and is parked by the hardware: it takes no issue slots until the monitor has seen what
 * it waits for. So k waiting workers of a block cost one polling warp, not k. Device code.
 *
 * Flags lie packed, 32 to a line, in the memory of the device whose workers wait: producers push them there,
 * and one load of the monitor's lanes sees those of neighbours. Where devices are apart (struct loom_layout) no word
 * has two writers: flags and staged items lie in the host's memory, a producer stores how many rounds there are, and an
 * item whose consumers are on a GPU is copied to them. One of 8 bytes comes with its flag: a trip over the link less.
 *
 * A post is one worker's, in shared memory. The worker writes it and then `asked` (release); the monitor reads
 * it after that (acquire), writes the answer, and resumes the worker through the barrier, which orders the
 * answer, and what the monitor has acquired at the flag, before what the worker does next. From sm_90 on the monitor
 * has an item copied into the shared memory of the worker: the barrier then also counts the bytes, so that the
 * worker wakes when they are there, and the monitor need not wait for them. tests/models/wave.pml. */
#ifndef SYNC_WAVE_DEV_H
#define SYNC_WAVE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_ELSEWHERE

/* Settings, behind those of the plug-in: what a monitor sleeps between two looks; bytes of a worker's private memory, for
 * one item; whether the host's listener is asleep while it waits (listen.h); which devices are GPUs, a bit each. */
enum { WAVE_PAUSE_NS = 10, WAVE_LOCAL, WAVE_COUNTS, WAVE_GPUS, WAVE_GPUS_MORE };

/* Over a link, unless the conf says how long: with 132 and 264 blocks that look an item comes 1 us sooner than without,
 * on an H200; from 1 us on it comes later. */
#define WAVE_LINK_PAUSE_NS 400u

/* How an item comes to a GPU: WAVE_COPIES also says that there is room for a copy. */
enum { WAVE_COPIES = 1, WAVE_CARRIES };

#define WAVE_LINE 32u /* flags */
#define WAVE_LINE_BYTES 128u

/* Whose block has a slot's flag, behind the tally: lines take turns among the workers of the device. */
LOOM_FN uint32_t wave_home(const struct sync_channel *k, uint32_t slot)
{
	return k->first + slot / WAVE_LINE % k->count;
}

LOOM_FN uint32_t *wave_flag(char *block, const struct sync_channel *k, uint32_t slot)
{
	return (uint32_t *)(block + k->flag_at + slot / WAVE_LINE / k->count * WAVE_LINE_BYTES) +
	       slot % WAVE_LINE;
}

/* Where devices are apart: a slot's flag, in both halves, and with it four bytes each of an item that is so small. A half is
 * whole by itself. Looks of several multiprocessors at the same 32 bytes of the host's memory come one after the other: so
 * slots share none. */
struct wave_word {
	uint64_t half[2], pad[2]; /* rounds << 32 | bytes */
};

LOOM_FN struct wave_word *wave_word(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (struct wave_word *)((char *)h + k->word_at) + tag % k->slots;
}

LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	uint32_t slot = tag % k->slots;
	if (k->word_at)
		return (uint32_t *)&wave_word(h, k, tag)->half[1] + 1;
	if (!k->count)
		return &sync_slot(h, k, tag)->full;
	return wave_flag((char *)loom_public(c, LOOM_SYNC, wave_home(k, slot)), k, slot);
}

LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	if (k->word_at)
		return (uint32_t *)((char *)c->on_device[LOOM_SYNC] + k->done_at) + tag % k->slots;
	return &sync_slot(h, k, tag)->done;
}

/* A GPU, or who plays one in a test without any. */
LOOM_FN int wave_is_gpu(const struct sync_head *known, uint32_t device)
{
	return known->setting[WAVE_GPUS + device / 32] >> device % 32 & 1;
}

/* Who changed a word wakes nobody: the listener does. */
LOOM_FN int wave_leaves_it(const struct loom_ctx *c)
{
	return c->on_device[LOOM_SYNC] && wave_is_gpu(sync_known(c), c->device);
}

/* A listener sleeps until GPUs have raised more words than it has seen to change. For that CPUs count theirs, too, each
 * before it is raised. */
LOOM_FN void sync_raise(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t *word,
			uint32_t rounds, const void *item)
{
	const struct sync_head *known = sync_known(c);
	if (!k->word_at) {
		loom_fetch_add_acq_rel_sys(word, 1u); /* keeps poison */
		return;
	}
	int gpu = wave_is_gpu(known, c->device), counts = known->setting[WAVE_COUNTS] != 0;
	if (counts && !gpu)
		loom_fetch_add_relaxed_sys(&h->by_cpus, (uint64_t)1);
	rounds &= SYNC_ROUNDS;
	if (item && k->brings == WAVE_CARRIES) {
		uint64_t *half = (uint64_t *)(word - 3), both = *(const uint64_t *)item;
		loom_store_relaxed_sys(half, (uint64_t)rounds << 32 | (uint32_t)both);
		loom_store_release_sys(half + 1, (uint64_t)rounds << 32 | both >> 32);
	} else {
		loom_store_release_sys(word, rounds); /* over a link it is posted, and nobody waits for it */
	}
	if (counts && gpu)
		loom_fetch_add_relaxed_dev((uint64_t *)c->on_device[LOOM_SYNC], (uint64_t)1);
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

/* One look, which saw `now`. 1 when the wait is over; *result says how. */
LOOM_FN int wave_over(const struct loom_ctx *c, uint32_t now, int stopped, uint32_t want, uint64_t until_ns, int *result)
{
	*result = sync_verdict(now, want, stopped);
	if (*result == 1 && until_ns && loom_clock_ns(c) >= until_ns)
		*result = LOOM_ETIMEDOUT;
	return *result != 1;
}

#ifndef LOOM_DEVICE_COMPILE
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#define wave_brought(c, item) NULL
#else

#define SYNC_TOGETHER

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* the monitor looks, or the host's listener */
}

struct wave_post {
	uint64_t barrier; /* an mbarrier of one arrival: the monitor's */
	uint32_t phase;   /* of it that comes next: parity; the worker's lane 0 */
	uint32_t asked;
	uint32_t *word;
	uint64_t until_ns, polls;
	uint32_t want;
	uint32_t pause; /* between two looks, ns: settings are there when workers run, not when the monitor begins */
	int result;
	const char *from; /* the item that comes with the resume; NULL: none */
	uint32_t bytes;	  /* a multiple of 16; 0: the flag carries it */
	char *to;	  /* its place in shared memory */
	const char *held; /* the item that lies there; the worker's lane 0 */
};

static __shared__ struct wave_post wave_posts[LOOM_WORKERS_PER_BLOCK];
static __shared__ uint32_t wave_ended; /* workers */

LOOM_FN struct wave_post *wave_post(void)
{
	return &wave_posts[threadIdx.x / LOOM_LANES];
}

/* At the block: between a worker and its monitor. */
LOOM_FN void wave_fence(void)
{
	asm volatile("fence.acq_rel.cta;" ::: "memory");
}

/* How a warp is parked. From sm_90 on the wait for an mbarrier suspends it. Before, a named barrier does, which
 * a monitor joins without waiting; there are 16, and two are in use. With more workers in a block than that
 * they sleep, and look at their post, not at memory. */
#if __CUDA_ARCH__ >= 900
#define WAVE_MBARRIER
#elif LOOM_WORKERS_PER_BLOCK <= 14
#define WAVE_NAMED
#endif

#ifdef WAVE_MBARRIER
LOOM_FN uint32_t wave_at(const struct wave_post *p)
{
	return (uint32_t)__cvta_generic_to_shared(&p->barrier);
}

LOOM_FN int wave_passed(const struct wave_post *p, uint32_t parity)
{
	uint32_t done;
	/* Acquire, at the block: pairs with the arrival's release. It may end early, after a time. */
	asm volatile("{\n\t"
		     ".reg .pred p;\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000000;\n\t"
		     "selp.u32 %0, 1, 0, p;\n\t"
		     "}"
		     : "=r"(done)
		     : "r"(wave_at(p)), "r"(parity)
		     : "memory");
	return (int)done;
}

/* One item of a worker at a time: what it has still to release keeps the place. */
LOOM_FN void sync_fetch(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	struct wave_post *p = wave_post();
	if (!k->brings || p->held || k->bytes > sync_known(c)->setting[WAVE_LOCAL])
		return;
	p->from = sync_staged(h, k, tag);
	p->to = (char *)c->local[LOOM_SYNC];
	p->bytes = k->brings == WAVE_CARRIES ? 0 : ((uint32_t)k->bytes + 15u) & ~15u;
}

LOOM_FN void sync_drop(struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	struct wave_post *p = wave_post();
	if (p->held == sync_staged(sync_head(c), k, tag))
		p->held = NULL;
}

LOOM_FN const void *wave_brought(struct loom_ctx *c, const char *item)
{
	int held = c->lane == 0 && wave_post()->held == item;
	return loom_from_lane0(c, (uint64_t)held) ? c->local[LOOM_SYNC] : NULL;
}
#else
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#define wave_brought(c, item) NULL
#endif

/* The lanes of the worker's first warp, together, until the monitor has answered. */
LOOM_FN void wave_park(struct wave_post *p)
{
#ifdef WAVE_MBARRIER
	uint32_t parity = p->phase;
	LOOM_NO_UNROLL
	while (!wave_passed(p, parity))
		;
#elif defined(WAVE_NAMED)
	asm volatile("bar.sync %0, 64;" ::"r"(2u + threadIdx.x / LOOM_LANES) : "memory");
	loom_fence_acquire_sys(); /* pairs with the fence before the monitor's bar.arrive */
#else
	LOOM_NO_UNROLL
	while (loom_load_relaxed_dev(&p->asked))
		loom_nanosleep(LOOM_PAUSE_NS);
	wave_fence(); /* pairs with that of the monitor */
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	struct wave_post *p = wave_post();
	uint64_t result = 0;
	(void)sleepers;
	if (c->lane == 0) {
		p->word = word;
		p->want = want;
		p->pause = sync_known(c)->setting[WAVE_PAUSE_NS];
		p->until_ns = until_ns;
		p->polls = 0;
#ifdef WAVE_MBARRIER
		asm volatile("fence.proxy.async;" ::: "memory"); /* what lay in the item's place before */
#endif
		wave_fence(); /* release: pairs with the monitor's */
		loom_store_relaxed_dev(&p->asked, 1u);
	}
	if (c->lane < 32) {
		__syncwarp();
		wave_park(p);
		__syncwarp();
	}
	if (c->lane == 0) {
		p->phase ^= 1;
		p->held = p->from && !p->result ? p->from : p->held;
		p->from = NULL;
		sync_tell(c, polls, p->polls);
		result = (uint64_t)(int64_t)p->result;
	}
	return (int)loom_from_lane0(c, result);
}

/* ---- the monitor ------------------------------------------------------------------------------ */

LOOM_FN void SYNC_OP(watch_begin)(void)
{
	struct wave_post none = {};
	LOOM_NO_UNROLL
	for (uint32_t i = threadIdx.x; i < LOOM_WORKERS_PER_BLOCK; i += blockDim.x) {
		wave_posts[i] = none;
#ifdef WAVE_MBARRIER
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(wave_at(&wave_posts[i])) : "memory");
#endif
	}
	if (threadIdx.x == 0)
		wave_ended = 0;
	__syncthreads();
}

LOOM_FN void SYNC_OP(watch_end)(struct loom_ctx *c)
{
	if (c->lane == 0)
		loom_fetch_add_relaxed_dev(&wave_ended, 1u);
}

/* The lanes whose workers' waits are over resume them. */
LOOM_FN void wave_resume(struct wave_post *p, uint32_t worker, int over)
{
#ifdef WAVE_MBARRIER
	(void)worker;
	if (over && p->from && p->bytes && !p->result)
		/* The copy reads what this lane has acquired, in a way of its own. The worker goes on when the bytes
		 * have come, too. */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "fence.proxy.async;\n\t"
			     "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t"
			     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];\n\t"
			     "}" ::"r"(wave_at(p)),
			     "r"(p->bytes), "r"((uint32_t)__cvta_generic_to_shared(p->to)), "l"(__cvta_generic_to_global(p->from))
			     : "memory");
	else if (over) /* release, at the block */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "mbarrier.arrive.shared::cta.b64 state, [%0];\n\t"
			     "}" ::"r"(wave_at(p))
			     : "memory");
#elif defined(WAVE_NAMED)
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

/* What the word of a post says, and the item that it carries. */
LOOM_FN uint32_t wave_look(const struct wave_post *p, int carried, uint64_t *item)
{
	uint64_t low, high;
	if (!carried)
		return sync_glance(p->word);
	asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(p->word - 3) : "memory");
	*item = high << 32 | (uint32_t)low;
	return (uint32_t)((sync_reached((uint32_t)(low >> 32), p->want) ? high : low) >> 32);
}

/* A lane for a worker, or several. Until all workers have left the kernel: who has left does not wait. */
LOOM_FN void SYNC_OP(watch)(struct loom_ctx *c)
{
	uint32_t ended = 0;
	int busy = 0;
	LOOM_NO_UNROLL
	while (ended != LOOM_WORKERS_PER_BLOCK) {
		uint32_t pause = 0;
		/* Before the looks, which take longer: a fence behind them would wait for this one, too. */
		int stopped = busy && loom_stopped(c);
		busy = 0;
		LOOM_NO_UNROLL
		for (uint32_t i = c->lane; i < (LOOM_WORKERS_PER_BLOCK + 31u) / 32u * 32u; i += 32) {
			struct wave_post *p = &wave_posts[i % LOOM_WORKERS_PER_BLOCK];
			uint64_t item = 0;
			int over = 0, result = 0;
			if (i < LOOM_WORKERS_PER_BLOCK && loom_load_relaxed_dev(&p->asked)) {
				wave_fence(); /* acquire: pairs with the worker's release */
				busy = 1;
				pause = p->pause;
				p->polls++;
				int carried = p->from && !p->bytes;
				over = wave_over(c, wave_look(p, carried, &item), stopped, p->want, p->until_ns, &result);
				if (over && carried)
					*(uint64_t *)p->to = item; /* needs no fence */
				else if (over && !result)
					sync_saw();
			}
			if (over) {
				p->result = result;
				wave_fence();
				loom_store_relaxed_dev(&p->asked, 0u);
			}
			wave_resume(p, i, over);
		}
		ended = __shfl_sync(0xffffffffu, loom_load_relaxed_dev(&wave_ended), 0);
		if (!__any_sync(0xffffffffu, busy)) {
			c->stop_seen = 0; /* of a sample that is over */
			loom_nanosleep(LOOM_PAUSE_NS);
		} else if (pause) {
			loom_nanosleep(pause);
		}
	}
}

#endif

/* The item of a wait that is over: where the worker reads it. */
LOOM_FN const void *sync_bring(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	const char *item = sync_staged(h, k, tag);
	const void *at = k->brings ? wave_brought(c, item) : item;
	if (at)
		return at;
	sync_copy(c, sync_near(c, k, tag), item, k->bytes);
	loom_barrier_lanes(c);
	return sync_near(c, k, tag);
}

#endif
