/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2: options and allocations that cannot work are rejected with a sentence, and leave nothing behind. */
#include <stdio.h>
#include <string.h>

#include "conform/footprint.h"
#include "conform/instance.h"
#include "conform/stand.h"
#include "conform/tests.h"

static int is_policy(const struct loom__trial *t)
{
	return t->plugin->kind != LOOM_DEVICE && t->plugin->kind != LOOM_TRANSPORT;
}

/* Calls create() and, for policies, need(), which require no memory of the stack. */
static int go(struct loom__trial *t, const void *opts, const char **where, struct loom_error *err)
{
	void *self;
	*err = (struct loom_error){0};
	*where = "create()";
	int code = loom__instance_create(t, opts, &self, err);
	if (code)
		return code;
	if (is_policy(t) && t->plugin->kind != LOOM_WORKLOAD && t->plugin->kind != LOOM_SYNC) {
		const struct loom_policy_ops *ops = t->plugin->ops;
		struct loom_device_shape shape = {
		    .name = "test:0", .workers = 4, .lanes = 1, .numa_node = -1, .kind = LOOM_ON_CPU};
		struct loom_layout layout = {
		    .size = sizeof(layout), .devices = 1, .workers = 4, .device = &shape, .seed = 1};
		struct loom_need need = {.size = sizeof(need)};
		*where = "need()";
		code = ops->need(self, &layout, &need, err);
	}
	loom__instance_destroy(t, self);
	return code;
}

int loom__test_life_out_of_memory(struct loom__trial *t)
{
	enum { MOST = 300 };
	const char *where;
	struct loom_error err;
	int code = go(t, t->opts, &where, &err);
	if (code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP)
		return loom__skip(t, "not available here: %s", err.text);
	for (uint64_t n = 1; n <= MOST; n++) {
		loom__say_case(t, t->seed, "allocation %llu fails", (unsigned long long)n);
		loom__rig_host_refuse(&t->host, n);
		code = go(t, t->opts, &where, &err);
		int refused = t->host.refused != 0;
		loom__rig_host_refuse(&t->host, 0);
		if (t->host.live)
			return loom__fault(t, "when host->alloc() fails, %s leaves %llu blocks behind", where,
					   (unsigned long long)t->host.live);
		if (!refused)
			break;
		if (code)
			LOOM__TRY(loom__judge_error(t, where, code, &err));
		if (code && code != LOOM_ENOMEM)
			return loom__fault(t, "when host->alloc() fails, %s returns %d (%s) in place of LOOM_ENOMEM",
					   where, code, loom_strerror(code));
	}
	return 0;
}

static int try_options(struct loom__trial *t, const struct loom__settings *s)
{
	const char *where;
	struct loom_error err;
	int code = go(t, s->opts, &where, &err);
	if (t->host.live)
		return loom__fault(t, "%s leaves %llu blocks behind", where, (unsigned long long)t->host.live);
	return code ? loom__judge_error(t, where, code, &err) : 0;
}

static int try_edge(struct loom__trial *t, const struct loom_opt *row, const char *text)
{
	struct loom__settings s;
	if (loom__settings_create(t, &s))
		return loom__skip(t, "out of memory");
	int verdict = 0;
	if (!loom__settings_put(t, &s, row, text)) {
		loom__say_case(t, t->seed, "%s = %s", row->name, text);
		verdict = try_options(t, &s);
	}
	loom__settings_free(&s);
	return verdict;
}

/* Values beyond the bounds of a row must be rejected before they reach the plug-in. */
static int try_beyond(struct loom__trial *t, const struct loom_opt *row)
{
	struct loom__settings s;
	char text[64];
	double max = (double)row->max + row->to; /* one of the two is 0 */
	if ((!row->min && row->from == 0 && max == 0) || max >= 9e15 || row->type == LOOM_OPT_SHARE)
		return 0;
	if (loom__settings_create(t, &s))
		return loom__skip(t, "out of memory");
	snprintf(text, sizeof(text), "%.0f%s", max + 1, row->type == LOOM_OPT_TIME ? "ns" : "");
	int code = loom__settings_put(t, &s, row, text);
	loom__settings_free(&s);
	return code ? 0 : loom__fault(t, "option '%s' takes %s, beyond its bounds", row->name, text);
}

/* True for options whose largest job may fill a disk before the workload rejects it. */
static int makes_huge_jobs(const struct loom__trial *t, const struct loom_opt *row, unsigned edge)
{
	return t->plugin->kind == LOOM_WORKLOAD && row->type != LOOM_OPT_BOOL && row->type != LOOM_OPT_ENUM && edge % 2;
}

int loom__test_life_option_edges(struct loom__trial *t)
{
	struct loom__footprint before;
	char text[200];
	const char *where;
	struct loom_error err;
	if (!t->plugin->opts || !t->plugin->opts->name)
		return loom__skip(t, "it has no options");
	go(t, t->opts, &where, &err);
	loom__footprint_take(&before);
	for (const struct loom_opt *row = t->plugin->opts; row->name; row++) {
		LOOM__TRY(try_beyond(t, row));
		for (unsigned n = 0; loom__row_edge(row, n, text, sizeof(text)); n++)
			if (!makes_huge_jobs(t, row, n))
				LOOM__TRY(try_edge(t, row, text));
	}
	loom__say_case(t, t->seed, "all edges of all options");
	return loom__judge_footprint(t, &before, 0, "options at their edges leave something behind");
}

static int mix(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	(void)seed, (void)chance;
	int verdict = try_options(t, s);
	loom__settings_free(s);
	return verdict;
}

int loom__test_life_option_mix(struct loom__trial *t)
{
	if (!t->plugin->opts || !t->plugin->opts->name)
		return loom__skip(t, "it has no options");
	if (t->plugin->kind == LOOM_WORKLOAD)
		return loom__skip(t, "random options would make jobs of any size");
	t->fuzz_ns = 4 * LOOM__SECOND; /* large instances take long */
	return loom__fuzz(t, mix, 200);
}
