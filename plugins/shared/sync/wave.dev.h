/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU waits: WIC as far as a GPU's stock driver allows it. A worker that waits asks the block's monitor, a warp
 * that does nothing else, and is parked by the hardware: it takes no issue slots until the monitor has seen what
 * it waits for. So k waiting workers of a block cost one polling warp, not k. Device code.
 *
 * Flags lie packed, 32 to a line, in the memory of the device whose workers wait: producers push them there,
 * and one load of the monitor's lanes sees those of neighbours. Where devices are non-coherent (struct loom_layout) no word
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

/* Over a link, unless the conf says how long. An item that comes at any time to one of 264 blocks of an H200 is there 0.3 us sooner
 * than with 400 ns, and as soon as without a pause, which leaves the link less to others. */
#define WAVE_LINK_PAUSE_NS 200u

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

/* Where devices are non-coherent: a slot's flag, in both halves, and with it four bytes each of an item that is so small. A half is
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

/* One look, which saw `seen`, at a time of `now_ns`. 1 when the wait is over; *result says how. */
LOOM_FN int wave_over(uint32_t seen, int stopped, uint32_t want, uint64_t until_ns, uint64_t now_ns, int *result)
{
	*result = sync_verdict(seen, want, stopped);
	if (*result == 1 && until_ns && now_ns >= until_ns)
		*result = LOOM_ETIMEDOUT;
	return *result != 1;
}

#ifndef LOOM_DEVICE_COMPILE
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#define sync_got(c) NULL
#define sync_settle(c) ((void)0)
#define sync_begin(c, ns) ((void)0)
#define sync_end sync_end_now
#else

#define SYNC_TOGETHER

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* the monitor looks, or the host's listener */
}

struct __attribute__((aligned(16))) wave_post {
	uint64_t barrier; /* an mbarrier of one arrival: the monitor's */
	uint64_t item;	  /* that the flag carried: the monitor's */
	/* What the worker asks. */
	uint32_t *word;
	uint64_t until_ns;
	const char *from; /* the item that comes with the resume; NULL: none */
	uint32_t bytes;	  /* a multiple of 16; 0: the flag carries it */
	uint32_t want;
	uint32_t pause; /* between two looks, ns: settings are there when workers run, not when the monitor begins */
	uint32_t asked;
	/* The answer. It stands there before, for a wait that ends well. */
	const char *at; /* the place of that item in shared memory */
	int result;
	/* The books, which are closed when the worker has time. */
	uint32_t polls;
	uint64_t since_ns, over_ns; /* when the wait began; when the look began that found what was waited for */
	/* The worker's lane 0. */
	uint32_t phase;	  /* of the barrier that comes next: parity */
	uint32_t tag;	  /* which item of `held` has its place: it lies there, or is to */
	const struct sync_channel *held; /* NULL: none */
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

/* Relaxed, and in shared memory, as no asm knows it to be. */
LOOM_FN uint32_t wave_read(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}
LOOM_FN void wave_write(uint32_t *word, uint32_t v)
{
	*(volatile uint32_t *)word = v;
}

LOOM_FN const void *sync_got(const struct loom_ctx *c)
{
	(void)c;
	return wave_post()->at;
}

LOOM_FN void sync_begin(struct loom_ctx *c, uint64_t ns)
{
	(void)c;
	wave_post()->since_ns = ns;
}
#define sync_end(c, ns) ((void)(ns)) /* the monitor takes the time */

LOOM_FN void sync_settle(struct loom_ctx *c)
{
	struct wave_post *p = wave_post();
	if (p->polls)
		sync_tell(c, polls, p->polls);
	if (p->since_ns)
		sync_tell(c, wait_ns, p->over_ns - p->since_ns);
	p->polls = 0;
	p->since_ns = 0;
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
	int carried = k->brings == WAVE_CARRIES;
	if (!k->brings || p->held || (!carried && k->bytes > sync_known(c)->setting[WAVE_LOCAL]))
		return;
	p->held = k;
	p->tag = tag;
	p->from = sync_staged(h, k, tag);
	p->at = carried ? (char *)&p->item : (char *)c->local[LOOM_SYNC];
	p->bytes = carried ? 0 : ((uint32_t)k->bytes + 15u) & ~15u;
}

LOOM_FN int wave_brought(const struct sync_channel *k, uint32_t tag)
{
	const struct wave_post *p = wave_post();
	return p->held == k && p->tag == tag;
}

LOOM_FN void sync_drop(struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	(void)c;
	if (wave_brought(k, tag))
		wave_post()->held = NULL;
}
#else
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_drop(c, k, tag) ((void)0)
#endif

/* The lanes of the worker's first warp, together, until the monitor has answered. */
LOOM_FN void wave_park(struct wave_post *p, uint32_t parity)
{
#ifdef WAVE_MBARRIER
	LOOM_NO_UNROLL
	while (!wave_passed(p, parity))
		;
#elif defined(WAVE_NAMED)
	(void)parity;
	asm volatile("bar.sync %0, 64;" ::"r"(2u + threadIdx.x / LOOM_LANES) : "memory");
	loom_fence_acquire_sys(); /* pairs with the fence before the monitor's bar.arrive */
#else
	(void)parity;
	LOOM_NO_UNROLL
	while (wave_read(&p->asked))
		loom_nanosleep(LOOM_PAUSE_NS);
	wave_fence(); /* pairs with that of the monitor */
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	struct wave_post *p = wave_post();
	uint32_t parity = p->phase;
	int result = 0;
	(void)sleepers;
	if (c->lane == 0) {
		p->word = word;
		p->want = want;
		p->pause = sync_known(c)->setting[WAVE_PAUSE_NS];
		p->until_ns = until_ns;
		p->result = 0;
		if (!p->from)
			p->at = NULL;
#ifdef WAVE_MBARRIER
		asm volatile("fence.proxy.async;" ::: "memory"); /* what lay in the item's place before */
#endif
		wave_fence(); /* release: pairs with the monitor's */
		wave_write(&p->asked, 1);
	}
	if (c->lane < 32) {
		__syncwarp();
		if (c->lane == 0)
			p->phase = parity ^ 1;
		wave_park(p, parity);
		result = p->at ? 0 : p->result;
	}
#if LOOM_LANES > 32
	result = (int)loom_from_lane0(c, (uint64_t)(int64_t)result);
#endif
	if (c->lane == 0) {
		if (result && p->from)
			p->held = NULL;
		p->from = NULL;
	}
	return result;
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

/* What a post asks: the monitor's lane keeps it while it looks. */
struct wave_task {
	const uint32_t *word;
	uint64_t until_ns;
	uint32_t want, pause, polls;
	uint32_t brings; /* how an item comes with the resume */
};

/* 1: the worker waits, and this is what for. */
LOOM_FN int wave_accept(const struct wave_post *p, struct wave_task *t)
{
	if (!wave_read(&p->asked))
		return 0;
	wave_fence(); /* acquire: pairs with the worker's release */
	t->word = p->word;
	t->until_ns = p->until_ns;
	t->polls = 0;
	t->want = p->want;
	t->pause = p->pause;
	t->brings = !p->from ? 0 : p->bytes ? WAVE_COPIES : WAVE_CARRIES;
	return 1;
}

/* What the word says, and the item that it carries. */
LOOM_FN uint32_t wave_look(const struct wave_task *t, uint64_t *item)
{
	uint64_t low, high;
	if (t->brings != WAVE_CARRIES)
		return sync_glance(t->word);
	asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(t->word - 3) : "memory");
	*item = high << 32 | (uint32_t)low;
	return (uint32_t)((sync_reached((uint32_t)(low >> 32), t->want) ? high : low) >> 32);
}

/* The wait is over: the answer, and no request any more. The barrier's release stands behind both. */
LOOM_FN void wave_answer(const struct loom_ctx *worker, struct wave_post *p, const struct wave_task *t, int result, uint64_t item,
			 uint64_t now_ns)
{
	if (t->brings == WAVE_CARRIES)
		p->item = item; /* needs no fence */
	else if (!result)
		sync_saw();
	if (result) {
		p->result = result;
		p->at = NULL;
	}
	p->over_ns = now_ns;
	p->polls += t->polls;
	loom_set_state(worker, LOOM_STATE_TASKS);
#ifndef WAVE_MBARRIER
	wave_fence();
#endif
	wave_write(&p->asked, 0);
}

/* The lanes whose workers' waits are over resume them. */
LOOM_FN void wave_resume(struct wave_post *p, int over, int copies)
{
#ifdef WAVE_MBARRIER
	if (over && copies)
		/* The copy reads what this lane has acquired, in a way of its own. The worker goes on when the bytes
		 * have come, too. */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "fence.proxy.async;\n\t"
			     "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t"
			     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];\n\t"
			     "}" ::"r"(wave_at(p)),
			     "r"(p->bytes), "r"((uint32_t)__cvta_generic_to_shared(p->at)), "l"(__cvta_generic_to_global(p->from))
			     : "memory");
	else if (over) /* release, at the block */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "mbarrier.arrive.shared::cta.b64 state, [%0];\n\t"
			     "}" ::"r"(wave_at(p))
			     : "memory");
#elif defined(WAVE_NAMED)
	(void)p, (void)copies;
	uint32_t lanes = __ballot_sync(0xffffffffu, over);
	loom_fence_release_sys();
	LOOM_NO_UNROLL
	for (; lanes; lanes &= lanes - 1)
		asm volatile("bar.arrive %0, 64;" ::"r"(2u + (uint32_t)__ffs((int)lanes) - 1) : "memory");
#else
	(void)p, (void)over, (void)copies;
#endif
}

/* A lane for a worker. Until all workers have left the kernel: who has left does not wait. Beside warps that compute each
 * instruction of a round waits for its turn, so there are few. */
LOOM_FN void SYNC_OP(watch)(struct loom_ctx *c)
{
	static_assert(LOOM_WORKERS_PER_BLOCK <= 32, "a block has 1,024 threads, and a worker 32");
	struct wave_post *p = &wave_posts[c->lane % LOOM_WORKERS_PER_BLOCK];
	struct wave_task t = {};
	struct loom_ctx worker = *c; /* this lane's */
	int waits = 0;
	worker.worker -= LOOM_WORKERS_PER_BLOCK - c->lane; /* the monitor stands behind the last */
	worker.lane = 0;
	LOOM_NO_UNROLL
	for (;;) {
		if (!waits && c->lane < LOOM_WORKERS_PER_BLOCK)
			waits = wave_accept(p, &t);
		if (!__any_sync(0xffffffffu, waits)) {
			if (__shfl_sync(0xffffffffu, wave_read(&wave_ended), 0) == LOOM_WORKERS_PER_BLOCK)
				return;
			c->stop_seen = 0; /* of a sample that is over */
			loom_nanosleep(LOOM_PAUSE_NS);
			continue;
		}
		/* Before the looks, which take longer: a fence behind them would wait for this one, too. */
		int stopped = loom_stopped(c), over = 0, result = 0;
		uint64_t item = 0, now_ns = loom_clock_ns(c);
		if (waits) {
			t.polls++;
			over = wave_over(wave_look(&t, &item), stopped, t.want, t.until_ns, now_ns, &result);
		}
		if (over)
			wave_answer(&worker, p, &t, result, item, now_ns);
		wave_resume(p, over, t.brings == WAVE_COPIES && !result);
		waits &= !over;
		if (t.pause)
			loom_nanosleep(t.pause);
	}
}

#endif

/* The item of a wait that is over: where the worker reads it. */
LOOM_FN const void *sync_bring(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	const char *item = sync_staged(h, k, tag);
	if (!k->brings)
		return item;
	sync_copy(c, sync_near(c, k, tag), item, k->bytes);
	loom_barrier_lanes(c);
	return sync_near(c, k, tag);
}

#endif
