/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2: repeated create() and destroy() leave nothing behind. */
#include "conform/instance.h"

#include <stdlib.h>
#include <string.h>

#include "conform/footprint.h"
#include "conform/stand.h"
#include "conform/tests.h"

int loom__instance_must(struct loom__trial *t, void **self)
{
	struct loom_error err = {0};
	int code = loom__instance_create(t, t->opts, self, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, "create()", code, &err));
	if (code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP)
		return loom__skip(t, "not available here: %s", err.text);
	return loom__fault(t, "create() refuses its default options: %s", err.text);
}

int loom__test_life_destroy_null(struct loom__trial *t)
{
	loom__say_case(t, t->seed, "destroy(NULL), which is legal");
	loom__instance_destroy(t, NULL);
	return 0;
}

static int rounds(struct loom__trial *t, int n)
{
	for (int i = 0; i < n; i++) {
		void *self;
		LOOM__TRY(loom__instance_must(t, &self));
		loom__instance_destroy(t, self);
		if (t->host.live)
			return loom__fault(t, "destroy() leaves %llu blocks of host->alloc() behind",
					   (unsigned long long)t->host.live);
	}
	return 0;
}

int loom__test_life_create_destroy(struct loom__trial *t)
{
	struct loom__footprint before;
	LOOM__TRY(rounds(t, 10));
	loom__footprint_take(&before);
	int n = 0; /* Instances that take long to create, such as a network endpoint, are created less often. */
	for (uint64_t end = loom__now_ns() + 2 * LOOM__SECOND; n < 100 && (n < 20 || loom__now_ns() < end); n++)
		LOOM__TRY(rounds(t, 1));
	return loom__judge_footprint(t, &before, (size_t)n, "after repeated create() and destroy()");
}

int loom__test_life_two_instances(struct loom__trial *t)
{
	void *a, *b;
	LOOM__TRY(loom__instance_must(t, &a));
	uint64_t one = t->host.live;
	LOOM__TRY(loom__instance_must(t, &b));
	if (a == b && one) /* an instance without memory may be a constant */
		return loom__fault(t, "two instances are one: create() gives the same address twice");
	loom__instance_destroy(t, a);
	if (t->host.live != one)
		return t->host.live > one
			   ? loom__fault(t, "destroy() leaves %llu block%s behind",
					 (unsigned long long)(t->host.live - one), t->host.live - one == 1 ? "" : "s")
			   : loom__fault(t, "destroy() of an instance frees %llu blocks of another",
					 (unsigned long long)(one - t->host.live));
	LOOM__TRY(loom__instance_must(t, &a));
	loom__instance_destroy(t, b);
	loom__instance_destroy(t, a);
	return t->host.live ? loom__fault(t, "two instances leave memory behind") : 0;
}

int loom__test_life_quiet(struct loom__trial *t)
{
	struct loom__footprint before, after;
	struct loom__hush hush;
	char printed[200], text[200];
	if (loom__hush_begin(&hush))
		return loom__skip(t, "standard output cannot be redirected");
	loom__footprint_take(&before);
	int verdict = rounds(t, 1);
	/* A first instance comes before the count, because descriptors that a library opens once stay open. */
	loom__footprint_take(&after);
	before.fds = after.fds;
	before.threads = after.threads;
	if (!verdict)
		verdict = rounds(t, 1);
	const char *differs = loom__footprint_settles(&before, 0, text, sizeof(text));
	size_t n = loom__hush_end(&hush, printed, sizeof(printed));
	if (verdict)
		return verdict;
	if (n)
		return loom__fault(t, "it prints '%s'; standard output belongs to data: use host->log()", printed);
	return differs ? loom__fault(t, "create() and destroy() have side effects: %s", differs) : 0;
}

/* The core owns filled options, so the plug-in must not change them. */
int loom__test_life_options(struct loom__trial *t)
{
	void *self, *copy = malloc(t->plugin->opts_size + 1);
	LOOM__TRY(loom__instance_must(t, &self));
	if (!copy)
		return loom__skip(t, "out of memory");
	if (t->plugin->opts_size) {
		memcpy(copy, t->opts, t->plugin->opts_size);
		loom__instance_destroy(t, self);
		LOOM__TRY(loom__instance_must(t, &self));
	}
	loom__instance_destroy(t, self);
	if (t->plugin->opts_size && memcmp(copy, t->opts, t->plugin->opts_size))
		return loom__fault(t, "it changes its option struct, which belongs to the core");
	free(copy);
	return 0;
}
