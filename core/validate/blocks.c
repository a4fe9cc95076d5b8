/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2, policies: how much memory they want, and that init() makes the same of it every time. */
#include <stdlib.h>
#include <string.h>

#include "validate/rig.h"
#include "validate/tests.h"

static const struct {
	uint32_t devices, workers, lanes;
} layouts[] = {{1, 1, 1}, {1, 4, 1}, {2, 4, 1}, {3, 7, 2}, {2, 64, 1}};

static int same_need(const struct loom_need *a, const struct loom_need *b)
{
	return a->global == b->global && a->device == b->device && a->worker == b->worker &&
	       a->local == b->local;
}

static int open_one(struct loom__rig *r, struct loom__trial *t, size_t i)
{
	struct loom__rig_want want = {.devices = layouts[i].devices,
				      .workers = layouts[i].workers,
				      .lanes = layouts[i].lanes,
				      .seed = 1};
	int verdict = loom__rig_open(r, t, &want, NULL);
	if (verdict == LOOM__REFUSED && r->too_large && t->plugin->kind != LOOM_WORKLOAD)
		return loom__fault(t, "with the default options, %u devices and %u workers %s",
				   want.devices, want.workers, r->why);
	return verdict; /* it may refuse a layout that it cannot serve */
}

int loom__test_blocks_need(struct loom__trial *t)
{
	int opened = 0;
	for (size_t i = 0; i < LOOM__COUNT(layouts); i++) {
		struct loom__rig r;
		struct loom_error err = {0};
		int verdict = open_one(&r, t, i);
		if (verdict == LOOM__REFUSED)
			continue;
		if (verdict)
			return verdict;
		opened++;
		const struct loom_need *first = &r.part[r.kind].need;
		struct loom_need again = {.size = sizeof(again)};
		if (r.ops->need(r.self, &r.layout, &again, &err) || !same_need(first, &again))
			verdict = loom__fault(
			    t, "need() does not answer the same when it is asked again");
		if (first->size != sizeof(*first))
			verdict = loom__fault(t, "need() changes the size of struct loom_need");
		loom__rig_close(&r);
		if (verdict)
			return verdict;
	}
	if (t->host.live)
		return loom__fault(
		    t, "need(), asked twice, leaves %llu blocks of host->alloc() behind",
		    (unsigned long long)t->host.live);
	return opened ? 0
		      : loom__skip(t, "it serves none of the suite's layouts with these options");
}

int loom__test_blocks_init(struct loom__trial *t)
{
	int opened = 0;
	for (size_t i = 0; i < LOOM__COUNT(layouts); i++) {
		struct loom__rig r;
		char *copy = NULL;
		int verdict = open_one(&r, t, i);
		if (verdict == LOOM__REFUSED)
			continue;
		if (verdict)
			return verdict;
		opened++;
		verdict = loom__rig_start(&r);
		if (!verdict && (copy = malloc(r.bytes)))
			memcpy(copy, r.host, r.bytes);
		if (!verdict)
			verdict = loom__rig_start(&r);
		for (uint64_t at = 0; !verdict && copy && at < r.bytes; at++)
			if (copy[at] != r.host[at])
				verdict = loom__fault(
				    t,
				    "init() makes another starting state the second time "
				    "(byte %llu of its blocks)",
				    (unsigned long long)at);
		if (!verdict)
			verdict = loom__rig_guards(&r);
		free(copy);
		loom__rig_close(&r);
		if (verdict)
			return verdict;
	}
	return opened ? 0
		      : loom__skip(t, "it serves none of the suite's layouts with these options");
}
