/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of the persistent kernel with quick = yes in [device.gpu]: quick samples, small samples, and resident workers
 * that get ready by themselves. kernel.dev.h includes this file in place of its own gate. */

/* ---- small samples and resident workers ------------------------------------------------------- */

/* What a worker of a kept launch knows of the samples. All lanes have the same values. */
struct loom_gpu_turn {
	uint32_t heard; /* the last phase that this worker has reached */
	uint32_t left;  /* 1: this worker has left the small sample `heard` */
	uint32_t small; /* the sample is small, and this worker takes part in it: 1 plus the number of initial tasks; 0: it is not */
	uint32_t flags; /* LOOM_ORDER_* of the sample */
	uint32_t tally; /* the lower half of what small() of the scheduler returned */
};

/* Returns 1 if a sample with these LOOM_ORDER_* is small. */
LOOM_FN int loom_gpu_is_small(uint32_t go, uint32_t order)
{
	uint32_t tasks = order & LOOM_ORDER_TASKS;
	return loom_gpu.small && go && order & LOOM_ORDER_QUICK && !(order & LOOM_ORDER_ALL) &&
	       (loom_gpu.count == 1 || tasks <= loom_gpu.count);
}

/* Returns the number of workers that take part in a small sample from the start. At least one does, to report the end. */
LOOM_FN uint32_t loom_gpu_small_workers(uint32_t tasks)
{
	return loom_gpu.count == 1 || !tasks ? 1 : tasks;
}

/* Tells the host that a quick sample has ended. The release covers what this worker has acquired from the others. */
LOOM_FN void loom_gpu_tell_end(uint32_t go, uint64_t tally)
{
	loom_fence_release_sys();
	loom_store_marked_sys(&loom_gpu.words->quick_tally, tally, go);
}

/* Tells the host that this worker has left a small sample. */
LOOM_FN void loom_gpu_tell_own_end(uint32_t slot, uint32_t go, uint32_t tally)
{
	loom_fence_release_sys();
	loom_store_marked_sys(&loom_gpu.words->end[slot].tally, tally, go);
}

/* Called by lane 0 when this worker leaves a small sample. Returns 1 if it was the last one. In such a sample no worker has
 * changed the memory of the policies. */
LOOM_FN int loom_gpu_leave_small(struct loom_ctx *c, uint32_t go, const struct loom_gpu_turn *t, int resident)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	struct loom_gpu_words *words = loom_gpu.words;
	uint32_t workers = loom_gpu_small_workers(t->small - 1), slot = c->worker - c->first;
	uint64_t mine = 1ull << 32 | t->tally, sum = mine;
	if (resident && workers <= LOOM_GPU_ENDS)
		loom_gpu_tell_own_end(slot, go, t->tally);
	/* Acquire and release: the last worker acquires the results of all workers, and releases them to the host. If
	 * this worker is alone, it has called no others, and the word is 0. */
	if (workers > 1)
		sum += loom_fetch_add_acq_rel_dev(&g->ctl.small, mine);
	int last = sum >> 32 == workers; /* 0 also if a worker has called all, because that worker does not leave */
	if (last) {
		loom_store_relaxed_dev(&g->ctl.small, (uint64_t)0);
		/* The host may wait for `ready` before it begins a sample of another kind. It is stored before `settled`,
		 * because after that the next small sample may begin and end, and store its own value. Release: a worker
		 * that loads `settled` may leave the next small sample. */
		if (resident) {
			loom_store_release_sys(&words->ready, go + 2);
			loom_store_release_dev(&g->settled, go + 2);
		} else {
			loom_store_relaxed_dev(&g->ctl.call, (uint64_t)go << 32 | LOOM_ORDER_OVER);
		}
	}
	/* In a launched kernel, the host must not see all ends before `call` says that the sample is over: a later kernel
	 * sets `clean` to 0, and a worker that begins late takes part in a reset if `clean` is 0 and `call` is not OVER. */
	if (!resident && workers <= LOOM_GPU_ENDS)
		loom_gpu_tell_own_end(slot, go, t->tally);
	if (last && workers > LOOM_GPU_ENDS)
		loom_gpu_tell_end(go, (uint32_t)sum);
	return last;
}

/* Returns 1 if an order with this phase is new. The order that the last sample has executed is not new. Nor is READY of the
 * next sample, if the workers are ready for it. */
LOOM_FN int loom_gpu_is_news(uint32_t phase, uint32_t heard)
{
	return phase == LOOM_PHASE_RETIRE || (int32_t)(phase - heard) > 0;
}

/* Called by lane 0 of the first worker: waits for an order, passes it on, and returns it. */
LOOM_FN uint64_t loom_gpu_take_order(struct loom_ctx *c, const struct loom_gpu_turn *t)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	uint64_t order, since = loom_clock_ns(c);
	uint32_t phase, last = t->left ? t->heard + 2 : t->heard;
	for (;;) {
		/* These loads overlap. */
		order = loom_load_relaxed_sys(&loom_gpu.words->order);
		uint64_t call = t->left ? loom_load_relaxed_dev(&g->ctl.call) : 0;
		uint32_t settled = loom_load_relaxed_dev(&g->settled);
		phase = (uint32_t)(order >> 32);
		if (call >> 32 == t->heard && call & LOOM_ORDER_CALLED) {
			loom_fence_acquire_dev();
			return call; /* a worker of the small sample that this worker has left calls all workers */
		}
		/* A sample begins only when all workers are ready for it. RETIRE may come at any time. But if this worker
		 * has left a small sample that others still run, it waits for their end or their call, because RETIRE in
		 * `call` would hide both. */
		if (loom_gpu_is_news(phase, last) && (settled == last || (phase == LOOM_PHASE_RETIRE && !t->left)))
			break;
		if (settled != last)
			since = loom_clock_ns(c);
		else if (loom_clock_ns(c) - since > loom_gpu.idle_ns && loom_gpu_leaves(last, phase)) {
			order = (uint64_t)LOOM_PHASE_RETIRE << 32;
			break;
		}
		loom_pause(c);
	}
	/* Acquire: pairs with the store by which the host gives the order after it has set up the sample. */
	loom_fence_poll_sys();
	phase = (uint32_t)(order >> 32);
	if (phase != LOOM_PHASE_RETIRE && LOOM_PHASE_IS_GO(phase)) {
		/* With RETIRE other workers may still read these words, in a stopped sample. */
		c->ctl->initial_tasks = (uint32_t)order & LOOM_ORDER_TASKS;
		c->ctl->sample = LOOM_PHASE_SAMPLE(phase);
		if (!((uint32_t)order & LOOM_ORDER_QUICK))
			loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
	}
	if (!loom_gpu_is_small(phase, (uint32_t)order))
		order |= LOOM_ORDER_ALL;
	loom_store_release_dev(&c->ctl->call, order);
	return order;
}

/* Called by lane 0 of another worker: waits for an order in which this worker takes part, and returns it. Only the first
 * worker polls host memory: with 16 workers that poll it, a run of 8 us takes 70 us or more on an H100. */
LOOM_FN uint64_t loom_gpu_hear(struct loom_ctx *c, const struct loom_gpu_turn *t)
{
	uint32_t slot = c->worker - c->first, pause = LOOM_PAUSE_NS;
	for (;;) {
		uint64_t call = loom_load_relaxed_dev(&c->ctl->call);
		uint32_t phase = (uint32_t)(call >> 32);
		if (loom_gpu_is_news(phase, t->heard)
			? call & (LOOM_ORDER_ALL | LOOM_ORDER_CALLED) || slot < ((uint32_t)call & LOOM_ORDER_TASKS)
			: t->left && phase == t->heard && call & LOOM_ORDER_CALLED) {
			loom_fence_poll_sys(); /* acquire: pairs with the releases of `call` */
			return call;
		}
		loom_nanosleep(pause);
		if (slot >= LOOM_GPU_ENDS && pause < LOOM_GPU_PARK_NS)
			pause += LOOM_PAUSE_NS;
	}
}

/* For resident workers: waits for the next phase in which this worker takes part, and returns it. Returns RETIRE if the
 * launch ends or the workers leave. */
LOOM_FN uint32_t loom_gpu_await_order(struct loom_ctx *c, struct loom_gpu_turn *t)
{
	uint64_t order = 0;
	if (c->lane == 0 && c->worker == c->first)
		order = loom_gpu_take_order(c, t);
	else if (c->lane == 0)
		order = loom_gpu_hear(c, t);
	order = loom_from_lane0(c, order);
	uint32_t phase = (uint32_t)(order >> 32);
	t->flags = (uint32_t)order;
	uint32_t tasks = t->flags & LOOM_ORDER_TASKS;
	/* A worker that is called runs its own initial task first, if it has not done so. */
	int ran = t->left && phase == t->heard;
	int called = t->flags & LOOM_ORDER_CALLED && (ran || c->worker - c->first >= loom_gpu_small_workers(tasks));
	t->small = loom_gpu_is_small(phase, t->flags) && !called ? tasks + 1 : 0;
	t->left = 0;
	t->heard = phase;
	return phase;
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
	/* The next launch begins with READY of some sample, which is later than this phase. */
	loom_store_relaxed_dev(&g->ctl.call, (uint64_t)0);
}

LOOM_FN void loom_gpu_arrive(struct loom_ctx *c, uint32_t ready)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	/* Acquire and release: the last worker acquires the work of all workers, and releases it to the host. */
	if (c->lane != 0 || loom_fetch_add_acq_rel_dev(&g->arrived, 1u) + 1 != c->count)
		return;
	/* Relaxed: they are used again only after a load of `settled`, or of the GO that the host stores after `ready`. */
	loom_store_relaxed_dev(&g->arrived, 0u);
	loom_store_relaxed_dev(&g->finished, 0u);
	/* Before `settled`, as in loom_gpu_leave_small(). */
	loom_store_release_sys(&loom_gpu.words->ready, ready);
	/* Release: after a quick sample, workers begin the next one when they have loaded this word. */
	loom_store_release_dev(&g->settled, ready);
}

/* Called by lane 0 of the first worker when a sample begins with the kernel. */
LOOM_FN void loom_gpu_note_sample(struct loom_ctx *c, const struct loom_gpu_order *order, uint32_t flags)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	g->ctl.initial_tasks = order->initial_tasks;
	g->ctl.sample = LOOM_PHASE_SAMPLE(order->phase);
	/* Workers of the last small sample may still wait for `call`, beside this kernel in a stream of the program. So
	 * only quick samples store it, which are all in the same stream. */
	if (flags & LOOM_ORDER_QUICK)
		loom_store_relaxed_dev(&g->ctl.call, (uint64_t)order->phase << 32 | flags);
	else
		loom_store_relaxed_sys(&loom_gpu.words->began_ns, loom_clock_ns(c));
}

/* Waits until all workers of this launch have reset memory. Returns the GO phase of `order`. If `stops` is 1, the first
 * worker revokes the permit of graphs, and all workers get RETIRE. */
LOOM_FN uint32_t loom_gpu_meet(struct loom_ctx *c, const struct loom_gpu_order *order, uint32_t flags,
			       uint32_t stops)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	/* A small sample may be over before a worker has seen that all have met. So its word keeps its value after the
	 * sample, which no later kernel has as its phase. */
	uint32_t *met = flags ? &g->met : &g->ctl.phase, phase = order->phase;
	if (c->lane == 0) {
		if (c->worker == c->first)
			loom_gpu_note_sample(c, order, flags);
		/* Acquire and release: the last worker acquires the resets of all workers. Its store of the phase
		 * releases them. */
		if (stops) {
			phase = loom_gpu_revoke();
		} else if (loom_fetch_add_acq_rel_dev(&g->arrived, 1u) + 1 == c->count) {
			loom_store_relaxed_dev(&g->arrived, 0u);
			loom_store_relaxed_dev(&g->finished, 0u);
			/* It stays 1 if the sample is small. Otherwise loom_gpu_conclude() sets it to 0. */
			loom_store_relaxed_dev(&g->clean, 1u);
			loom_store_release_dev(met, order->phase);
		} else {
			phase = loom_gpu_await_meeting(c, met, order);
		}
	}
	return loom_word_from_lane0(c, phase);
}

/* Called by the last worker of a sample in a kept launch, if the sample is not small or all workers were called. Reports
 * the end of the sample to the host. */
LOOM_FN void loom_gpu_conclude(struct loom_ctx *c, uint32_t go, const struct loom_gpu_order *order, uint32_t flags)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	struct loom_gpu_words *words = loom_gpu.words;
	uint64_t tally = loom_load_relaxed_dev(&g->tally);
	if (flags & LOOM_ORDER_QUICK) { /* workers may have left the sample while it was small */
		tally += (uint32_t)loom_load_relaxed_dev(&g->ctl.small);
		loom_store_relaxed_dev(&g->ctl.small, (uint64_t)0);
	}
	loom_store_relaxed_dev(&g->tally, (uint64_t)0);
	if (order->kept != LOOM_GPU_RESIDENT) { /* a later kernel with the same parameter must not find its phase in the gate */
		loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
		/* Release: pairs with the acquire in loom_gpu_next_quick(). A worker that loads this 0 also sees OVER of
		 * the small sample before. */
		loom_store_release_dev(&g->clean, 0u);
	}
	if (flags & LOOM_ORDER_QUICK) {
		loom_gpu_tell_end(go, tally);
		loom_store_release_dev(&g->settled, go);
		return;
	}
	loom_store_relaxed_dev(&g->settled, go);
	loom_store_relaxed_sys(&words->tally, tally);
	loom_store_relaxed_sys(&words->ended_ns, loom_clock_ns(c));
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

LOOM_FN void loom_gpu_finish(struct loom_ctx *c, uint32_t go, const struct loom_gpu_order *order, uint32_t flags)
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
	if (loom_fetch_add_acq_rel_dev(&loom_gpu.gate->finished, 1u) + 1 != c->count)
		return;
	if (order->kept) {
		loom_gpu_conclude(c, go, order, flags);
		return;
	}
	loom_store_relaxed_sys(&loom_gpu.words->ended_ns, loom_clock_ns(c));
	loom_store_release_sys(&loom_gpu.words->done, go);
}

/* What is left of struct loom_gpu_turn while a worker runs a sample, in few registers. phase: GO, or RETIRE. flags:
 * LOOM_ORDER_*, and these two in place of the flags that only loom_ctl.call has. */
#define LOOM_GPU_TAKES LOOM_ORDER_OVER	  /* the sample is small, and this worker takes part in it from the start */
#define LOOM_GPU_GONE  LOOM_ORDER_CALLED /* this worker has left the small sample */
struct loom_gpu_mark {
	uint32_t phase, flags;
	uint64_t random;
};

/* Runs a sample. It is inlined in the kernel function, because addresses of shared memory are constants there. Returns the
 * result of small(), which is 0 if this worker has run a whole sample. */
LOOM_FN uint64_t loom_gpu_sample(const struct loom_gpu_mark *mark, const struct loom_gpu_order *order)
{
	struct loom_ctx c;
	loom_gpu_context(&c);
	loom_gpu_find_own(&c);
	c.random = mark->random;
#ifdef LOOM_GPU_SMALL
	if (mark->flags & LOOM_GPU_TAKES) {
		/* The reset, which also copies the tasks, was skipped. So the tasks of a single run are where the host has put them. */
		const void *tasks = order->kept == LOOM_GPU_ONE_RUN && order->tasks ? order->tasks : loom_gpu.initial;
		uint64_t small = LOOM_OUTLINED_COLLECTIVE(LOOM_GPU_SMALL, &c, mark->phase, mark->flags & LOOM_ORDER_TASKS, tasks);
		if (small)
			return small;
	}
#endif
	if (c.lane == 0 && c.counters)
		c.counters->begin_ns = loom_clock_ns(&c);
	LOOM_GPU_RUN(&c);
	return 0;
}

/* For resident workers: gets ready, and waits for a sample in which this worker takes part. */
LOOM_FN uint32_t loom_gpu_next_resident(struct loom_ctx *c, struct loom_gpu_turn *t, const struct loom_gpu_order *order)
{
	uint32_t phase = t->heard;
	if (phase == LOOM_GPU_NO_PHASE) {
		phase = order->phase;
	} else if (t->left) {
		loom_gpu_clear(c);
		phase = loom_gpu_await_order(c, t);
	} else if (t->flags & LOOM_ORDER_QUICK) {
		/* Acquire: pairs with the release in loom_gpu_conclude(). Until then other workers use the memory. */
		while (loom_load_acquire_dev(&loom_gpu.gate->settled) != phase)
			loom_pause(c);
		phase += 2;
	} else {
		phase = loom_gpu_await_order(c, t);
	}
	while (phase != LOOM_PHASE_RETIRE && !LOOM_PHASE_IS_GO(phase)) {
		t->heard = phase;
		loom_gpu_clear(c); /* the time of these calls is not measured */
		loom_gpu_reset(c, order);
		loom_gpu_stage(c, LOOM_GPU_READY);
		loom_gpu_arrive(c, phase);
		phase = loom_gpu_await_order(c, t);
	}
	return phase;
}

/* For a kernel that runs one sample of a quick order: gets ready. Returns the phase, or RETIRE if no part of the sample is
 * left for this worker. */
LOOM_FN uint32_t loom_gpu_next_quick(struct loom_ctx *c, struct loom_gpu_turn *t, const struct loom_gpu_order *order)
{
	struct loom_gpu_gate *g = loom_gpu.gate;
	uint32_t go = order->phase, flags = (uint32_t)order->flags << LOOM_GPU_FLAGS | (uint32_t)order->initial_tasks;
	uint64_t call = 0;
	loom_gpu_clear(c);
	if (t->heard == LOOM_GPU_NO_PHASE) {
		int small = loom_gpu_is_small(go, flags);
		int takes = c->worker - c->first < loom_gpu_small_workers((uint32_t)order->initial_tasks);
		uint32_t clean = small ? loom_load_acquire_dev(&g->clean) : 0;
		t->heard = go;
		t->flags = flags;
		/* If this worker begins after the end of the sample, `clean` may be that of a later kernel. */
		if (!takes && small && loom_load_relaxed_dev(&g->ctl.call) == ((uint64_t)go << 32 | LOOM_ORDER_OVER))
			clean = 2;
		clean = (uint32_t)loom_from_lane0(c, clean);
		if (clean == 2)
			return LOOM_PHASE_RETIRE;
		if (!clean) {
			loom_gpu_reset(c, order);
			loom_gpu_stage(c, LOOM_GPU_READY);
			loom_gpu_meet(c, order, flags, 0);
		} else if (c->lane == 0 && c->worker == c->first) {
			loom_gpu_note_sample(c, order, flags);
		}
		if (!small)
			return go;
		if (takes) {
			t->small = (uint32_t)order->initial_tasks + 1;
			return go;
		}
	} else if (!t->left) {
		return LOOM_PHASE_RETIRE;
	}
	if (c->lane == 0)
		while ((uint32_t)((call = loom_load_acquire_dev(&g->ctl.call)) >> 32) != go ||
		       !(call & (LOOM_ORDER_CALLED | LOOM_ORDER_OVER)))
			loom_nanosleep(4 * LOOM_PAUSE_NS);
	call = loom_from_lane0(c, call);
	t->small = t->left = 0;
	return call & LOOM_ORDER_CALLED ? go : LOOM_PHASE_RETIRE;
}

/* Waits until this worker may begin the next sample. Returns the GO phase of that sample, or RETIRE. */
LOOM_FN uint32_t loom_gpu_get_ready(struct loom_ctx *c, struct loom_gpu_turn *t, const struct loom_gpu_order *order)
{
	uint32_t ready;
	if (order->kept == LOOM_GPU_RESIDENT)
		ready = loom_gpu_next_resident(c, t, order);
	else if (order->flags)
		ready = loom_gpu_next_quick(c, t, order);
	else
		ready = order->kept ? order->phase : loom_gpu_park(c);
	if (ready == LOOM_PHASE_RETIRE)
		return ready;
	loom_gpu_seed(c, LOOM_PHASE_SAMPLE(ready));
	if (order->kept == LOOM_GPU_RESIDENT || order->flags)
		return ready;
	uint32_t stops = loom_gpu_stops(c, order);
	loom_gpu_clear(c);
	if (order->kept)
		loom_gpu_reset(c, order);
	else
		loom_gpu_flush(c, ready);
	loom_gpu_stage(c, LOOM_GPU_READY);
	if (LOOM_PHASE_IS_GO(ready))
		return loom_gpu_meet(c, order, 0, stops);
	loom_gpu_arrive(c, ready);
	return order->kept ? loom_gpu_await_this(c, ready + 2) : loom_gpu_await_go(c, ready);
}

/* What a worker does before and after a sample is not inlined, because it would take registers of the tasks. */
static LOOM_DEVICE LOOM_NOINLINE struct loom_gpu_mark loom_gpu_before(uint32_t heard, uint32_t flags,
								      struct loom_gpu_order order)
{
	struct loom_ctx c;
	struct loom_gpu_mark mark;
	struct loom_gpu_turn t = {heard, (flags & LOOM_GPU_GONE) != 0, 0, flags & ~(LOOM_GPU_GONE | LOOM_GPU_TAKES), 0};
	loom_gpu_context(&c);
	mark.phase = loom_gpu_get_ready(&c, &t, &order);
	mark.flags = (t.flags & ~(LOOM_GPU_GONE | LOOM_GPU_TAKES)) | (t.small ? LOOM_GPU_TAKES : 0u);
	mark.random = c.random;
	if (mark.phase != LOOM_PHASE_RETIRE)
		loom_set_state(&c, LOOM_STATE_TASKS);
	return mark;
}

/* Returns 1 if the kernel has no further part for this worker. */
static LOOM_DEVICE LOOM_NOINLINE uint32_t loom_gpu_after(uint32_t go, uint32_t flags, uint32_t tally,
							 struct loom_gpu_order order)
{
	struct loom_ctx c;
	struct loom_gpu_turn t = {go, 0, (flags & LOOM_ORDER_TASKS) + 1, flags & ~(LOOM_GPU_GONE | LOOM_GPU_TAKES), tally};
	loom_gpu_context(&c);
	if (!(flags & LOOM_GPU_GONE)) {
		loom_gpu_finish(&c, go, &order, t.flags);
		return 0;
	}
	loom_gpu_stage(&c, LOOM_GPU_FINISHED);
	loom_barrier_lanes(&c);
	uint64_t last = c.lane == 0 && loom_gpu_leave_small(&c, go, &t, order.kept == LOOM_GPU_RESIDENT);
	return order.kept != LOOM_GPU_RESIDENT && loom_from_lane0(&c, last);
}

LOOM_FN void loom_gpu_samples(struct loom_ctx *c, const struct loom_gpu_order *order)
{
	uint32_t heard = LOOM_GPU_NO_PHASE, flags = 0, over;
	do {
		struct loom_gpu_mark mark = loom_gpu_before(heard, flags, *order);
		if (mark.phase == LOOM_PHASE_RETIRE)
			break;
		uint64_t small = loom_gpu_sample(&mark, order);
		heard = mark.phase;
		flags = small ? mark.flags | LOOM_GPU_GONE : mark.flags;
		over = loom_gpu_after(heard, flags, (uint32_t)small, *order);
	} while (!over && (!order->kept || order->kept == LOOM_GPU_RESIDENT || order->flags));
	if (order->kept == LOOM_GPU_RESIDENT)
		loom_gpu_part(c);
}
