/* SPDX-License-Identifier: Apache-2.0 */
/* A stack in tests of a program that embeds gpuloom: how it is configured, run and closed. */
#ifndef LOOM_TEST_EMBEDDER_H
#define LOOM_TEST_EMBEDDER_H

#include "support.h"

#include <stdio.h>
#include <unistd.h>

#include <gpuloom/gpuloom.h>

struct embedder {
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err;
	uint32_t tag;
	loom_ref ref;
	void *host;    /* the address at which the caller accesses `ref` */
	uint64_t runs; /* in a test of two stacks, the number of correct runs */
};

#define ok(e, call) embedder_check(__LINE__, e, call)
static void embedder_check(int line, struct embedder *e, int rc)
{
	if (rc)
		fprintf(stderr, "line %d: %s\n", line, e->err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static void set(struct embedder *e, const char *section, const char *key, const char *value)
{
	ok(e, loom_config_set(e->cfg, section, key, value, &e->err));
}

static void embedder_begin(struct embedder *e, const char *devices)
{
	char path[4096];
	*e = (struct embedder){0};
	snprintf(path, sizeof(path), "%s/plugins", test_build_dir());
	ok(e, loom_config_create(&e->cfg, &e->err));
	set(e, "gpuloom", "plugin_path", path);
	set(e, "run", "devices", devices);
	set(e, "device.cpu", "oversubscribe", "yes");
	set(e, "scheduler", "use", "mgws");
}

static int run(struct embedder *e)
{
	return loom_stack_run(e->stack, NULL, &e->err);
}

/* Workers of a run that was stopped may leave late on a busy machine. Until then runs are refused. */
static int run_after_stop(struct embedder *e)
{
	int rc;
	while ((rc = run(e)) == LOOM_EBUSY)
		usleep(1000);
	return rc;
}

static void shut(struct embedder *e)
{
	loom_stack_close(e->stack);
	loom_config_destroy(e->cfg);
}

#endif
