/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker of a GPU waits, in sync_warp, sync_futex and sync_wic: WIC as far as an unmodified GPU driver permits.
 * Device code.
 *
 * Each block has a monitor, a warp that does nothing else. A worker that waits writes a request for the monitor, and
 * the hardware suspends the worker. The worker takes no issue slots until the monitor has found that the word has the
 * wanted value. So k waiting workers of a block cost one polling warp instead of k.
 *
 * The flag of a slot holds its word `full`. With sync_warp, flags are in the memory of the device whose workers wait. A
 * producer on another device stores the flag over the link, and the monitor polls memory of its own device. If devices
 * are non-coherent (struct loom_layout), flags and items are in host memory, and items for consumers on a GPU are
 * copied to the GPU. In both cases no word has two writers, and a producer stores the number of rounds. An item of up
 * to 8 bytes is stored with the flag. This saves a fence of the producer, which would wait until the item has crossed
 * the link, a fence of the monitor, and a trip to the item.
 *
 * A request belongs to one worker and is in shared memory. The worker writes it and then `pending` (release). The
 * monitor reads the request after `pending` (acquire), writes the result, and resumes the worker through a barrier. The
 * barrier orders the result, and what the monitor has acquired at the flag, before the worker's next steps. From sm_90
 * on, the monitor also starts a copy of the item into the worker's shared memory. The barrier counts the bytes of the
 * copy. So the worker resumes when all bytes have arrived, and the monitor need not wait for them.
 * Model: tests/models/gpu_wait.pml. */
#ifndef SYNC_GPU_WAIT_DEV_H
#define SYNC_GPU_WAIT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_GPU_WAIT

/* Indices in sync_head.setting, after the settings of the plug-in. SYNC_PAUSE_NS: the monitor's pause between two
 * polls. SYNC_LOCAL_BYTES: bytes of a worker's scratchpad memory for one item. SYNC_COUNTS: 1 if changes of words are
 * counted, for a listener that sleeps (listener.h). SYNC_GPUS: one bit per device, 1 if it is a GPU. */
enum sync_setting { SYNC_PAUSE_NS = 10, SYNC_LOCAL_BYTES, SYNC_COUNTS, SYNC_GPUS, SYNC_GPUS_MORE };

/* Value of the setting SYNC_PAUSE_NS if the monitor polls over a link and no option sets the pause. With 264 blocks of
 * an H200, an item arrives 0.3 us sooner than with 400 ns. Without a pause an item arrives no sooner, and polls take
 * more of the link's rate from transfers. */
#define SYNC_LINK_PAUSE_NS 200u

/* How an item reaches its consumer: as a copy, for which the device's block has memory, or with the flag. */
enum sync_delivery { SYNC_BY_COPY = 1, SYNC_IN_FLAG };

/* The flag of a slot. Each half holds the flag and four bytes of an item of up to 8 bytes. So a half is complete by
 * itself, and the two halves may arrive in any order. Slots are 32 bytes apart, because loads of several
 * multiprocessors from the same 32 bytes of host memory are serialised. */
struct sync_flag_word {
	uint64_t half[2], pad[2]; /* each half: rounds << 32 | four bytes of the item */
};

/* An item that a producer writes in place before it stores the item with its flag is so far behind the copy of the
 * item, in the block of the producer's device. */
#define SYNC_STAGED_AT 32u

/* sync_near(k) is 1 if flags are in the blocks of workers (struct sync_channel). A composed program has code for one of
 * the two layouts, because code for both would take registers of waiting threads. */
#ifndef LOOM_DEVICE_COMPILE
#define sync_near(k) ((k)->homes != 0)
#elif defined(SYNC_NEAR)
#define sync_near(k) SYNC_NEAR
#else
#define sync_near(k) 0
#endif
#if defined(LOOM_DEVICE_COMPILE) && defined(SYNC_NEAR)
#define sync_has_flags(k) 1
#else
#define sync_has_flags(k) ((k)->word_at != 0)
#endif
#define sync_by_copy(k) (!sync_near(k) && (k)->delivery == SYNC_BY_COPY)

/* Returns the block of the worker that has the flag of a slot. */
LOOM_FN char *sync_home(const struct loom_ctx *c, const struct sync_channel *k, uint32_t slot)
{
	return (char *)loom_public(c, LOOM_SYNC, k->first + (slot >> k->shift));
}

LOOM_FN struct sync_flag_word *sync_flag_word(const struct loom_ctx *c, struct sync_head *h,
					      const struct sync_channel *k, uint32_t tag)
{
	uint32_t slot = tag % k->slots;
	if (!sync_near(k))
		return (struct sync_flag_word *)((char *)h + k->word_at) + slot;
	return (struct sync_flag_word *)(sync_home(c, k, slot) + k->word_at) + (slot & ((1u << k->shift) - 1));
}

LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (sync_has_flags(k))
		return (uint32_t *)&sync_flag_word(c, h, k, tag)->half[1] + 1;
	return &sync_slot(h, k, tag)->full;
}

LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (sync_has_flags(k))
		return (uint32_t *)((char *)c->on_device[LOOM_SYNC] + k->done_at) + tag % k->slots;
	return &sync_slot(h, k, tag)->done;
}

/* Returns 1 if the device is a GPU, or a CPU that emulates a GPU in tests. */
LOOM_FN int sync_is_gpu(const struct sync_head *local, uint32_t device)
{
	return local->setting[SYNC_GPUS + device / 32] >> device % 32 & 1;
}

/* Returns 1 if the listener wakes the waiters of a word that the caller has changed. Otherwise the caller must wake
 * them. */
LOOM_FN int sync_listener_wakes(const struct loom_ctx *c)
{
	return c->on_device[LOOM_SYNC] && sync_is_gpu(sync_local_head(c), c->device);
}

/* Stores the number of rounds to a word. With SYNC_COUNTS it also counts the change, because the listener sleeps until
 * the count of changes exceeds the number of changes that it has seen. A CPU counts before the store, as listener.h
 * requires. */
LOOM_FN void sync_store_rounds(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			       uint32_t *word, uint32_t rounds, const void *item)
{
	const struct sync_head *local = sync_local_head(c);
	if (!sync_has_flags(k)) {
		loom_fetch_add_acq_rel_sys(word, 1u); /* an add, because a store would clear the poison bit */
		return;
	}
	int gpu = sync_is_gpu(local, c->device), counts = !sync_near(k) && local->setting[SYNC_COUNTS] != 0;
	if (counts && !gpu)
		loom_fetch_add_relaxed_sys(&h->raised_by_cpus, (uint64_t)1);
	rounds &= SYNC_ROUNDS;
	if (item && k->delivery == SYNC_IN_FLAG) {
		uint64_t both = *(const uint64_t *)item;
		/* Without order, because the item is in the flag: sync_flag_rounds(). */
		loom_store_marked_sys((uint64_t *)(word - 3), (uint64_t)rounds << 32 | (uint32_t)both,
				      (uint64_t)rounds << 32 | both >> 32);
	} else {
		loom_store_release_sys(word, rounds); /* no thread waits until a store has crossed the link */
	}
	if (counts && gpu)
		loom_fetch_add_relaxed_dev((uint64_t *)c->on_device[LOOM_SYNC], (uint64_t)1);
}

/* Returns the number of rounds of a flag that has an item. It reaches `want` only if both halves do. *item: the item,
 * if it has arrived. */
LOOM_FN uint32_t sync_flag_rounds(uint64_t low, uint64_t high, uint32_t want, uint64_t *item)
{
	*item = high << 32 | (uint32_t)low;
	return (uint32_t)((sync_reached((uint32_t)(low >> 32), want) ? high : low) >> 32);
}

/* Loads the item of a flag of which one half has reached `want`. The other half comes with it or soon. Not inlined, as
 * sync_copy_by(). */
LOOM_LEAF void sync_load_flag(const uint32_t *word, uint32_t want, uint64_t *item)
{
	uint64_t low, high;
	do
		high = loom_load_marked_sys((const uint64_t *)(word - 3), &low);
	while (!sync_reached(sync_flag_rounds(low, high, want, item), want));
}

/* Returns the copy of an item in the memory of the consumers' device. */
LOOM_FN char *sync_item_copy(const struct loom_ctx *c, const struct sync_channel *k, uint32_t tag)
{
	return (char *)c->on_device[LOOM_SYNC] + k->copy_at + tag % k->slots * k->stride;
}

/* Returns the place at which a producer writes an item, and consumers read it unless k->delivery is set. */
LOOM_FN char *sync_place(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint32_t slot = tag % k->slots;
	if (sync_near(k) && k->delivery == SYNC_IN_FLAG)
		return sync_item_copy(c, k, tag) + SYNC_STAGED_AT;
	if (sync_near(k) && k->near)
		return sync_home(c, k, slot) + k->data_at + (slot & ((1u << k->shift) - 1)) * k->stride;
	return sync_item(h, k, tag);
}

/* Checks the result of a poll that has loaded `seen` at time now_ns. Returns 1 if the wait is over, and sets *result to
 * its result. */
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
	(void)c, (void)word, (void)sleepers; /* nothing to do: a monitor or the host's listener polls the word */
}

struct __attribute__((aligned(16))) gpu_wait_request {
	uint64_t barrier; /* an mbarrier with one arrival, by the monitor */
	uint64_t item;    /* written by the monitor: an item that was stored with the flag */
	/* The request: the word, and the deadline or 0. */
	uint32_t *word;
	uint64_t until_ns;
	const char *from; /* address of the item to be delivered; NULL: none */
	uint32_t bytes;   /* bytes to copy, a multiple of 16; 0: the item is in the flag */
	uint32_t want;
	/* ns between two polls. This pause is part of the request, because the monitor starts before the settings are
	 * written. */
	uint32_t pause;
	uint32_t pending; /* 1: the request is complete, and not answered */
	/* The result. The worker sets it for the case of success. The monitor changes it if the wait fails. */
	const char *at; /* where the worker reads the item; NULL: not known yet */
	int result;
	/* Counters. The worker adds them to its sync_counters at a time when this delays nothing. */
	uint32_t polls;
	uint64_t since_ns, over_ns; /* start time of the wait; start time of the last poll */
	/* State of the worker that only its lane 0 changes. */
	uint32_t phase;                  /* parity of the barrier's present phase */
	uint32_t tag;                    /* tag of the item in the worker's scratchpad memory */
	const struct sync_channel *held; /* channel of that item; NULL: there is none */
};

static __shared__ struct gpu_wait_request gpu_wait_requests[LOOM_WORKERS_PER_BLOCK];
static __shared__ uint32_t gpu_workers_ended; /* number of workers that have left the kernel */

LOOM_FN struct gpu_wait_request *gpu_wait_request(void)
{
	return &gpu_wait_requests[threadIdx.x / LOOM_LANES];
}

/* A fence at block scope. It orders accesses of a worker and of its monitor. */
LOOM_FN void gpu_wait_fence(void)
{
#ifdef __CUDA_ARCH__
	asm volatile("fence.acq_rel.cta;" ::: "memory");
#else /* a test runs the block on the CPU */
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

/* Relaxed accesses to shared memory. They are volatile accesses, because inline assembly would use generic
 * addresses. */
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

/* How a worker is suspended. From sm_90 on, a wait for an mbarrier suspends a warp. On older GPUs a named barrier
 * suspends it; the monitor arrives at this barrier without waiting. A block has 16 named barriers, of which two have
 * other uses. If a block has more workers than free barriers, the workers sleep and poll `pending`. */
#if __CUDA_ARCH__ >= 900
#define GPU_WAIT_MBARRIER
#elif defined(__CUDA_ARCH__) && LOOM_WORKERS_PER_BLOCK <= 14
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
	/* Acquire at block scope: pairs with the release of the arrival. The instruction may time out and return 0
	 * early. */
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

/* Adds the item to the request, if it can be delivered. A worker has memory for one item. If it holds an item that the
 * worker has not released yet, the next item is not delivered. */
LOOM_FN void sync_request_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	struct gpu_wait_request *p = gpu_wait_request();
	int carried = k->delivery == SYNC_IN_FLAG;
	/* An item that stays in place needs no delivery. Its address is known now, and need not be computed after the
	 * wait, when constants have left the cache. */
	p->at = k->delivery ? NULL : sync_place(c, h, k, tag);
	if (!k->delivery || p->held || (sync_by_copy(k) && k->bytes > sync_local_head(c)->setting[SYNC_LOCAL_BYTES]))
		return;
	p->held = k;
	p->tag = tag;
	p->from = sync_place(c, h, k, tag);
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

/* Suspends the first warp of the worker until the monitor has written the result. */
LOOM_FN void gpu_wait_park(struct gpu_wait_request *p, uint32_t parity)
{
#ifdef GPU_WAIT_MBARRIER
	LOOM_NO_UNROLL
	while (!gpu_wait_passed(p, parity))
		;
#elif defined(GPU_WAIT_NAMED)
	(void)parity;
	asm volatile("bar.sync %0, 64;" ::"r"(2u + threadIdx.x / LOOM_LANES) : "memory");
	loom_fence_acquire_sys(); /* pairs with the fence before the monitor's bar.arrive */
#else
	(void)parity;
	LOOM_NO_UNROLL
	while (gpu_wait_read(&p->pending))
		loom_nanosleep(LOOM_PAUSE_NS);
	gpu_wait_fence(); /* pairs with the fence in gpu_wait_answer() */
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
#ifdef GPU_WAIT_MBARRIER
		/* This fence orders earlier accesses to the item's memory before the copy. */
		asm volatile("fence.proxy.async;" ::: "memory");
#endif
		gpu_wait_fence(); /* release: pairs with the fence in gpu_wait_accept() */
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

/* The copy of a request that a lane of the monitor uses while it polls. */
struct gpu_wait_task {
	const uint32_t *word;
	uint64_t until_ns;
	uint32_t want, pause, polls;
	uint32_t delivery; /* enum sync_delivery of the item; 0: none */
};

/* Returns 1 and copies the request to *t, if the worker waits. */
LOOM_FN int gpu_wait_accept(const struct gpu_wait_request *p, struct gpu_wait_task *t)
{
	if (!gpu_wait_read(&p->pending))
		return 0;
	gpu_wait_fence(); /* acquire: pairs with the release in sync_await() */
	t->word = p->word;
	t->until_ns = p->until_ns;
	t->polls = 0;
	t->want = p->want;
	t->pause = p->pause;
	t->delivery = !p->from ? 0 : p->bytes ? SYNC_BY_COPY : SYNC_IN_FLAG;
	return 1;
}

/* Polls the word. Returns its number of rounds. *item: the item, if it is in the flag. */
LOOM_FN uint32_t gpu_wait_poll(const struct gpu_wait_task *t, uint64_t *item)
{
	if (t->delivery != SYNC_IN_FLAG)
		return sync_poll_word(t->word);
	uint64_t low, high = loom_load_marked_sys((const uint64_t *)(t->word - 3), &low);
	return sync_flag_rounds(low, high, t->want, item);
}

/* Writes the result of a wait that is over, and ends the request. The release in gpu_wait_resume() follows. */
LOOM_FN void gpu_wait_answer(const struct loom_ctx *worker, struct gpu_wait_request *p, const struct gpu_wait_task *t,
			     int result, uint64_t item, uint64_t now_ns)
{
	if (t->delivery == SYNC_IN_FLAG)
		p->item = item; /* this store also precedes the release in gpu_wait_resume() */
	else if (!result)
		sync_acquire();
	if (result) {
		p->result = result;
		p->at = NULL;
	}
	p->over_ns = now_ns;
	p->polls = t->polls; /* 0 before, because the worker has added the polls of its last wait to its counter */
	loom_set_state(worker, LOOM_STATE_TASKS);
#ifndef GPU_WAIT_MBARRIER
	gpu_wait_fence();
#endif
	gpu_wait_write(&p->pending, 0);
}

/* Resumes the worker of this lane, if over = 1. copies: 1 if the item is copied first. */
LOOM_FN void gpu_wait_resume(struct gpu_wait_request *p, int over, int copies)
{
#ifdef GPU_WAIT_MBARRIER
	if (over && copies)
		/* The fence orders what this lane has acquired before the copy, which belongs to the asynchronous
		 * proxy. The mbarrier also counts the bytes of the copy, so the worker resumes when they have
		 * arrived. */
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
	else if (over) /* the arrival is a release at block scope */
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

/* The monitor. Each lane serves one worker, until all workers have left the kernel. The loop has few instructions,
 * because each waits for an issue slot while other warps compute. */
LOOM_FN void SYNC_OP(watch)(struct loom_ctx *c)
{
	static_assert(LOOM_WORKERS_PER_BLOCK <= 32, "a block has 1,024 threads, and a worker 32");
	struct gpu_wait_request *p = &gpu_wait_requests[c->lane % LOOM_WORKERS_PER_BLOCK];
	struct gpu_wait_task t = {};
	struct loom_ctx worker = *c; /* context of this lane's worker */
	int waits = 0;
	/* The monitor's index is the index of the block's last worker plus 1. */
	worker.worker -= LOOM_WORKERS_PER_BLOCK - c->lane;
	worker.lane = 0;
	LOOM_NO_UNROLL
	for (;;) {
		if (!waits && c->lane < LOOM_WORKERS_PER_BLOCK)
			waits = gpu_wait_accept(p, &t);
		if (!__any_sync(0xffffffffu, waits)) {
			if (__shfl_sync(0xffffffffu, gpu_wait_read(&gpu_workers_ended), 0) == LOOM_WORKERS_PER_BLOCK)
				return;
			c->stop_seen = 0; /* clears a value of the previous sample */
			loom_nanosleep(LOOM_PAUSE_NS);
			continue;
		}
		/* The stop word is loaded before the polls. If it were loaded after them, the fence after the polls
		 * would also wait for this load. */
		int stopped = loom_stopped(c), over = 0, result = 0;
		uint64_t item = 0, now_ns;
		uint32_t seen = waits ? gpu_wait_poll(&t, &item) : 0;
		now_ns = loom_clock_ns(c); /* takes no time of its own, because the poll is under way */
		if (waits) {
			t.polls++;
			over = sync_wait_over(seen, stopped, t.want, t.until_ns, now_ns, &result);
		}
		if (over)
			gpu_wait_answer(&worker, p, &t, result, item, now_ns);
		gpu_wait_resume(p, over, sync_by_copy(&t) && !result);
		waits &= !over;
		if (t.pause)
			loom_nanosleep(t.pause);
	}
}

#endif

/* Returns the address at which the worker reads an item after a wait. If k->delivery is not 0, it copies the item into
 * the device's memory first. */
LOOM_FN const void *sync_read_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (!k->delivery)
		return sync_place(c, h, k, tag);
	char *copy = sync_item_copy(c, k, tag);
	if (sync_by_copy(k)) {
		sync_copy(c, copy, sync_place(c, h, k, tag), k->bytes);
	} else if (c->lane == 0) {
		sync_load_flag(sync_full(c, h, k, tag), sync_round(k, tag) + 1, (uint64_t *)copy);
	}
	loom_barrier_lanes(c);
	return copy;
}

#endif
