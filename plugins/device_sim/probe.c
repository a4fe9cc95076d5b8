/* SPDX-License-Identifier: Apache-2.0 */
/* The coherence probe on fibers. It uses the device layer of CPUs, but its waits switch to other fibers. */
#include "simulation.h"

#define LOOM_OWN_SLEEP
static void loom_pause(const struct loom_ctx *c);
static __attribute__((unused)) void loom_yield(const struct loom_ctx *c)
{
	loom_pause(c);
}
static __attribute__((unused)) void loom_sleep_on(const struct loom_ctx *c, uint32_t *word, uint32_t seen, uint64_t ns)
{
	(void)word, (void)seen, (void)ns;
	loom_pause(c);
}
static __attribute__((unused)) void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c, (void)word, (void)most;
}
#include <gpuloom/dev/probe.h>

#include "device_sim.h"

/* Switches to another fiber. The context is a member of its worker, so its address gives that of the worker. */
static void loom_pause(const struct loom_ctx *c)
{
	struct sim_worker *me = (struct sim_worker *)((char *)(uintptr_t)c - offsetof(struct sim_worker, ctx));
	struct device *d = (struct device *)me->device;
	struct loom_sim *sim = &d->simulation->sim;
	/* Count the wait as a change, so that no stall is reported. The probe has a time limit of its own. */
	sim->changed = sim->now += 100;
	sim->waiting = 1;
	sim->waited_at = sim->now;
	sim->yield(sim);
	sim->waiting = 0;
}

void probe_work(struct loom_ctx *c)
{
	struct sim_worker *me = (struct sim_worker *)((char *)c - offsetof(struct sim_worker, ctx));
	struct device *d = (struct device *)me->device;
	const struct loom_launch *what = d->what;
	loom_probe_run(c, (struct loom_probe *)(d->view[LOOM_REF_SEGMENT(what->probe)] + LOOM_REF_OFFSET(what->probe)));
}
