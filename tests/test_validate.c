/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the conformance suite that watch plug-ins: they must see what is wrong, and nothing
 * else. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "config/config.h"
#include "report/openmetrics.h"
#include "validate/footprint.h"
#include "validate/settings.h"
#include "validate/watchhost.h"

static void test_names(void)
{
	size_t n;
	const struct loom__test *test = loom__suite(&n);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT(test[i].level >= 1 && test[i].level <= LOOM__LEVEL_MOST);
		CU_ASSERT_PTR_NOT_NULL(strchr(test[i].name, '.'));
		CU_ASSERT(strlen(test[i].what) > 10 && test[i].limit_ms >= 10000);
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(test[i].name, test[j].name);
	}
	/* Every kind has tests of its own, and no other kind's. */
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

/* ---- the host table -----------------------------------------------------------------------------
 */

static struct loom__watchhost host;

static void test_allocation(void)
{
	loom__watchhost_init(&host);
	const struct loom_host *h = &host.table;
	unsigned char *p = h->alloc(h, 100);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL((uintptr_t)p & 63, 0);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(p[i], 0);
	memset(p, 0xff, 100);
	CU_ASSERT_EQUAL(host.live, 1);
	CU_ASSERT_PTR_NULL(loom__watchhost_misuse(&host));
	h->free(h, p);
	h->free(h, NULL);
	CU_ASSERT_EQUAL(host.live, 0);
	loom__watchhost_refuse(&host, 2);
	p = h->alloc(h, 1);
	CU_ASSERT_PTR_NOT_NULL(p);
	CU_ASSERT_PTR_NULL(h->alloc(h, 1));
	h->free(h, p);
	p = h->alloc(h, 0);
	CU_ASSERT_PTR_NOT_NULL(p);
	h->free(h, p);
	CU_ASSERT_PTR_NULL(loom__watchhost_misuse(&host));
}

static void test_overrun(void)
{
	loom__watchhost_init(&host);
	unsigned char *volatile p = host.table.alloc(&host.table, 10);
	p[10] = 1;
	CU_ASSERT_PTR_NOT_NULL_FATAL(loom__watchhost_misuse(&host));
	CU_ASSERT_PTR_NOT_NULL(strstr(loom__watchhost_misuse(&host), "10 bytes"));
	host.table.free(&host.table, p);
}

static void test_foreign_free(void)
{
	char mine[8];
	loom__watchhost_init(&host);
	host.table.free(&host.table, mine);
	CU_ASSERT_PTR_NOT_NULL_FATAL(loom__watchhost_misuse(&host));
	loom__watchhost_init(&host);
	void *p = host.table.alloc(&host.table, 8);
	host.table.free(&host.table, p);
	host.table.free(&host.table, p);
	CU_ASSERT_PTR_NOT_NULL(strstr(loom__watchhost_misuse(&host), "twice"));
}

static void test_metrics(void)
{
	loom__watchhost_init(&host);
	const struct loom_host *h = &host.table;
	CU_ASSERT_EQUAL(h->metric(h, &host.report, "a", "", LOOM_BETTER_NONE, 1), 0);
	CU_ASSERT_PTR_NULL(loom__watchhost_misuse(&host));
	CU_ASSERT_EQUAL(h->metric(h, &host.report, "a", "", LOOM_BETTER_NONE, 2), LOOM_EPLUGIN);
	CU_ASSERT_PTR_NOT_NULL(strstr(loom__watchhost_misuse(&host), "twice"));
	loom__watchhost_clear_report(&host);
}

/* ---- footprints ---------------------------------------------------------------------------------
 */

static void test_footprint(void)
{
	struct loom__footprint before, after;
	char text[200];
	loom__footprint_take(&before);
	loom__footprint_take(&after);
	CU_ASSERT_PTR_NULL(loom__footprint_differs(&before, &after, 0, text, sizeof(text)));
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	loom__footprint_take(&after);
	CU_ASSERT_PTR_NOT_NULL(loom__footprint_differs(&before, &after, 0, text, sizeof(text)));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "1 file descriptor"));
	close(fd);
	void (*was)(int) = signal(SIGUSR2, SIG_IGN);
	loom__footprint_take(&after);
	CU_ASSERT_PTR_NOT_NULL(loom__footprint_differs(&before, &after, 0, text, sizeof(text)));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "SIGUSR2"));
	signal(SIGUSR2, was);
	setenv("TEST_VALIDATE", "1", 1);
	loom__footprint_take(&after);
	CU_ASSERT_PTR_NOT_NULL(loom__footprint_differs(&before, &after, 0, text, sizeof(text)));
	unsetenv("TEST_VALIDATE");
	loom__footprint_take(&after);
	CU_ASSERT_PTR_NULL(loom__footprint_differs(&before, &after, 0, text, sizeof(text)));
}

static void test_hush(void)
{
	struct loom__hush h;
	char text[50];
	CU_ASSERT_EQUAL_FATAL(loom__hush_begin(&h), 0);
	printf("hidden %d\nmore", 5);
	size_t n = loom__hush_end(&h, text, sizeof(text));
	CU_ASSERT_EQUAL(n, 13);
	CU_ASSERT_STRING_EQUAL(text, "hidden 5");
	CU_ASSERT_EQUAL_FATAL(loom__hush_begin(&h), 0);
	CU_ASSERT_EQUAL(loom__hush_end(&h, text, sizeof(text)), 0);
}

/* ---- rows ---------------------------------------------------------------------------------------
 */

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
    LOOM_OPT(struct opts, factor, LOOM_OPT_F64, "1", "a factor", .min = .5, .max = 1.5),
    LOOM_OPT(struct opts, text, LOOM_OPT_STR, "", "a text"),
    {0},
};

/* Whatever the suite tries is a legal value: the plug-in, not the parser, is under test. */
static void test_rows(void)
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

/* ---- OpenMetrics --------------------------------------------------------------------------------
 */

static void test_openmetrics(void)
{
	struct loom_counters counters[2] = {{.executed = 3, .idle_ns = 500}, {.executed = 4}};
	struct loom__metric figure[] = {{.name = "quo\"te", .unit = "", .value = 1.5}};
	struct loom__sample samples[] = {{.warmup = 1, .seconds = 9, .counters = counters},
					 {.seconds = 0.25, .counters = counters}};
	struct loom_result r = {.sample = samples, .samples = 2, .workers = 2};
	struct loom__openmetrics m = {0};
	struct loom__text text = {0};
	samples[1].report = (struct loom_report){.list = figure, .count = 1};
	CU_ASSERT_EQUAL(loom__openmetrics_take(&m, &r), 0);
	CU_ASSERT_EQUAL(loom__openmetrics_take(&m, &r), 0); /* nothing new */
	loom__openmetrics_text(&m, &r, "a\\b", &text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text.at);
	static const char *const lines[] = {
	    "gpuloom_run_info{workload=\"a\\\\b\",workers=\"2\"} 1\n",
	    "gpuloom_samples_total 1\n",
	    "gpuloom_warmups_total 1\n",
	    "gpuloom_measured_seconds_total 0.25\n",
	    "gpuloom_metric{metric=\"quo\\\"te\",unit=\"\"} 1.5\n",
	    "gpuloom_worker_executed_tasks_total{worker=\"1\"} 4\n",
	    "# UNIT gpuloom_worker_idle_seconds seconds\n",
	    "gpuloom_worker_idle_seconds_total{worker=\"0\"} 5e-07\n"};
	for (size_t i = 0; i < LOOM__COUNT(lines); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text.at, lines[i]));
	CU_ASSERT_STRING_EQUAL(text.at + text.length - 6, "# EOF\n");
	loom__text_free(&text);
	loom__openmetrics_free(&m);
}

static const struct test all[] = {
    {"names", test_names},
    {"allocation", test_allocation},
    {"overrun", test_overrun},
    {"foreign_free", test_foreign_free},
    {"metrics", test_metrics},
    {"footprint", test_footprint},
    {"hush", test_hush},
    {"rows", test_rows},
    {"openmetrics", test_openmetrics},
};
TEST_MAIN("validate", 60, all)
