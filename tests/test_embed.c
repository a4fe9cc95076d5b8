/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a program that embeds a stack: many runs, several stacks, tasks and memory that are added after the first run,
 * and runs that are stopped, exceed their time, are rejected, or run while the caller continues. Between runs, no
 * thread is started and no file is opened. */
#include "embedder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gpuloom/comm.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>
#include <gpuloom/sched.h>

#include "base/base.h"

#define REST_NS 1000000000ull /* how long the host sleeps at a time in core/stack/sample.c */

/* ---- stacks ---- */

static const char *caller = "no"; /* whether the thread that calls run() executes tasks itself */

static void configure(struct embedder *e, const char *devices, const char *workers)
{
	embedder_begin(e, devices);
	set(e, "device.cpu", "workers", workers);
	set(e, "device.cpu", "caller", caller);
	set(e, "transport", "use", "host");
	set(e, "termination", "use", "counter");
}

static void open_with(struct embedder *e, loom_task_fn *fn, size_t bytes)
{
	ok(e, loom_stack_open(e->cfg, NULL, &e->stack, &e->err));
	ok(e, loom_stack_task(e->stack, "task", fn, &e->tag, &e->err));
	ok(e, loom_stack_alloc(e->stack, bytes, &e->ref, &e->host, &e->err));
}

static void open_usual(struct embedder *e, const char *workers, loom_task_fn *fn)
{
	configure(e, "cpu:0", workers);
	open_with(e, fn, 4096);
}

static void submit(struct embedder *e, uint64_t n, uint64_t how)
{
	struct loom_task t = {.tag = e->tag, .param = {how}, .data = {.ref = e->ref, .bytes = 4096}};
	for (uint64_t i = 0; i < n; i++)
		ok(e, loom_stack_submit(e->stack, &t, 1, &e->err));
}

/* ---- tasks ---- */

/* The words are in memory that device processes share with this process. */
struct words {
	uint64_t ran;
	uint32_t running, release, cpu;
};

/* Counts its runs, and spawns param[0] tasks of the same kind, which spawn none. */
static void count(struct loom_ctx *c, const struct loom_task *t)
{
	struct words *w = loom_at(c, t->data.ref);
	struct loom_task child = *t;
	child.param[0] = 0;
	for (uint64_t i = 0; i < t->param[0]; i++)
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	loom_fetch_add_relaxed_sys(&w->ran, 1ull);
}

static uint64_t ran(const struct embedder *e)
{
	return __atomic_load_n(&((struct words *)e->host)->ran, __ATOMIC_RELAXED);
}

static pthread_t test_thread;

static void run_until_stopped(struct loom_ctx *c, const struct loom_task *t)
{
	struct words *w = loom_at(c, t->data.ref);
	__atomic_store_n(&w->running, 1, __ATOMIC_RELEASE);
	while (!loom_stopped(c))
		loom_pause(c);
}

/* The task ends when the caller releases it. The stop word does not end it. */
static void run_until_released(struct loom_ctx *c, const struct loom_task *t)
{
	struct words *w = loom_at(c, t->data.ref);
	__atomic_store_n(&w->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&w->release, __ATOMIC_ACQUIRE))
		usleep(100);
	loom_fetch_add_relaxed_sys(&w->ran, 1ull);
}

static void fail(struct loom_ctx *c, const struct loom_task *t)
{
	loom_worker_fail(c, LOOM_EIO, t->param[0]);
}

static void note_cpu(struct loom_ctx *c, const struct loom_task *t)
{
	struct words *w = loom_at(c, t->data.ref);
	__atomic_store_n(&w->cpu, (uint32_t)sched_getcpu(), __ATOMIC_RELAXED);
}

/* ---- stop ---- */

static void *ask(void *arg)
{
	struct embedder *e = arg;
	struct words *w = e->host;
	while (!__atomic_load_n(&w->running, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(20000); /* by then the host most likely sleeps */
	loom_stack_stop(e->stack);
	return NULL;
}

/* Stops a run that never ends by itself, and returns how long it lasted. */
static uint64_t stopped_run(const char *isolation, int *rc)
{
	struct embedder e;
	pthread_t thread;
	configure(&e, "cpu:0", "1");
	set(&e, "device.cpu", "isolation", isolation);
	set(&e, "scheduler", "use", "static");
	open_with(&e, run_until_stopped, 4096);
	submit(&e, 1, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask, &e), 0);
	uint64_t begin = loom__now_ns();
	*rc = run(&e);
	uint64_t took = loom__now_ns() - begin;
	pthread_join(thread, NULL);
	shut(&e);
	return took;
}

/* A stop request of another thread ends a run of submitted tasks. While workers run, the host sleeps for a second at a
 * time. The request must wake the host, otherwise no run could end before the end of the first sleep. At least one of
 * several runs must end earlier. */
static void ends_before_the_rest(const char *isolation)
{
	int before = 0;
	for (int i = 0; i < 5 && !before; i++) {
		int rc = 0;
		before = stopped_run(isolation, &rc) < REST_NS;
		CU_ASSERT_EQUAL(rc, LOOM_EINTR);
	}
	CU_ASSERT(before);
}

TEST(stop_threads)
{
	ends_before_the_rest("thread");
}

/* ThreadSanitizer does not support threads in a child of a process with threads. */
#ifndef __SANITIZE_THREAD__
TEST(stop_process)
{
	ends_before_the_rest("process");
}
#endif

static void stop_idle(void)
{
	struct embedder e;
	open_usual(&e, "2", count);
	for (uint64_t i = 1; i <= 3; i++) {
		loom_stack_stop(e.stack);
		loom_stack_stop(e.stack);
		submit(&e, 10, 0);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 10 * i);
	}
	shut(&e);
}

TEST(stop_idle)
{
	stop_idle();
}

/* ---- workers that have not left ---- */

/* While a worker of the previous run has not left, the next run is rejected. The rejected run changes nothing that the
 * worker reads, and keeps the submitted tasks. */
static void late_task(int stop)
{
	struct embedder e;
	pthread_t thread;
	configure(&e, "cpu:0", "2");
	if (!stop)
		set(&e, "run", "timeout", "50ms");
	open_with(&e, run_until_released, 4096);
	struct words *w = e.host;
	submit(&e, 1, 0);
	if (stop)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask, &e), 0);
	CU_ASSERT_EQUAL(run(&e), stop ? LOOM_EINTR : LOOM_ETIMEDOUT);
	if (stop)
		pthread_join(thread, NULL);
	submit(&e, 5, 0);
	for (int i = 0; i < 3; i++) {
		/* On a busy machine the idle worker may not have left either. */
		REFUSED(run(&e), LOOM_EBUSY, e.err, "still there: cpu:0: & of 2 threads");
		loom_ref ref;
		void *host;
		uint32_t tag;
		CU_ASSERT_EQUAL(loom_stack_alloc(e.stack, 64, &ref, &host, &e.err), LOOM_EBUSY);
		CU_ASSERT_EQUAL(loom_stack_task(e.stack, "more", count, &tag, &e.err), LOOM_EBUSY);
		CU_ASSERT_EQUAL(loom_stack_start(e.stack, &e.err), LOOM_EBUSY);
	}
	CU_ASSERT_EQUAL(ran(&e), 0);
	__atomic_store_n(&w->release, 1, __ATOMIC_RELEASE);
	ok(&e, run_after_stop(&e));
	CU_ASSERT_EQUAL(ran(&e), 6);
	submit(&e, 3, 0);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 9);
	shut(&e);
}

TEST(late)
{
	late_task(0);
	late_task(1);
}

static void error(void)
{
	struct embedder e;
	struct loom_result *result;
	uint32_t fails;
	open_usual(&e, "2", count);
	ok(&e, loom_stack_task(e.stack, "fail", fail, &fails, &e.err));
	for (uint64_t i = 1; i <= 3; i++) {
		submit(&e, 10, 3);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 40 * i);
		struct loom_task bad = {.tag = fails, .param = {77}};
		ok(&e, loom_stack_submit(e.stack, &bad, 1, &e.err));
		REFUSED(loom_stack_run(e.stack, i % 2 ? &result : NULL, &e.err), LOOM_EIO, e.err, "detail 77");
		if (i % 2) {
			CU_ASSERT_EQUAL(loom_result_samples(result), 0);
			loom_result_destroy(result);
		}
	}
	shut(&e);
}

TEST(error)
{
	error();
}

/* ---- many runs ---- */

/* Later runs have more tasks than the first run, for which copies and queues were allocated. */
TEST(larger)
{
	static const uint64_t sizes[] = {3, 0, 70, 1, 100000, 20, 300000};
	static const char *const schedulers[] = {"mgws", "static"};
	for (size_t k = 0; k < COUNT(schedulers); k++) {
		struct embedder e;
		uint64_t sum = 0;
		configure(&e, "cpu:0 cpu:1", "1");
		set(&e, "scheduler", "use", schedulers[k]);
		open_with(&e, count, 4096);
		for (size_t i = 0; i < COUNT(sizes); i++) {
			submit(&e, sizes[i], 0);
			ok(&e, run(&e));
			sum += sizes[i];
			CU_ASSERT_EQUAL(ran(&e), sum);
		}
		shut(&e);
	}
}

/* The runs are so short that some workers wake up only after the end. The pauses between runs give all mixtures of
 * spinning and sleeping workers. */
static void many_runs(int runs, const char *workers, const char *scheduler, const char *detector)
{
	struct embedder e;
	uint64_t sum = 0, draw = 88172645463325252ull;
	configure(&e, "cpu:0", workers);
	set(&e, "scheduler", "use", scheduler);
	set(&e, "termination", "use", detector);
	open_with(&e, count, 4096);
	for (int i = 0; i < runs; i++) {
		xorshift(&draw);
		uint64_t n = draw % 8, spawns = (draw >> 8) % 16 ? 0 : (draw >> 16) % 50;
		submit(&e, n, spawns);
		sum += n * (1 + spawns);
		switch ((draw >> 32) % 4) {
		case 0:
			usleep((useconds_t)((draw >> 40) % 80));
			break;
		case 1: {
			struct loom_result *result;
			ok(&e, loom_stack_run(e.stack, &result, &e.err));
			double executed = -1;
			CU_ASSERT_EQUAL(loom_result_median(result, "executed", &executed), 0);
			CU_ASSERT_EQUAL(executed, (double)(n * (1 + spawns)));
			loom_result_destroy(result);
			continue;
		}
		case 2:
			ok(&e, loom_stack_start(e.stack, &e.err));
			int rc;
			while ((rc = loom_stack_wait(e.stack, (draw >> 40) % 10000, NULL, &e.err)) == LOOM_EAGAIN)
				;
			ok(&e, rc);
			continue;
		}
		ok(&e, run(&e));
		if (ran(&e) != sum)
			CU_FAIL_FATAL("tasks were lost");
	}
	CU_ASSERT_EQUAL(ran(&e), sum);
	shut(&e);
}

TEST(many)
{
	many_runs(3000, "2", "mgws", "counter");
	many_runs(1000, "2", "mgws", "hcounter");
	many_runs(1000, "4", "mgws", "counter");
	many_runs(1000, "2", "mgws", "tree");
	many_runs(1000, "3", "static", "counter");
}

/* ---- runs while the caller continues ---- */

TEST(start)
{
	struct embedder e;
	struct loom_result *result;
	double value;
	uint32_t tag;
	open_usual(&e, "2", run_until_released);
	struct words *w = e.host;
	CU_ASSERT_EQUAL(loom_stack_wait(e.stack, 0, NULL, &e.err), LOOM_EINVAL);
	submit(&e, 2, 0);
	ok(&e, loom_stack_start(e.stack, &e.err));
	CU_ASSERT_EQUAL(loom_stack_start(e.stack, &e.err), LOOM_EBUSY);
	CU_ASSERT_EQUAL(run(&e), LOOM_EBUSY);
	CU_ASSERT_EQUAL(loom_stack_task(e.stack, "more", count, &tag, &e.err), LOOM_EBUSY);
	CU_ASSERT_EQUAL(loom_stack_wait(e.stack, 0, &result, &e.err), LOOM_EAGAIN);
	CU_ASSERT_EQUAL(loom_stack_wait(e.stack, 1000000, NULL, &e.err), LOOM_EAGAIN);
	submit(&e, 3, 0); /* tasks that are submitted during a run belong to the next run */
	__atomic_store_n(&w->release, 1, __ATOMIC_RELEASE);
	ok(&e, loom_stack_wait(e.stack, UINT64_MAX, &result, &e.err));
	CU_ASSERT_EQUAL(ran(&e), 2);
	CU_ASSERT_EQUAL(loom_result_median(result, "executed", &value), 0);
	CU_ASSERT_EQUAL(value, 2);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 5);
	/* A stack can be closed in the middle of a run. A result outlives its stack. */
	uint32_t forever;
	ok(&e, loom_stack_task(e.stack, "forever", run_until_stopped, &forever, &e.err));
	e.tag = forever;
	submit(&e, 2, 0);
	ok(&e, loom_stack_start(e.stack, &e.err));
	shut(&e);
	char *json = loom_result_json(result);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"scheduler.use\""));
	free(json);
	loom_result_destroy(result);
}

/* ---- tasks and memory that are added after the first run ---- */

TEST(later)
{
	struct embedder e;
	open_usual(&e, "2", count);
	submit(&e, 10, 0);
	ok(&e, run(&e));
	uint64_t sum = 10;
	for (int i = 0; i < 5; i++) {
		struct words *before = e.host;
		char name[16];
		snprintf(name, sizeof(name), "later%d", i);
		ok(&e, loom_stack_task(e.stack, name, count, &e.tag, &e.err));
		ok(&e, loom_stack_alloc(e.stack, 4096, &e.ref, &e.host, &e.err));
		submit(&e, 10, 1);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 20);
		CU_ASSERT_EQUAL(before->ran, i ? 20 : sum);
	}
	shut(&e);
}

/* ---- several stacks ---- */

static void *own_stack(void *arg)
{
	struct embedder *e = arg;
	for (int i = 0; i < 300; i++) {
		submit(e, 20, 2);
		ok(e, run(e));
	}
	return NULL;
}

static void two_threads(void)
{
	struct embedder e[2];
	for (int i = 0; i < 2; i++)
		open_usual(&e[i], "2", count);
	in_threads(own_stack, e, sizeof(*e), 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ran(&e[i]), 300 * 60);
		shut(&e[i]);
	}
}

TEST(two_threads)
{
	two_threads();
}

TEST(cores)
{
	struct embedder e[2];
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) < 2)
		return;
	for (int i = 0; i < 2; i++) {
		open_usual(&e[i], "1", note_cpu);
		submit(&e[i], 1, 0);
		ok(&e[i], run(&e[i]));
	}
	CU_ASSERT_NOT_EQUAL(((struct words *)e[0].host)->cpu, ((struct words *)e[1].host)->cpu);
	for (int i = 0; i < 2; i++)
		shut(&e[i]);
}

/* ---- between runs ---- */

/* The functions below count opened files. The program exports them, so that they replace those of libc also in the
 * library and in plug-ins. */
static uint64_t opened;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTS_FILES 1
#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))
#define EXPORT __attribute__((visibility("default")))

EXPORT int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
	va_end(args);
	__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	return NEXT(int (*)(const char *, int, ...), "open")(path, flags, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	return NEXT(FILE * (*)(const char *, const char *), "fopen")(path, mode);
}

EXPORT DIR *opendir(const char *path)
{
	__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	return NEXT(DIR * (*)(const char *), "opendir")(path);
}
#endif

/* Writes the ids of all threads of this process to `out`. A new thread would have a new id. */
static void threads(char *out, size_t room)
{
	DIR *dir = opendir("/proc/self/task");
	size_t at = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	for (const struct dirent *d; (d = readdir(dir)) && at < room - 32;)
		at += (size_t)snprintf(out + at, room - at, "%.20s ", d->d_name);
	closedir(dir);
}

static void quiet(void)
{
	struct embedder e;
	struct loom_result *result;
	char before[4096] = "", after[4096] = "";
#ifdef COUNTS_FILES
	uint64_t first = opened;
#endif
	open_usual(&e, "2", count);
#ifdef COUNTS_FILES
	CU_ASSERT(opened > first); /* the functions above have counted calls */
#endif
	submit(&e, 10, 1);
	ok(&e, loom_stack_run(e.stack, &result, &e.err));
	loom_result_destroy(result);
	threads(before, sizeof(before));
	uint64_t files = opened;
	for (int i = 0; i < 100; i++) {
		submit(&e, 10, 1);
		ok(&e, loom_stack_run(e.stack, i % 2 ? &result : NULL, &e.err));
		if (i % 2)
			loom_result_destroy(result);
	}
	CU_ASSERT_EQUAL(opened, files);
	threads(after, sizeof(after));
	CU_ASSERT_STRING_EQUAL(before, after);
	shut(&e);
}

TEST(quiet)
{
	quiet();
}

/* ---- the caller executes tasks ---- */

static void note_thread(struct loom_ctx *c, const struct loom_task *t)
{
	struct words *w = loom_at(c, t->data.ref);
	loom_fetch_add_relaxed_sys(&w->ran, c->worker == 0 && pthread_equal(pthread_self(), test_thread) ? 1ull : 1000ull);
}

/* Requests arrive before, in and after the run: none is lost, and none ends a later run. */
static void *stop_at(void *arg)
{
	struct embedder *e = arg;
	struct words *w = e->host;
	uint32_t delay = __atomic_load_n(&w->cpu, __ATOMIC_RELAXED);
	for (volatile uint32_t i = 0; i < delay; i++)
		;
	loom_stack_stop(e->stack);
	return NULL;
}

static void stopped_at(const char *workers, int runs)
{
	struct embedder e;
	pthread_t thread;
	uint32_t forever;
	int stopped = 0;
	open_usual(&e, workers, count);
	ok(&e, loom_stack_task(e.stack, "forever", run_until_stopped, &forever, &e.err));
	struct words *w = e.host;
	for (int i = 0; i < runs; i++) {
		uint64_t before = ran(&e);
		w->cpu = (uint32_t)(i * 7919) % 20000;
		submit(&e, 1000, 2);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_at, &e), 0);
		int rc = run_after_stop(&e);
		pthread_join(thread, NULL);
		CU_ASSERT(rc == 0 || rc == LOOM_EINTR);
		CU_ASSERT(rc || ran(&e) == before + 3000);
		stopped += rc != 0;
		ok(&e, run_after_stop(&e)); /* on a busy machine a worker may end its task only now */
		before = ran(&e);
		submit(&e, 5, 1);
		ok(&e, run_after_stop(&e));
		CU_ASSERT_EQUAL(ran(&e), before + 10);
	}
	/* A run that never ends by itself. The request comes while the caller is inside the task. */
	for (int i = 0; i < 20; i++) {
		struct loom_task t = {.tag = forever, .data = {.ref = e.ref}};
		w->running = 0;
		ok(&e, loom_stack_submit(e.stack, &t, 1, &e.err));
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask, &e), 0);
		CU_ASSERT_EQUAL_FATAL(run_after_stop(&e), LOOM_EINTR);
		pthread_join(thread, NULL);
	}
	shut(&e);
	if (!stopped)
		fprintf(stderr, "%s workers: none of %d requests came in time\n", workers, runs);
}

/* The watchdog ends a run at its deadline, also if it has slept, and if another run came before. */
static void deadline(const char *workers)
{
	struct embedder e;
	uint32_t forever;
	configure(&e, "cpu:0", workers);
	set(&e, "run", "timeout", "300ms");
	open_with(&e, count, 4096);
	ok(&e, loom_stack_task(e.stack, "forever", run_until_stopped, &forever, &e.err));
	for (int i = 0; i < 3; i++) {
		submit(&e, 10, 1);
		ok(&e, run_after_stop(&e));
		usleep(i * 120000u);
		struct loom_task t = {.tag = forever, .data = {.ref = e.ref}};
		ok(&e, loom_stack_submit(e.stack, &t, 1, &e.err));
		uint64_t begin = loom__now_ns();
		REFUSED(run(&e), LOOM_ETIMEDOUT, e.err, "no end after 0.3 s");
		CU_ASSERT(loom__now_ns() - begin >= 300000000u);
	}
	shut(&e);
}

TEST(caller)
{
	struct embedder e;
	caller = "yes";
	test_thread = pthread_self();
	open_usual(&e, "1", note_thread);
	submit(&e, 50, 0);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 50);
	ok(&e, loom_stack_submit(e.stack, &(struct loom_task){.tag = e.tag, .data = {.ref = e.ref}}, 1, &e.err));
	ok(&e, loom_stack_start(e.stack, &e.err)); /* the caller goes on, so the worker is a thread */
	ok(&e, loom_stack_wait(e.stack, UINT64_MAX, NULL, &e.err));
	CU_ASSERT_EQUAL(ran(&e), 1050);
	shut(&e);
	many_runs(3000, "2", "mgws", "counter");
	many_runs(1000, "2", "mgws", "hcounter");
	many_runs(1000, "1", "mgws", "counter");
	many_runs(1000, "4", "mgws", "counter");
	many_runs(200, "2", "static", "counter"); /* has no effect */
	stop_idle();
	stopped_at("1", 500);
	stopped_at("3", 500);
	deadline("1");
	deadline("2");
	error();
	two_threads();
	quiet();
	caller = "no";
}

/* ---- non-coherent devices, which read the initial set from copies; tests/gpu/runs.sh chooses the devices ---- */

static uint64_t collatz(uint64_t from, uint64_t n)
{
	uint64_t steps = 0;
	for (uint64_t i = from; i < from + n; i++)
		for (uint64_t x = i; x != 1; steps++)
			x = x % 2 ? 3 * x + 1 : x / 2;
	return steps;
}

TEST(noncoherent)
{
	static const char *const name[] = {"collatz_range"};
	static const uint64_t sizes[] = {5, 400, 30, 3000};
	const char *devices = getenv("TEST_APART");
	struct embedder e;
	uint64_t want = 0;
	if (!devices)
		return;
	configure(&e, devices, "1");
	set(&e, "transport", "use", "p2p");
	set(&e, "termination", "use", "hcounter");
	ok(&e, loom_stack_open(e.cfg, NULL, &e.stack, &e.err));
	ok(&e, loom_stack_source(e.stack, "examples/embed/collatz.dev.h", NULL, name, 1, &e.tag, &e.err));
	ok(&e, loom_stack_alloc(e.stack, 4096, &e.ref, &e.host, &e.err));
	for (size_t k = 0; k < COUNT(sizes); k++) {
		for (uint64_t i = 0; i < sizes[k]; i++) {
			struct loom_task t = {.tag = e.tag, .param = {1 + i * 10, 10}, .data = {.ref = e.ref}};
			ok(&e, loom_stack_submit(e.stack, &t, 1, &e.err));
		}
		want += collatz(1, sizes[k] * 10);
		ok(&e, run(&e));
		uint64_t sum = 0;
		for (int d = 0; d < 64; d++)
			sum += ((const uint64_t *)e.host)[d * 8];
		CU_ASSERT_EQUAL(sum, want);
	}
	shut(&e);
}

/* ---- service requests ---- */

static void *stop_soon(void *arg)
{
	usleep(100000);
	loom_stack_stop(arg);
	loom_stack_stop(arg);
	return NULL;
}

/* The first run ends by itself, or is stopped while requests wait. In the next run, no request of the first run may be
 * in progress. */
static void serve_again(const char *qos, int stop_first)
{
	struct embedder e;
	pthread_t thread;
	configure(&e, "cpu:0", "1");
	set(&e, "run", "workload", "requests_storm");
	set(&e, "run", "samples", "1");
	set(&e, "run", "warmup", "0");
	set(&e, "qos", "use", qos);
	set(&e, "qos.budget", "limit", "1%");
	set(&e, "workload.requests_storm", "outstanding", "1024");
	set(&e, "workload.requests_storm", "pause", "100us");
	set(&e, "workload.requests_storm", "duration", stop_first ? "300ms" : "0");
	set(&e, "workload.requests_storm", "requests", "3000");
	ok(&e, loom_stack_open(e.cfg, NULL, &e.stack, &e.err));
	for (int i = 0; i < 3; i++) {
		int stops = stop_first && !i;
		if (stops)
			CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_soon, e.stack), 0);
		int rc = run(&e);
		if (stops)
			pthread_join(thread, NULL);
		if (rc && !stops)
			fprintf(stderr, "run %d: %s\n", i, e.err.text);
		CU_ASSERT_EQUAL(rc, stops ? LOOM_EINTR : 0);
	}
	shut(&e);
}

TEST(serve_again)
{
	serve_again("monolithic", 0);
	serve_again("monolithic budget", 1);
}

/* ---- ranks that share submitted tasks; each rank is a thread of this program ---- */

static struct {
	pthread_barrier_t met;
	char given[2][1 << 16];
} meeting;

static int meet(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	uint32_t rank = ((const struct loom_ranks *)self)->rank;
	(void)err;
	memcpy(meeting.given[rank], mine, bytes);
	pthread_barrier_wait(&meeting.met);
	for (uint32_t r = 0; r < 2; r++)
		memcpy((char *)all + r * bytes, meeting.given[r], bytes);
	pthread_barrier_wait(&meeting.met);
	return 0;
}

struct member {
	struct loom_ranks ranks;
	struct embedder e;
	uint64_t tasks; /* the number of tasks to submit */
	int code;
};

static void *run_member(void *arg)
{
	struct member *m = arg;
	struct loom_task t = {.tag = m->e.tag, .param = {3}, .data = {.ref = m->e.ref, .bytes = 4096}};
	m->code = 0;
	for (uint64_t i = 0; i < m->tasks && !m->code; i++)
		m->code = loom_stack_submit(m->e.stack, &t, 1, &m->e.err);
	if (!m->code)
		m->code = run(&m->e);
	return NULL;
}

TEST(ranks)
{
	struct member m[2] = {0};
	struct loom_stack_params params = {.size = sizeof(params)};
	uint64_t expect = 0;
	pthread_barrier_init(&meeting.met, NULL, 2);
	for (uint32_t r = 0; r < 2; r++) {
		struct embedder *e = &m[r].e;
		configure(e, "cpu:0", "2");
		set(e, "run", "tasks", "shared");
		set(e, "termination", "use", "hcounter");
		set(e, "trigger", "use", "peer");
		m[r].ranks = (struct loom_ranks){
			.size = sizeof(m[r].ranks), .rank = r, .ranks = 2, .self = &m[r].ranks, .allgather = meet};
		params.ranks = &m[r].ranks;
		ok(e, loom_stack_open(e->cfg, &params, &e->stack, &e->err));
		ok(e, loom_stack_task(e->stack, "task", count, &e->tag, &e->err));
		ok(e, loom_stack_alloc(e->stack, 4096, &e->ref, &e->host, &e->err));
	}
	for (uint64_t n = 1; n < 2000; n *= 7) {
		m[0].tasks = m[1].tasks = n;
		in_threads(run_member, m, sizeof(*m), 2);
		for (int r = 0; r < 2; r++)
			ok(&m[r].e, m[r].code);
		expect += 4 * n; /* each submitted task and its three children run once */
		CU_ASSERT_EQUAL(ran(&m[0].e) + ran(&m[1].e), expect);
	}
	m[1].tasks++;
	in_threads(run_member, m, sizeof(*m), 2);
	for (int r = 0; r < 2; r++) {
		REFUSED(m[r].code, LOOM_EINVAL, m[r].e.err, "rank 1&not those of rank 0");
		shut(&m[r].e);
	}
	pthread_barrier_destroy(&meeting.met);
}

/* Rank 1 has another scheduler, or a task function that does not compile. All runs of both ranks end with this reason.
 */
static void rank_fails(const char *scheduler, const char *source, int code, const char *words)
{
	static const char *const name = "good";
	uint32_t tag;
	struct member m[2] = {0};
	pthread_barrier_init(&meeting.met, NULL, 2);
	for (uint32_t r = 0; r < 2; r++) {
		struct embedder *e = &m[r].e;
		configure(e, "cpu:0", "1");
		set(e, "scheduler", "use", r ? scheduler : "mgws");
		m[r].ranks = (struct loom_ranks){
		    .size = sizeof(m[r].ranks), .rank = r, .ranks = 2, .self = &m[r].ranks, .allgather = meet};
		struct loom_stack_params params = {.size = sizeof(params), .ranks = &m[r].ranks};
		ok(e, loom_stack_open(e->cfg, &params, &e->stack, &e->err));
		ok(e, loom_stack_task(e->stack, "task", count, &e->tag, &e->err));
		ok(e, loom_stack_alloc(e->stack, 4096, &e->ref, &e->host, &e->err));
		if (r && source)
			ok(e, loom_stack_source(e->stack, "bad.c", source, &name, 1, &tag, &e->err));
		m[r].tasks = 1;
	}
	for (int i = 0; i < 2; i++) {
		in_threads(run_member, m, sizeof(*m), 2);
		REFUSED(m[0].code, code, m[0].e.err, words);
		CU_ASSERT_EQUAL(m[0].code, m[1].code);
	}
	for (int r = 0; r < 2; r++)
		shut(&m[r].e);
	pthread_barrier_destroy(&meeting.met);
}

TEST(a_rank_fails)
{
	rank_fails("static", NULL, LOOM_EINVAL, "rank 1 has selected other plug-ins than rank 0");
	rank_fails("mgws", "no C", LOOM_EPLUGIN, "rank 1: &does not compile");
}

/* ---- wrong arguments ---- */

TEST(arguments)
{
	static const struct loom_ranks wrong[] = {
	    {.size = sizeof(struct loom_ranks), .rank = 5, .ranks = 2, .allgather = meet},
	    {.size = sizeof(struct loom_ranks), .ranks = 2},
	    {.size = sizeof(struct loom_ranks)},
	    {.rank = 0, .ranks = 1}};
	static const char *const names[] = {"some"};
	struct embedder e;
	static uint64_t words[8];
	void *host, *gone = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	loom_ref ref;
	uint32_t tag;
	open_usual(&e, "1", count);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct loom_stack_params params = {.size = sizeof(params), .ranks = &wrong[i]};
		struct loom_stack *none;
		struct loom_comm *comm;
		REFUSED(loom_stack_open(e.cfg, &params, &none, &e.err), LOOM_EINVAL, e.err, "struct loom_ranks");
		REFUSED(loom_comm_open(e.stack, &wrong[i], &comm, &e.err), LOOM_EINVAL, e.err, "struct loom_ranks");
	}
	REFUSED(loom_stack_submit(e.stack, NULL, 5, &e.err), LOOM_EINVAL, e.err, "5 at NULL");
	REFUSED(loom_stack_submit(e.stack, &(struct loom_task){0}, SIZE_MAX, &e.err), LOOM_ENOMEM, e.err,
		"out of memory");
	REFUSED(loom_stack_adopt(e.stack, words, SIZE_MAX, &ref, &e.err), LOOM_EINVAL, e.err,
		"more than any memory has");
	REFUSED(loom_stack_adopt(e.stack, words, 1ull << 48, &ref, &e.err), LOOM_EINVAL, e.err,
		"more than any memory has");
	munmap(gone, 1 << 20);
	REFUSED(loom_stack_adopt(e.stack, gone, 1 << 20, &ref, &e.err), LOOM_EINVAL, e.err, "neither this process nor a GPU");
	REFUSED(loom_stack_source(e.stack, "f", "no C", NULL, 0, NULL, &e.err), LOOM_EINVAL, e.err,
		"a task function or more");
	REFUSED(loom_stack_ir(e.stack, "f", "x", SIZE_MAX, names, 1, &tag, &e.err), LOOM_EINVAL, e.err, "too many");
	REFUSED(loom_stack_alloc(e.stack, 1ull << 46, &ref, &host, &e.err), LOOM_ENOMEM, e.err, "KiB are left");
	submit(&e, 1, 3);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 4);
	shut(&e);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* sanitizers enlarge the stacks of threads */
/* A thread with a small stack gets an error instead of a signal, and 64 KiB suffice. */
static void *use_small_stack(void *arg)
{
	struct embedder *e = arg;
	REFUSED(loom_stack_open(e->cfg, NULL, &e->stack, &e->err), LOOM_ENOMEM, e->err,
		"stack of this thread&pthread_attr_setstacksize");
	REFUSED(loom_config_load_text(e->cfg, "x", "[run]", &e->err), LOOM_ENOMEM, e->err, "stack of this thread");
	return NULL;
}

static void *use_stack(void *arg)
{
	struct embedder *e = arg;
	ok(e, loom_config_load_text(e->cfg, "x", "[run]", &e->err));
	open_with(e, count, 4096);
	submit(e, 2, 3);
	ok(e, run(e));
	loom_stack_close(e->stack);
	return NULL;
}

TEST(small_stack)
{
	static struct embedder e;
	pthread_attr_t attr;
	pthread_t thread;
	size_t least = (size_t)PTHREAD_STACK_MIN; /* includes what the C library keeps on the stack */
	configure(&e, "cpu:0", "2");
	pthread_attr_init(&attr);
	for (int large = 0; large < 2; large++) {
		CU_ASSERT_EQUAL(pthread_attr_setstacksize(&attr, large ? least + (68 << 10) : least), 0);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, &attr, large ? use_stack : use_small_stack, &e), 0);
		pthread_join(thread, NULL);
	}
	loom_config_destroy(e.cfg);
}
#endif

/* ---- a barrier of ranks ---- */

static void *run_barrier(void *arg)
{
	struct member *m = arg;
	for (int i = 0; i < 3 && !m->code; i++)
		m->code = loom_stack_barrier(m->e.stack, &m->e.err);
	return NULL;
}

TEST(rank_barrier)
{
	struct member m[2] = {0};
	struct embedder e;
	pthread_barrier_init(&meeting.met, NULL, 2);
	for (uint32_t r = 0; r < 2; r++) {
		configure(&m[r].e, "cpu:0", "1");
		m[r].ranks = (struct loom_ranks){
			.size = sizeof(m[r].ranks), .rank = r, .ranks = 2, .self = &m[r].ranks, .allgather = meet};
		struct loom_stack_params params = {.size = sizeof(params), .ranks = &m[r].ranks};
		ok(&m[r].e, loom_stack_open(m[r].e.cfg, &params, &m[r].e.stack, &m[r].e.err));
	}
	in_threads(run_barrier, m, sizeof(*m), 2);
	for (int r = 0; r < 2; r++) {
		ok(&m[r].e, m[r].code);
		shut(&m[r].e);
	}
	pthread_barrier_destroy(&meeting.met);
	open_usual(&e, "1", count);
	ok(&e, loom_stack_barrier(e.stack, &e.err));
	shut(&e);
}

TEST_MAIN("embed", 120)
