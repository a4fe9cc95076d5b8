/* SPDX-License-Identifier: Apache-2.0 */
/* The part of fake_kernel.h for quick = yes in [device.gpu]. Its functions work like those of quick.dev.h with similar
 * names. */

static int quick_is_small(const struct worker *w, uint32_t go, uint32_t order)
{
	const struct loom_gpu_launch *l = w->record;
	return l->small && go && order & LOOM_ORDER_QUICK && !(order & LOOM_ORDER_ALL) &&
	       (l->count == 1 || (order & LOOM_ORDER_TASKS) <= l->count);
}

static uint32_t quick_small_workers(const struct worker *w, uint32_t tasks)
{
	return w->record->count == 1 || !tasks ? 1 : tasks;
}

static int quick_is_news(uint32_t phase, uint32_t heard)
{
	return phase == LOOM_PHASE_RETIRE || (int32_t)(phase - heard) > 0;
}

static uint64_t quick_take_order(struct worker *w)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	uint64_t order = 0, since = loom_clock_ns(c);
	uint32_t phase, last = w->left ? w->heard + 2 : w->heard;
	for (;; loom_cpu_yield()) {
		uint64_t call = loom_load_acquire_dev(&c->ctl->call);
		order = loom_load_acquire_sys(&l->words->order);
		uint32_t settled = loom_load_acquire_dev(&l->gate->settled);
		phase = (uint32_t)(order >> 32);
		if (killed(w)) {
			order = (uint64_t)LOOM_PHASE_RETIRE << 32;
			break;
		}
		if (w->left && call >> 32 == w->heard && call & LOOM_ORDER_CALLED)
			return call;
		if (quick_is_news(phase, last) && (settled == last || (phase == LOOM_PHASE_RETIRE && !w->left)))
			break;
		if (settled != last)
			since = loom_clock_ns(c);
		if (settled != last || loom_clock_ns(c) - since <= l->idle_ns)
			continue;
		if (leaves(w, last, phase)) {
			order = (uint64_t)LOOM_PHASE_RETIRE << 32;
			break;
		}
	}
	phase = (uint32_t)(order >> 32);
	if (phase != LOOM_PHASE_RETIRE && LOOM_PHASE_IS_GO(phase)) {
		c->ctl->initial_tasks = (uint32_t)order & LOOM_ORDER_TASKS;
		c->ctl->sample = LOOM_PHASE_SAMPLE(phase);
	}
	if (!quick_is_small(w, phase, (uint32_t)order))
		order |= LOOM_ORDER_ALL;
	loom_store_release_dev(&c->ctl->call, order);
	return order;
}

static uint64_t quick_hear(struct worker *w)
{
	uint32_t slot = w->ctx.worker - w->ctx.first;
	for (; !killed(w); loom_cpu_yield()) {
		uint64_t call = loom_load_acquire_dev(&w->ctx.ctl->call);
		uint32_t phase = (uint32_t)(call >> 32);
		if (quick_is_news(phase, w->heard)
			? call & (LOOM_ORDER_ALL | LOOM_ORDER_CALLED) || slot < ((uint32_t)call & LOOM_ORDER_TASKS)
			: w->left && phase == w->heard && call & LOOM_ORDER_CALLED)
			return call;
	}
	return (uint64_t)LOOM_PHASE_RETIRE << 32;
}

static uint32_t quick_await_order(struct worker *w)
{
	uint64_t order = w->ctx.worker == w->ctx.first ? quick_take_order(w) : quick_hear(w);
	w->flags = (uint32_t)order;
	uint32_t tasks = w->flags & LOOM_ORDER_TASKS;
	int ran = w->left && (uint32_t)(order >> 32) == w->heard;
	int called = w->flags & LOOM_ORDER_CALLED && (ran || w->ctx.worker - w->ctx.first >= quick_small_workers(w, tasks));
	w->small = quick_is_small(w, (uint32_t)(order >> 32), w->flags) && !called ? tasks + 1 : 0;
	w->left = 0;
	w->heard = (uint32_t)(order >> 32);
	return w->heard;
}

static void quick_arrive(struct worker *w, uint32_t ready)
{
	struct loom_gpu_launch *l = w->record;
	if (loom_fetch_add_acq_rel_dev(&l->gate->arrived, 1u) + 1 != w->ctx.count)
		return;
	loom_store_relaxed_dev(&l->gate->arrived, 0u);
	loom_store_relaxed_dev(&l->gate->finished, 0u);
	if (LOOM_PHASE_IS_GO(ready)) {
		loom_store_relaxed_dev(&l->gate->clean, 1u);
		loom_store_release_dev(w->order.flags ? &l->gate->met : &w->ctx.ctl->phase, ready);
	} else {
		loom_store_release_sys(&l->words->ready, ready);
		loom_store_release_dev(&l->gate->settled, ready);
	}
}

static uint32_t quick_next_resident(struct worker *w)
{
	int quick = w->heard != LOOM_GPU_NO_PHASE && !w->left && w->flags & LOOM_ORDER_QUICK;
	while (quick && loom_load_acquire_dev(&w->record->gate->settled) != w->heard && !killed(w))
		loom_cpu_yield();
	uint32_t phase = quick				     ? w->heard + 2
			 : w->heard == LOOM_GPU_NO_PHASE ? w->order.phase
							     : quick_await_order(w);
	while (phase != LOOM_PHASE_RETIRE && !LOOM_PHASE_IS_GO(phase)) {
		w->heard = phase;
		reset(w);
		stage(w, LOOM_GPU_READY);
		quick_arrive(w, phase);
		phase = quick_await_order(w);
	}
	return phase;
}

static void quick_note_sample(struct worker *w, uint32_t flags)
{
	struct loom_ctl *ctl = w->ctx.ctl;
	if (w->ctx.worker != w->ctx.first)
		return;
	ctl->initial_tasks = w->order.initial_tasks;
	ctl->sample = LOOM_PHASE_SAMPLE(w->order.phase);
	if (flags & LOOM_ORDER_QUICK)
		loom_store_relaxed_dev(&ctl->call, (uint64_t)w->order.phase << 32 | flags);
}

static uint32_t quick_next_quick(struct worker *w)
{
	uint32_t go = w->order.phase, tasks = (uint32_t)w->order.initial_tasks;
	uint64_t call;
	if (w->heard == LOOM_GPU_NO_PHASE) {
		w->heard = go;
		w->flags = (uint32_t)w->order.flags << LOOM_GPU_FLAGS | tasks;
		int small = quick_is_small(w, go, w->flags), takes = w->ctx.worker - w->ctx.first < quick_small_workers(w, tasks);
		int clean = small && loom_load_acquire_dev(&w->record->gate->clean);
		if (!takes && small && loom_load_relaxed_dev(&w->ctx.ctl->call) == ((uint64_t)go << 32 | LOOM_ORDER_OVER))
			return LOOM_PHASE_RETIRE;
		if (!clean) {
			reset(w);
			stage(w, LOOM_GPU_READY);
			quick_note_sample(w, w->flags);
			quick_arrive(w, go);
			if (await_this(w, go) == LOOM_PHASE_RETIRE)
				return LOOM_PHASE_RETIRE;
		} else {
			quick_note_sample(w, w->flags);
		}
		if (!small)
			return go;
		if (takes) {
			w->small = tasks + 1;
			return go;
		}
	} else if (!w->left) {
		return LOOM_PHASE_RETIRE;
	}
	while ((uint32_t)((call = loom_load_acquire_dev(&w->ctx.ctl->call)) >> 32) != go ||
	       !(call & (LOOM_ORDER_CALLED | LOOM_ORDER_OVER))) {
		if (killed(w))
			return LOOM_PHASE_RETIRE;
		loom_cpu_yield();
	}
	w->small = w->left = 0;
	return call & LOOM_ORDER_CALLED ? go : LOOM_PHASE_RETIRE;
}

static void quick_tell_end(struct worker *w, uint32_t go, uint64_t tally)
{
	loom_fence_release_sys();
	loom_store_marked_sys(&w->record->words->quick_tally, tally, go);
}

/* Returns the sum. If this function is inlined, gcc 12.2 compiles it to twice the old value. */
static __attribute__((noinline)) uint64_t quick_add(uint64_t *word, uint64_t more)
{
	return loom_fetch_add_acq_rel_dev(word, more) + more;
}

static int quick_leave_small(struct worker *w, uint32_t go, int resident)
{
	struct loom_gpu_gate *g = w->record->gate;
	struct loom_gpu_words *words = w->record->words;
	uint32_t workers = quick_small_workers(w, w->small - 1), slot = w->ctx.worker - w->ctx.first;
	uint64_t mine = 1ull << 32 | w->tally, sum;
	if (resident && workers <= LOOM_GPU_ENDS) {
		loom_fence_release_sys();
		loom_store_marked_sys(&words->end[slot].tally, w->tally, go);
	}
	sum = workers > 1 ? quick_add(&g->ctl.small, mine) : mine;
	int last = sum >> 32 == workers;
	if (last) {
		(void)fake_fails("SmallSample"); /* counts it */
		loom_store_relaxed_dev(&g->ctl.small, (uint64_t)0);
		if (resident) {
			loom_store_release_sys(&words->ready, go + 2);
			loom_store_release_dev(&g->settled, go + 2);
		} else {
			loom_store_relaxed_dev(&g->ctl.call, (uint64_t)go << 32 | LOOM_ORDER_OVER);
		}
	}
	if (!resident && workers <= LOOM_GPU_ENDS) {
		loom_fence_release_sys();
		loom_store_marked_sys(&words->end[slot].tally, w->tally, go);
	}
	if (last && workers > LOOM_GPU_ENDS)
		quick_tell_end(w, go, (uint32_t)sum);
	return last;
}

/* Works like loom_gpu_part() in quick.dev.h. */
static void quick_part(struct worker *w)
{
	struct loom_gpu_gate *g = w->record->gate;
	if (loom_fetch_add_acq_rel_dev(&g->left, 1u) + 1 != w->ctx.count)
		return;
	loom_store_relaxed_dev(&g->left, 0u);
	loom_store_relaxed_dev(&g->settled, LOOM_GPU_NO_PHASE);
	loom_store_relaxed_dev(&g->ctl.call, (uint64_t)0);
}

/* Works like loom_gpu_conclude() in quick.dev.h. */
static void quick_conclude(struct worker *w, uint32_t go)
{
	struct loom_gpu_gate *g = w->record->gate;
	struct loom_gpu_words *words = w->record->words;
	uint64_t tally = loom_load_relaxed_dev(&g->tally);
	if (w->flags & LOOM_ORDER_QUICK) {
		tally += (uint32_t)loom_load_relaxed_dev(&g->ctl.small);
		loom_store_relaxed_dev(&g->ctl.small, (uint64_t)0);
	}
	loom_store_relaxed_dev(&g->tally, (uint64_t)0);
	if (w->order.kept != LOOM_GPU_RESIDENT) {
		loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
		loom_store_release_dev(&g->clean, 0u);
	}
	if (w->flags & LOOM_ORDER_QUICK) {
		quick_tell_end(w, go, tally);
		loom_store_release_dev(&g->settled, go);
		return;
	}
	loom_store_relaxed_dev(&g->settled, go);
	loom_store_relaxed_sys(&words->tally, tally);
	loom_store_relaxed_sys(&words->ended_ns, loom_clock_ns(&w->ctx));
	if (w->order.kept == LOOM_GPU_ONE_RUN || w->order.kept == LOOM_GPU_RESIDENT) {
		loom_store_release_sys(&words->done, go);
		return;
	}
	if (tally != w->order.initial_tasks && !loom_load_relaxed_dev(&g->ctl.stop))
		loom_store_relaxed_sys(&words->wrong, ++g->wrong);
	loom_store_relaxed_sys(&words->initial_tasks, w->order.initial_tasks);
	if (w->order.kept == LOOM_GPU_CAPTURED)
		loom_store_release_sys(&words->replayed, ++g->replayed);
	else
		loom_store_release_sys(&words->ended, ++g->ended);
}

static uint32_t quick_get_ready(struct worker *w)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	int kept = w->order.kept;
	if (kept == LOOM_GPU_RESIDENT)
		return quick_next_resident(w);
	if (w->order.flags)
		return quick_next_quick(w);
	stage(w, LOOM_GPU_PARKED);
	uint32_t ready = kept ? w->order.phase : watch(w, 0, 3);
	if (ready == LOOM_PHASE_RETIRE)
		return ready;
	fill(w, c->worker - l->first); /* again, because the host may fill the registries after the launch */
	if (kept)
		reset(w);
	stage(w, LOOM_GPU_READY);
	if (kept && LOOM_PHASE_IS_GO(ready))
		quick_note_sample(w, 0);
	quick_arrive(w, ready);
	return !kept ? watch(w, ready, ~0u) : await_this(w, LOOM_PHASE_IS_GO(ready) ? ready : ready + 2);
}

static void *quick_worker_main(void *arg)
{
	struct worker *w = arg;
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	int kept = w->order.kept, resident = kept == LOOM_GPU_RESIDENT;
	int enters = enter(w);
	uint32_t go;
	w->heard = LOOM_GPU_NO_PHASE;
	do {
		if (!enters)
			break;
		go = quick_get_ready(w);
		if (go == LOOM_PHASE_RETIRE)
			break;
		fill(w, c->worker - l->first);
		if (c->worker == c->first && !(w->flags & LOOM_ORDER_QUICK))
			loom_store_relaxed_sys(&l->words->began_ns, loom_clock_ns(c));
		stage(w, LOOM_GPU_WORKING);
		if (wrong("die")) {
			__atomic_store_n(&w->stream->failed, 1, __ATOMIC_RELEASE);
			break;
		}
		uint64_t small = 0;
		if (w->small) {
			const struct loom_sched_dev *sched = tables[LOOM_SCHED];
			memset(w->local, 0, l->local_bytes);
			small = sched->small(c, go, w->small - 1, !resident && w->order.tasks ? w->order.tasks : l->initial);
		}
		if (!small)
			run_sample(w);
		pass_failure(w);
		stage(w, LOOM_GPU_FINISHED);
		w->left = small != 0;
		w->tally = (uint32_t)small;
		if (w->left) {
			if (quick_leave_small(w, go, resident) && !resident)
				break;
			continue;
		}
		if (c->counters)
			c->counters->end_ns = loom_clock_ns(c);
		if (kept)
			loom_fetch_add_relaxed_dev(&l->gate->tally, LOOM_TALLY(c->counters));
		if (loom_fetch_add_acq_rel_dev(&l->gate->finished, 1u) + 1 == c->count) {
			if (kept) {
				quick_conclude(w, go);
			} else {
				loom_store_relaxed_sys(&l->words->ended_ns, loom_clock_ns(c));
				loom_store_release_sys(&l->words->done, go);
			}
		}
	} while (!kept || resident || w->order.flags);
	if (resident)
		quick_part(w);
	if (enters)
		leave(w);
	free(w->local);
	__atomic_fetch_add(&w->stream->left, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

