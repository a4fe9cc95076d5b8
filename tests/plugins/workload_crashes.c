/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of this workload crashes in the way that the conf names, or its init() does. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#include <stdlib.h>
#include <string.h>

enum { CRASH_NULL, CRASH_FPE, CRASH_ILL, CRASH_STACK, CRASH_JUMP, CRASH_LIBC, CRASH_ABORT, CRASH_INIT };
static const char *const ways[] = {"null", "fpe", "ill", "stack", "jump", "libc", "abort", "init", NULL};

struct options {
	uint32_t way;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, way, LOOM_OPT_ENUM, "null", "How it crashes.", .choices = ways),
	{.name = NULL},
};

#include "instance.h"

static uint32_t chosen; /* kernel() has no access to the instance */

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	const struct instance *x = self;
	(void)layout, (void)err;
	n->global = sizeof(uint64_t);
	chosen = x->options->way;
	return 0;
}

static char *volatile nowhere;
static volatile int zero;

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)err;
	if (chosen == CRASH_INIT)
		*nowhere = 1;
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)report, (void)err;
	return 0;
}

static __attribute__((noinline)) int deeper(volatile char *above)
{
	volatile char frame[1000];
	frame[0] = *above;
	return *above ? deeper(frame) + frame[0] : 0; /* never 0, which the compiler does not know */
}

static void kernel(struct loom_ctx *c)
{
	(void)c;
	if (chosen == CRASH_NULL)
		*nowhere = 1;
	if (chosen == CRASH_FPE)
		zero = 1000 / zero;
	if (chosen == CRASH_ILL)
		__builtin_trap();
	if (chosen == CRASH_STACK)
		zero = deeper((char[1]){1});
	if (chosen == CRASH_JUMP)
		((void (*volatile)(void))(uintptr_t)zero)();
	if (chosen == CRASH_LIBC)
		zero = *(char *)memset(nowhere, 1, (size_t)zero + 1000); /* memset() is not the last call of the function */
	if (chosen == CRASH_ABORT)
		abort();
}

ODD_PLUGIN("workload_crashes", "A kernel that crashes", kernel, .needs = 0)
