/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/refterm.h"

static struct loom__refterm *block(const struct loom_ctx *c)
{
	return c->global[LOOM_TERM];
}

static void fault(const struct loom_ctx *c, const char *what)
{
	loom__fault_stop(c, block(c)->trial, "worker %u %s", c->worker, what);
}

static void refterm_idle(struct loom_ctx *c)
{
	struct loom__refterm *t = block(c);
	if (t->rough)
		loom__dawdle(c);
	if (c->lane != 0)
		return;
	if (t->worker[c->worker].idle)
		fault(c, "called the detector's idle() twice without busy() in between");
	t->worker[c->worker].idle = 1;
	if (__atomic_add_fetch(&t->idle, 1, __ATOMIC_ACQ_REL) != c->workers)
		return;
	/* All workers are idle, so no task is spawned or ends, and the counts do not change. */
	uint64_t made = __atomic_load_n(&t->made, __ATOMIC_ACQUIRE);
	uint64_t ended = __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE);
	if (ended < made && !__atomic_load_n(&c->ctl->stop, __ATOMIC_RELAXED))
		loom__fault((struct loom__trial *)(uintptr_t)t->trial,
			    "all workers report idle, but %llu of %llu tasks were not run: they are lost, or a "
			    "worker calls idle() while it or a thief still holds some",
			    (unsigned long long)(made - ended), (unsigned long long)made);
}

static void refterm_busy(struct loom_ctx *c)
{
	struct loom__refterm *t = block(c);
	if (t->rough)
		loom__dawdle(c);
	if (c->lane != 0)
		return;
	if (!t->worker[c->worker].idle)
		fault(c, "called the detector's busy() without idle() before it");
	t->worker[c->worker].idle = 0;
	if (t->worker[c->worker].saw_done)
		fault(c, "continued to work after done() had returned 1");
	__atomic_fetch_sub(&t->idle, 1, __ATOMIC_ACQ_REL);
}

static int refterm_done(struct loom_ctx *c, uint64_t stolen_out)
{
	struct loom__refterm *t = block(c);
	uint64_t all = 0;
	if (c->lane == 0) {
		if (!t->worker[c->worker].idle)
			fault(c, "called the detector's done() without idle() before it");
		if (stolen_out < t->worker[c->worker].stolen_out)
			fault(c, "called done() with a smaller stolen_out than in its last call");
		t->worker[c->worker].stolen_out = stolen_out;
		all = !t->never && __atomic_load_n(&t->idle, __ATOMIC_ACQUIRE) == c->workers;
		t->worker[c->worker].saw_done |= (uint32_t)all;
	}
	if (t->rough)
		loom__dawdle(c);
	return (int)loom_from_lane0(c, all);
}

const struct loom_term_dev loom__refterm_dev = {
    .size = sizeof(loom__refterm_dev),
    .idle = refterm_idle,
    .busy = refterm_busy,
    .done = refterm_done,
};
