/* SPDX-License-Identifier: Apache-2.0 */
/* A stack with a service path that runs twice: nothing of the first run is under way in the second, whether that
 * one ended by itself or was stopped with requests that waited. */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <gpuloom/gpuloom.h>

static void set(struct loom_config *cfg, const char *section, const char *key, const char *value)
{
	struct loom_error err = {0};
	int rc = loom_config_set(cfg, section, key, value, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static void *stop_soon(void *arg)
{
	usleep(100000);
	loom_stack_stop(arg);
	loom_stack_stop(arg);
	return NULL;
}

/* limit "": the path serves as fast as it can. */
static void run_twice(const char *limit, int stop_first)
{
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err = {0};
	pthread_t thread;
	char path[4096];
	snprintf(path, sizeof(path), "%s/plugins", test_build_dir());
	CU_ASSERT_EQUAL_FATAL(loom_config_create(&cfg, &err), 0);
	set(cfg, "gpuloom", "plugin_path", path);
	set(cfg, "run", "workload", "ssr_storm");
	set(cfg, "run", "devices", "cpu:0");
	set(cfg, "run", "samples", "1");
	set(cfg, "run", "warmup", "0");
	set(cfg, "device.cpu", "workers", "1");
	set(cfg, "device.cpu", "oversubscribe", "yes");
	set(cfg, "transport", "use", "host");
	set(cfg, "qos", "use", *limit ? "monolithic budget" : "monolithic");
	if (*limit)
		set(cfg, "qos.budget", "limit", limit);
	set(cfg, "workload.ssr_storm", "outstanding", "1024");
	set(cfg, "workload.ssr_storm", "pause", "100us");
	set(cfg, "workload.ssr_storm", "duration", stop_first ? "300ms" : "0");
	set(cfg, "workload.ssr_storm", "requests", "3000");
	int rc = loom_stack_open(cfg, NULL, &stack, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	for (int run = 0; run < 3; run++) {
		int stops = stop_first && !run;
		if (stops)
			CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_soon, stack), 0);
		rc = loom_stack_run(stack, NULL, &err);
		if (stops)
			pthread_join(thread, NULL);
		if (rc && !stops)
			fprintf(stderr, "run %d: %s\n", run, err.text);
		CU_ASSERT_EQUAL(rc, stops ? LOOM_EINTR : 0);
	}
	loom_stack_close(stack);
	loom_config_destroy(cfg);
}

static void test_whole(void)
{
	run_twice("", 0);
}

static void test_stopped(void)
{
	run_twice("1%", 1);
}

static const struct test tests[] = {
	{"whole", test_whole},
	{"stopped", test_stopped},
};
TEST_MAIN("qos_again", 120, tests)
