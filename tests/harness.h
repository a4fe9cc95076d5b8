/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a scheduler, a detector and a workload (or a test's own tasks) on the rig (rig/rig.h), like a small stack. Tests
 * use it to stress device code without core and device. */
#ifndef LOOM_TEST_HARNESS_H
#define LOOM_TEST_HARNESS_H

#include <gpuloom/sched.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>

#include "fake_host.h"
#include "rig/rig.h"

struct harness_params {
	const char *sched, *sched_opts;       /* NULL selects "sched_mgws"; options have the form "a=b c=d" */
	const char *term;                     /* NULL selects "term_counter" */
	const char *workload, *workload_opts; /* NULL selects the test's own tasks, in the fields below */
	loom_task_fn *const *task;            /* `tasks` functions; the index of a function is its tag */
	const struct loom_task *initial;      /* `initials` tasks, which harness_open() copies */
	uint64_t initials, costs;	       /* costs: enum loom_costs */
	uint32_t tasks;
	uint32_t workers, lanes; /* the number of all workers, and of the lanes of each (0 means 1) */
	uint32_t second_kind; /* LOOM_ON_GPU if the second device behaves like a GPU, 0 if it is a CPU */
	uint32_t products;	      /* 1 if the warps of all devices multiply matrices */
	uint32_t noncoherent;	      /* 1 if the two devices are non-coherent */
	uint32_t one_device;	      /* 1: all workers are on one device */
	uint32_t rank, ranks, remote_workers, remote_devices; /* fields of struct loom_layout, which ranks_open() sets */
	uint64_t seed;
	void *extra; /* memory of the test, which becomes segment 2, or NULL */
	/* Device code compiled into the test, in place of the plug-ins'. NULL selects the plug-ins' code. */
	const struct loom_sched_dev *sched_dev;
	const struct loom_term_dev *term_dev;
	const struct loom_workload_dev *workload_dev; /* of the test's own tasks; only cost() is used */
	const struct loom_trigger_dev *trigger_dev; /* NULL if there is no trigger; a trigger gets a block of 4 KiB */
};

struct harness {
	struct harness_params p;
	struct loom__rig rig;
	loom_task_fn *task[16];
	double seconds; /* the time of the last harness_run() */
};

FAKE_FN int harness_add(struct harness *h, const char *name, const char *opts, struct loom_error *err)
{
	const struct loom_plugin *p = fake_load(name);
	return loom__rig_add(&h->rig, p, &fake_host, fake_settings(p, opts), err);
}

FAKE_FN void harness_close(struct harness *h)
{
	if (h)
		loom__rig_close(&h->rig);
	free(h);
}

FAKE_FN const struct loom_workload_ops *harness_workload(const struct harness *h)
{
	return h->p.workload ? h->rig.part[LOOM_WORKLOAD].plugin->ops : NULL;
}

FAKE_FN int harness_furnish(struct harness *h, struct loom_error *err)
{
	struct loom__rig *r = &h->rig;
	struct loom__rig_part *part = &r->part[LOOM_WORKLOAD];
	const struct loom_workload_ops *w = harness_workload(h);
	int rc = loom__rig_need(r, err);
	if (rc)
		return rc;
	fake_must(!loom__rig_furnish(r), "memory", NULL);
	r->want.task = h->task;
	if (!w) {
		r->want.tasks = h->p.tasks;
		memcpy(h->task, h->p.task, h->p.tasks * sizeof(*h->task));
		memcpy(r->initial, h->p.initial, h->p.initials * sizeof(*h->p.initial));
		return 0;
	}
	const struct loom_workload_dev *dev = part->plugin->dev->cpu;
	r->want.tasks = dev->count;
	for (uint32_t i = 0; i < dev->count; i++)
		h->task[i] = dev->task[i].fn;
	return w->tasks(part->self, &r->layout, &part->view, loom__rig_ref(r, part->view.global), r->initial, err);
}

/* Returns NULL and fills *err if a plug-in rejects the parameters. */
FAKE_FN struct harness *harness_open(const struct harness_params *p, struct loom_error *err)
{
	struct harness *h = calloc(1, sizeof(*h));
	struct loom__rig_want want = {.devices = p->workers > 1 && !p->one_device ? 2 : 1,
				      .workers = p->workers,
				      .lanes = p->lanes ? p->lanes : 1,
				      .kind = {0, p->second_kind},
				      .noncoherent = p->noncoherent,
				      .seed = p->seed,
				      .initial_tasks = p->initials,
				      .costs = p->costs,
				      .counts = 1,
				      .one_view = 1,
				      .dirty = 1u << LOOM_SCHED, /* schedulers must initialise their memory */
				      .extra = p->extra};
	const char *what;
	want.table[LOOM_SCHED] = p->sched_dev;
	want.table[LOOM_TERM] = p->term_dev;
	want.table[LOOM_TRIGGER] = p->trigger_dev;
	want.table[LOOM_WORKLOAD] = p->workload_dev;
	want.bytes[LOOM_TRIGGER] = p->trigger_dev ? 4096 : 0;
	h->p = *p;
	h->p.lanes = want.lanes;
	h->p.sched = p->sched ? p->sched : "sched_mgws";
	loom__rig_shape(&h->rig, &want);
	for (uint32_t d = 0; p->products && d < h->rig.layout.devices; d++)
		h->rig.shape[d].flags |= LOOM_SHAPE_PRODUCTS;
	h->rig.layout.rank = p->rank;
	h->rig.layout.ranks = p->ranks;
	h->rig.layout.remote_workers = p->remote_workers;
	h->rig.layout.rma = p->ranks > 1 && p->trigger_dev;
	h->rig.layout.remote_devices = p->remote_devices;
	int rc = harness_add(h, h->p.sched, p->sched_opts, err);
	if (!rc)
		rc = harness_add(h, p->term ? p->term : "term_counter", NULL, err);
	if (!rc && p->workload)
		rc = harness_add(h, p->workload, p->workload_opts, err);
	if (!rc)
		rc = harness_furnish(h, err);
	if (!rc)
		rc = loom__rig_begin(&h->rig, &what, err);
	if (!rc)
		return h;
	harness_close(h);
	return NULL;
}

/* Opens a harness, and ends the program if a plug-in rejects the parameters. */
FAKE_FN struct harness *harness_must(const struct harness_params *p)
{
	struct loom_error err;
	struct harness *h = harness_open(p, &err);
	fake_must(h != NULL, p->workload ? p->workload : p->sched_opts ? p->sched_opts : "no options", &err);
	return h;
}

/* Checks that a plug-in rejects the parameters with this error code, and that the message contains these words. */
FAKE_FN void harness_refused(const struct harness_params *p, int code, const char *words)
{
	struct loom_error err = {0};
	CU_ASSERT_PTR_NULL(harness_open(p, &err));
	REFUSED(err.code, code, err, words);
}

FAKE_FN void harness_add_counters(const struct harness *h, struct loom_counters *sum)
{
	for (uint32_t w = 0; w < h->p.workers; w++) {
#define HARNESS_SUM(name, unit, text) sum->name += h->rig.counters[w].name;
		LOOM_COUNTER_MAP(HARNESS_SUM)
#undef HARNESS_SUM
	}
}

FAKE_FN struct loom_counters harness_sum(const struct harness *h)
{
	struct loom_counters sum = {0};
	harness_add_counters(h, &sum);
	return sum;
}

/* Returns 0, or the error code of a worker that failed. */
FAKE_FN int harness_failure(struct harness *h, struct loom_error *err)
{
	struct loom__rig *r = &h->rig;
	int rc = 0;
	const struct loom__rig_part *part = &r->part[LOOM_SCHED];
	const struct loom_sched_ops *sched = part->plugin->ops;
	if (r->ctl->failed && LOOM_HAS(sched, explain))
		rc = sched->explain(part->self, r->ctl->failed_worker, -(int)r->ctl->failed, r->ctl->failed_info, err);
	if (!rc && r->ctl->failed)
		rc = LOOM_FAIL(&fake_host, err, -(int)r->ctl->failed, "worker %u failed: %llu", r->ctl->failed_worker,
			       (unsigned long long)r->ctl->failed_info);
	return rc;
}

FAKE_FN int harness_compare(const struct loom_counters *sum, uint64_t initial_tasks, struct loom_error *err)
{
	if (sum->executed != sum->spawned + initial_tasks)
		return LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "%llu run, %llu + %llu made",
				 (unsigned long long)sum->executed, (unsigned long long)sum->spawned,
				 (unsigned long long)initial_tasks);
	if (sum->stolen_in != sum->stolen_out || sum->overflowed != sum->refilled)
		return LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "stolen %llu, %llu; overflowed %llu, %llu",
				 (unsigned long long)sum->stolen_in, (unsigned long long)sum->stolen_out,
				 (unsigned long long)sum->overflowed, (unsigned long long)sum->refilled);
	return 0;
}

/* Returns 0 if no worker of h left before the last task of g ended. Otherwise the detector is wrong. */
FAKE_FN int harness_left_late(const struct harness *h, const struct harness *g, struct loom_error *err)
{
	const struct loom_counters *k = h->rig.counters, *l = g->rig.counters;
	for (uint32_t w = 0; w < h->p.workers; w++)
		for (uint32_t v = 0; v < g->p.workers; v++)
			if (k[w].end_ns && k[w].end_ns < l[v].last_task_ns)
				return LOOM_FAIL(&fake_host, err, LOOM_EWRONG,
						 "worker %u left while worker %u had tasks", w, v);
	return 0;
}

FAKE_FN int harness_collect(struct harness *h, struct loom_error *err)
{
	char text[300];
	if (loom__rig_guards(&h->rig, text, sizeof(text)))
		return LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "%s", text);
	loom__rig_host_clear(&fake);
	return loom__rig_collect(&h->rig, LOOM__RIG_REPORT(&fake), err);
}

FAKE_FN int harness_check(struct harness *h, struct loom_error *err)
{
	struct loom_counters sum = harness_sum(h);
	int rc = harness_failure(h, err);
	if (!rc)
		rc = harness_compare(&sum, h->rig.layout.initial_tasks, err);
	if (!rc)
		rc = harness_left_late(h, h, err);
	return rc ? rc : harness_collect(h, err);
}

FAKE_FN int harness_verify(struct harness *h, struct loom_error *err)
{
	const struct loom__rig_part *part = &h->rig.part[LOOM_WORKLOAD];
	return harness_workload(h)->verify(part->self, &h->rig.layout, &part->view, LOOM__RIG_REPORT(&fake), err);
}

FAKE_FN void harness_init(struct harness *h)
{
	struct loom_error err;
	uint32_t all = h->p.workers * h->p.lanes, cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	fake_must(!loom__rig_init(&h->rig, &err), "init", &err);
	for (uint32_t i = 0; all <= cores && i < all; i++)
		h->rig.ctx[i].flags = 0;
}

static void harness_body(struct loom_ctx *c)
{
	c->sched->run(c);
}

/* Runs one sample. Returns 0 if all invariants hold and the workload verifies. */
FAKE_FN int harness_run(struct harness *h, struct loom_error *err)
{
	uint64_t begin = ~0ull, end = 0;
	harness_init(h);
	loom__rig_run(&h->rig, harness_body, 3600000000000ull);
	for (uint32_t w = 0; w < h->p.workers; w++) {
		const struct loom_counters *k = &h->rig.counters[w];
		begin = k->begin_ns < begin ? k->begin_ns : begin;
		end = k->end_ns > end ? k->end_ns : end;
	}
	h->seconds = (double)(end - begin) / 1e9;
	int rc = harness_check(h, err);
	if (!rc && h->p.workload)
		rc = harness_verify(h, err);
	return rc;
}

#endif
