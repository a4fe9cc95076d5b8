/* SPDX-License-Identifier: Apache-2.0 */
/* loom_stack_stop() of another thread: the first request waits for the sample to end, the second ends it, and
 * the host, which rests for a second at a time while workers run, hears of it at once. */
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>
#include <gpuloom/sched.h>

#include "base/base.h"

#define REST_NS 1000000000ull /* of the host: core/stack/gate.c */

/* Where the task says that it runs; in memory that a device process shares. */
struct word {
	uint32_t running;
};

static void run_until_stopped(struct loom_ctx *c, const struct loom_task *t)
{
	struct word *w = loom_at(c, t->data.ref);
	__atomic_store_n(&w->running, 1, __ATOMIC_RELEASE);
	while (!loom_stopped(c))
		loom_pause(c);
}

struct asker {
	struct loom_stack *stack;
	struct word *word;
	int requests;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	while (!__atomic_load_n(&a->word->running, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(20000); /* the host rests by now, most likely */
	for (int i = 0; i < a->requests; i++)
		loom_stack_stop(a->stack);
	return NULL;
}

/* One run that never ends by itself: how long it took. */
static uint64_t stopped_run(const char *isolation, int *rc)
{
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err = {0};
	struct asker a = {.requests = 2};
	struct loom_task task = {0};
	pthread_t thread;
	char path[4096];
	void *host;
	snprintf(path, sizeof(path), "%s/plugins", test_build_dir());
	CU_ASSERT_EQUAL_FATAL(loom_config_create(&cfg, &err), 0);
	loom_config_set(cfg, "gpuloom", "plugin_path", path, &err);
	loom_config_set(cfg, "run", "devices", "cpu:0", &err);
	loom_config_set(cfg, "device.cpu", "workers", "1", &err);
	loom_config_set(cfg, "device.cpu", "isolation", isolation, &err);
	loom_config_set(cfg, "transport", "use", "host", &err);
	loom_config_set(cfg, "scheduler", "use", "static", &err);
	loom_config_set(cfg, "termination", "use", "counter", &err);
	int opened = loom_stack_open(cfg, NULL, &stack, &err);
	if (opened)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(opened, 0);
	CU_ASSERT_EQUAL_FATAL(loom_stack_task(stack, "run", run_until_stopped, &task.tag, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom_stack_alloc(stack, sizeof(struct word), &task.data.ref, &host, &err), 0);
	task.data.bytes = sizeof(struct word);
	CU_ASSERT_EQUAL_FATAL(loom_stack_submit(stack, &task, 1, &err), 0);
	a.stack = stack;
	a.word = host;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask, &a), 0);
	uint64_t begin = loom__now_ns();
	*rc = loom_stack_run(stack, NULL, &err);
	uint64_t took = loom__now_ns() - begin;
	pthread_join(thread, NULL);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return took;
}

/* A host that is told of nothing sees the request when its first rest is over: no run could end before that. One
 * of several does, or the machine stood still each time. */
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

static void test_threads(void)
{
	ends_before_the_rest("thread");
}

/* ThreadSanitizer knows no child of a process with threads that starts threads of its own. */
#ifndef __SANITIZE_THREAD__
static void test_process(void)
{
	ends_before_the_rest("process");
}
#endif

static const struct test tests[] = {
	{"threads", test_threads},
#ifndef __SANITIZE_THREAD__
	{"process", test_process},
#endif
};
TEST_MAIN("stop", 120, tests)
