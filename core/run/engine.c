/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empties the trace buffers, because each execution fills them from the start. */
static void empty_traces(struct loom_stack *s)
{
	for (uint32_t w = 0; s->trace.room && w < s->layout.workers; w++)
		*loom__trace_of(s, w) = (struct loom_trace){.room = s->trace.room, .every = s->trace.every};
}

/* Initialises all blocks, posts network operations, and copies images into the devices. */
static int init_policies(struct loom_stack *s, struct loom_error *err)
{
	memset(s->counters, 0, s->layout.workers * sizeof(*s->counters));
	empty_traces(s);
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		int rc = LOOM__OP(p->choice, "init", p->ops->init(p->self, &s->layout, &p->view, err), err);
		if (rc)
			return rc;
	}
	int rc = loom__wire(s, err);
	return rc ? rc : loom__images_copy(s, 1, err); /* after loom__wire(), whose posts may be in an image */
}

/* Returns 1 if the workload has a kernel and no task functions. Then the selected scheduler takes no part. */
static int runs_kernel(const struct loom_stack *s)
{
	const struct loom_plugin *w = s->selected[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = w ? w->dev->cpu : NULL;
	return LOOM_HAS(dev, kernel) && !dev->count;
}

/* Adds up the counters of n workers. For times of day, takes the latest one. */
static void add_up(const struct loom_counters *counters, uint32_t n, struct loom_counters *sum)
{
	uint64_t last_task = 0, end = 0;
	*sum = (struct loom_counters){0};
	for (uint32_t w = 0; w < n; w++) {
		const struct loom_counters *c = &counters[w];
#define LOOM__SUM(name, unit, text) sum->name += c->name;
		LOOM_COUNTER_MAP(LOOM__SUM)
#undef LOOM__SUM
		last_task = c->last_task_ns > last_task ? c->last_task_ns : last_task;
		end = c->end_ns > end ? c->end_ns : end;
	}
	sum->last_task_ns = last_task;
	sum->end_ns = end;
}

/* Checks that each task ran exactly once: all tasks that were created were executed, and thieves took as many tasks as
 * victims lost. */
static int check_counters(const struct loom_stack *s, const struct loom_counters *sum, struct loom_error *err)
{
	uint64_t made = s->layout.initial_tasks + sum->spawned;
	if (!s->selected[LOOM_SCHED] || runs_kernel(s))
		return 0;
	const char *name = s->selected[LOOM_SCHED]->name,
		   *how = sum->executed > made ? "run tasks twice" : "lost tasks, or the detector has ended the run too early";
	if (sum->executed != made)
		return LOOM__FAIL(err, LOOM_EWRONG, "%llu tasks were created, but %llu were run: %s has %s",
				  (unsigned long long)made, (unsigned long long)sum->executed, name, how);
	if (sum->stolen_in != sum->stolen_out)
		return LOOM__FAIL(err, LOOM_EWRONG, "%s: %llu tasks were stolen, but %llu were given", name,
				  (unsigned long long)sum->stolen_in, (unsigned long long)sum->stolen_out);
	return 0;
}

static void add_core_metrics(const struct loom_stack *s, const struct loom_counters *sum, struct loom__sample *sample)
{
	struct loom_report *r = &sample->report;
	loom__report_add(r, "seconds", "s", LOOM_BETTER_LESS, sample->seconds);
	if (sum->cpu_ns) /* excludes the time of other programs */
		loom__report_add(r, "cpu_seconds", "s", LOOM_BETTER_LESS, (double)sum->cpu_ns / 1e9);
	if (s->plan.run.joules)
		loom__report_add(r, "joules", "J", LOOM_BETTER_LESS, s->run.joules);
	if (!s->selected[LOOM_SCHED] || runs_kernel(s))
		return;
	if (sample->seconds > 0)
		loom__report_add(r, "tasks_per_s", "tasks/s", LOOM_BETTER_MORE,
				 (double)sum->executed / sample->seconds);
	/* exit_ns: the time from the end of the last task to the exit of the last worker. */
	if (sum->last_task_ns && sum->end_ns >= sum->last_task_ns)
		loom__report_add(r, "exit_ns", "ns", LOOM_BETTER_LESS, (double)(sum->end_ns - sum->last_task_ns));
	/* Leave out times of day, because their sum has no meaning, and CPU time, for which the metric was added
	 * above. */
#define LOOM__METRIC(name, unit, text)                                                            \
	if (strcmp(#name, "begin_ns") && strcmp(#name, "end_ns") &&                                \
	    strcmp(#name, "last_task_ns") && strcmp(#name, "cpu_ns"))                              \
		loom__report_add(r, #name, unit, LOOM_BETTER_NONE, (double)sum->name);
	LOOM_COUNTER_MAP(LOOM__METRIC)
#undef LOOM__METRIC
}

/* Adds the metric WORK_per_s, and moves it to the second place. Each rank reports only its own work. */
static void lead_by_rate(struct loom_report *r, const char *work, double seconds)
{
	char name[sizeof(r->list->name) + 8], unit[sizeof(r->list->name)];
	const struct loom__metric *amount = NULL;
	for (size_t i = 0; i < r->count; i++)
		amount = strcmp(r->list[i].name, work) ? amount : &r->list[i];
	snprintf(name, sizeof(name), "%s_per_s", work);
	snprintf(unit, sizeof(unit), "%s/s", amount && *amount->unit ? amount->unit : work);
	if (amount && seconds > 0) /* if the workload has added this rate itself, its value stays */
		loom__report_add(r, name, unit, LOOM_BETTER_MORE, amount->value / seconds);
	loom__report_lead(r, name);
}

/* Checks that each metric has the unit and direction that it has in the sample before. That sample was checked against
 * earlier ones. */
static int check_units(const struct loom_result *r, const struct loom__sample *sample, struct loom_error *err)
{
	const struct loom_report *now = &sample->report, *before = r->samples ? &r->sample[r->samples - 1].report : now;
	for (size_t i = 0; i < now->count; i++)
		for (size_t k = 0; k < before->count && before != now; k++) {
			const struct loom__metric *m = &now->list[i], *was = &before->list[k];
			if (strcmp(m->name, was->name) || (!strcmp(m->unit, was->unit) && m->better == was->better))
				continue;
			return LOOM__FAIL(err, LOOM_EWRONG,
					  "the metric '%s' has the unit '%s' and the direction '%s' in this sample, '%s' and '%s' in the "
					  "one before: both must stay the same during a run", m->name, m->unit, loom__better_name(m->better),
					  was->unit, loom__better_name(was->better));
		}
	return 0;
}

static int append(struct loom_result *r, struct loom__sample *sample, struct loom_error *err)
{
	int rc = check_units(r, sample, err);
	if (rc)
		return rc;
	struct loom__sample *list = loom__more(r->sample, r->samples, sizeof(*list));
	if (!list)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	r->sample = list;
	list[r->samples++] = *sample;
	return 0;
}

/* Called by a workload during a long verification. Reports the progress to the user. Stop requests and the time limit
 * end a verification in the same way as a sample. */
static int verifying(void *arg, double done, struct loom_error *err)
{
	struct loom_stack *s = arg;
	uint64_t now = loom__now_ns();
	if (s->run.progress)
		s->run.progress(s->run.arg, s, now - s->run.verify_ns, done);
	int stopped = __atomic_load_n(&s->stop_requests, __ATOMIC_ACQUIRE) >= 2; /* the second request ends a sample at once */
	if (!stopped && (!s->run.until_ns || now <= s->run.until_ns))
		return 0;
	return LOOM__FAIL(err, stopped ? LOOM_EINTR : LOOM_ETIMEDOUT, "%s while a sample was verified: %.0f %% of it, after %.3g s",
			  stopped ? "interrupted" : "[run] time_limit reached", 100 * done, (double)(now - s->run.verify_ns) / 1e9);
}

static int verify(struct loom_stack *s, const struct loom__policy *p, struct loom_report *report, struct loom_error *err)
{
	const struct loom_workload_ops *w = p->choice->plugin->ops;
	s->run.verify_ns = loom__now_ns();
	s->host.verifying_arg = s;
	s->host.progress = verifying;
	int rc = LOOM__OP(p->choice, "verify", w->verify(p->self, &s->layout, &p->view, report, err), err);
	s->host.progress = NULL;
	return rc;
}

/* Checks the counters of a run whose metrics are not used. Devices with LOOM_SHAPE_KEEPS add up the counters of their
 * workers, so the host need not copy the counters. */
static int check_tally(struct loom_stack *s, struct loom_error *err)
{
	uint64_t tally[LOOM_MAX_DEVICES] = {0}, sum = 0;
	int rc = loom__worker_failure(s, err);
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom_device_shape *shape = &s->layout.device[d];
		if (shape->flags & LOOM_SHAPE_KEEPS)
			tally[d] = s->device[d].kept->tally(s->device[d].self);
		for (uint32_t i = 0; !(shape->flags & LOOM_SHAPE_KEEPS) && i < shape->workers; i++)
			tally[d] += LOOM_TALLY(&s->counters[shape->first_worker + i]);
		sum += tally[d];
	}
	if (rc || sum == s->layout.initial_tasks)
		return rc;
	LOOM__FAIL(err, LOOM_EWRONG, "tasks that were made or stolen and tasks that were run differ: of %llu",
		   (unsigned long long)s->layout.initial_tasks);
	for (uint32_t d = 0; err && d < s->layout.devices; d++) {
		size_t at = strlen(err->text);
		snprintf(err->text + at, sizeof(err->text) - at, ", %s %lld", s->shape[d].name, (long long)tally[d]);
	}
	return LOOM_EWRONG;
}

/* Called after the last exchange of submitted tasks. The ops of a workload may make further ones. */
static void note_last(struct loom_stack *s, const struct loom__sample *sample)
{
	if (!s->selected[LOOM_WORKLOAD] || sample->report.unread)
		loom__exchange_close(&s->host.exchange);
}

static int finish_sample(struct loom_stack *s, struct loom__sample *sample, struct loom_error *err)
{
	if (s->resets && sample->report.unread)
		return check_tally(s, err);
	uint32_t workers = s->layout.workers + s->layout.remote_workers;
	const struct loom_counters *counters;
	struct loom_counters sum;
	int rc = loom__images_copy(s, 0, err);
	rc = rc ? rc : loom__worker_failure(s, err);
	rc = rc ? rc : loom__ranks_counters(s, &counters, err);
	if (rc)
		return rc;
	note_last(s, sample);
	add_up(counters, workers, &sum);
	rc = check_counters(s, &sum, err);
	if (rc)
		return rc;
	if (!sample->report.unread) {
		size_t bytes = workers * sizeof(*counters);
		sample->counters = malloc(bytes);
		if (!sample->counters)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
		memcpy(sample->counters, counters, bytes);
		add_core_metrics(s, &sum, sample);
	}
	for (size_t i = 0; i < s->policies && !rc; i++) {
		struct loom__policy *p = &s->policy[i];
		const struct loom_workload_ops *w = p->choice->plugin->ops;
		int idle = runs_kernel(s) && (p->choice->kind == LOOM_SCHED || p->choice->kind == LOOM_TERM);
		if (LOOM_HAS(p->ops, collect) && !idle)
			rc = LOOM__OP(p->choice, "collect", p->ops->collect(p->self, &s->layout, &p->view, &sample->report, err), err);
		if (rc || p->choice->kind != LOOM_WORKLOAD)
			continue;
		/* A workload with a kernel may report its own time, for programs that time themselves. */
		sample->report.retime = runs_kernel(s);
		rc = verify(s, p, &sample->report, err);
		sample->report.retime = 0;
		if (sample->report.count)
			sample->seconds = sample->report.list[0].value;
		if (!rc && LOOM_HAS(w, work) && sample->report.count)
			lead_by_rate(&sample->report, w->work, sample->seconds);
	}
	if (!rc && sample->report.failed)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	return rc;
}

/* Returns the bit for a stop request. */
static uint64_t stop_bit(const struct loom_stack *s)
{
	return __atomic_load_n(&s->stop_requests, __ATOMIC_RELAXED) ? LOOM__STOPPED : 0;
}

/* Flags of an execution, for begin(). */
enum {
	ALONE = 1,    /* the core sends GO without READY */
	MEASURED = 2, /* the metrics of the execution are used */
	AWAITED = 4,  /* the caller calls end() at once */
};

static int begin(struct loom_stack *s, int how, struct loom_error *err)
{
	struct loom__agreed agreed = {.tasks = s->initial.digest};
	int rc = s->resets ? loom__resets_apply(s, err) : init_policies(s, err);
	if (!rc)
		loom__ranks_warn(s);
	if (!rc) /* no rank may send data before the memory of all ranks is ready */
		rc = loom__ranks_agree(s, &agreed, err);
	s->ctl->unmeasured = !(how & MEASURED);
	s->ctl->untimed = (how & (AWAITED | MEASURED)) == AWAITED && !s->selected[LOOM_WORKLOAD] && !s->trace.room;
	/* Relaxed: a worker that is late may read it for the sample before. */
	__atomic_store_n(&s->ctl->awaited, (how & AWAITED) != 0, __ATOMIC_RELAXED);
	/* No worker may begin before all devices have reset the memory that this worker reads. So if resets are needed,
	 * several devices need READY. */
	int alone = how & ALONE && s->launch.stays && (!s->resets || s->layout.devices == 1);
	if (!rc && how & MEASURED && s->plan.run.joules)
		rc = loom__energy(s, &s->run.joules, err);
	if (s->run.watched)
		loom__throttled(s, 0);
	return rc ? rc : loom__sample_begin(s, alone, s->plan.run.timeout, err);
}

/* Waits for the end of the sample, and verifies the answer. Returns LOOM_EAGAIN if the sample is still in progress at
 * `until`. After success, *sample is filled; if its report is `unread`, it has no metrics. */
static int end(struct loom_stack *s, uint64_t until, struct loom__sample *sample, struct loom_error *err)
{
	struct loom__agreed agreed = {0};
	int rc = loom__sample_end(s, until, err);
	if (rc == LOOM_EAGAIN)
		return rc;
	double joules = 0;
	agreed.ns = s->sample.end_ns - s->sample.begin_ns;
	agreed.stop = s->run.watched && loom__throttled(s, agreed.ns) ? LOOM__THROTTLED : 0;
	if (!rc && !sample->report.unread && s->plan.run.joules)
		rc = loom__energy(s, &joules, err);
	s->run.joules = joules - s->run.joules;
	rc = rc ? rc : loom__flush(s, s->plan.run.timeout, err);
	/* A rank that has waited until [run] timeout does not wait longer for the others, which may be the cause. */
	if (rc == LOOM_ETIMEDOUT)
		loom__exchange_close(&s->host.exchange);
	agreed.stop |= stop_bit(s) | (s->sample.stalled_ns ? LOOM__STALLED : 0);
	if (!rc) /* the barrier of the ranks: no rank may begin the next sample before all ranks have ended this one */
		rc = loom__ranks_agree(s, &agreed, err);
	if (!rc) {
		sample->seconds = (double)agreed.ns / 1e9; /* the time of the slowest rank */
		sample->stop = agreed.stop;
		if (s->layout.ranks < 2)                   /* else loom__ranks_counters() has the last exchange */
			note_last(s, sample);
		rc = finish_sample(s, sample, err);
	} else if (rc == LOOM_ETIMEDOUT || rc == LOOM_EDIED) {
		/* If a worker has failed, that is the cause, because a failed worker stops all others. But if the
		 * worker failed because a device died, the error of the device has the cause. */
		struct loom_error first;
		int cause = loom__worker_failure(s, &first);
		if (cause && !(rc == LOOM_EDIED && cause == LOOM_EDIED)) {
			rc = cause;
			if (err)
				*err = first;
		}
	}
	return rc;
}

#define MOST_REPEATED 10 /* limit on the samples of a result that are repeated for one reason */
#define COOL_NS 100000000 /* the pause before a sample is repeated because a device was throttled */

/* Frees a sample. A wrong or unfinished execution gives no metrics. */
static void drop(struct loom__sample *sample)
{
	loom__report_clear(&sample->report);
	free(sample->counters);
}

/* If the device has a setting that repeats the failed sample, adds this setting to the message. */
static void add_repeat(struct loom_stack *s, struct loom_error *err)
{
	const struct loom__device *d = &s->device[0];
	size_t at = strlen(err->text);
	char text[200];
	if (LOOM_HAS(d->ops, repeat) && d->ops->repeat(d->self, text, sizeof(text)) > 0)
		snprintf(err->text + at, sizeof(err->text) - at, " (%s repeats it)", text);
}

/* Returns 1 if the sample must be repeated, because a rank was stopped or a device was throttled while it was executed. All
 * ranks decide alike, because they have the same bits and have repeated the same samples. A process without a core looks like
 * a stopped one, and a GPU may stay hot, so the number of repetitions is limited. */
static int is_disturbed(struct loom_stack *s, const struct loom__sample *sample, struct loom_result *r)
{
	int throttled = !(sample->stop & LOOM__STALLED);
	struct loom__disturbed *how = throttled ? &r->throttled : &r->stalled;
	if (throttled && (!(sample->stop & LOOM__THROTTLED) || sample->warmup))
		return 0;
	int again = how->repeated < MOST_REPEATED;
	*(again ? &how->repeated : &how->counted) += 1;
	if (s->host.table.rank == 0)
		LOOM_LOG(&s->host.table, LOOM_LOG_WARN, "gpuloom", "%s: the sample %s",
			 throttled ? "a device was throttled during a sample" : "this job was stopped during a sample, or had no core",
			 again ? "does not count, and is repeated" : "counts, because too many were repeated");
	if (again && throttled)
		nanosleep(&(struct timespec){.tv_nsec = COOL_NS}, NULL);
	return again;
}

int loom__stack_sample(struct loom_stack *s, struct loom_result *r, int warmup, struct loom_error *err)
{
	struct loom__sample sample;
	int rc, again;
	loom__result_choices(r, s);
	s->run.watched = r->watched;
	do {
		sample = (struct loom__sample){.warmup = warmup};
		rc = begin(s, MEASURED | AWAITED, err);
		rc = rc ? rc : end(s, UINT64_MAX, &sample, err);
		again = !rc && is_disturbed(s, &sample, r);
		if (again)
			drop(&sample);
		if (again && sample.stop & LOOM__STOPPED)
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted; the last sample was disturbed, and does not count");
	} while (again);
	sample.start_ns = s->sample.begin_ns - r->began_ns;
	rc = rc ? rc : append(r, &sample, err);
	if (rc)
		drop(&sample);
	if (rc && err)
		add_repeat(s, err);
	return rc;
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
}

/* Ends a run. Workers that may stay launched for the next run stay. If they may not, and after an error, they are
 * retired. */
static int rest(struct loom_stack *s, int rc, struct loom_error *err)
{
	struct loom_error ending;
	rc = rc ? rc : loom__graphs_stopped(s, err);
	int stays = !rc && s->launch.stays, ended = 0;
	/* Let devices prepare for the next run, if no value that they reset depends on its number of tasks. */
	for (uint32_t d = 0; stays && s->resets && !loom__resets_vary(s) && d < s->layout.devices && !ended; d++)
		if (s->device[d].kept)
			ended = s->device[d].kept->rest(s->device[d].self, LOOM_PHASE_READY(s->sample.done), &ending);
	if (!stays)
		ended = loom__stack_retire(s, &ending);
	if (!rc && ended) {
		rc = ended;
		if (err)
			*err = ending;
	}
	__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED);
	return rc;
}

/* Begins a call that all ranks make, on a stack that is idle. A call during a run is refused by this rank alone,
 * because the other ranks need not make it. After an error, call leave(). */
static int enter(struct loom_stack *s, struct loom_error *err)
{
	if (!s->run.running && !s->streams.enqueued && !loom__stack_own(s, NULL))
		loom__exchange_begin(&s->host.exchange);
	return loom__stack_is_idle(s, err);
}

/* Ends such a call, or the run that it has started. After an error, the call ends on the other ranks, too. */
static int leave(struct loom_stack *s, int rc, struct loom_error *err)
{
	return s->run.running ? rc : loom__exchange_end(&s->host.exchange, rc, err);
}

int loom__stack_run(struct loom_stack *s, const struct loom__run_hooks *hooks,
		    struct loom_result **result, struct loom_error *err)
{
	struct loom_error own;
	if (!err)
		err = &own;
	int rc = enter(s, err);
	s->run.begin_ns = loom__now_ns();
	s->run.closes = hooks && hooks->begin;
	rc = rc ? rc : loom__stack_prepare(s, err);
	struct loom_result *r = rc ? NULL : loom__result_create(s);
	if (!rc && !r)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (rc)
		return leave(s, rc, err);
	const struct loom__run_opts *run = &s->plan.run;
	uint32_t total = run->warmup + run->samples;
	s->run.beat = hooks ? hooks->beat : NULL;
	s->run.progress = hooks ? hooks->progress : NULL;
	s->run.arg = hooks ? hooks->arg : NULL;
	s->run.until_ns = run->time_limit ? s->run.begin_ns + run->time_limit : 0;
	if (hooks && hooks->begin)
		hooks->begin(hooks->arg, s, r);
	rc = loom__stack_launch(s, err);
	for (uint32_t i = 0; !rc; i++) {
		/* Ranks must agree on a stop, because clocks differ, and because Ctrl-C may reach one rank before its
		 * last sample and another rank after it. The last time, they agree that all samples have succeeded. */
		int late = s->run.until_ns && loom__now_ns() > s->run.until_ns;
		struct loom__agreed agreed = {
			.stop = stop_bit(s) | (late ? LOOM__LATE : 0)};
		rc = loom__ranks_agree(s, &agreed, err);
		if (i == total)
			break;
		if (!rc && agreed.stop & LOOM__STOPPED)
			rc = LOOM__FAIL(err, LOOM_EINTR, "interrupted after %u of %u executions", i, total);
		else if (!rc && agreed.stop & LOOM__LATE)
			rc = LOOM__FAIL(err, LOOM_ETIMEDOUT,
					"[run] time_limit reached after %u of %u executions", i, total);
		rc = rc ? rc : loom__stack_sample(s, r, i < run->warmup, err);
		if (!rc && hooks && hooks->sample)
			rc = hooks->sample(hooks->arg, s, r, err);
	}
	rc = rest(s, leave(s, rc, err), err);
	s->run.beat = NULL;
	s->run.progress = NULL;
	s->run.until_ns = 0;
	loom__result_end(r, rc, err);
	*result = r;
	return rc;
}

static int start(struct loom_stack *s, int how, struct loom_error *err)
{
	struct loom_error own;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (!err)
		err = &own;
	__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED); /* stop requests from before the run do not count */
	int rc = enter(s, err);
	if (rc)
		return leave(s, rc, err); /* does not call rest(), because the workers may still execute a run */
	if (s->selected[LOOM_WORKLOAD])
		rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf selects a workload: loom_stack_run() runs it");
	rc = rc ? rc : loom__graphs_stopped(s, err);
	rc = rc ? rc : loom__stack_prepare(s, err);
	rc = rc ? rc : loom__initial_take(s, err);
	rc = rc ? rc : loom__stack_launch(s, err);
	rc = rc ? rc : begin(s, how, err);
	s->run.running = !rc;
	if (!rc) {
		loom__initial_begun(s);
		return 0;
	}
	leave(s, rc, err);
	return s->launch.launched ? rest(s, rc, err) : rc; /* the submitted tasks stay */
}

/* Concludes a run that ended with `rc`. If `result` is not NULL, puts the sample into a new result. If `bare` is 1, the
 * sample has only its time, and its metrics are collected here. */
static int conclude(struct loom_stack *s, struct loom__sample *sample, uint64_t began_ns, int bare, int rc,
		    struct loom_result **result, struct loom_error *err)
{
	struct loom_result *r = result ? loom__result_share(s) : NULL;
	if (result && !r && !rc)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (r)
		r->began_ns = began_ns;
	if (r && bare && !rc)
		rc = finish_sample(s, sample, err);
	if (r && !rc)
		rc = append(r, sample, err);
	if (r && sample->stop & LOOM__STALLED)
		r->stalled.counted++; /* submitted tasks cannot be repeated */
	if (rc)
		drop(sample);
	rc = rest(s, rc, err);
	if (r)
		loom__result_end(r, rc, err);
	if (result)
		*result = r;
	return rc;
}

/* Waits for the end of the run in progress. Fills *result; `result` may be NULL. */
static int finish(struct loom_stack *s, uint64_t until, struct loom_result **result, struct loom_error *err)
{
	struct loom__sample sample = {.report = {.unread = !result}};
	struct loom_error own;
	if (!err)
		err = &own;
	int rc = end(s, until, &sample, err);
	if (rc == LOOM_EAGAIN)
		return rc;
	s->run.running = 0;
	leave(s, rc, err);
	return conclude(s, &sample, s->sample.begin_ns, 0, rc, result, err);
}

int loom_stack_barrier(struct loom_stack *s, struct loom_error *err)
{
	struct loom__agreed agreed = {0};
	struct loom_error own;
	err = err ? err : &own;
	int rc = enter(s, err);
	return leave(s, rc ? rc : loom__ranks_agree(s, &agreed, err), err);
}

/* ---- submitted tasks -------------------------------------------------------------------------------- */

int loom_stack_start(struct loom_stack *s, struct loom_error *err)
{
	return start(s, ALONE, err);
}

/* Waits for the end of the runs in a stream, as finish() does for one run. The result has the metrics of the last
 * run. */
static int finish_enqueued(struct loom_stack *s, uint64_t until, struct loom_result **result, struct loom_error *err)
{
	struct loom__sample sample = {.report = {.unread = !result}};
	struct loom_error own;
	uint64_t ns = 0;
	if (!err)
		err = &own;
	int rc = loom__enqueued_wait(s, until, &ns, err);
	if (rc == LOOM_EAGAIN)
		return rc;
	sample.seconds = (double)ns / 1e9;
	return conclude(s, &sample, loom__now_ns() - ns, 1, rc, result, err);
}

int loom_stack_wait(struct loom_stack *s, uint64_t timeout_ns, struct loom_result **result, struct loom_error *err)
{
	uint64_t now = loom__now_ns();
	if (result)
		*result = NULL;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	uint64_t until = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
	if (!s->run.running && s->launch.launched && (s->streams.enqueued || s->launch.captured))
		return finish_enqueued(s, until, result, err);
	if (!s->run.running)
		return LOOM__FAIL(err, LOOM_EINVAL, "no run is in progress: loom_stack_start() begins one");
	return finish(s, until, result, err);
}

int loom_stack_run(struct loom_stack *s, struct loom_result **result, struct loom_error *err)
{
	struct loom_result *unread = NULL;
	if (result)
		*result = NULL;
	if (!s->selected[LOOM_WORKLOAD]) {
		int rc = start(s, result ? MEASURED | AWAITED : ALONE | AWAITED, err);
		return rc ? rc : finish(s, UINT64_MAX, result, err);
	}
	if (!s->run.running)
		__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED);
	int rc = loom__stack_run(s, NULL, result ? result : &unread, err);
	loom_result_destroy(unread);
	return rc;
}
