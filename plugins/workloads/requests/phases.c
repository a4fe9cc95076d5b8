/* SPDX-License-Identifier: Apache-2.0 */
/* A sample with a victim has two phases. The victim runs next to workers without requests in one phase, and next to
 * workers with requests in the other. The order of the phases alternates from sample to sample. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/thread.h"
#include "lib/cpu_list.h"
#include "requests.h"

int request_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct request_opts *o = opts;
	if (o->outstanding & (o->outstanding - 1))
		return LOOM_REFUSE(host, err, "outstanding", "outstanding = %u is not a power of two", o->outstanding);
	if (o->silent && (!o->duration || (*o->victim && strcmp(o->victim, "@idle"))))
		return LOOM_REFUSE(host, err, "silent",
				   o->duration ? "silent = yes is for samples without a victim, which has a part without requests"
					       : "silent = yes needs a duration: nothing else ends the sample");
	return request_victim_check(host, o->victim, err);
}

void request_job_create(struct request_job *j, const struct loom_host *host, const struct request_opts *opts,
			const char *name)
{
	pthread_condattr_t clock;
	j->host = host;
	j->opts = opts;
	j->name = name;
	j->victim = CHILD_NONE;
	cpu_set_t set;
	loom__cpu_list(opts->victim_cores, &set, sizeof(set));
	if (!CPU_COUNT(&set))
		sched_getaffinity(0, sizeof(set), &set);
	request_victim_set(opts->victim, (uint32_t)CPU_COUNT(&set), opts->duration, &j->runs);
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &clock);
	pthread_condattr_destroy(&clock);
}

void request_job_free(struct request_job *j)
{
	if (!j->host)
		return;
	request_stop_phases(j);
	j->host->free(j->host, j->grant);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->changed);
}

uint32_t request_job_tenant_of(const struct request_job *j, uint32_t worker)
{
	return (uint32_t)((uint64_t)worker * j->opts->tenants / j->workers);
}

int request_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant, uint32_t *n,
		    struct loom_error *err)
{
	struct request_job *j = self;
	uint32_t tenants = j->opts->tenants;
	j->workers = layout->workers;
	if (tenants > layout->workers)
		return LOOM_FAIL(j->host, err, LOOM_EINVAL, "%s: %u tenants need as many workers", j->name,
				 tenants);
	memset(j->tenant, 0, sizeof(j->tenant));
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct loom_tenant *t = &j->tenant[request_job_tenant_of(j, w)];
		if (!t->count++)
			t->first = w;
		t->outstanding = j->opts->outstanding;
		t->weight = 1;
		t->name[0] = 't';
		t->name[1] = (char)('0' + (t - j->tenant) / 10);
		t->name[2] = (char)('0' + (t - j->tenant) % 10);
	}
	*tenant = j->tenant;
	*n = tenants;
	return 0;
}

/* ---- phases ---- */

static uint64_t done_so_far(const struct request_job *j)
{
	uint64_t sum = 0;
	for (uint32_t w = 0; w < j->workers; w++)
		sum += __atomic_load_n(&j->counters[w]->done, __ATOMIC_RELAXED);
	return sum;
}

/* Waits for `ns`, or until the thread must exit. Returns 1 if it must exit. */
static int rest(struct request_job *j, uint64_t ns)
{
	uint64_t until = j->host->now_ns(j->host) + ns;
	struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
			     .tv_nsec = (long)(until % 1000000000u)};
	pthread_mutex_lock(&j->lock);
	while (!j->leave && !pthread_cond_timedwait(&j->changed, &j->lock, &t))
		;
	int leave = j->leave;
	pthread_mutex_unlock(&j->lock);
	return leave;
}

static void set_quiet(struct request_job *j, uint32_t quiet)
{
	__atomic_store_n(&j->control->quiet, quiet, __ATOMIC_RELAXED);
	rest(j, j->opts->settle);
}

static void beside(struct request_job *j)
{
	set_quiet(j, j->opts->silent);
	uint64_t begin = j->host->now_ns(j->host), done = done_so_far(j);
	if (*j->runs.command)
		request_run_victim(j, &j->beside);
	else
		rest(j, j->opts->duration);
	j->noisy_ns = j->host->now_ns(j->host) - begin;
	j->noisy_done = done_so_far(j) - done;
}

static void alone(struct request_job *j)
{
	set_quiet(j, 1);
	if (!rest(j, 0))
		request_run_victim(j, &j->alone);
}

/* Ends a sample. The wake is not FUTEX_PRIVATE, because workers may be in another process. */
void request_interrupt(void *self)
{
	struct request_job *j = self;
	if (!j->control)
		return;
	__atomic_store_n(&j->control->quit, 1, __ATOMIC_RELAXED);
	loom_futex_wake(&j->control->quit, INT_MAX, 0);
}

static void run_sample(struct request_job *j)
{
	for (uint32_t w = 0; w < j->workers; w++)
		/* Acquire: pairs with the release in request_start(). */
		while (!__atomic_load_n(&j->counters[w]->started, __ATOMIC_ACQUIRE))
			if (rest(j, 1000000))
				return;
	if (*j->runs.command) {
		if (j->sample % 2) {
			beside(j);
			alone(j);
		} else {
			alone(j);
			beside(j);
		}
	} else if (j->opts->duration) {
		beside(j);
	} else {
		return; /* the job ends by itself */
	}
	request_interrupt(j);
}

static void *phases(void *arg)
{
	struct request_job *j = arg;
	pthread_mutex_lock(&j->lock);
	while (!j->leave) {
		if (j->phase != REQUEST_ARMED) {
			pthread_cond_wait(&j->changed, &j->lock);
			continue;
		}
		j->phase = REQUEST_RUNNING;
		pthread_mutex_unlock(&j->lock);
		run_sample(j);
		pthread_mutex_lock(&j->lock);
		j->phase = REQUEST_OVER;
		pthread_cond_broadcast(&j->changed);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

int request_start_phases(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 const struct loom_segments *segments, struct loom_error *err)
{
	struct request_job *j = self;
	(void)layout, (void)view, (void)segments;
	int refused = j->opts->victim_counters && *j->runs.command ? request_counters_check(j, err) : 0;
	if (refused)
		return refused;
	j->leave = 0;
	j->phase = REQUEST_IDLE;
	sigset_t all_signals, old;
	sigfillset(&all_signals);
	pthread_sigmask(SIG_SETMASK, &all_signals, &old);
	int rc = thread_start(&j->thread, phases, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	j->threaded = !rc;
	return rc ? LOOM_FAIL(j->host, err, LOOM_EUNAVAIL, "%s: cannot start a thread: %s", j->name, strerror(rc)) : 0;
}

void request_stop_phases(void *self)
{
	struct request_job *j = self;
	if (!j->threaded)
		return;
	pthread_mutex_lock(&j->lock);
	j->leave = 1;
	child_signal_group(&j->victim, SIGKILL);
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	j->threaded = 0;
}

/* Waits until the thread is idle, because a sample that was aborted may have left it in a phase. */
static void await_thread(struct request_job *j)
{
	pthread_mutex_lock(&j->lock);
	while (j->threaded && (j->phase == REQUEST_ARMED || j->phase == REQUEST_RUNNING))
		pthread_cond_wait(&j->changed, &j->lock);
	pthread_mutex_unlock(&j->lock);
}

void request_job_arm(struct request_job *j, const struct loom_layout *layout, const struct loom_view *view,
		     struct request_plan *plan)
{
	await_thread(j);
	struct request_control *k = view->global;
	j->control = k;
	j->counters = (struct request_counters *const *)(const void *)view->worker;
	k->quit = 0;
	k->quiet = *j->runs.command || j->opts->silent;
	plan->endless = *j->runs.command || j->opts->duration;
	plan->pause_ns = j->opts->pause;
	plan->tenants = j->opts->tenants;
	plan->window = j->opts->outstanding;
	for (uint32_t d = 0; d < layout->devices; d++)
		*(struct request_plan *)view->device[d] = *plan;
	for (uint32_t w = 0; w < j->workers; w++)
		memset(view->worker[w], 0, sizeof(struct request_counters));
	memset(&j->alone, 0, sizeof(j->alone));
	memset(&j->beside, 0, sizeof(j->beside));
	j->noisy_ns = j->noisy_done = 0;
	pthread_mutex_lock(&j->lock);
	j->phase = REQUEST_ARMED;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

/* ---- metrics ---- */

static int check_victim(const struct request_job *j, const struct request_victim_run *r, struct loom_error *err)
{
	if (r->failed == ENOENT && *j->runs.package)
		return LOOM_FAIL(j->host, err, LOOM_EUNAVAIL,
				 "%s: victim = %s is not installed: install the package '%s', or set `victim` to another one",
				 j->name, j->opts->victim, j->runs.package);
	if (r->failed)
		return LOOM_FAIL(j->host, err, LOOM_EUNAVAIL,
				 "%s: cannot run the victim '%s': %s%s", j->name, j->runs.command, strerror(r->failed),
				 r->failed == ENOENT ? ": install it, or set `victim` to another command" : "");
	if (r->status == CHILD_LOST) {
		char how[120];
		child_end_text(r->status, how, sizeof(how));
		return LOOM_FAIL(j->host, err, LOOM_EWRONG, "%s: the victim '%s' %s", j->name, j->runs.command, how);
	}
	if (WIFSIGNALED(r->status))
		return LOOM_FAIL(j->host, err, LOOM_EWRONG, "%s: the victim '%s' was ended by signal %d (%s)", j->name,
				 j->runs.command, WTERMSIG(r->status), strsignal(WTERMSIG(r->status)));
	if (WEXITSTATUS(r->status))
		return LOOM_FAIL(j->host, err, LOOM_EWRONG, "%s: the victim '%s' failed with exit code %d%s%s", j->name,
				 j->runs.command, WEXITSTATUS(r->status), *r->complaint ? ": " : "", r->complaint);
	if (j->opts->victim_counters && !r->counted)
		return LOOM_FAIL(j->host, err, LOOM_EUNAVAIL, "%s: the victim '%s' was not counted", j->name,
				 j->runs.command);
	/* openssl speed runs for a fixed time, so its duration says nothing about its speed. */
	if (strstr(j->runs.command, "openssl speed") && !(r->rate > 0))
		return LOOM_FAIL(j->host, err, LOOM_EUNAVAIL,
				 "%s: the victim '%s' prints no rate at the end of its output, as OpenSSL 3 does",
				 j->name, j->runs.command);
	return 0;
}

#define METRIC(name, unit, better, value)                                                          \
	j->host->metric(j->host, report, name, unit, LOOM_BETTER_##better, (double)(value))

static void report_values(const struct request_job *j, struct loom_report *report)
{
	static const char *const name[] = {"stall_p50_us", "stall_p999_us", "stall_max_us"};
	char metric[48];
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		for (int k = 0; k < 2; k++) {
			double value = request_victim_value(k ? &j->beside : &j->alone, name[i]);
			strcpy(metric, k ? "victim_beside_" : "victim_alone_");
			strcat(metric, name[i]);
			if (value >= 0)
				METRIC(metric, "us", LESS, value);
		}
}

/* Reports misses per 1,000 instructions in both phases, and the ratio of the phases. */
static void report_counters(const struct request_job *j, struct loom_report *report)
{
	static const struct {
		uint32_t event;
		const char *alone, *beside, *ratio;
	} row[] = {{REQUEST_L1D_MISSES, "victim_alone_l1d_misses", "victim_beside_l1d_misses", "victim_l1d_misses"},
		   {REQUEST_BRANCH_MISSES, "victim_alone_branch_misses", "victim_beside_branch_misses",
		    "victim_branch_misses"}};
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		double alone = 1000 * j->alone.count[row[i].event] / j->alone.count[REQUEST_INSTRUCTIONS];
		double beside = 1000 * j->beside.count[row[i].event] / j->beside.count[REQUEST_INSTRUCTIONS];
		METRIC(row[i].alone, "", LESS, alone);
		METRIC(row[i].beside, "", LESS, beside);
		METRIC(row[i].ratio, "", LESS, beside / alone);
	}
}

static int report_victim(const struct request_job *j, struct loom_report *report, struct loom_error *err)
{
	int rc = check_victim(j, &j->alone, err);
	if (!rc)
		rc = check_victim(j, &j->beside, err);
	if (rc)
		return rc;
	double speed = j->alone.rate > 0 && j->beside.rate > 0 ?
			       j->beside.rate / j->alone.rate :
			       (double)j->alone.wall_ns / (double)j->beside.wall_ns;
	METRIC("victim_alone", "s", LESS, (double)j->alone.wall_ns / 1e9);
	METRIC("victim_beside", "s", LESS, (double)j->beside.wall_ns / 1e9);
	METRIC("victim_speed", "", MORE, speed);
	METRIC("victim_cpu_alone", "s", LESS, (double)(j->alone.user_ns + j->alone.system_ns) / 1e9);
	METRIC("victim_cpu_beside", "s", LESS, (double)(j->beside.user_ns + j->beside.system_ns) / 1e9);
	report_values(j, report);
	if (j->opts->victim_counters)
		report_counters(j, report);
	return 0;
}

int request_job_report(struct request_job *j, struct loom_report *report, struct loom_error *err)
{
	uint64_t wrong = 0, cpu = 0, done = done_so_far(j), rounds = 0;
	await_thread(j);
	j->sample++;
	for (uint32_t w = 0; w < j->workers; w++) {
		const struct request_counters *t = j->counters[w];
		cpu += t->cpu_ns;
		rounds += t->rounds;
		wrong += t->wrong;
		if (t->wrong)
			return LOOM_FAIL(j->host, err, LOOM_EWRONG,
					 "%s: worker %u had %llu wrong answers; the first, of service %u, "
					 "was %lld",
					 j->name, w, (unsigned long long)wrong, (unsigned)t->first_wrong,
					 (long long)t->first_answer);
	}
	METRIC("requests", "requests", NONE, done);
	METRIC("worker_cpu", "ns", NONE, cpu);
	if (rounds)
		METRIC("rounds", "", MORE, rounds);
	if (j->noisy_ns)
		METRIC("requesting", "s", NONE, (double)j->noisy_ns / 1e9);
	if (j->noisy_ns)
		METRIC("requests_per_s", "requests/s", MORE,
		       (double)j->noisy_done / ((double)j->noisy_ns / 1e9));
	return *j->runs.command ? report_victim(j, report, err) : 0;
}
