/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a scheduler, a detector and a workload (or a test's own tasks) on threads, over plain
 * memory: what a stack does, in one page, so that device code can be stressed without core and
 * device. */
#ifndef LOOM_TEST_HARNESS_H
#define LOOM_TEST_HARNESS_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/sched.h>
#include <gpuloom/term.h>
#include <gpuloom/workload.h>
#include <pthread.h>

#include "fake_host.h"

struct harness_params {
	const char *sched, *sched_opts;       /* "sched_mgws", "local_queue=2 public_queue=1" */
	const char *term;                     /* NULL: "term_counter" */
	const char *workload, *workload_opts; /* NULL: the tasks below */
	loom_task_fn *const *task;            /* [tasks] */
	const struct loom_task *initial;      /* [initials], copied */
	uint64_t initials;
	uint32_t tasks;
	uint32_t workers, lanes;
	uint32_t second_kind; /* of the second device: LOOM_ON_GPU plays one; 0: a CPU */
	uint32_t apart;	      /* no word is changed by both devices */
	uint64_t seed;
	void *extra; /* memory of the test's own: segment 2 */
	/* Device code compiled into the test, in place of the plug-ins'; NULL: theirs. */
	const struct loom_sched_dev *sched_dev;
	const struct loom_term_dev *term_dev;
};

/* One policy with its blocks. */
struct harness_part {
	const struct loom_plugin *plugin;
	const struct loom_policy_ops *ops;
	void *self, *opts;
	char *settings;
	struct loom_need need;
	struct loom_view view;
	loom_ref *registry;
	char *local;
};

struct harness {
	struct harness_params p;
	struct harness_part part[LOOM_KINDS];
	struct loom_device_shape shape[2];
	struct loom_layout layout;
	char *arena, *segment[3];
	uint64_t used, size;
	struct loom_ctl *ctl;
	struct loom_counters *counters;
	struct loom_task *initial;
	loom_task_fn *task[16];
	uint32_t tasks, waiting;
	double seconds; /* of the last run */
};

#define HARNESS_FN static __attribute__((unused))

HARNESS_FN void harness_must(int ok, const char *what, const struct loom_error *err)
{
	if (ok)
		return;
	fprintf(stderr, "harness: %s: %s\n", what, err ? err->text : "");
	exit(99);
}

HARNESS_FN void *harness_take(struct harness *h, uint64_t bytes)
{
	void *at = h->arena + h->used;
	h->used += (bytes + 63) & ~63ull;
	return at;
}

HARNESS_FN loom_ref harness_ref(const struct harness *h, const void *p)
{
	return LOOM_REF(1, (uint64_t)((const char *)p - h->arena));
}

HARNESS_FN int harness_create(struct harness *h, int kind, const char *name, const char *opts,
			      struct loom_error *err)
{
	struct harness_part *part = &h->part[kind];
	part->plugin = fake_load(name);
	part->ops = part->plugin->ops;
	part->opts = calloc(1, part->plugin->opts_size + 1);
	part->settings = strdup(opts ? opts : "");
	if (part->plugin->opts)
		fake_options(part->plugin, part->opts, part->settings);
	return part->ops->create(&fake_host, part->opts, &part->self, err);
}

HARNESS_FN void harness_close(struct harness *h)
{
	for (int k = 0; h && k < LOOM_KINDS; k++) {
		struct harness_part *part = &h->part[k];
		if (part->self)
			part->ops->destroy(part->self);
		free(part->opts);
		free(part->settings);
		free(part->registry);
		free(part->local);
		free((void *)part->view.worker);
		free((void *)part->view.device);
	}
	if (h)
		free(h->arena);
	free(h);
}

HARNESS_FN void harness_shape(struct harness *h)
{
	uint32_t devices = h->p.workers > 1 ? 2 : 1, first = 0;
	for (uint32_t d = 0; d < devices; d++) {
		uint32_t n = d + 1 == devices ? h->p.workers - first : h->p.workers / 2;
		h->shape[d] = (struct loom_device_shape){.first_worker = first,
							 .workers = n,
							 .lanes = h->p.lanes,
							 .numa_node = -1,
							 .kind = d && h->p.second_kind ?
								 h->p.second_kind :
								 LOOM_ON_CPU};
		first += n;
	}
	h->layout = (struct loom_layout){.size = sizeof(h->layout),
					 .devices = devices,
					 .workers = h->p.workers,
					 .device = h->shape,
					 .seed = h->p.seed,
					 .apart = h->p.apart};
}

HARNESS_FN void harness_blocks(struct harness *h, struct harness_part *part)
{
	struct loom_view *v = &part->view;
	void **worker = calloc(h->p.workers, sizeof(void *));
	void **device = calloc(h->layout.devices, sizeof(void *));
	part->registry = calloc(h->p.workers, sizeof(loom_ref));
	v->size = sizeof(*v);
	v->global = harness_take(h, part->need.global);
	for (uint32_t d = 0; d < h->layout.devices; d++)
		device[d] = harness_take(h, part->need.device);
	for (uint32_t w = 0; w < h->p.workers; w++) {
		worker[w] = harness_take(h, part->need.worker);
		part->registry[w] = harness_ref(h, worker[w]);
	}
	v->worker = worker;
	v->device = device;
	uint64_t local = (part->need.local + 63) & ~63ull;
	harness_must(!posix_memalign((void **)&part->local, 64, local * h->p.workers + 64),
		     "memory", NULL);
	memset(part->local, 0xa5, local * h->p.workers + 64); /* see harness_init() */
}

HARNESS_FN uint64_t harness_bytes(const struct harness *h, const struct loom_need *n)
{
	return n->global + n->device * h->layout.devices + n->worker * h->p.workers +
	       64 * (1 + h->layout.devices + (uint64_t)h->p.workers);
}

/* NULL and *err when a plug-in refuses. */
HARNESS_FN struct harness *harness_open(const struct harness_params *p, struct loom_error *err)
{
	struct harness *h = calloc(1, sizeof(*h));
	const struct loom_workload_ops *w = NULL;
	h->p = *p;
	harness_shape(h);
	int rc = harness_create(h, LOOM_SCHED, p->sched, p->sched_opts, err);
	if (!rc)
		rc = harness_create(h, LOOM_TERM, p->term ? p->term : "term_counter", NULL, err);
	if (!rc && p->workload)
		rc = harness_create(h, LOOM_WORKLOAD, p->workload, p->workload_opts, err);
	h->size = 4096 + 192 * (uint64_t)p->workers;
	for (int k = 0; k < LOOM_KINDS && !rc; k++)
		if (h->part[k].self) {
			h->part[k].need.size = sizeof(struct loom_need);
			rc = h->part[k].ops->need(h->part[k].self, &h->layout, &h->part[k].need,
						  err);
			h->size += harness_bytes(h, &h->part[k].need);
		}
	if (rc) {
		harness_close(h);
		return NULL;
	}
	if (p->workload)
		w = h->part[LOOM_WORKLOAD].plugin->ops;
	h->layout.initial_tasks =
		w ? w->task_count(h->part[LOOM_WORKLOAD].self, &h->layout) : p->initials;
	h->size += h->layout.initial_tasks * sizeof(struct loom_task) + 64;
	harness_must(!posix_memalign((void **)&h->arena, 4096, h->size), "memory", NULL);
	memset(h->arena, 0, h->size);
	h->segment[1] = h->arena;
	h->segment[2] = p->extra;
	harness_take(h, 64); /* reference 0 is never valid */
	h->ctl = harness_take(h, sizeof(*h->ctl));
	h->counters = harness_take(h, p->workers * sizeof(*h->counters));
	h->initial = harness_take(h, h->layout.initial_tasks * sizeof(struct loom_task));
	for (int k = 0; k < LOOM_KINDS; k++)
		if (h->part[k].self)
			harness_blocks(h, &h->part[k]);
	harness_must(h->used <= h->size, "arena", NULL);
	if (w) {
		const struct loom_workload_dev *dev = h->part[LOOM_WORKLOAD].plugin->dev->cpu;
		struct harness_part *part = &h->part[LOOM_WORKLOAD];
		h->tasks = dev->count;
		for (uint32_t i = 0; i < dev->count; i++)
			h->task[i] = dev->task[i].fn;
		rc = w->tasks(part->self, &h->layout, &part->view,
			      harness_ref(h, part->view.global), h->initial, err);
	} else {
		h->tasks = p->tasks;
		for (uint32_t i = 0; i < p->tasks; i++)
			h->task[i] = p->task[i];
		memcpy(h->initial, p->initial, p->initials * sizeof(*p->initial));
	}
	if (rc) {
		harness_close(h);
		return NULL;
	}
	return h;
}

struct harness_thread {
	pthread_t id;
	struct harness *h;
	struct loom_ctx c;
};

HARNESS_FN void *harness_thread(void *arg)
{
	struct harness_thread *t = arg;
	uint32_t all = t->h->p.workers * t->h->p.lanes;
	__atomic_add_fetch(&t->h->waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&t->h->waiting, __ATOMIC_ACQUIRE) < all)
		loom_pause(&t->c);
	t->c.sched->run(&t->c);
	return NULL;
}

HARNESS_FN void harness_ctx(struct harness *h, struct loom_ctx *c, uint32_t w, uint32_t lane,
			    struct loom_lanes *together)
{
	uint32_t d = w >= h->shape[0].workers, cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	*c = (struct loom_ctx){.worker = w,
			       .workers = h->p.workers,
			       .device = d,
			       .devices = h->layout.devices,
			       .first = h->shape[d].first_worker,
			       .count = h->shape[d].workers,
			       .lane = lane,
			       .lanes = h->p.lanes,
			       .flags = h->p.workers * h->p.lanes > cores ? LOOM_CTX_CROWDED : 0,
			       .random = (h->p.seed * 0x9e3779b97f4a7c15ull + w) | 1,
			       .ctl = h->ctl,
			       .counters = &h->counters[w],
			       .segment = h->segment,
			       .together = together,
			       .initial = h->initial,
			       .task = h->task,
			       .tasks = h->tasks};
	for (int k = 0; k < LOOM_KINDS; k++) {
		struct harness_part *part = &h->part[k];
		if (!part->self)
			continue;
		c->global[k] = part->view.global;
		c->on_device[k] = part->view.device[d];
		c->own[k] = part->view.worker[w];
		c->local[k] = part->local + w * ((part->need.local + 63) & ~63ull);
		c->registry[k] = part->registry;
	}
	c->sched = h->p.sched_dev ? h->p.sched_dev : h->part[LOOM_SCHED].plugin->dev->cpu;
	c->term = h->p.term_dev ? h->p.term_dev : h->part[LOOM_TERM].plugin->dev->cpu;
	if (h->part[LOOM_WORKLOAD].self)
		c->workload = h->part[LOOM_WORKLOAD].plugin->dev->cpu;
}

HARNESS_FN struct loom_counters harness_sum(const struct harness *h)
{
	struct loom_counters sum = {0};
	for (uint32_t w = 0; w < h->p.workers; w++) {
#define HARNESS_SUM(name, unit, text) sum.name += h->counters[w].name;
		LOOM_COUNTER_MAP(HARNESS_SUM)
#undef HARNESS_SUM
	}
	return sum;
}

HARNESS_FN int harness_check(struct harness *h, struct loom_error *err)
{
	struct loom_counters sum = harness_sum(h);
	int rc = 0;
	const struct loom_sched_ops *sched = h->part[LOOM_SCHED].plugin->ops;
	if (h->ctl->failed && LOOM_HAS(sched, explain))
		rc = sched->explain(h->part[LOOM_SCHED].self, h->ctl->failed_worker,
				    -(int)h->ctl->failed, h->ctl->failed_info, err);
	if (rc)
		return rc;
	if (h->ctl->failed)
		return LOOM_FAIL(&fake_host, err, -(int)h->ctl->failed, "worker %u failed: %llu",
				 h->ctl->failed_worker, (unsigned long long)h->ctl->failed_info);
	if (sum.executed != sum.spawned + h->layout.initial_tasks)
		return LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "%llu run, %llu + %llu made",
				 (unsigned long long)sum.executed, (unsigned long long)sum.spawned,
				 (unsigned long long)h->layout.initial_tasks);
	if (sum.stolen_in != sum.stolen_out || sum.spilled != sum.unspilled)
		return LOOM_FAIL(
			&fake_host, err, LOOM_EWRONG, "stolen %llu, %llu; spilled %llu, %llu",
			(unsigned long long)sum.stolen_in, (unsigned long long)sum.stolen_out,
			(unsigned long long)sum.spilled, (unsigned long long)sum.unspilled);
	/* No worker leaves before the last task of all has ended: then the detector was right. */
	for (uint32_t w = 0; w < h->p.workers; w++)
		for (uint32_t v = 0; v < h->p.workers; v++)
			if (h->counters[w].end_ns < h->counters[v].last_task_ns)
				return LOOM_FAIL(&fake_host, err, LOOM_EWRONG,
						 "worker %u left while worker %u had tasks", w, v);
	fake_metric_count = 0;
	for (int k = 0; k < LOOM_KINDS && !rc; k++)
		if (h->part[k].self && LOOM_HAS(h->part[k].ops, collect))
			rc = h->part[k].ops->collect(h->part[k].self, &h->layout, &h->part[k].view,
						     NULL, err);
	return rc;
}

/* The workload's own check. */
HARNESS_FN int harness_verify(struct harness *h, struct loom_error *err)
{
	struct harness_part *part = &h->part[LOOM_WORKLOAD];
	const struct loom_workload_ops *w = part->plugin->ops;
	return w->verify(part->self, &h->layout, &part->view, NULL, err);
}

HARNESS_FN void harness_init(struct harness *h)
{
	struct loom_error err;
	for (int k = 0; k < LOOM_KINDS; k++)
		if (h->part[k].self)
			harness_must(!h->part[k].ops->init(h->part[k].self, &h->layout,
							   &h->part[k].view, &err),
				     "init", &err);
	/* As devices do. Schedulers set up theirs by themselves, and are held to it. */
	for (int k = 0; k < LOOM_KINDS; k++)
		if (k != LOOM_SCHED && h->part[k].local)
			memset(h->part[k].local, 0, ((h->part[k].need.local + 63) & ~63ull) * h->p.workers);
	memset(h->ctl, 0, sizeof(*h->ctl));
	memset(h->counters, 0, h->p.workers * sizeof(*h->counters));
	h->ctl->initial_tasks = h->layout.initial_tasks;
	h->waiting = 0;
}

/* One sample: 0 when all invariants hold and the workload verifies. */
HARNESS_FN int harness_run(struct harness *h, struct loom_error *err)
{
	uint32_t n = h->p.workers * h->p.lanes;
	struct harness_thread *t = calloc(n, sizeof(*t));
	struct loom_lanes *together = calloc(h->p.workers, sizeof(*together));
	uint64_t begin = ~0ull, end = 0;
	harness_init(h);
	for (uint32_t i = 0; i < n; i++) {
		t[i].h = h;
		harness_ctx(h, &t[i].c, i / h->p.lanes, i % h->p.lanes, &together[i / h->p.lanes]);
		harness_must(!pthread_create(&t[i].id, NULL, harness_thread, &t[i]), "thread",
			     NULL);
	}
	for (uint32_t i = 0; i < n; i++)
		pthread_join(t[i].id, NULL);
	for (uint32_t w = 0; w < h->p.workers; w++) {
		begin = h->counters[w].begin_ns < begin ? h->counters[w].begin_ns : begin;
		end = h->counters[w].end_ns > end ? h->counters[w].end_ns : end;
	}
	h->seconds = (double)(end - begin) / 1e9;
	free(t);
	free(together);
	int rc = harness_check(h, err);
	if (!rc && h->p.workload)
		rc = harness_verify(h, err);
	return rc;
}

#endif
