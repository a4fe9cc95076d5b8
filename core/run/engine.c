/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

#include <stdlib.h>
#include <string.h>

#include "run/environment.h"
#include "run/trace.h"

static int init_policies(struct loom_stack *s, struct loom_error *err)
{
	memset(s->counters, 0, s->layout.workers * sizeof(*s->counters));
	loom__trace_reset(s);
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		int rc = p->ops->init(p->self, &s->layout, &p->view, err);
		if (rc)
			return rc;
	}
	return loom__segments_push(s, err);
}

/* The workload has no tasks: whatever scheduler is selected takes no part. */
static int runs_kernel(const struct loom_stack *s)
{
	const struct loom_plugin *w = s->selected[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = w ? w->dev->cpu : NULL;
	return LOOM_HAS(dev, kernel) != 0;
}

/* Every task exactly once: what was made was run, what was taken was given. */
static int check_counters(const struct loom_stack *s, struct loom_error *err)
{
	uint64_t executed = 0, made = s->layout.initial_tasks, in = 0, out = 0;
	if (!s->selected[LOOM_SCHED] || runs_kernel(s))
		return 0;
	for (uint32_t w = 0; w < s->layout.workers; w++) {
		executed += s->counters[w].executed;
		made += s->counters[w].spawned;
		in += s->counters[w].stolen_in;
		out += s->counters[w].stolen_out;
	}
	if (executed != made)
		return LOOM__FAIL(err, LOOM_EWRONG, "%llu tasks were made, but %llu were run",
				  (unsigned long long)made, (unsigned long long)executed);
	if (in != out)
		return LOOM__FAIL(err, LOOM_EWRONG, "%llu tasks were stolen, but %llu were given",
				  (unsigned long long)in, (unsigned long long)out);
	return 0;
}

static void add_core_metrics(const struct loom_stack *s, struct loom__sample *sample)
{
	struct loom_report *r = &sample->report;
	struct loom_counters sum = {0};
	uint64_t last_task = 0, last_end = 0;
	for (uint32_t w = 0; w < s->layout.workers; w++) {
		const struct loom_counters *c = &s->counters[w];
#define LOOM__SUM(name, unit, text) sum.name += c->name;
		LOOM_COUNTER_MAP(LOOM__SUM)
#undef LOOM__SUM
		last_task = c->last_task_ns > last_task ? c->last_task_ns : last_task;
		last_end = c->end_ns > last_end ? c->end_ns : last_end;
	}
	loom__report_add(r, "seconds", "s", LOOM_BETTER_LESS, sample->seconds);
	if (sum.cpu_ns) /* what other programs take from the cores is not in it */
		loom__report_add(r, "cpu_seconds", "s", LOOM_BETTER_LESS, (double)sum.cpu_ns / 1e9);
	if (!s->selected[LOOM_SCHED] || runs_kernel(s))
		return;
	if (sample->seconds > 0)
		loom__report_add(r, "tasks_per_s", "tasks/s", LOOM_BETTER_MORE,
				 (double)sum.executed / sample->seconds);
	/* From the end of the last task to the exit of the last worker. */
	if (last_task && last_end >= last_task)
		loom__report_add(r, "exit_ns", "ns", LOOM_BETTER_LESS, (double)(last_end - last_task));
	/* The sum of times of day means nothing, and CPU time is there already. */
#define LOOM__METRIC(name, unit, text)                                                            \
	if (strcmp(#name, "begin_ns") && strcmp(#name, "end_ns") &&                                \
	    strcmp(#name, "last_task_ns") && strcmp(#name, "cpu_ns"))                              \
		loom__report_add(r, #name, unit, LOOM_BETTER_NONE, (double)sum.name);
	LOOM_COUNTER_MAP(LOOM__METRIC)
#undef LOOM__METRIC
}

static int append(struct loom_result *r, struct loom__sample **sample, struct loom_error *err)
{
	if (r->samples == r->room) {
		size_t room = r->room ? 2 * r->room : 16;
		struct loom__sample *list = realloc(r->sample, room * sizeof(*list));
		if (!list)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
		r->sample = list;
		r->room = room;
	}
	*sample = &r->sample[r->samples];
	**sample = (struct loom__sample){.counters = calloc(r->workers, sizeof(struct loom_counters))};
	return (*sample)->counters ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
}

static int finish_sample(struct loom_stack *s, struct loom__sample *sample, struct loom_error *err)
{
	int rc = loom__segments_pull(s, err);
	if (!rc)
		rc = loom__worker_failure(s, err);
	if (!rc)
		rc = check_counters(s, err);
	if (rc)
		return rc;
	memcpy(sample->counters, s->counters, s->layout.workers * sizeof(*s->counters));
	add_core_metrics(s, sample);
	for (size_t i = 0; i < s->policies && !rc; i++) {
		struct loom__policy *p = &s->policy[i];
		const struct loom_workload_ops *w = p->choice->plugin->ops;
		int idle = runs_kernel(s) &&
			   (p->choice->kind == LOOM_SCHED || p->choice->kind == LOOM_TERM);
		if (LOOM_HAS(p->ops, collect) && !idle)
			rc = p->ops->collect(p->self, &s->layout, &p->view, &sample->report, err);
		if (rc || p->choice->kind != LOOM_WORKLOAD)
			continue;
		/* A job without tasks may know its time better: an external program that reports it. */
		sample->report.retime = runs_kernel(s);
		rc = w->verify(p->self, &s->layout, &p->view, &sample->report, err);
		sample->report.retime = 0;
		if (sample->report.count)
			sample->seconds = sample->report.list[0].value;
	}
	if (!rc && sample->report.failed)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	return rc;
}

int loom__stack_sample(struct loom_stack *s, struct loom_result *r, int warmup,
		       struct loom_error *err)
{
	struct loom__sample *sample = NULL;
	uint64_t begin = 0, end = 0;
	int rc = append(r, &sample, err);
	if (rc)
		return rc;
	sample->warmup = warmup;
	struct loom__agreed agreed = {0};
	rc = init_policies(s, err);
	if (!rc)
		rc = loom__wire(s, err);
	if (!rc) /* no rank's data may come before the memory of all is ready */
		rc = loom__ranks_agree(s, &agreed, err);
	if (!rc)
		rc = loom__gate_run(s, s->plan.run.timeout, &begin, &end, err);
	if (!rc)
		rc = loom__settle(s, s->plan.run.timeout, err);
	agreed.ns = end - begin;
	if (!rc) /* ... nor after another has begun the next sample */
		rc = loom__ranks_agree(s, &agreed, err);
	if (!rc) {
		sample->start_ns = begin - r->began_ns;
		sample->seconds = (double)agreed.ns / 1e9; /* of the slowest rank */
		rc = finish_sample(s, sample, err);
	} else if (rc == LOOM_ETIMEDOUT || rc == LOOM_EDIED) {
		/* A worker that failed stops the others: its cause says more than theirs. Not where it was woken
		 * because a device died: the device has said which and of what. */
		struct loom_error first;
		int cause = loom__worker_failure(s, &first);
		if (cause && !(rc == LOOM_EDIED && cause == LOOM_EDIED)) {
			rc = cause;
			if (err)
				*err = first;
		}
	}
	if (rc) { /* a wrong or unfinished execution is never a number */
		loom__report_clear(&sample->report);
		free(sample->counters);
		return rc;
	}
	r->samples++;
	return 0;
}

const char *loom__status_name(int code)
{
	return code == 0	      ? "ok" :
	       code == LOOM_EINTR     ? "interrupted" :
	       code == LOOM_ETIMEDOUT ? "timeout" :
	       code == LOOM_EWRONG    ? "wrong" :
					"failed";
}

void loom__result_end(struct loom_result *r, int code, const struct loom_error *err)
{
	r->status = loom__status_name(code);
	if (code && err)
		r->error = *err;
	r->error.code = code;
	cJSON *now = loom__environment();
	if (now)
		cJSON_AddItemToObject(cJSON_GetObjectItemCaseSensitive(r->about, "environment"), "after",
				      now);
}

/* A run of the embedder's own tasks takes what was submitted since the last one. */
static int take_submitted(struct loom_stack *s, struct loom_error *err)
{
	if (s->selected[LOOM_WORKLOAD])
		return 0;
	if (s->submitted_count > s->initial_room) {
		uint32_t segment;
		struct loom_segment_want want = {.bytes = s->submitted_room * sizeof(struct loom_task),
						 .owner = -1};
		int rc = loom__segments_add(s, &want, 1, &segment, err);
		if (rc)
			return rc;
		s->initial_ref = LOOM_REF(segment, 0);
		s->initial_room = s->submitted_room;
	}
	if (s->submitted_count)
		memcpy(loom__host_at(s, s->initial_ref), s->submitted,
		       s->submitted_count * sizeof(struct loom_task));
	s->layout.initial_tasks = s->submitted_count;
	s->submitted_count = 0;
	return 0;
}

enum { STOPPED = 1, LATE = 2 }; /* struct loom__agreed */

int loom__stack_run(struct loom_stack *s, const struct loom__run_hooks *hooks,
		    struct loom_result **result, struct loom_error *err)
{
	struct loom_error own;
	if (!err)
		err = &own;
	if (s->broken)
		return LOOM__FAIL(err, LOOM_EINVAL, "the stack could not be set up: close it");
	int rc = loom__stack_prepare(s, err);
	if (!rc)
		rc = take_submitted(s, err);
	if (rc)
		return rc;
	struct loom_result *r = loom__result_create(s);
	if (!r)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	const struct loom__run_opts *run = &s->plan.run;
	int own_tasks = !s->selected[LOOM_WORKLOAD]; /* consumed by one execution */
	uint32_t warmups = own_tasks ? 0 : run->warmup, total = own_tasks ? 1 : warmups + run->samples;
	s->beat = hooks ? hooks->beat : NULL;
	s->beat_arg = hooks ? hooks->arg : NULL;
	rc = loom__stack_launch(s, err);
	for (uint32_t i = 0; i < total && !rc; i++) {
		/* Ctrl-C may reach one rank before and another after its last sample; and clocks differ. */
		int late = run->time_limit && loom__now_ns() - r->began_ns > run->time_limit;
		struct loom__agreed agreed = {
			.stop = (__atomic_load_n(&s->stop_requests, __ATOMIC_RELAXED) ? STOPPED : 0) |
				(late ? LATE : 0)};
		rc = loom__ranks_agree(s, &agreed, err);
		if (!rc && agreed.stop & STOPPED)
			rc = LOOM__FAIL(err, LOOM_EINTR, "interrupted after %u of %u executions", i,
					total);
		else if (!rc && agreed.stop & LATE)
			rc = LOOM__FAIL(err, LOOM_ETIMEDOUT,
					"[run] time_limit reached after %u of %u executions", i, total);
		if (!rc)
			rc = loom__stack_sample(s, r, i < warmups, err);
		if (!rc && hooks && hooks->sample)
			hooks->sample(hooks->arg, s, r);
	}
	struct loom_error ending;
	int ended = loom__stack_retire(s, &ending);
	if (!rc && ended) {
		rc = ended;
		*err = ending;
	}
	s->beat = NULL;
	__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED);
	loom__result_end(r, rc, err);
	if (result)
		*result = r;
	else
		loom_result_destroy(r);
	return rc;
}

int loom_stack_run(struct loom_stack *s, struct loom_result **result, struct loom_error *err)
{
	if (result)
		*result = NULL;
	return loom__stack_run(s, NULL, result, err);
}
