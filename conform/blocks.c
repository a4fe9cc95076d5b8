/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2, policies: how much memory they request, and whether init() always leaves it in the same state. */
#include <stdlib.h>
#include <string.h>

#include "conform/stand.h"
#include "conform/tests.h"

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
				      .seed = 1,
				      .hidden = 1};
	int verdict = loom__stand_try(r, t, &want, NULL);
	if (verdict == LOOM__REFUSED && t->too_large && t->plugin->kind != LOOM_WORKLOAD)
		return loom__fault(t, "with the default options, %u devices and %u workers %s", want.devices,
				   want.workers, t->refusal);
	return verdict; /* a plug-in may refuse a layout that it cannot serve */
}

/* Calls `one` with each layout that the plug-in serves. */
static int each_layout(struct loom__trial *t, int (*one)(struct loom__trial *t, struct loom__rig *r))
{
	int opened = 0;
	for (size_t i = 0; i < LOOM__COUNT(layouts); i++) {
		struct loom__rig r;
		int verdict = open_one(&r, t, i);
		if (verdict == LOOM__REFUSED)
			continue;
		LOOM__TRY(verdict);
		LOOM__TRY(one(t, &r));
		loom__stand_close(&r);
		opened++;
	}
	return opened ? 0 : loom__skip(t, "it serves none of the suite's layouts with these options");
}

static int same_twice(struct loom__trial *t, struct loom__rig *r)
{
	struct loom__rig_part *p = &r->part[t->plugin->kind];
	struct loom_error err = {0};
	struct loom_need again = {.size = sizeof(again)};
	if (p->ops->need(p->self, &r->layout, &again, &err) || !same_need(&p->need, &again))
		return loom__fault(t, "need() gives another answer in a second call");
	if (p->need.size != sizeof(p->need))
		return loom__fault(t, "need() changes the size of struct loom_need");
	return 0;
}

int loom__test_blocks_need(struct loom__trial *t)
{
	LOOM__TRY(each_layout(t, same_twice));
	return t->host.live ? loom__fault(t, "need(), called twice, leaves %llu blocks of host->alloc() behind",
					  (unsigned long long)t->host.live)
			    : 0;
}

static int init_twice(struct loom__trial *t, struct loom__rig *r)
{
	LOOM__TRY(loom__stand_reset(r));
	char *copy = malloc(r->bytes);
	if (copy)
		memcpy(copy, r->host, r->bytes);
	LOOM__TRY(loom__stand_reset(r));
	for (uint64_t at = 0; copy && at < r->bytes; at++)
		if (copy[at] != r->host[at])
			return loom__fault(
			    t, "init() makes another starting state the second time (byte %llu of its blocks): is it a "
			       "value without initialiser, or padding of a struct?",
			    (unsigned long long)at);
	free(copy);
	return loom__stand_guards(r);
}

enum { UNTOUCHED = 0x5a };

/* Fills what is between the parts that init() writes, or returns 1 if these bytes have changed. */
static int between(char *block, uint64_t bytes, const struct loom_need_reset *reset, int fill)
{
	uint64_t at = reset->head;
	if (fill && block && at + reset->tail < bytes)
		memset(block + at, UNTOUCHED, bytes - at - reset->tail);
	while (!fill && block && at + reset->tail < bytes && block[at] == UNTOUCHED)
		at++;
	return !fill && block && at + reset->tail < bytes;
}

static int each_between(const struct loom__rig *r, const struct loom__rig_part *p, int fill)
{
	int changed = between(p->view.global, p->need.global, &p->need.reset_global, fill);
	for (uint32_t d = 0; d < r->layout.devices && p->need.device; d++)
		changed |= between(p->view.device[d], p->need.device, &p->need.reset_device, fill);
	for (uint32_t w = 0; w < r->layout.workers && p->need.worker; w++)
		changed |= between(p->view.worker[w], p->need.worker, &p->need.reset_worker, fill);
	return changed;
}

static int resets(struct loom__trial *t, struct loom__rig *r)
{
	const struct loom__rig_part *p = &r->part[t->plugin->kind];
	LOOM__TRY(init_twice(t, r));
	if (!(p->need.flags & LOOM_NEED_RESET))
		return 0;
	each_between(r, p, 1);
	LOOM__TRY(loom__stand_reset(r));
	return each_between(r, p, 0) ? loom__fault(t, "init() writes beside the parts that need() names for LOOM_NEED_RESET") : 0;
}

int loom__test_blocks_init(struct loom__trial *t)
{
	return each_layout(t, resets);
}
