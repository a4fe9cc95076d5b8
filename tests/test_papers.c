/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the claims of papers: their values, intervals, verdicts and marks in plots. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "papers/papers.h"
#include "report/view/lines.h"
#include "report/plot/plot.h"
#include "report/text/table.h"

#define HEAD                                                                                                           \
	"{\"schema\":\"gpuloom.sweep/1\",\"title\":\"t\",\"factors\":["                                                \
	"{\"key\":\"sync.use\",\"values\":[\"poll\",\"wic\"]},{\"key\":\"w.n\",\"values\":[\"1\",\"2\"]}],"            \
	"\"samples\":3,\"paper\":{\"of\":\"wic\",\"kind\":\"figure\",\"numbers\":[\"14\"],\"part\":\"\","              \
	"\"shows\":\"What it shows.\",\"unlike\":\"It is smaller.\",\"claims\":["                                      \
	"{\"name\":\"a\",\"claim\":\"at(t, use=wic, n=1) / at(t, use=poll, n=1)\",\"paper\":\"0.5 .. 0.6\"},"          \
	"{\"name\":\"b\",\"claim\":\"1 - at(t, use=wic, n=2) / at(t, use=poll, n=2)\",\"paper\":\">= 0.25\"},"         \
	"{\"name\":\"c\",\"claim\":\"at(t, use=wic, n=2)\",\"paper\":\"4 +- 1\"},"                                     \
	"{\"name\":\"d\",\"claim\":\"at(t, use=wic, n=2) + 1\",\"paper\":\"4 +- 1\"}]}}\n"
#define SAMPLE(id, use, n, k, t)                                                                                       \
	"{\"configuration\":\"" id "\",\"values\":{\"sync.use\":\"" use "\",\"w.n\":\"" n "\"},\"sample\":" #k         \
	",\"metrics\":{\"t\":" #t ",\"u\":1},\"units\":{\"t\":\"ns\"},\"better\":{\"t\":\"less\"}}\n"
#define THREE(id, use, n, a, b, c) SAMPLE(id, use, n, 0, a) SAMPLE(id, use, n, 1, b) SAMPLE(id, use, n, 2, c)

static const char sweep[] = HEAD THREE("p1", "poll", "1", 10, 12, 11) THREE("w1", "wic", "1", 5, 7, 6)
    THREE("p2", "poll", "2", 8, 8, 8) THREE("w2", "wic", "2", 2, 2, 2);

struct loaded {
	struct loom__doc doc;
	struct loom__view view;
};

static void load(struct loaded *l, const char *text)
{
	struct loom_error err;
	CU_ASSERT_EQUAL_FATAL(loom__doc_parse("x.jsonl", strdup(text), strlen(text), &l->doc, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__view_create(&l->doc, 1, &l->view, &err), 0);
}

static void unload(struct loaded *l)
{
	loom__view_free(&l->view);
	loom__doc_free(&l->doc);
}

TEST(ranges)
{
	static const struct {
		const char *text;
		double low, high;
	} good[] = {
	    {"0.25", 0.225, 0.275},    {"-2", -2.2, -1.8},         {"0.25 +- 0.05", 0.2, 0.3},   {"50 +- 20 %", 40, 60},
	    {">= 0.8", 0.8, INFINITY}, {"<= 0.1", -INFINITY, 0.1}, {"1.04 .. 1.58", 1.04, 1.58}, {" 0 ", 0, 0}};
	static const char *const bad[] = {"",   "much",      "1 ..", "2 .. 1",   "1 +- -1",
					  ">=", ">= 1 +- 2", "1 2",  "1 .. 2 %", "nan"};
	struct loom_error err;
	double low, high;
	for (size_t i = 0; i < LOOM__COUNT(good); i++) {
		CU_ASSERT_EQUAL(loom__claim_range(good[i].text, &low, &high, &err), 0);
		CU_ASSERT(low == good[i].low || fabs(low - good[i].low) < 1e-12);
		CU_ASSERT(high == good[i].high || fabs(high - good[i].high) < 1e-12);
	}
	for (size_t i = 0; i < LOOM__COUNT(bad); i++)
		CU_ASSERT_EQUAL(loom__claim_range(bad[i], &low, &high, &err), LOOM_EINVAL);
}

/* An interval decides, or leaves the verdict undecided. */
TEST(verdicts)
{
	static const struct {
		const char *paper;
		double neutral, low, at, high;
		enum loom__claim_verdict verdict;
	} of[] = {
	    /* The paper's value is a gain: a ratio above the neutral value 1. */
	    {"1.2 +- 0.05", 1, 1.16, 1.2, 1.24, LOOM__CLAIM_SAME},
	    {"1.2 +- 0.05", 1, 1.25, 1.25, 1.25, LOOM__CLAIM_SAME},
	    {"1.2 +- 0.05", 1, 1.26, 1.3, 1.4, LOOM__CLAIM_LARGER},
	    {"1.2 +- 0.05", 1, 1.05, 1.1, 1.14, LOOM__CLAIM_SMALLER},
	    {"1.2 +- 0.05", 1, 0.7, 0.8, 0.9, LOOM__CLAIM_OPPOSITE},
	    {"1.2 +- 0.05", 1, 0.995, 0.995, 0.995, LOOM__CLAIM_SMALLER}, /* too near to 1 for a direction */
	    {"1.2 +- 0.05", 1, 1.05, 1.1, 1.16, LOOM__CLAIM_UNDECIDED},   /* across the end of the range */
	    {"1.2 +- 0.05", 1, 1.24, 1.25, 1.3, LOOM__CLAIM_UNDECIDED},
	    {"1.2 +- 0.05", 1, 0.7, 0.8, 1.01, LOOM__CLAIM_UNDECIDED}, /* across the neutral value */
	    /* The paper's value is a loss. A ratio nearer to 1 is a smaller effect, although it is a larger number. */
	    {"0.6 +- 0.05", 1, 0.8, 0.8, 0.8, LOOM__CLAIM_SMALLER},
	    {"0.6 +- 0.05", 1, 0.4, 0.4, 0.4, LOOM__CLAIM_LARGER},
	    {"0.6 +- 0.05", 1, 1.3, 1.3, 1.3, LOOM__CLAIM_OPPOSITE},
	    /* A range that ends at the neutral value has a direction. */
	    {"1.00 .. 1.17", 1, 0.9, 0.9, 0.9, LOOM__CLAIM_OPPOSITE},
	    {"0.9 .. 1.00", 1, 0.8, 0.8, 0.8, LOOM__CLAIM_LARGER},
	    {"<= 1.00", 1, 1.2, 1.2, 1.2, LOOM__CLAIM_OPPOSITE},
	    {"<= 1.00", 1, 0.9, 1.2, 1.3, LOOM__CLAIM_UNDECIDED},
	    /* If the paper's range contains the neutral value, or if there is none, the numbers themselves are
	       compared. */
	    {"1.0 +- 0.05", 1, 0.98, 1, 1.02, LOOM__CLAIM_SAME},
	    {"1.0 +- 0.05", 1, 1.14, 1.14, 1.14, LOOM__CLAIM_LARGER},
	    {"0.1", NAN, -5, -5, -5, LOOM__CLAIM_SMALLER},
	    {">= 0.8", NAN, 0.5, 0.5, 0.5, LOOM__CLAIM_SMALLER},
	    {"<= 0.1", NAN, 0.5, 0.5, 0.5, LOOM__CLAIM_LARGER},
	    {"0.25", 0, -0.1, -0.1, -0.1, LOOM__CLAIM_OPPOSITE},
	    {"0.25", 0, NAN, NAN, NAN, LOOM__CLAIM_NOT_RUN}};
	struct loom_error err;
	for (size_t i = 0; i < LOOM__COUNT(of); i++) {
		struct loom__claim c = {.neutral = of[i].neutral, .incomparable = ""};
		struct loom__claim_value v = {of[i].at, of[i].low, of[i].high, LOOM__CLAIM_SAMPLES};
		CU_ASSERT_EQUAL_FATAL(loom__claim_range(of[i].paper, &c.low, &c.high, &err), 0);
		CU_ASSERT_EQUAL(loom__claim_judge(&c, &v), of[i].verdict);
		if (of[i].verdict == LOOM__CLAIM_NOT_RUN)
			continue;
		v.samples--;
		CU_ASSERT_EQUAL(loom__claim_judge(&c, &v), LOOM__CLAIM_UNDECIDED);
		c.incomparable = "another device";
		CU_ASSERT_EQUAL(loom__claim_judge(&c, &v), LOOM__CLAIM_NOT_ALIKE);
	}
}

static int interval_of(const struct loaded *l, const char *text, struct loom__claim_value *v, struct loom_error *err)
{
	struct loom__claim c = {.name = "x", .text = text};
	return loom__claim_value(&c, &l->view, v, err);
}

static int value_of(const struct loaded *l, const char *text, double *v, struct loom_error *err)
{
	struct loom__claim_value value;
	int rc = interval_of(l, text, &value, err);
	*v = value.at;
	return rc;
}

TEST(values)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {{"at(t, sync.use=wic, w.n=1)", 6},
		    {"at(t,use=poll,n=1)", 11}, /* the last part of a key suffices */
		    {"1 - at(t, use=wic, n=2) / at(t, use=poll, n=2)", 0.75},
		    {"geomean(t, use=wic)", 3.4641016151377544},
		    {"mean(t, use=poll|wic)", 6.75},
		    {"geomean(t, use=gone|wic)", 3.4641016151377544},
		    {"min(t)", 2},
		    {"max(t, n=2)", 8},
		    {"-2 * (at(t, use=wic, n=2) + sqrt(4)) ^ 2", -32}};
	static const struct {
		const char *text, *message;
		int code;
	} bad[] = {{"at(t, use=wic)", "2 configurations match: give more factors", LOOM_EINVAL},
		   {"at(tt, use=wic, n=1)", "no metric 'tt'", LOOM_EINVAL},
		   {"at(t, use=wik, n=1)", "has no value 'wik'; did you mean 'wic'", LOOM_EUNAVAIL},
		   {"t", "a function such as at(METRIC", LOOM_EINVAL},
		   {"at(t, use=wic, n=1", "a ')' is missing", LOOM_EINVAL},
		   {"at()", "write at(METRIC, FACTOR=VALUE, ...)", LOOM_EINVAL},
		   {"at(use=wic)", "write at(METRIC, FACTOR=VALUE, ...)", LOOM_EINVAL},
		   {"median(t)", "no such function", LOOM_EINVAL},
		   {"at(t, use=wic, n=1) at(t)", "an operator is missing", LOOM_EINVAL},
		   {"at(t, use=wic, n=1) / (1 - 1)", "no finite value", LOOM_EINVAL}};
	struct loaded l;
	struct loom_error err;
	double v;
	load(&l, sweep);
	for (size_t i = 0; i < LOOM__COUNT(good); i++) {
		CU_ASSERT_EQUAL(value_of(&l, good[i].text, &v, &err), 0);
		CU_ASSERT_DOUBLE_EQUAL(v, good[i].value, 1e-9);
	}
	for (size_t i = 0; i < LOOM__COUNT(bad); i++) {
		REFUSED(value_of(&l, bad[i].text, &v, &err), bad[i].code, err, bad[i].message);
		CU_ASSERT(isnan(v));
	}
	unload(&l);
}

static const struct loom__lines_point *point(const struct loom__lines *l, const char *line, const char *x)
{
	for (size_t i = 0; i < l->points; i++)
		if (!strcmp(l->line[l->point[i].line], line) && !strcmp(l->x[l->point[i].at], x))
			return &l->point[i];
	CU_FAIL_FATAL("no such point");
	return NULL;
}

/* A plot shows the paper's value at each point that is the subject of a claim. */
TEST(marks)
{
	struct loaded l;
	struct loom__report_settings s;
	struct loom__lines lines;
	struct loom_error err = {0};
	load(&l, sweep);
	CU_ASSERT_EQUAL_FATAL(loom__report_settings(&l.view, "t", NULL, &s, &err), 0);
	s.plots = 1u << LOOM__PLOT_BARS;
	CU_ASSERT_EQUAL_FATAL(loom__report_lines(&l.view, "w.n", "sync.use", NULL, &s, &err), 0);
	loom__figure_marks(loom__json_object(l.view.head, "paper"), &l.view, &s);
	CU_ASSERT_EQUAL(s.marks, 3); /* claim d, which is a sum, has no mark */
	loom__lines_create(&l.view, &s, s.metric[0], &lines);
	CU_ASSERT(point(&lines, "wic", "2")->paper_low == 3 && point(&lines, "wic", "2")->paper_high == 5);
	CU_ASSERT(isnan(point(&lines, "poll", "2")->paper_low) && isnan(point(&lines, "wic", "1")->paper_low));
	loom__lines_free(&lines);
	s.show = LOOM__SHOW_RATIO;
	CU_ASSERT_EQUAL_FATAL(loom__report_mean(&l.view, "w.n", &s, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__report_base(&l.view, "poll", &s, &err), 0);
	loom__lines_create(&l.view, &s, s.metric[0], &lines);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "1")->median, 6 / 11.0, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "1")->paper_low, 0.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "2")->paper_high, 0.75,
			       1e-12); /* from the claim 1 - a / b >= 0.25 */
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "poll", "2")->median, 1, 1e-12);
	CU_ASSERT(isnan(point(&lines, "poll", "2")->paper_low));
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "geomean")->median, sqrt(6 / 11.0 * 2 / 8.0), 1e-12);
	loom__lines_free(&lines);
	s.show = LOOM__SHOW_SPEEDUP; /* the speed-up is the inverse of the ratio of two times */
	loom__lines_create(&l.view, &s, s.metric[0], &lines);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "1")->median, 11 / 6.0, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "1")->paper_low, 1 / 0.6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(point(&lines, "wic", "1")->paper_high, 2, 1e-12);
	loom__lines_free(&lines);
	REFUSED(loom__report_base(&l.view, "pol", &s, &err), LOOM_EINVAL, err, "did you mean 'poll'");
	REFUSED(loom__report_mean(&l.view, "w.m", &s, &err), LOOM_EINVAL, err, "w.n");
	unload(&l);
}

/* A Pareto front can be drawn over ratios to a base, and over geometric means of the levels of a factor. */
TEST(relative)
{
	struct loaded l;
	struct loom__view r;
	struct loom__report_settings s;
	struct loom_error err = {0};
	load(&l, sweep);
	CU_ASSERT_EQUAL_FATAL(loom__report_settings(&l.view, "t", "t,u", &s, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__report_lines(&l.view, "w.n", "sync.use", NULL, &s, &err), 0);
	CU_ASSERT_EQUAL(loom__view_relative(&l.view, &s, &r), 0);
	CU_ASSERT_EQUAL_FATAL(loom__report_mean(&l.view, "w.n", &s, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__view_relative(&l.view, &s, &r), 1);
	CU_ASSERT_EQUAL_FATAL(r.variants, 2);
	CU_ASSERT_STRING_EQUAL(r.variant[1].label, "wic");
	CU_ASSERT_DOUBLE_EQUAL(r.variant[1].series[0].median.at, sqrt(12), 1e-12);
	loom__view_free(&r);
	CU_ASSERT_EQUAL_FATAL(loom__report_base(&l.view, "poll", &s, &err), 0);
	for (s.show = LOOM__SHOW_RATIO; s.show <= LOOM__SHOW_SPEEDUP; s.show++) {
		struct loom__text svg = {0}, table = {0};
		double ratio = sqrt(6 / 11.0 * 2 / 8.0);
		CU_ASSERT_EQUAL_FATAL(loom__view_relative(&l.view, &s, &r), 1);
		CU_ASSERT_DOUBLE_EQUAL(r.variant[0].series[0].median.at, 1, 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(r.variant[1].series[0].median.at, s.show == LOOM__SHOW_RATIO ? ratio : 1 / ratio,
				       1e-12);
		CU_ASSERT_STRING_EQUAL(r.metric[0].name, "t over poll");
		CU_ASSERT_EQUAL(r.metric[0].better, s.show == LOOM__SHOW_RATIO ? LOOM_BETTER_LESS : LOOM_BETTER_MORE);
		loom__view_free(&r);
		s.plots = 1u << LOOM__PLOT_PARETO;
		loom__report_svg(&svg, &l.view, &s);
		CU_ASSERT_PTR_NOT_NULL(strstr(svg.at, "t over poll"));
		loom__table_sweep(&l.view, &s, &table);
		CU_ASSERT_PTR_NOT_NULL(strstr(table.at, "Pareto front of t over poll"));
		loom__text_free(&svg);
		loom__text_free(&table);
	}
	unload(&l);
}

/* Every picture of a figure has its title, its caption and only literal colours. */
TEST(pictures)
{
	struct loaded l;
	struct loom__report_settings s;
	struct loom_error err = {0};
	load(&l, sweep);
	for (int plot = LOOM__PLOT_LINES; plot <= LOOM__PLOT_HEAT; plot++)
		for (int column = 0; column < 2; column++) {
			struct loom__text svg = {0}, page = {0};
			CU_ASSERT_EQUAL_FATAL(loom__report_settings(&l.view, "t", NULL, &s, &err), 0);
			s.plots = 1u << plot;
			s.width = column ? LOOM__WIDTH_COLUMN : LOOM__WIDTH_PAGE;
			CU_ASSERT_EQUAL_FATAL(loom__report_lines(&l.view, "w.n", "sync.use", NULL, &s, &err), 0);
			loom__figure_marks(loom__json_object(l.view.head, "paper"), &l.view, &s);
			loom__report_svg(&svg, &l.view, &s);
			CU_ASSERT_PTR_NULL(strstr(svg.at, "var("));
			CU_ASSERT_PTR_NULL(strstr(svg.at, "prefers-color-scheme"));
			CU_ASSERT_PTR_NOT_NULL(strstr(svg.at, "<title>wic, figure 14</title>"));
			CU_ASSERT_PTR_NOT_NULL(strstr(svg.at, "What it shows. Unlike the paper: It is smaller."));
			CU_ASSERT(!column == !strstr(svg.at, "width=\"84mm\""));
			CU_ASSERT_PTR_NOT_NULL(
			    strstr(svg.at, plot == LOOM__PLOT_HEAT ? ">(4)</text>" : "class=\"claim\""));
			loom__report_html(&page, &l.view, &s);
			CU_ASSERT_PTR_NOT_NULL(strstr(page.at, "What it shows."));
			loom__text_free(&svg);
			loom__text_free(&page);
		}
	unload(&l);
}

#define FIVE(id, use, n, a, b, c, d, e) THREE(id, use, n, a, b, c) SAMPLE(id, use, n, 3, d) SAMPLE(id, use, n, 4, e)

/* The interval is that of the bootstrap. The same rounds are drawn for all configurations, so the ratio of two that vary
 * together varies less than either. */
TEST(intervals)
{
	struct loaded l;
	struct loom__claim_value v;
	struct loom_error err;
	load(&l, HEAD FIVE("p1", "poll", "1", 10, 11, 12, 13, 14) FIVE("w1", "wic", "1", 5, 6, 7, 8, 9)
		     SAMPLE("p2", "poll", "2", 0, 4));
	CU_ASSERT_EQUAL_FATAL(interval_of(&l, "at(t, use=poll, n=1)", &v, &err), 0);
	CU_ASSERT(v.at == 12 && v.low >= 10 && v.low < 12 && v.high > 12 && v.high <= 14);
	CU_ASSERT_EQUAL(v.samples, 5);
	struct loom__claim_value again;
	CU_ASSERT_EQUAL_FATAL(interval_of(&l, "at(t, use=poll, n=1)", &again, &err), 0);
	CU_ASSERT(again.low == v.low && again.high == v.high);
	CU_ASSERT_EQUAL_FATAL(interval_of(&l, "at(t, use=poll, n=1) - at(t, use=poll, n=1)", &v, &err), 0);
	CU_ASSERT(v.low == 0 && v.high == 0);
	CU_ASSERT_EQUAL_FATAL(interval_of(&l, "at(t, use=wic, n=1) / at(t, use=poll, n=1)", &v, &err), 0);
	CU_ASSERT(v.low < 7 / 12.0 && v.low >= 5 / 10.0 && v.high > 7 / 12.0 && v.high <= 9 / 14.0);
	CU_ASSERT_EQUAL_FATAL(interval_of(&l, "geomean(t, use=poll)", &v, &err), 0);
	CU_ASSERT_EQUAL(v.samples, 1); /* those of the configuration that has the fewest */
	unload(&l);
	load(&l,
	     HEAD "{\"configuration\":\"a\",\"values\":{\"sync.use\":\"wic\",\"w.n\":\"1\"},\"failed\":\"no GPU\"}\n");
	REFUSED(interval_of(&l, "at(t, use=wic, n=1)", &v, &err), LOOM_EUNAVAIL, err, "no GPU");
	unload(&l);
}

/* The ninth series of a plot has the colour of the first, and another shape. */
TEST(ninth_series)
{
	struct loom__text first = {0}, ninth = {0};
	loom__svg_mark(&first, 0, "fill", 5, 5, 4, NULL);
	loom__svg_mark(&ninth, LOOM__SERIES, "fill", 5, 5, 4, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(first.at, "<circle class=\"fill s0\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(ninth.at, "<path class=\"fill s0\""));
	loom__text_free(&first);
	loom__text_free(&ninth);
}

/* A figure without a result was not run yet, or cannot be had because the machines at hand lack something. A result
 * decides otherwise. */
TEST(states)
{
	struct loom__claim claim = {.name = "a"};
	struct loom__figure f = {.lacks = "", .claim = &claim, .claims = 1};
	struct loom__paper_claim judged = {.claim = &claim, .verdict = LOOM__CLAIM_NOT_RUN};
	struct loom__paper_row r = {.figure = &f, .claim = &judged};
	CU_ASSERT_EQUAL(loom__paper_state(&r), LOOM__PAPER_NOT_RUN);
	f.lacks = "no counters";
	CU_ASSERT_EQUAL(loom__paper_state(&r), LOOM__PAPER_NOT_HERE);
	static const struct {
		enum loom__claim_verdict verdict[2];
		enum loom__paper_state state;
	} of[] = {{{LOOM__CLAIM_LARGER, LOOM__CLAIM_UNDECIDED}, LOOM__PAPER_DIFFERENT},
		  {{LOOM__CLAIM_SAME, LOOM__CLAIM_UNDECIDED}, LOOM__PAPER_UNDECIDED},
		  {{LOOM__CLAIM_SAME, LOOM__CLAIM_NOT_ALIKE}, LOOM__PAPER_REPRODUCED},
		  {{LOOM__CLAIM_NOT_ALIKE, LOOM__CLAIM_NOT_ALIKE}, LOOM__PAPER_NOT_ALIKE}};
	for (size_t i = 0; i < LOOM__COUNT(of); i++) {
		struct loom__paper_claim two[2] = {{.verdict = of[i].verdict[0]}, {.verdict = of[i].verdict[1]}};
		f.claims = 2;
		r.claim = two;
		CU_ASSERT_EQUAL(loom__paper_state(&r), of[i].state);
	}
}

#define FACTS(busy)                                                                                                    \
	"{\"cpu_busy_s\":" #busy ",\"cpu_idle_s\":0,\"cpu_steal_s\":0,\"own_cpu_s\":0,\"uptime_s\":" #busy "}"
#define ON(device)                                                                                                     \
	HEAD "{\"about\":{\"config\":{},\"plugins\":[],\"devices\":[{\"name\":\"" device "\"}],"                       \
	     "\"environment\":{\"before\":" FACTS(1) "}}}\n" THREE(                                                    \
		 "p1", "poll", "1", 10, 12,                                                                            \
		 11) "{\"ended\":\"2026-11-26T08:00:00Z\",\"status\":\"ok\",\"environment\":" FACTS(100) "}\n"

/* The table of a sweep reports that other programs used the machine. It does not if the sweep ran in virtual time. */
TEST(not_quiet)
{
	static const char *const device[] = {ON("cpu:0"), ON("sim:0")};
	for (size_t i = 0; i < LOOM__COUNT(device); i++) {
		struct loaded l;
		struct loom__report_settings s;
		struct loom_error err;
		struct loom__text table = {0}, page = {0};
		load(&l, device[i]);
		CU_ASSERT_EQUAL_FATAL(loom__report_settings(&l.view, "t", NULL, &s, &err), 0);
		loom__table_sweep(&l.view, &s, &table);
		loom__report_html(&page, &l.view, &s);
		CU_ASSERT(!strstr(table.at, "not quiet: other programs used 100 %") == (i == 1));
		CU_ASSERT(!strstr(page.at, "other programs used 100 %") == (i == 1));
		struct loom__claim_value v; /* in virtual time, a value has no noise */
		CU_ASSERT_EQUAL(interval_of(&l, "at(t, use=poll, n=1)", &v, &err), 0);
		CU_ASSERT_EQUAL(v.samples, i == 1 ? SIZE_MAX : 3);
		CU_ASSERT((v.low == v.high) == (i == 1));
		loom__text_free(&table);
		loom__text_free(&page);
		unload(&l);
	}
}

TEST_MAIN("papers", 60)
