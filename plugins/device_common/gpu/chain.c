/* SPDX-License-Identifier: Apache-2.0 */
/* With kernels = launched, a sample is a stream of kernels, one per step of the workload. When a step has ended, the
 * network is notified. The next step starts when its inputs have arrived. Under the trigger gds, the GPU's front end
 * notifies the network and starts steps, because the stream sets and awaits words. Under the trigger hdn, the host
 * notifies and starts. With kernels = graph, the calls of a sample are recorded once, and each sample is one call. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

#include "gpu.h"

/* Limit on the steps in the stream at once. A stream has room for about a thousand calls. When it is full, a launch
 * blocks until the front end continues, which may depend on this thread. */
#define AHEAD      32
#define GRAPH_MOST 4096u        /* limit on the steps of a graph, because each step takes some us to build */
#define LOOK_NS    1000000ull   /* interval of checks for network failures, if the stream notifies the network */
#define ENOUGH     (1ull << 62) /* larger than any count that a step awaits, even after more arrivals */

int chain_check(const struct gpu *d, const struct loom_program *program, struct loom_error *err)
{
	const struct loom_plugin *w = program->policy[LOOM_WORKLOAD], *t = program->policy[LOOM_TRIGGER];
	const struct loom_workload_dev *steps = w && w->dev ? w->dev->cpu : NULL;
	const struct loom_workload_ops *workload = w ? w->ops : NULL;
	const struct loom_trigger_ops *trigger = t ? t->ops : NULL;
	if (!LOOM_HAS(steps, step) || !LOOM_HAS(workload, steps) || !LOOM_HAS(workload, awaits))
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: kernels = launched: %s has no steps to launch: set kernels = persistent, or "
				 "choose workload pingpong or jacobi2d",
				 d->name, w ? w->name : "a scheduler");
	if (!LOOM_HAS(trigger, edge))
		return LOOM_FAIL(
		    d->host, err, LOOM_ENOTSUP,
		    "%s: kernels = launched: %s does not send at the ends of kernels: set use = gds or hdn in "
		    "[trigger], or kernels = persistent",
		    d->name, t ? t->name : "no trigger");
	if (d->options->kernels == KERNELS_GRAPH && !d->driver->record)
		return LOOM_FAIL(
		    d->host, err, LOOM_ENOTSUP,
		    "%s: kernels = graph: only CUDA has graphs of kernels and words: set kernels = launched", d->name);
	if (program->layout->devices > 1)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: kernels = launched supports one device, not %u: name one in [run] devices, "
				 "and start a rank for each GPU",
				 d->name, program->layout->devices);
	return 0;
}

int chain_find(struct gpu *d, struct launch *l, struct loom_error *err)
{
	const struct loom_chain *what = LOOM_HAS(l->what, chain) ? l->what->chain : NULL;
	uint64_t view;
	if (!what)
		return LOOM_FAIL(d->host, err, LOOM_EABI, "%s: kernels = launched needs a newer gpuloom", d->name);
	if (what->edge.by_stream && !d->limits.words)
		return LOOM_FAIL(
		    d->host, err, LOOM_ENOTSUP,
		    "%s: kernels = launched: this driver's streams cannot set and await words of memory: set use = hdn "
		    "in [trigger], or kernels = persistent",
		    d->name);
	if (d->options->kernels == KERNELS_GRAPH && !what->edge.by_stream)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: kernels = graph: the host takes part in each step, which a graph does not "
				 "support: set use = gds in [trigger], or kernels = launched",
				 d->name);
	if (d->options->kernels == KERNELS_GRAPH && what->steps > GRAPH_MOST)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: kernels = graph: a sample has %llu steps, but a graph at most %u: reduce the "
				 "steps, or set kernels = launched",
				 d->name, (unsigned long long)what->steps, GRAPH_MOST);
	const struct loom_segment *segment = &l->what->segment[LOOM_REF_SEGMENT(what->words)];
	uint64_t offset = LOOM_REF_OFFSET(what->words);
	int code = memory_view(d, segment, &view, err);
	l->chain = (struct chain){.what = what,
				  .words = (char *)segment->memory->host + segment->offset + offset,
				  .view = view + offset,
				  .most = what->edge.by_stream ? AHEAD : 1};
	return code;
}

static uint64_t *word(const struct chain *c, uint64_t at)
{
	return (uint64_t *)(c->words + at);
}

static uint64_t arrival(const struct chain *c, const struct loom_await *await)
{
	return c->what->edge.arrival + await->index * c->what->edge.stride;
}

static uint32_t awaits(const struct launch *l, uint64_t n, struct loom_await *out)
{
	return l->chain.what->awaits(l->chain.what->self, l->what->layout, n, out);
}

/* Returns 1 if step n may start, else 0. A network failure ends the run with an error, as it also does when a worker
 * waits for data. */
static int may_begin(struct launch *l, uint64_t n)
{
	const struct chain *c = &l->chain;
	struct loom_await await[LOOM_AWAITS_MOST];
	uint32_t count = awaits(l, n, await);
	/* Both acquires pair with releases of the trigger. They make the arrived data visible to the next kernel. */
	int may = __atomic_load_n(word(c, c->what->edge.begun), __ATOMIC_ACQUIRE) >= n;
	for (uint32_t i = 0; i < count; i++) {
		int64_t seen = (int64_t)__atomic_load_n(word(c, arrival(c, &await[i])), __ATOMIC_ACQUIRE);
		struct loom_ctx failed = {.worker = l->what->layout->device[l->what->device].first_worker,
					  .ctl = l->ctl};
		if (seen < 0)
			loom_worker_fail(&failed, (int)seen, await[i].index);
		may &= seen >= (int64_t)await[i].count;
	}
	return may;
}

/* Makes the stream wait until step n may start, as may_begin() defines it. In most cases these waits end at once. */
static int await_begin(struct gpu *d, struct launch *l, uint64_t n)
{
	const struct chain *c = &l->chain;
	struct loom_await await[LOOM_AWAITS_MOST];
	uint32_t count = awaits(l, n, await);
	int rc = 0;
	for (uint32_t i = 0; i < count && rc == 0; i++)
		if (await[i].count)
			rc = d->driver->await_word(d, c->view + arrival(c, &await[i]), await[i].count);
	return rc == 0 && n > 0 ? d->driver->await_word(d, c->view + c->what->edge.begun, n) : rc;
}

static int launch_step(struct gpu *d, struct launch *l, uint64_t n)
{
	const struct chain *c = &l->chain;
	int by_stream = (int)c->what->edge.by_stream, rc = by_stream ? await_begin(d, l, n) : 0;
	if (rc == 0)
		rc = d->driver->launch(d, &d->kernel[LOOM_ENTRY_WORK], l->blocks, l->threads, l->shared, &n);
	return rc == 0 && by_stream ? d->driver->set_word(d, c->view + c->what->edge.ended, n + 1) : rc;
}

int chain_record(struct gpu *d, struct launch *l)
{
	struct chain *c = &l->chain;
	if (d->options->kernels != KERNELS_GRAPH)
		return 0;
	int rc = d->driver->record(d), ended;
	if (rc != 0)
		return rc;
	for (uint64_t n = 0; n < c->what->steps && rc == 0; n++)
		rc = launch_step(d, l, n);
	ended = d->driver->recorded(d, &c->graph);
	return rc == 0 ? ended : rc;
}

void chain_forget(struct gpu *d, struct launch *l)
{
	if (l->chain.graph)
		d->driver->forget(d, l->chain.graph);
	l->chain.graph = NULL;
}

/* Launches the next step if it may start, or the whole graph. *did: 1 if it launched anything. Returns the driver's
 * code. */
static int launch_next(struct gpu *d, struct launch *l, int *did)
{
	struct chain *c = &l->chain;
	*did = c->what->edge.by_stream || may_begin(l, c->launched);
	if (!*did)
		return 0;
	if (!c->graph)
		return launch_step(d, l, c->launched++);
	c->launched = c->what->steps;
	return d->driver->replay(d, c->graph);
}

/* Counts ended kernels. If the stream does not tell the trigger of these ends, this function does. Sets *still to 1 while a
 * kernel runs. */
static int see_ends(struct gpu *d, struct launch *l, int stopped, uint64_t now, int *still)
{
	struct chain *c = &l->chain;
	uint64_t *ended = word(c, c->what->edge.ended);
	int by_stream = (int)c->what->edge.by_stream, rc = 0;
	*still = c->launched > c->ended;
	if (!*still)
		return 0;
	if (!by_stream || stopped || now - c->looked_ns > LOOK_NS) {
		rc = d->driver->running(d, still);
		c->looked_ns = now;
		if (by_stream)
			may_begin(l, c->ended);
	}
	if (by_stream)
		c->ended = __atomic_load_n(ended, __ATOMIC_ACQUIRE);
	else if (rc == 0 && !*still)
		/* Release: pairs with the acquire in the trigger. The writes of the kernel became visible to the host
		 * at the kernel's end. */
		__atomic_store_n(ended, c->ended = c->launched, __ATOMIC_RELEASE);
	return rc;
}

int chain_go_on(struct gpu *d, struct launch *l, struct loom_error *err)
{
	struct chain *c = &l->chain;
	uint64_t before = c->launched + c->ended, now = d->host->now_ns(d->host);
	int stopped = (int)__atomic_load_n(&l->ctl->stop, __ATOMIC_RELAXED), still, did = !stopped;
	int rc = see_ends(d, l, stopped, now, &still);
	if (rc != 0)
		return gpu_dead(d, rc, err);
	if (c->ended == c->what->steps || (stopped && !still))
		return 1;
	while (did && rc == 0 && c->launched < c->what->steps && c->launched - c->ended < c->most)
		rc = launch_next(d, l, &did);
	if (c->launched + c->ended != before)
		c->moved_ns = now;
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

void chain_release(struct launch *l)
{
	const struct chain *c = &l->chain;
	struct loom_await await[LOOM_AWAITS_MOST];
	if (!c->what || !c->what->edge.by_stream)
		return;
	/* Relaxed, because no data is published: the kernels in the stream check only the stop flag. The trigger may
	 * store to the same words concurrently, so callers repeat this function. */
	__atomic_store_n(word(c, c->what->edge.begun), ENOUGH, __ATOMIC_RELAXED);
	for (uint64_t n = c->ended; n < c->launched; n++)
		for (uint32_t i = 0, count = awaits(l, n, await); i < count; i++)
			__atomic_store_n(word(c, arrival(c, &await[i])), ENOUGH, __ATOMIC_RELAXED);
}
