/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parts of the conformance suite that watch plug-ins. They must detect each fault, and must not report a
 * fault where there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "config/config.h"
#include "conform/settings.h"
#include "rig/host.h"

TEST(names)
{
	size_t n;
	const struct loom__test *test = loom__suite(&n);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT(test[i].level >= 1 && test[i].level <= LOOM__LEVEL_MOST);
		CU_ASSERT_PTR_NOT_NULL(strchr(test[i].name, '.'));
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(test[i].name, test[j].name);
	}
	/* Every kind has tests of its own, which suit no other kind. */
	for (int k = 1; k < LOOM_KINDS; k++) {
		int own = 0;
		for (size_t i = 0; i < n; i++) {
			own += test[i].kind == k;
			if (test[i].kind && test[i].kind != k)
				CU_ASSERT_EQUAL(loom__test_suits(&test[i], (enum loom_kind)k), 0);
		}
		CU_ASSERT(own >= 3);
	}
}

/* ---- the host table ------------------------------------------------------------------------- */

static struct loom__rig_host host;

TEST(allocation)
{
	loom__rig_host_init(&host);
	const struct loom_host *h = &host.table;
	unsigned char *p = h->alloc(h, 100);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL((uintptr_t)p & 63, 0);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(p[i], 0);
	memset(p, 0xff, 100);
	CU_ASSERT_EQUAL(host.live, 1);
	CU_ASSERT_PTR_NULL(loom__rig_host_misuse(&host));
	h->free(h, p);
	h->free(h, NULL);
	CU_ASSERT_EQUAL(host.live, 0);
	loom__rig_host_refuse(&host, 2);
	p = h->alloc(h, 1);
	CU_ASSERT_PTR_NOT_NULL(p);
	CU_ASSERT_PTR_NULL(h->alloc(h, 1));
	h->free(h, p);
	p = h->alloc(h, 0);
	CU_ASSERT_PTR_NOT_NULL(p);
	h->free(h, p);
	CU_ASSERT_PTR_NULL(loom__rig_host_misuse(&host));
}

TEST(overrun)
{
	loom__rig_host_init(&host);
	unsigned char *volatile p = host.table.alloc(&host.table, 10);
	p[10] = 1;
	CU_ASSERT_PTR_NOT_NULL_FATAL(loom__rig_host_misuse(&host));
	CU_ASSERT_PTR_NOT_NULL(strstr(loom__rig_host_misuse(&host), "10 bytes"));
	host.table.free(&host.table, p);
}

TEST(metrics)
{
	loom__rig_host_init(&host);
	const struct loom_host *h = &host.table;
	CU_ASSERT_EQUAL(h->metric(h, LOOM__RIG_REPORT(&host), "a", "", LOOM_BETTER_NONE, 1), 0);
	CU_ASSERT_PTR_NULL(loom__rig_host_misuse(&host));
	CU_ASSERT_EQUAL(h->metric(h, LOOM__RIG_REPORT(&host), "a", "", LOOM_BETTER_NONE, 2), LOOM_EPLUGIN);
	CU_ASSERT_PTR_NOT_NULL(strstr(loom__rig_host_misuse(&host), "twice"));
	loom__rig_host_clear(&host);
}

/* ---- rows of options ----------------------------------------------------------------------------------- */

struct opts {
	uint8_t flag;
	uint32_t depth, kind;
	uint64_t bytes, time, any;
	int64_t node;
	double share, factor;
	const char *text;
};
static const char *const kinds[] = {"a", "b", "c", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, flag, LOOM_OPT_BOOL, "yes", "a flag"),
    LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "5", "a depth", .min = 2, .max = 4096),
    LOOM_OPT(struct opts, kind, LOOM_OPT_ENUM, "a", "a kind", .choices = kinds),
    LOOM_OPT(struct opts, bytes, LOOM_OPT_SIZE, "64KiB", "some bytes", .max = 1 << 30),
    LOOM_OPT(struct opts, time, LOOM_OPT_TIME, "10us", "a time"),
    LOOM_OPT(struct opts, any, LOOM_OPT_U64, "1", "any number"),
    LOOM_OPT(struct opts, node, LOOM_OPT_I64, "-1", "a node", .min = -1, .max = 1023),
    LOOM_OPT(struct opts, share, LOOM_OPT_SHARE, "5%", "a share"),
    LOOM_OPT(struct opts, factor, LOOM_OPT_F64, "1", "a factor", .from = .5, .to = 1.5),
    LOOM_OPT(struct opts, text, LOOM_OPT_STR, "", "a text"),
    {0},
};

/* The suite sets options only to legal values, because it tests the plug-in and not the parser. */
TEST(rows)
{
	struct loom__chance chance = loom__chance(1);
	for (const struct loom_opt *row = rows; row->name; row++) {
		uint64_t field[2];
		char text[64];
		unsigned n = 0;
		for (; loom__row_edge(row, n, text, sizeof(text)); n++) {
			struct loom_error err = {0};
			CU_ASSERT_EQUAL(loom__value_parse(row, text, field, &err), 0);
			if (err.text[0])
				printf("\n%s = %s: %s\n", row->name, text, err.text);
		}
		CU_ASSERT(n >= 2);
		for (int i = 0; i < 2000 && loom__row_random(row, &chance, text, sizeof(text));
		     i++) {
			struct loom_error err = {0};
			CU_ASSERT_EQUAL(loom__value_parse(row, text, field, &err), 0);
			if (err.text[0])
				printf("\n%s = %s: %s\n", row->name, text, err.text);
		}
	}
}

TEST_MAIN("validate", 60)
