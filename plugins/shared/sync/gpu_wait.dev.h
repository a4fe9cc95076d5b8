/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker of a GPU waits, for sync_warp, sync_futex and sync_wic: WIC as far as a GPU's stock driver allows it.
 * Device code.
 *
 * A waiting worker writes a request for the block's monitor, a warp that does nothing else. The hardware parks the
 * worker, which takes no issue slots until the monitor has polled the word with success. So k waiting workers of a
 * block cost one polling warp, not k.
 *
 * Flags are packed, 32 to a line, in the memory of the device whose workers wait. Producers store them there, and one
 * load of the monitor's lanes covers the flags of neighbours. Where devices are non-coherent (struct loom_layout) no
 * word has two writers. Flags and items are then in the host's memory, a producer stores the number of rounds, and an
 * item whose consumers are on a GPU is copied to the GPU. An item of 8 bytes is in the flag, which saves a trip over
 * the link.
 *
 * A request belongs to one worker and is in shared memory. The worker writes it and then `pending` (release). The
 * monitor reads the request after `pending` (acquire), writes the result, and resumes the worker through the barrier.
 * The barrier orders the result, and what the monitor has acquired at the flag, before the worker's next steps. From
 * sm_90 on the monitor starts a copy of the item into the worker's shared memory. The barrier counts its bytes, too:
 * the worker resumes when they have arrived, and the monitor does not wait for them. Model:
 * tests/models/gpu_wait.pml. */
#ifndef SYNC_GPU_WAIT_DEV_H
#define SYNC_GPU_WAIT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_GPU_WAIT

/* Settings after those of the plug-in. SYNC_PAUSE_NS: a monitor's pause between two polls. SYNC_LOCAL_BYTES: bytes of a
 * worker's private memory for one item. SYNC_COUNTS = 1: changes of words are counted, for a listener that sleeps while
 * it waits (listener.h). SYNC_GPUS: one bit for each device that is a GPU. */
enum sync_setting { SYNC_PAUSE_NS = 10, SYNC_LOCAL_BYTES, SYNC_COUNTS, SYNC_GPUS, SYNC_GPUS_MORE };

/* The pause over a link, unless an option sets it. An item for one of 264 blocks of an H200 arrives 0.3 us sooner than
 * with 400 ns. Without a pause an item arrives no sooner, but polls take more of the link from other transfers. */
#define SYNC_LINK_PAUSE_NS 200u

/* How an item reaches a GPU. SYNC_BY_COPY also means that there is memory for a copy. */
enum sync_delivery { SYNC_BY_COPY = 1, SYNC_IN_FLAG };

#define SYNC_FLAGS_PER_LINE 32u /* number of flags in a line */
#define SYNC_LINE_BYTES     128u

/* Returns the worker whose block has a slot's flag, after the counters. Lines are spread over the device's workers. */
LOOM_FN uint32_t sync_flag_home(const struct sync_channel *k, uint32_t slot)
{
	return k->first + slot / SYNC_FLAGS_PER_LINE % k->count;
}

LOOM_FN uint32_t *sync_flag(char *block, const struct sync_channel *k, uint32_t slot)
{
	return (uint32_t *)(block + k->flag_at + slot / SYNC_FLAGS_PER_LINE / k->count * SYNC_LINE_BYTES) +
	       slot % SYNC_FLAGS_PER_LINE;
}

/* Where devices are non-coherent: both halves of a slot's flag hold the flag and four bytes of an item of up to 8
 * bytes. A half is stored at once. Loads of several multiprocessors from the same 32 bytes of host memory are
 * serialised, so no two slots share them. */
struct sync_flag_word {
	uint64_t half[2], pad[2]; /* rounds << 32 | bytes */
};

LOOM_FN struct sync_flag_word *sync_flag_word(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (struct sync_flag_word *)((char *)h + k->word_at) + tag % k->slots;
}

LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint32_t slot = tag % k->slots;
	if (k->word_at)
		return (uint32_t *)&sync_flag_word(h, k, tag)->half[1] + 1;
	if (!k->count)
		return &sync_slot(h, k, tag)->full;
	return sync_flag((char *)loom_public(c, LOOM_SYNC, sync_flag_home(k, slot)), k, slot);
}

LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (k->word_at)
		return (uint32_t *)((char *)c->on_device[LOOM_SYNC] + k->done_at) + tag % k->slots;
	return &sync_slot(h, k, tag)->done;
}

/* Returns whether the device is a GPU, or a CPU that emulates one in tests. */
LOOM_FN int sync_is_gpu(const struct sync_head *local, uint32_t device)
{
	return local->setting[SYNC_GPUS + device / 32] >> device % 32 & 1;
}

/* Returns 1 if the listener, and not the caller, wakes waiters of a word that the caller has changed. */
LOOM_FN int sync_listener_wakes(const struct loom_ctx *c)
{
	return c->on_device[LOOM_SYNC] && sync_is_gpu(sync_local_head(c), c->device);
}

/* With SYNC_COUNTS the listener sleeps until GPUs have changed more words than it has seen change. CPUs count their
 * changes, too, each before they store the word. */
LOOM_FN void sync_store_rounds(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			       uint32_t *word, uint32_t rounds, const void *item)
{
	const struct sync_head *local = sync_local_head(c);
	if (!k->word_at) {
		loom_fetch_add_acq_rel_sys(word, 1u); /* an add keeps the poison bit */
		return;
	}
	int gpu = sync_is_gpu(local, c->device), counts = local->setting[SYNC_COUNTS] != 0;
	if (counts && !gpu)
		loom_fetch_add_relaxed_sys(&h->raised_by_cpus, (uint64_t)1);
	rounds &= SYNC_ROUNDS;
	if (item && k->delivery == SYNC_IN_FLAG) {
		uint64_t *half = (uint64_t *)(word - 3), both = *(const uint64_t *)item;
		loom_store_relaxed_sys(half, (uint64_t)rounds << 32 | (uint32_t)both);
		loom_store_release_sys(half + 1, (uint64_t)rounds << 32 | both >> 32);
	} else {
		loom_store_release_sys(word, rounds); /* over a link a store is posted and stalls no thread */
	}
	if (counts && gpu)
		loom_fetch_add_relaxed_dev((uint64_t *)c->on_device[LOOM_SYNC], (uint64_t)1);
}

/* Returns the copy of an item in the memory of the consumers' device. */
LOOM_FN char *sync_item_copy(const struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	return (char *)c->on_device[LOOM_SYNC] + k->copy_at + tag % k->slots * k->stride;
}

/* Judges a poll that loaded `seen` at `now_ns`. Returns 1 if the wait is over; *result is then its result. */
LOOM_FN int sync_wait_over(uint32_t seen, int stopped, uint32_t want, uint64_t until_ns, uint64_t now_ns, int *result)
{
	*result = sync_check(seen, want, stopped);
	if (*result == 1 && until_ns && now_ns >= until_ns)
		*result = LOOM_ETIMEDOUT;
	return *result != 1;
}

#ifndef LOOM_DEVICE_COMPILE
#define sync_request_item(c, h, k, tag) ((void)0)
#define sync_drop_item(c, k, tag)       ((void)0)
#define sync_delivered(c)               NULL
#define sync_flush_counters(c)          ((void)0)
#define sync_wait_begin(c, ns)          ((void)0)
#define sync_wait_end                   sync_wait_end_now
#else

#define SYNC_ALL_LANES       1

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* the monitor polls the word, or the host's listener does */
}

struct __attribute__((aligned(16))) gpu_wait_request {
	uint64_t barrier; /* used by the monitor: an mbarrier of one arrival */
	uint64_t item;    /* written by the monitor: an item that was in the flag */
	/* The request. */
	uint32_t *word;
	uint64_t until_ns;
	const char *from; /* the item to copy before the resume; NULL: none */
	uint32_t bytes;   /* a multiple of 16; 0: the item is in the flag */
	uint32_t want;
	/* ns between two polls; the monitor starts before the settings are written, so the worker passes them on */
	uint32_t pause;
	uint32_t pending; /* 1: the monitor must serve the request */
	/* The result. The worker fills it in for a wait without errors; the monitor changes it otherwise. */
	const char *at; /* destination of the item in shared memory */
	int result;
	/* Counters, which the worker writes out when that delays nothing. */
	uint32_t polls;
	uint64_t since_ns, over_ns; /* start of the wait; start of the successful poll */
	/* State of the worker's lane 0. */
	uint32_t phase;                  /* parity of the barrier's next phase */
	uint32_t tag;                    /* the item of `held` for which the worker's place is used */
	const struct sync_channel *held; /* NULL: the place is free */
};

static __shared__ struct gpu_wait_request gpu_wait_requests[LOOM_WORKERS_PER_BLOCK];
static __shared__ uint32_t gpu_workers_ended; /* number of workers that have left the kernel */

LOOM_FN struct gpu_wait_request *gpu_wait_request(void)
{
	return &gpu_wait_requests[threadIdx.x / LOOM_LANES];
}

/* A fence at block scope, between a worker and its monitor. */
LOOM_FN void gpu_wait_fence(void)
{
	asm volatile("fence.acq_rel.cta;" ::: "memory");
}

/* Relaxed accesses to shared memory; inline assembly would use generic addresses. */
LOOM_FN uint32_t gpu_wait_read(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}
LOOM_FN void gpu_wait_write(uint32_t *word, uint32_t v)
{
	*(volatile uint32_t *)word = v;
}

LOOM_FN const void *sync_delivered(const struct loom_ctx *c)
{
	(void)c;
	return gpu_wait_request()->at;
}

LOOM_FN void sync_wait_begin(struct loom_ctx *c, uint64_t ns)
{
	(void)c;
	gpu_wait_request()->since_ns = ns;
}
#define sync_wait_end(c, ns) ((void)(ns)) /* the monitor stores the time */

LOOM_FN void sync_flush_counters(struct loom_ctx *c)
{
	struct gpu_wait_request *p = gpu_wait_request();
	if (p->polls)
		sync_add(c, polls, p->polls);
	if (p->since_ns)
		sync_add(c, wait_ns, p->over_ns - p->since_ns);
	p->polls = 0;
	p->since_ns = 0;
}

/* How a warp is parked. From sm_90 on, waiting for an mbarrier suspends it. On older GPUs a named barrier does, which a
 * monitor joins without waiting; there are 16, of which two are in use. With more workers in a block, workers sleep,
 * and poll their request instead of memory. */
#if __CUDA_ARCH__ >= 900
#define GPU_WAIT_MBARRIER
#elif LOOM_WORKERS_PER_BLOCK <= 14
#define GPU_WAIT_NAMED
#endif

#ifdef GPU_WAIT_MBARRIER
LOOM_FN uint32_t gpu_wait_mbarrier(const struct gpu_wait_request *p)
{
	return (uint32_t)__cvta_generic_to_shared(&p->barrier);
}

LOOM_FN int gpu_wait_passed(const struct gpu_wait_request *p, uint32_t parity)
{
	uint32_t done;
	/* Acquire at block scope: pairs with the release of the arrival. The wait may end early, after a time-out. */
	asm volatile("{\n\t"
		     ".reg .pred p;\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000000;\n\t"
		     "selp.u32 %0, 1, 0, p;\n\t"
		     "}"
		     : "=r"(done)
		     : "r"(gpu_wait_mbarrier(p)), "r"(parity)
		     : "memory");
	return (int)done;
}

/* A worker has one item in flight. An item that the worker has not released yet keeps the place. */
LOOM_FN void sync_request_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	struct gpu_wait_request *p = gpu_wait_request();
	int carried = k->delivery == SYNC_IN_FLAG;
	if (!k->delivery || p->held || (!carried && k->bytes > sync_local_head(c)->setting[SYNC_LOCAL_BYTES]))
		return;
	p->held = k;
	p->tag = tag;
	p->from = sync_item(h, k, tag);
	p->at = carried ? (char *)&p->item : (char *)c->local[LOOM_SYNC];
	p->bytes = carried ? 0 : ((uint32_t)k->bytes + 15u) & ~15u;
}

LOOM_FN int gpu_wait_has_item(const struct sync_channel *k, uint32_t tag)
{
	const struct gpu_wait_request *p = gpu_wait_request();
	return p->held == k && p->tag == tag;
}

LOOM_FN void sync_drop_item(struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	(void)c;
	if (gpu_wait_has_item(k, tag))
		gpu_wait_request()->held = NULL;
}
#else
#define sync_request_item(c, h, k, tag) ((void)0)
#define sync_drop_item(c, k, tag)       ((void)0)
#endif

/* Parks the lanes of the worker's first warp until the monitor has written the result. */
LOOM_FN void gpu_wait_park(struct gpu_wait_request *p, uint32_t parity)
{
#ifdef GPU_WAIT_MBARRIER
	LOOM_NO_UNROLL
	while (!gpu_wait_passed(p, parity))
		;
#elif defined(GPU_WAIT_NAMED)
	(void)parity;
	asm volatile("bar.sync %0, 64;" ::"r"(2u + threadIdx.x / LOOM_LANES) : "memory");
	loom_fence_acquire_sys(); /* the fence pairs with that before the monitor's bar.arrive */
#else
	(void)parity;
	LOOM_NO_UNROLL
	while (gpu_wait_read(&p->pending))
		loom_nanosleep(LOOM_PAUSE_NS);
	gpu_wait_fence(); /* the fence pairs with the monitor's */
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	struct gpu_wait_request *p = gpu_wait_request();
	uint32_t parity = p->phase;
	int result = 0;
	(void)sleepers;
	if (c->lane == 0) {
		p->word = word;
		p->want = want;
		p->pause = sync_local_head(c)->setting[SYNC_PAUSE_NS];
		p->until_ns = until_ns;
		p->result = 0;
		if (!p->from)
			p->at = NULL;
#ifdef GPU_WAIT_MBARRIER
		/* The fence orders earlier accesses to the item's place before the copy. */
		asm volatile("fence.proxy.async;" ::: "memory");
#endif
		gpu_wait_fence(); /* release: pairs with the monitor's fence */
		gpu_wait_write(&p->pending, 1);
	}
	if (c->lane < 32) {
		__syncwarp();
		if (c->lane == 0)
			p->phase = parity ^ 1;
		gpu_wait_park(p, parity);
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
	struct gpu_wait_request none = {};
	LOOM_NO_UNROLL
	for (uint32_t i = threadIdx.x; i < LOOM_WORKERS_PER_BLOCK; i += blockDim.x) {
		gpu_wait_requests[i] = none;
#ifdef GPU_WAIT_MBARRIER
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(gpu_wait_mbarrier(&gpu_wait_requests[i]))
			     : "memory");
#endif
	}
	if (threadIdx.x == 0)
		gpu_workers_ended = 0;
	__syncthreads();
}

LOOM_FN void SYNC_OP(watch_end)(struct loom_ctx *c)
{
	if (c->lane == 0)
		loom_fetch_add_relaxed_dev(&gpu_workers_ended, 1u);
}

/* The copy of a request that the monitor's lane keeps while it polls. */
struct gpu_wait_task {
	const uint32_t *word;
	uint64_t until_ns;
	uint32_t want, pause, polls;
	uint32_t delivery; /* enum sync_delivery of the item; 0: none */
};

/* Returns 1 if the worker waits; *t is then its request. */
LOOM_FN int gpu_wait_accept(const struct gpu_wait_request *p, struct gpu_wait_task *t)
{
	if (!gpu_wait_read(&p->pending))
		return 0;
	gpu_wait_fence(); /* acquire: pairs with the worker's release */
	t->word = p->word;
	t->until_ns = p->until_ns;
	t->polls = 0;
	t->want = p->want;
	t->pause = p->pause;
	t->delivery = !p->from ? 0 : p->bytes ? SYNC_BY_COPY : SYNC_IN_FLAG;
	return 1;
}

/* Returns the number of rounds, and the item in the flag. */
LOOM_FN uint32_t gpu_wait_poll(const struct gpu_wait_task *t, uint64_t *item)
{
	uint64_t low, high;
	if (t->delivery != SYNC_IN_FLAG)
		return sync_poll_word(t->word);
	asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(t->word - 3) : "memory");
	*item = high << 32 | (uint32_t)low;
	return (uint32_t)((sync_reached((uint32_t)(low >> 32), t->want) ? high : low) >> 32);
}

/* For a wait that is over: writes the result and ends the request. The release of the barrier follows both. */
LOOM_FN void gpu_wait_answer(const struct loom_ctx *worker, struct gpu_wait_request *p, const struct gpu_wait_task *t,
			     int result, uint64_t item, uint64_t now_ns)
{
	if (t->delivery == SYNC_IN_FLAG)
		p->item = item; /* ordered by that release, too */
	else if (!result)
		sync_acquire();
	if (result) {
		p->result = result;
		p->at = NULL;
	}
	p->over_ns = now_ns;
	p->polls += t->polls;
	loom_set_state(worker, LOOM_STATE_TASKS);
#ifndef GPU_WAIT_MBARRIER
	gpu_wait_fence();
#endif
	gpu_wait_write(&p->pending, 0);
}

/* Each lane whose worker's wait is over resumes this worker. */
LOOM_FN void gpu_wait_resume(struct gpu_wait_request *p, int over, int copies)
{
#ifdef GPU_WAIT_MBARRIER
	if (over && copies)
		/* The fence orders what this lane has acquired before the copy, which is in the asynchronous proxy. The
		 * worker resumes when the bytes have arrived, too. */
		asm volatile(
		    "{\n\t"
		    ".reg .b64 state;\n\t"
		    "fence.proxy.async;\n\t"
		    "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t"
		    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];\n\t"
		    "}" ::"r"(gpu_wait_mbarrier(p)),
		    "r"(p->bytes), "r"((uint32_t)__cvta_generic_to_shared(p->at)),
		    "l"(__cvta_generic_to_global(p->from))
		    : "memory");
	else if (over) /* release, at block scope */
		asm volatile("{\n\t"
			     ".reg .b64 state;\n\t"
			     "mbarrier.arrive.shared::cta.b64 state, [%0];\n\t"
			     "}" ::"r"(gpu_wait_mbarrier(p))
			     : "memory");
#elif defined(GPU_WAIT_NAMED)
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

/* Each lane serves one worker until all workers have left the kernel. Each instruction of a round waits for an issue
 * slot beside warps that compute, so there are few. */
LOOM_FN void SYNC_OP(watch)(struct loom_ctx *c)
{
	static_assert(LOOM_WORKERS_PER_BLOCK <= 32, "a block has 1,024 threads, and a worker 32");
	struct gpu_wait_request *p = &gpu_wait_requests[c->lane % LOOM_WORKERS_PER_BLOCK];
	struct gpu_wait_task t = {};
	struct loom_ctx worker = *c; /* context of this lane's worker */
	int waits = 0;
	worker.worker -= LOOM_WORKERS_PER_BLOCK - c->lane; /* the monitor follows the last worker of the block */
	worker.lane = 0;
	LOOM_NO_UNROLL
	for (;;) {
		if (!waits && c->lane < LOOM_WORKERS_PER_BLOCK)
			waits = gpu_wait_accept(p, &t);
		if (!__any_sync(0xffffffffu, waits)) {
			if (__shfl_sync(0xffffffffu, gpu_wait_read(&gpu_workers_ended), 0) == LOOM_WORKERS_PER_BLOCK)
				return;
			c->stop_seen = 0; /* a value of the previous sample */
			loom_nanosleep(LOOM_PAUSE_NS);
			continue;
		}
		/* Before the polls, which take longer: a fence after them would wait for this load, too. */
		int stopped = loom_stopped(c), over = 0, result = 0;
		uint64_t item = 0, now_ns = loom_clock_ns(c);
		if (waits) {
			t.polls++;
			over = sync_wait_over(gpu_wait_poll(&t, &item), stopped, t.want, t.until_ns, now_ns, &result);
		}
		if (over)
			gpu_wait_answer(&worker, p, &t, result, item, now_ns);
		gpu_wait_resume(p, over, t.delivery == SYNC_BY_COPY && !result);
		waits &= !over;
		if (t.pause)
			loom_nanosleep(t.pause);
	}
}

#endif

/* Returns where the worker reads the item after a wait. */
LOOM_FN const void *sync_read_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	const char *item = sync_item(h, k, tag);
	if (!k->delivery)
		return item;
	sync_copy(c, sync_item_copy(c, k, tag), item, k->bytes);
	loom_barrier_lanes(c);
	return sync_item_copy(c, k, tag);
}

#endif
