/* SPDX-License-Identifier: Apache-2.0 */
/* The persistent kernel. A worker parks between samples. Once per sample, it runs the scheduler or the kernel of the
 * workload. A program that embeds gpuloom has two other variants (LOOM_LAUNCH_KEPT). In one, a kernel runs a single
 * sample, after its workers have reset the memory of the policies. In the other variant, the workers are resident, and
 * reset this memory before each sample. With LOOM_GPU_STEP the kernel is launched for each step of the workload. In a
 * composed program this device code follows the policies.
 *
 * Only the first worker polls the phase word in host memory. It copies the phase to device memory, where the other
 * workers poll it. If thousands of workers polled host memory, they would saturate the link and delay each other. */

LOOM_DEVICE_CONSTANT(struct loom_gpu_launch loom_gpu)

LOOM_DEVICE struct loom_ctl *loom_gpu_host_ctl(void)
{
	return loom_gpu.ctl;
}

#define LOOM_GPU_PARK_NS 400u

/* The mixing function splitmix64. CPUs use the same function, so a seed gives the same choices on all devices. */
LOOM_FN uint64_t loom_gpu_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

LOOM_FN uint32_t loom_gpu_slot(void)
{
	return LOOM_BLOCK_INDEX * LOOM_WORKERS_PER_BLOCK + LOOM_THREAD_INDEX / LOOM_LANES;
}

/* Finds the worker's own blocks in the registries. The host fills the registries after the launch and before the first
 * sample. */
LOOM_FN void loom_gpu_find_own(struct loom_ctx *c)
{
#define LOOM_GPU_OWN(kind)                                                                         \
	c->own[kind] = c->registry[kind] ? loom_at(c, c->registry[kind][c->worker]) : NULL;
	LOOM_GPU_KINDS(LOOM_GPU_OWN)
}

/* Makes a context. It computes all fields except random, regs, depth, turn and stop_seen from constant memory and the
 * index of the thread. So a called function can make a context itself, and no context is passed through memory. */
LOOM_FN void loom_gpu_context(struct loom_ctx *c)
{
	const struct loom_gpu_launch *l = &loom_gpu;
	uint32_t slot = loom_gpu_slot();
	char *local = loom_gpu_shared + slot % LOOM_WORKERS_PER_BLOCK * l->local_bytes;
	struct loom_ctx none = {}; /* fields that GPUs do not use, such as tables of functions, stay 0 */
	*c = none;
	c->worker = l->first + slot;
	c->workers = l->workers;
	c->device = l->device;
	c->devices = l->devices;
	c->first = l->first;
	c->count = l->count;
	c->lane = LOOM_THREAD_INDEX % LOOM_LANES;
	c->lanes = LOOM_LANES;
	c->random = 1;
	c->ctl = &l->gate->ctl;
	c->counters = l->counters ? l->counters + c->worker : NULL;
	c->segment = l->segment;
	c->together = LOOM_GPU_TOGETHER;
	c->initial = l->initial;
/* Covers only selected kinds, because the compiler would spend time on code for other kinds before it removes that
 * code. */
#define LOOM_GPU_BLOCKS(kind)                                                                      \
	c->global[kind] = l->global[kind];                                                         \
	c->on_device[kind] = l->on_device[kind];                                                   \
	c->registry[kind] = l->registry[kind];                                                     \
	c->local[kind] = local + l->local_at[kind]; /* with LOOM_GPU_NONE, no code uses the address */
	LOOM_GPU_KINDS(LOOM_GPU_BLOCKS)
	c->tasks = l->tasks;
#ifdef LOOM_TRACED
	c->trace = (struct loom_trace *)(l->trace + c->worker * l->trace_bytes);
#endif
}

/* ---- tasks ------------------------------------------------------------------------------------ */

LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t)
{
	loom_gpu_dispatch(c, t);
}

/* The part of a context that a called function cannot compute. Calls pass and return it by value. */
struct loom_gpu_state {
	uint64_t random, regs[LOOM_REGISTER_WORDS];
	uint32_t turn, stop_seen;
};

LOOM_FN struct loom_gpu_state loom_gpu_save(const struct loom_ctx *c)
{
	struct loom_gpu_state s;
	s.random = c->random;
	for (int i = 0; i < LOOM_REGISTER_WORDS; i++)
		s.regs[i] = c->regs[i];
	s.turn = LOOM_GPU_TOGETHER == NULL ? 0 : c->turn;
	s.stop_seen = c->stop_seen;
	return s;
}

LOOM_FN void loom_gpu_restore(struct loom_ctx *c, const struct loom_gpu_state *s)
{
	c->random = s->random;
	for (int i = 0; i < LOOM_REGISTER_WORDS; i++)
		c->regs[i] = s->regs[i];
	c->turn = LOOM_GPU_TOGETHER == NULL ? 0 : s->turn;
	c->stop_seen = s->stop_seen;
}

LOOM_FN void loom_gpu_context_at(struct loom_ctx *c, const struct loom_gpu_state *s, uint32_t depth)
{
	loom_gpu_context(c);
	loom_gpu_find_own(c);
	loom_gpu_restore(c, s);
	c->depth = depth;
}

/* Makes the context of a task. If a single lane runs the task, the context has one lane. */
LOOM_FN void loom_gpu_task_context_at(struct loom_ctx *c, const struct loom_gpu_state *s, uint32_t depth)
{
	loom_gpu_context_at(c, s, depth);
#ifdef LOOM_SINGLE_LANE
	c->single_lane = c->lane + 1;
	c->lane = 0;
	c->lanes = 1;
#endif
}

#if LOOM_NESTING_MAX > 0 || defined(LOOM_TRACED)
static LOOM_DEVICE LOOM_NOINLINE struct loom_gpu_state loom_gpu_nested(struct loom_gpu_state s,
									uint32_t depth, struct loom_task t)
{
	struct loom_ctx c;
	loom_gpu_task_context_at(&c, &s, depth);
	loom_gpu_dispatch(&c, &t);
	return loom_gpu_save(&c);
}

/* The task and the state are passed by value, because an address as an argument would force them into memory. */
LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_gpu_state s = loom_gpu_nested(loom_gpu_save(c), c->depth, *t);
	loom_gpu_restore(c, &s);
}
#else
LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c, (void)t;
}
#endif

#define LOOM_INLINE LOOM_DEVICE __attribute__((always_inline))
/* LOOM_OUTLINED makes a call that is not inlined. This template passes a task by value, and other arguments as they
 * are. */
template <typename T> struct loom_gpu_argument {
	T value;
	LOOM_INLINE T get() { return value; }
	static LOOM_INLINE loom_gpu_argument of(T a) { return {a}; }
};
template <> struct loom_gpu_argument<const struct loom_task *> {
	struct loom_task value;
	LOOM_INLINE const struct loom_task *get() { return &value; }
	static LOOM_INLINE loom_gpu_argument of(const struct loom_task *a) { return {*a}; }
};

struct loom_gpu_answer {
	struct loom_gpu_state state;
	uint64_t result;
};

/* run() is a noinline function, made once for each `fn` and its argument types. Because `fn` is a template parameter,
 * the call of `fn` in run() is direct and is inlined. collective: 1 if all lanes of a worker call `fn`, 0 if a single
 * lane may. */
template <auto fn, int collective, typename F = decltype(fn)> struct loom_gpu_out_of_line;
template <auto fn, int collective, typename R, typename... P>
struct loom_gpu_out_of_line<fn, collective, R (*)(struct loom_ctx *, P...)> {
	static LOOM_DEVICE LOOM_NOINLINE struct loom_gpu_answer run(struct loom_gpu_state s, uint32_t depth,
								    loom_gpu_argument<P>... a)
	{
		struct loom_ctx c;
		struct loom_gpu_answer answer;
		if (collective)
			loom_gpu_context_at(&c, &s, depth);
		else
			loom_gpu_task_context_at(&c, &s, depth);
		answer.result = (uint64_t)fn(&c, a.get()...);
		answer.state = loom_gpu_save(&c);
		return answer;
	}
	static LOOM_INLINE uint64_t call(struct loom_ctx *c, P... a)
	{
		struct loom_gpu_answer answer =
			run(loom_gpu_save(c), c->depth, loom_gpu_argument<P>::of(a)...);
		loom_gpu_restore(c, &answer.state);
		return answer.result;
	}
};

template <auto fn, int collective, typename... A> LOOM_FN uint64_t loom_gpu_outlined(struct loom_ctx *c, A... a)
{
	return loom_gpu_out_of_line<fn, collective>::call(c, a...);
}

/* ---- gate ------------------------------------------------------------------------------------- */

LOOM_FN void loom_gpu_stage(struct loom_ctx *c, uint32_t stage)
{
	if (c->lane == 0)
		loom_store_relaxed_dev(&loom_gpu.stage[c->worker - c->first], stage);
}

LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what)
{
	if (c->lane == 0)
		loom_store_relaxed_dev(&loom_gpu.stage[c->worker - c->first], (uint32_t)LOOM_GPU_WORKING + what);
}

/* Called by lane 0. Polls until the phase differs from `old` and has a bit of `mask`. With mask = 3 it ignores GO
 * phases, which are multiples of 4. */
LOOM_FN uint32_t loom_gpu_poll_phase(struct loom_ctx *c, uint32_t old, uint32_t mask, uint32_t pause_ns)
{
	uint32_t phase;
	struct loom_ctl *host = loom_gpu.ctl;
	if (c->worker == c->first) {
		/* Acquire: pairs with the release by which the host stores the phase after it has set up the sample. */
		while ((phase = loom_load_acquire_sys(&host->phase)) == old || !(phase & mask))
			loom_pause(c);
		c->ctl->initial_tasks = host->initial_tasks;
		c->ctl->sample = host->sample;
		/* Release: pairs with the acquire of the other workers below. It covers what this worker has acquired
		 * from the host. */
		loom_store_release_dev(&c->ctl->phase, phase);
	} else {
		while ((phase = loom_load_acquire_dev(&c->ctl->phase)) == old || !(phase & mask))
			loom_nanosleep(pause_ns);
	}
	return phase;
}

/* Waits for READY or RETIRE, and returns it. It ignores GO phases and the initial 0, which are multiples of 4. */
LOOM_FN uint32_t loom_gpu_park(struct loom_ctx *c)
{
	uint32_t phase = 0;
	loom_gpu_stage(c, LOOM_GPU_PARKED);
	if (c->lane == 0)
		phase = loom_gpu_poll_phase(c, 0, 3, LOOM_GPU_PARK_NS);
	return (uint32_t)loom_from_lane0(c, phase);
}

/* Waits for GO or RETIRE, and returns it. */
LOOM_FN uint32_t loom_gpu_await_go(struct loom_ctx *c, uint32_t ready)
{
	uint32_t phase = 0;
	if (c->lane == 0)
		phase = loom_gpu_poll_phase(c, ready, ~0u, LOOM_PAUSE_NS);
	if (c->lane == 0 && c->worker == c->first)
		loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
	return (uint32_t)loom_from_lane0(c, phase);
}

/* Zeroes scratchpad memory. */
LOOM_FN void loom_gpu_clear(struct loom_ctx *c)
{
	uint64_t *local = (uint64_t *)(loom_gpu_shared + loom_gpu_slot() % LOOM_WORKERS_PER_BLOCK *
								 loom_gpu.local_bytes);
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; i < loom_gpu.local_bytes / 8; i += LOOM_LANES)
		local[i] = 0;
	loom_barrier_lanes(c);
}

/* Sets the random state for sample `n`. */
LOOM_FN void loom_gpu_seed(struct loom_ctx *c, uint64_t n)
{
	uint64_t x = loom_gpu_mix(loom_gpu_mix(loom_gpu_mix(loom_gpu.seed) + n) + c->worker);
	c->random = x ? x : 1;
}

/* Both, before a sample or a step `n`. */
LOOM_FN void loom_gpu_refresh(struct loom_ctx *c, uint64_t n)
{
	loom_gpu_clear(c);
	loom_gpu_seed(c, n);
}

/* Called by the first worker after a time without an order. Returns 1 if the resident workers leave. Host and device
 * each write a word, execute a full fence, and then read the other's word. So either this worker sees the new order, or
 * the host sees LOOM_GPU_ASKS. In the second case the host waits until this worker has decided. last: the phase that
 * the workers have reached. seen: the phase of the order that this worker has seen. Models: tests/models/resident.pml,
 * resident_quick.pml. */
LOOM_FN int loom_gpu_leaves(uint32_t last, uint32_t seen)
{
	struct loom_gpu_words *words = loom_gpu.words;
	loom_store_relaxed_sys(&words->leave, (uint64_t)LOOM_GPU_ASKS);
	loom_fence_seq_cst_sys();
	int leaves = (uint32_t)(loom_load_relaxed_sys(&words->order) >> 32) == seen;
	loom_store_release_sys(&words->leave, leaves ? (uint64_t)last << 32 | LOOM_GPU_LEFT : (uint64_t)LOOM_GPU_STAYS);
	return leaves;
}

/* Stores the words that init() of the policies would write, so that the host need not copy them. Also copies the
 * initial tasks. Neighbouring lanes take neighbouring pieces, so their waits for memory overlap. */
LOOM_FN void loom_gpu_reset(struct loom_ctx *c, const struct loom_gpu_order *order)
{
	uint64_t lanes = (uint64_t)loom_gpu.count * LOOM_LANES;
	uint64_t first = (uint64_t)(c->worker - c->first) * LOOM_LANES + c->lane;
	LOOM_NO_UNROLL
	for (uint64_t i = first; i < loom_gpu.resets; i += lanes) {
		struct loom_reset r = loom_gpu.reset[i];
		uint32_t *at = (uint32_t *)loom_at(c, r.at);
		LOOM_NO_UNROLL
		for (uint32_t k = 0; k < r.words; k++)
			at[k] = r.value;
	}
	uint64_t *to = (uint64_t *)loom_gpu.initial;
	const uint64_t *from = (const uint64_t *)order->tasks;
	uint64_t words = from ? order->initial_tasks * sizeof(struct loom_task) / 8 : 0;
	LOOM_NO_UNROLL
	for (uint64_t i = first; i < words; i += lanes)
		to[i] = from[i];
	loom_barrier_lanes(c); /* afterwards lane 0 can release the stores of all lanes */
}

/* For a kernel that began with READY: waits for GO of this sample or for RETIRE, and returns it. The device's copy of
 * the phase may still be that of an earlier sample, so other phases are ignored. */
LOOM_FN uint32_t loom_gpu_await_this(struct loom_ctx *c, uint32_t go)
{
	struct loom_ctl *host = loom_gpu.ctl;
	uint32_t phase = 0;
	if (c->lane == 0 && c->worker == c->first) {
		/* Acquire: pairs with the host's release. Before this release, the host has acquired the resets of all
		 * devices. */
		while ((phase = loom_load_acquire_sys(&host->phase)) != go && phase != LOOM_PHASE_RETIRE)
			loom_pause(c);
		c->ctl->initial_tasks = host->initial_tasks;
		c->ctl->sample = host->sample;
		loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
		loom_store_release_dev(&c->ctl->phase, phase);
	} else if (c->lane == 0) {
		while ((phase = loom_load_acquire_dev(&c->ctl->phase)) != go && phase != LOOM_PHASE_RETIRE)
			loom_pause(c);
	}
	return (uint32_t)loom_from_lane0(c, phase);
}

/* ---- the permit of graphs --------------------------------------------------------------------- */

/* Called by lane 0. Returns 1 if the launch to which the graph belongs has ended, or its graphs were stopped. */
LOOM_FN int loom_gpu_is_revoked(const struct loom_gpu_order *order)
{
	return loom_load_relaxed_dev(&loom_gpu.gate->permit) >> 32 != order->launch;
}

/* Relaxed: this worker has released its last accesses by its addition to `arrived` or `finished`. */
LOOM_FN void loom_gpu_leave(struct loom_ctx *c)
{
	if (c->lane == 0)
		loom_fetch_add_relaxed_dev(&loom_gpu.gate->permit, ~(uint64_t)0);
}

/* A kernel of a graph begins. Returns 0 if this worker must leave at once. Relaxed, because the host has set up the launch
 * before it launched the graph. */
LOOM_FN int loom_gpu_enter(struct loom_ctx *c, const struct loom_gpu_order *order)
{
	uint32_t stays = 0;
	if (c->lane == 0)
		stays = loom_fetch_add_relaxed_dev(&loom_gpu.gate->permit, (uint64_t)1) >> 32 == order->launch;
	stays = (uint32_t)loom_flag_from_lane0(c, stays);
	if (!stays)
		loom_gpu_leave(c);
	return (int)stays;
}

/* Returns 1 if the runs of graphs must end. Only the first worker of a kernel of a graph reads the host's word. It reads the
 * word before it resets memory and uses the value afterwards, so that the time of the read does not count. */
LOOM_FN uint32_t loom_gpu_stops(const struct loom_ctx *c, const struct loom_gpu_order *order)
{
	return order->kept == LOOM_GPU_CAPTURED && c->lane == 0 && c->worker == c->first ?
		       loom_load_relaxed_sys(&loom_gpu.ctl->stop_graphs) :
		       0;
}

#ifdef LOOM_GPU_WATCH
/* Begins the next kernel after the time that its launch takes. */
LOOM_FN void loom_gpu_monitor(void)
{
	struct loom_ctx c;
	loom_gpu_context(&c);
	c.lane = LOOM_THREAD_INDEX - LOOM_LANES * LOOM_WORKERS_PER_BLOCK;
	c.lanes = LOOM_GPU_WATCH_LANES;
	LOOM_GPU_WATCH(watch)(&c);
}
#endif

/* Called by lane 0 of the first worker. Later kernels of graphs leave at once. Workers of this kernel leave in
 * loom_gpu_await_meeting(), because this worker does not arrive. */
LOOM_FN uint32_t loom_gpu_revoke(void)
{
	loom_fence_release_dev(); /* of the memory that this worker has reset, see loom_gpu_leave() */
	loom_store_relaxed_dev((uint32_t *)&loom_gpu.gate->permit + 1, 0u);
	return LOOM_PHASE_RETIRE;
}

/* Called by lane 0 of a worker that has arrived. Waits until the last worker has stored the phase of `order` in *met. If the
 * permit was revoked meanwhile, withdraws the arrival and returns RETIRE, because other workers may have left. If all workers
 * have arrived, it is too late for that, and they run the sample together. */
LOOM_FN uint32_t loom_gpu_await_meeting(struct loom_ctx *c, const uint32_t *met, const struct loom_gpu_order *order)
{
	uint32_t *arrived = &loom_gpu.gate->arrived;
	int may_leave = order->kept == LOOM_GPU_CAPTURED;
	while (loom_load_acquire_dev(met) != order->phase) {
		if (may_leave && loom_gpu_is_revoked(order)) {
			uint32_t all = loom_load_relaxed_dev(arrived);
			while (all && all != c->count)
				/* Release: the memory that this worker has reset, see loom_gpu_leave(). */
				if (loom_cas_acq_rel_dev(arrived, &all, all - 1))
					return LOOM_PHASE_RETIRE;
			may_leave = 0;
		}
		loom_pause(c);
	}
	return order->phase;
}

/* With the option `flush`: overwrites memory that is larger than the L2 cache, which then has no data of the sample. Called
 * before the worker is ready, so that the time is not measured. All workers together do it, because the GPU may have no room
 * for another kernel. */
LOOM_FN void loom_gpu_flush(struct loom_ctx *c, uint64_t value)
{
#ifdef LOOM_GPU_FLUSH
	uint64_t lanes = (uint64_t)loom_gpu.count * LOOM_LANES;
	LOOM_NO_UNROLL
	for (uint64_t i = (uint64_t)(c->worker - c->first) * LOOM_LANES + c->lane; i < loom_gpu.flush_bytes / 8; i += lanes)
		loom_gpu.flush[i] = value;
	loom_barrier_lanes(c); /* afterwards lane 0 releases the stores of all lanes in loom_gpu_arrive() */
#else
	(void)c, (void)value;
#endif
}

#ifdef LOOM_GPU_QUICK
#include "quick.dev.h"
#else
/* For resident workers: waits for the phase that follows `last`, and returns it. Returns RETIRE if the launch ends or
 * the workers leave. If this worker is late, another worker may already have copied the phase to the gate. */
LOOM_FN uint32_t loom_gpu_await_order(struct loom_ctx *c, uint32_t last)
{
	uint32_t phase = last;
	if (c->lane == 0 && c->worker == c->first) {
		uint64_t order, since = loom_clock_ns(c);
		/* Acquire: pairs with the release by which the host stores the order after it has set up the sample. */
		while ((phase = (uint32_t)((order = loom_load_acquire_sys(&loom_gpu.words->order)) >> 32)) == last) {
			/* The workers may leave only when all of them have reached the phase `last`. */
			int idle = loom_clock_ns(c) - since > loom_gpu.idle_ns &&
				   loom_load_relaxed_dev(&loom_gpu.gate->settled) == last;
			if (idle && loom_gpu_leaves(last, last)) {
				phase = LOOM_PHASE_RETIRE;
				break;
			}
			loom_pause(c);
		}
		/* if the phase is RETIRE, other workers may still read these words in a stopped sample */
		if (LOOM_PHASE_IS_GO(phase)) {
			c->ctl->initial_tasks = (uint32_t)order;
			c->ctl->sample = LOOM_PHASE_SAMPLE(phase);
			loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
		}
		loom_store_release_dev(&c->ctl->phase, phase);
	} else if (c->lane == 0) {
		while ((phase = loom_load_acquire_dev(&c->ctl->phase)) != last + 2 && phase != LOOM_PHASE_RETIRE)
			loom_pause(c);
	}
	return (uint32_t)loom_from_lane0(c, phase);
}

/* Called by resident workers that are about to end. The last of them removes RETIRE from the gate, because the next
 * launch must not find it there. */
LOOM_FN void loom_gpu_part(struct loom_ctx *c)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	if (c->lane != 0 || loom_fetch_add_acq_rel_dev(&g->left, 1u) + 1 != c->count)
		return;
	loom_store_relaxed_dev(&g->left, 0u);
	loom_store_relaxed_dev(&g->settled, LOOM_GPU_NO_PHASE);
	loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
}

LOOM_FN void loom_gpu_arrive(struct loom_ctx *c, uint32_t ready)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	/* Acquire and release: the last worker acquires the work of all workers, and releases it to the host. */
	if (c->lane != 0 || loom_fetch_add_acq_rel_dev(&g->arrived, 1u) + 1 != c->count)
		return;
	loom_store_relaxed_dev(&g->settled, ready);
	/* Relaxed: no worker uses these words again before the host has loaded `ready`. */
	loom_store_relaxed_dev(&g->arrived, 0u);
	loom_store_relaxed_dev(&g->finished, 0u);
	loom_store_release_sys(&loom_gpu.words->ready, ready);
}

/* Waits until all workers of this launch have reset memory. Returns the GO phase of `order`. If `stops` is 1, the first
 * worker revokes the permit of graphs, and all workers get RETIRE. */
LOOM_FN uint32_t loom_gpu_meet(struct loom_ctx *c, const struct loom_gpu_order *order, uint32_t stops)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	uint32_t phase = order->phase;
	if (c->lane == 0) {
		if (c->worker == c->first) {
			g->ctl.initial_tasks = order->initial_tasks;
			g->ctl.sample = LOOM_PHASE_SAMPLE(order->phase);
			loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
		}
		/* Acquire and release: the last worker acquires the resets of all workers. Its store of the phase
		 * releases them. */
		if (stops) {
			phase = loom_gpu_revoke();
		} else if (loom_fetch_add_acq_rel_dev(&g->arrived, 1u) + 1 == c->count) {
			loom_store_relaxed_dev(&g->arrived, 0u);
			loom_store_relaxed_dev(&g->finished, 0u);
			loom_store_release_dev(&g->ctl.phase, order->phase);
		} else {
			phase = loom_gpu_await_meeting(c, &g->ctl.phase, order);
		}
	}
	return loom_word_from_lane0(c, phase);
}

/* Called by the last worker of a sample in a kept launch. Reports the end of the sample to the host. */
LOOM_FN void loom_gpu_conclude(uint32_t go, const struct loom_gpu_order *order)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	struct loom_gpu_words *words = loom_gpu.words;
	uint64_t tally = loom_load_relaxed_dev(&g->tally);
	loom_store_relaxed_sys(&words->tally, tally);
	loom_store_relaxed_dev(&g->tally, (uint64_t)0);
	if (order->kept != LOOM_GPU_RESIDENT) /* a later kernel with the same parameter must not find its phase in the gate */
		loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
	loom_store_relaxed_dev(&g->settled, go);
	if (order->kept == LOOM_GPU_ONE_RUN || order->kept == LOOM_GPU_RESIDENT) {
		loom_store_release_sys(&words->done, go);
		return;
	}
	if (tally != order->initial_tasks && !loom_load_relaxed_dev(&g->ctl.stop))
		loom_store_relaxed_sys(&words->wrong, ++g->wrong);
	loom_store_relaxed_sys(&words->initial_tasks, order->initial_tasks);
	if (order->kept == LOOM_GPU_CAPTURED)
		loom_store_release_sys(&words->replayed, ++g->replayed);
	else
		loom_store_release_sys(&words->ended, ++g->ended);
}

LOOM_FN void loom_gpu_finish(struct loom_ctx *c, uint32_t go, const struct loom_gpu_order *order)
{
	loom_barrier_lanes(c); /* orders the stores of the other lanes before the stores of lane 0 */
	if (c->lane != 0)
		return;
	if (c->counters)
		c->counters->end_ns = loom_clock_ns(c);
	loom_gpu_stage(c, LOOM_GPU_FINISHED);
	if (order->kept) /* relaxed, because the addition to `finished` below orders it */
		loom_fetch_add_relaxed_dev(&loom_gpu.gate->tally, LOOM_TALLY(c->counters));
	/* Acquire and release, as in loom_gpu_arrive(). When the host acquires `done`, it sees the results of all
	 * workers. */
	if (loom_fetch_add_acq_rel_dev(&loom_gpu.gate->finished, 1u) + 1 == c->count) {
		loom_store_relaxed_sys(&loom_gpu.words->ended_ns, loom_clock_ns(c));
		if (order->kept)
			loom_gpu_conclude(go, order);
		else
			loom_store_release_sys(&loom_gpu.words->done, go);
	}
}

/* Runs a sample. It is inlined in the kernel function, because addresses of shared memory are constants there. */
LOOM_FN void loom_gpu_sample(uint64_t random)
{
	struct loom_ctx c;
	loom_gpu_context(&c);
	loom_gpu_find_own(&c);
	c.random = random;
	if (c.lane == 0 && c.counters)
		c.counters->begin_ns = loom_clock_ns(&c);
	LOOM_GPU_RUN(&c);
}

/* Waits until this worker may begin the next sample. Returns the GO phase of that sample, or RETIRE. last: GO phase of
 * this worker's last sample, or LOOM_GPU_NO_PHASE if there was none. */
LOOM_FN uint32_t loom_gpu_get_ready(struct loom_ctx *c, uint32_t last, const struct loom_gpu_order *order)
{
	uint32_t ready = !order->kept			  ? loom_gpu_park(c)
			 : last == LOOM_GPU_NO_PHASE ? order->phase
						     : loom_gpu_await_order(c, last);
	if (ready == LOOM_PHASE_RETIRE)
		return ready;
	uint32_t stops = loom_gpu_stops(c, order);
	loom_gpu_refresh(c, LOOM_PHASE_SAMPLE(ready)); /* the time of this call is not measured */
	if (order->kept)
		loom_gpu_reset(c, order);
	else
		loom_gpu_flush(c, ready);
	loom_gpu_stage(c, LOOM_GPU_READY);
	if (LOOM_PHASE_IS_GO(ready))
		return loom_gpu_meet(c, order, stops);
	loom_gpu_arrive(c, ready);
	if (order->kept == LOOM_GPU_RESIDENT)
		return loom_gpu_await_order(c, ready);
	return order->kept ? loom_gpu_await_this(c, ready + 2) : loom_gpu_await_go(c, ready);
}

LOOM_FN void loom_gpu_samples(struct loom_ctx *c, const struct loom_gpu_order *order)
{
	uint32_t go = LOOM_GPU_NO_PHASE;
	do {
		go = loom_gpu_get_ready(c, go, order);
		if (go == LOOM_PHASE_RETIRE)
			break;
		loom_set_state(c, LOOM_STATE_TASKS);
		loom_gpu_sample(c->random);
		loom_gpu_context(c); /* made again: otherwise its values would take registers from the tasks */
		loom_gpu_finish(c, go, order);
	} while (!order->kept || order->kept == LOOM_GPU_RESIDENT);
	if (order->kept == LOOM_GPU_RESIDENT)
		loom_gpu_part(c);
}

#endif

#ifdef LOOM_GPU_STEP
LOOM_KERNEL loom_gpu_work(uint64_t step)
{
	struct loom_ctx c;
	loom_gpu_context(&c);
	loom_gpu_find_own(&c);
	if (loom_from_lane0(&c, loom_load_relaxed_dev(&c.ctl->stop)))
		return; /* an earlier step has stopped the sample */
	loom_gpu_refresh(&c, step);
	loom_set_state(&c, LOOM_STATE_TASKS);
	if (step == 0 && c.lane == 0 && c.counters)
		c.counters->begin_ns = loom_clock_ns(&c);
	LOOM_GPU_STEP(&c, step);
	loom_barrier_lanes(&c);
	if (step + 1 < loom_gpu.steps) {
		loom_set_state(&c, LOOM_STATE_MESSAGE);
		return;
	}
	if (c.lane == 0 && c.counters)
		c.counters->end_ns = loom_clock_ns(&c);
	loom_gpu_stage(&c, LOOM_GPU_FINISHED);
}
#else
LOOM_KERNEL loom_gpu_work(struct loom_gpu_order order)
{
	struct loom_ctx c;
#ifdef LOOM_GPU_WATCH
	LOOM_GPU_WATCH(watch_begin)();
	if (LOOM_THREAD_INDEX >= LOOM_LANES * LOOM_WORKERS_PER_BLOCK) {
		loom_gpu_monitor();
		return;
	}
#endif
	loom_gpu_context(&c);
	if (order.kept != LOOM_GPU_CAPTURED || loom_gpu_enter(&c, &order)) {
		loom_gpu_samples(&c, &order);
		if (order.kept == LOOM_GPU_CAPTURED)
			loom_gpu_leave(&c);
	}
#ifdef LOOM_GPU_WATCH
	LOOM_GPU_WATCH(watch_end)(&c);
#endif
}
#endif
