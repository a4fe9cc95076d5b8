/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger list against a sequential oracle that looks at every post each time: order of runs, relaxed
 * synchronisation, thresholds past 32 bits, re-arming, cancelling, full tables. */
#include "../plugins/trigger_nic/list.c"

#include "fake_host.h"

/* ---- the oracle ---------------------------------------------------------------------------------- */

#define TAGS 7u
#define POSTS 24u

struct known {
	int used, spent, flying;
	uint64_t id, tag, threshold, rearm, order; /* order: of posting or re-arming */
};
struct oracle {
	uint64_t value[TAGS + 1];
	struct known post[POSTS];
	uint64_t order;
	uint64_t run[1 << 16]; /* ids in the order in which they must run */
	uint32_t head, tail;
};

static void oracle_settle(struct oracle *o, uint64_t tag)
{
	for (;;) {
		struct known *best = NULL;
		for (uint32_t i = 0; i < POSTS; i++) {
			struct known *k = &o->post[i];
			if (!k->used || k->spent || k->tag != tag || k->threshold > o->value[tag])
				continue;
			if (!best || k->threshold < best->threshold ||
			    (k->threshold == best->threshold && k->order < best->order))
				best = k;
		}
		if (!best)
			return;
		o->run[o->head++ & 0xffff] = best->id;
		best->flying++;
		if (best->rearm && best->threshold + best->rearm > best->threshold) {
			best->threshold += best->rearm;
			best->order = o->order++;
		} else {
			best->spent = 1;
		}
	}
}

static struct known *oracle_find(struct oracle *o, uint64_t id)
{
	for (uint32_t i = 0; i < POSTS; i++)
		if (o->post[i].used && o->post[i].id == id)
			return &o->post[i];
	return NULL;
}

static uint64_t seed = 88172645463325252ull;
static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

static uint64_t id_of(const struct list *l, uint32_t post)
{
	return (uint64_t)l->post[post].generation << 32 | post;
}

static int random_post(struct list *l, struct oracle *o)
{
	struct loom_trigger_post what = {.size = sizeof(what), .tag = 1 + draw(TAGS)};
	uint64_t value = o->value[what.tag], id = 0;
	switch (draw(4)) {
	case 0:
		what.threshold = draw(value + 2); /* reached already, mostly */
		break;
	case 1:
		what.threshold = value + draw(1ull << 32) + 1; /* far */
		break;
	default:
		what.threshold = value + draw(12);
	}
	if (draw(3) == 0) {
		what.rearm = 1 + draw(5) * (draw(4) ? 1 : 1ull << 31);
		if (what.threshold + 9 < value) /* else it would be due as often as the counter is high */
			what.threshold = value - 9;
	}
	uint32_t i = 0;
	while (i < POSTS && o->post[i].used)
		i++;
	int rc = list_post(l, &what, &id);
	if (rc != (i == POSTS ? LOOM_EFULL : 0))
		return 0;
	if (rc)
		return 1;
	o->post[i] = (struct known){.used = 1, .id = id, .tag = what.tag, .threshold = what.threshold,
				    .rearm = what.rearm, .order = o->order++};
	oracle_settle(o, what.tag);
	return 1;
}

static int random_count(struct list *l, struct oracle *o)
{
	uint64_t tag = 1 + draw(TAGS), n = 1 + draw(4);
	if (draw(1000) == 0) { /* a jump past 32 bits: posts that re-arm in small steps would run for hours */
		for (uint32_t i = 0; i < POSTS; i++)
			if (o->post[i].used && o->post[i].tag == tag && o->post[i].rearm &&
			    o->post[i].rearm < 1ull << 30)
				return 1;
		n = (1ull << 32) + draw(3);
	}
	o->value[tag] += n;
	oracle_settle(o, tag);
	return list_count(l, tag, n, 0) == 0;
}

static int random_cancel(struct list *l, struct oracle *o)
{
	struct known *k = &o->post[draw(POSTS)];
	if (!k->used)
		return list_cancel(l, k->id ? k->id : ~0ull) == LOOM_ENOENT;
	int rc = list_cancel(l, k->id);
	if (rc != (k->spent ? LOOM_EBUSY : 0))
		return 0;
	k->spent = 1;
	if (!k->flying)
		k->used = 0;
	return 1;
}

/* Takes some of what is due, in order, and lets it land. */
static int random_run(struct list *l, struct oracle *o)
{
	struct due due;
	for (uint64_t n = draw(8); n > 0 && list_next(l, &due); n--) {
		uint64_t id = id_of(l, due.post);
		if (o->head == o->tail || o->run[o->tail++ & 0xffff] != id)
			return 0;
		struct known *k = oracle_find(o, id);
		if (!k)
			return 0;
		list_landed(l, due.post);
		if (--k->flying == 0 && k->spent)
			k->used = 0;
	}
	return 1;
}

static void test_random_orders(void)
{
	static struct oracle o;
	struct list l;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, POSTS), 0);
	int ok = 1;
	for (uint32_t i = 0; i < 1000000 && ok; i++) {
		switch (draw(8)) {
		case 0:
		case 1:
			ok = random_post(&l, &o);
			break;
		case 2:
			ok = random_cancel(&l, &o);
			break;
		case 3:
		case 4:
		case 5:
			ok = random_run(&l, &o);
			break;
		default:
			ok = random_count(&l, &o);
		}
		/* The queue of the list must not fill, or it would put runs off. */
		while (ok && list_waiting(&l) > l.due_mask / 4)
			ok = random_run(&l, &o);
		if (!ok)
			fprintf(stderr, "step %u differs from the oracle\n", i);
	}
	CU_ASSERT(ok);
	list_close(&fake_host, &l);
}

static uint64_t post_one(struct list *l, uint64_t tag, uint64_t threshold, uint64_t rearm)
{
	struct loom_trigger_post what = {.size = sizeof(what), .tag = tag, .threshold = threshold, .rearm = rearm};
	uint64_t id = 0;
	CU_ASSERT_EQUAL(list_post(l, &what, &id), 0);
	return id;
}

/* A counter that jumps over more runs than the queue holds: none is lost, order stays. */
static void test_small_queue(void)
{
	struct list l;
	struct due due;
	uint64_t last = 0, runs = 0;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, 8), 0);
	uint64_t fast = post_one(&l, 1, 1, 1);
	uint64_t slow = post_one(&l, 1, 1000, 1000), other = post_one(&l, 2, 1, 0);
	list_count(&l, 1, 100000, 0);
	CU_ASSERT_EQUAL(list_waiting(&l), (uint64_t)l.due_mask + 1);
	list_count(&l, 2, 1, 0); /* no room: waits unsettled too */
	uint64_t slow_runs = 0, other_runs = 0;
	while (list_next(&l, &due)) {
		if (due.post == (uint32_t)fast)
			last = ++runs;
		else if (due.post == (uint32_t)slow) {
			slow_runs++; /* the fast one re-armed for that threshold later: it comes behind */
			CU_ASSERT_EQUAL(last, slow_runs * 1000 - 1);
		} else if (due.post == (uint32_t)other) {
			other_runs++;
		}
		list_landed(&l, due.post);
	}
	CU_ASSERT_EQUAL(runs, 100000);
	CU_ASSERT_EQUAL(slow_runs, 100);
	CU_ASSERT_EQUAL(other_runs, 1);
	CU_ASSERT_EQUAL(list_cancel(&l, fast), 0);
	CU_ASSERT_EQUAL(list_cancel(&l, fast), LOOM_ENOENT);
	CU_ASSERT_EQUAL(list_cancel(&l, slow), 0);
	CU_ASSERT_EQUAL(l.room, 8);
	list_close(&fake_host, &l);
}

static void test_wide_counters(void)
{
	static const uint64_t thresholds[] = {1, 2, 65535, 65536, 1ull << 31, (1ull << 32) - 1, 1ull << 32, (1ull << 32) + 1, UINT64_MAX};
	struct list l;
	struct due due;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, 8), 0);
	for (size_t i = 0; i < sizeof(thresholds) / sizeof(*thresholds); i++) {
		list_clear(&l);
		uint64_t id = post_one(&l, 5, thresholds[i], 0);
		list_count(&l, 5, thresholds[i] - 1, 0);
		CU_ASSERT_EQUAL(list_next(&l, &due), 0);
		list_count(&l, 5, 1, 0);
		CU_ASSERT_EQUAL(list_next(&l, &due), 1);
		CU_ASSERT_EQUAL(due.post, (uint32_t)id);
		CU_ASSERT_EQUAL(list_cancel(&l, id), LOOM_EBUSY);
		list_landed(&l, due.post);
		CU_ASSERT_EQUAL(list_cancel(&l, id), LOOM_ENOENT);
	}
	list_count(&l, 5, 10, 0); /* the end of the counter: it stays there */
	CU_ASSERT_EQUAL(l.counter[list_counter(&l, 5)].value, UINT64_MAX);
	post_one(&l, 5, UINT64_MAX, 1); /* cannot re-arm past the end: runs once */
	CU_ASSERT_EQUAL(list_next(&l, &due), 1);
	CU_ASSERT_EQUAL(list_next(&l, &due), 0);
	list_close(&fake_host, &l);
}

static void test_full_tables(void)
{
	struct list l;
	uint64_t id = 0;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, 4), 0);
	struct loom_trigger_post what = {.size = sizeof(what), .threshold = 1};
	for (what.tag = 1; what.tag <= 4; what.tag++)
		CU_ASSERT_EQUAL(list_post(&l, &what, &id), 0);
	CU_ASSERT_EQUAL(list_post(&l, &what, &id), LOOM_EFULL);
	CU_ASSERT_EQUAL(list_cancel(&l, id), 0);
	CU_ASSERT_EQUAL(list_post(&l, &what, &id), 0);
	/* Tags nobody posted for take counters, up to an eighth that stays free. */
	uint64_t tag = 100;
	while (!list_count(&l, tag, 1, 0))
		tag++;
	CU_ASSERT_EQUAL(l.counters, 14);
	CU_ASSERT_EQUAL(list_count(&l, 100, 1, 0), 0); /* those that are there still count */
	CU_ASSERT_EQUAL(l.counter[list_counter(&l, 100)].value, 2);
	list_close(&fake_host, &l);
}

static const struct test tests[] = {
	{"random_orders", test_random_orders},
	{"small_queue", test_small_queue},
	{"wide_counters", test_wide_counters},
	{"full_tables", test_full_tables},
};
TEST_MAIN("trigger_list", 60, tests)
