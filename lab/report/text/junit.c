/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JUnit XML, which CI systems show as test results. A rule of --fail-on is a test case that fails as the exit code
 * of compare does. A comparison is a test case that never fails, because only a rule says what is a failure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text/markup.h"
#include "report/report.h"
#include "report/text/table.h"
#include "facts/must.h"

#define add loom__markup_add

struct suite {
	struct loom__text cases;
	size_t tests, failures, errors, skipped;
};

/* Adds a test case. kind: "failure", "error", "skipped", or NULL if it passed. `message` and `text` may be "". */
static void add_case(struct suite *s, const char *class, const char *name, double seconds, const char *kind,
		     const char *message, const char *text)
{
	struct loom__text *out = &s->cases;
	s->tests++;
	add(out, "    <testcase classname=\"gpuloom.%s\" name=\"%s\"", class, name);
	if (isfinite(seconds) && seconds >= 0) {
		loom__text_add(out, " time=\"");
		loom__text_double(out, seconds);
		loom__text_add(out, "\"");
	}
	if (!kind && !*text) {
		loom__text_add(out, "/>\n");
		return;
	}
	loom__text_add(out, ">\n");
	if (kind) {
		s->failures += !strcmp(kind, "failure");
		s->errors += !strcmp(kind, "error");
		s->skipped += !strcmp(kind, "skipped");
		loom__text_add(out, "      <%s", kind);
		if (*kind != 's') /* <skipped> has no type */
			add(out, " type=\"%s\"", class);
		add(out, " message=\"%s\"/>\n", message);
	}
	if (*text)
		add(out, "      <system-out>%s</system-out>\n", text);
	loom__text_add(out, "    </testcase>\n");
}

/* Returns the time of all samples of a variant, or NaN. */
static double time_of(const struct loom__view *view, const struct loom__variant *v)
{
	size_t m = loom__names_find(&view->metric_names, "seconds");
	double sum = 0;
	if (m == LOOM__NO_NAME || !v->series || !v->series[m].n || strcmp(view->metric[m].unit, "s"))
		return NAN;
	for (size_t i = 0; i < v->series[m].n; i++)
		sum += v->series[m].sorted[i];
	return sum;
}

static void add_medians(struct loom__text *out, const struct loom__view *view, const struct loom__variant *v)
{
	for (size_t m = 0; v->series && m < view->metrics; m++)
		if (v->series[m].n && view->metric[m].better) {
			char text[160];
			loom__text_add(out, "%s%s %s (median of %zu)", out->length ? "\n" : "", view->metric[m].name,
				       loom__figure(text, v->series[m].median.at, view->metric[m].unit), v->series[m].n);
		}
}

/* Adds a test case for a run, a configuration, or a variant that failed. */
static void add_variant(struct suite *s, const struct loom__view *view, const struct loom__variant *v)
{
	struct loom__text text = {0};
	const char *kind = !strcmp(v->status, "ok")	   ? NULL
			   : !strcmp(v->status, "skipped") ? "skipped"
			   : !strcmp(v->status, "wrong")   ? "failure"
							   : "error";
	add_medians(&text, view, v);
	add_case(s, "run", v->name, time_of(view, v), kind, *v->note ? v->note : v->status, loom__must_text(&text));
	loom__text_free(&text);
}

static void add_comparison(struct suite *s, const struct loom__view *view, const struct loom__compared *c)
{
	struct loom__text name = {0}, text = {0};
	char range[LOOM__EFFECT_RANGE], p[32];
	loom__text_add(&name, "%s: %s", c->name, view->variant[c->variant].label);
	loom__text_add(&text, "%s: %s", c->word, LOOM__GAIN(c->effect, c->better));
	if (isfinite(c->effect))
		loom__text_add(&text, " (%s), p %s", loom__effect_range(range, c), loom__p_value(p, c->p_holm));
	if (*c->notes)
		loom__text_add(&text, ", %s", c->notes);
	if (c->verdict == LOOM__V_INCONCLUSIVE)
		add_case(s, "compare", loom__must_text(&name), NAN, "skipped", loom__must_text(&text), "");
	else
		add_case(s, "compare", loom__must_text(&name), NAN, NULL, "", loom__must_text(&text));
	loom__text_free(&name);
	loom__text_free(&text);
}

static void add_rule(struct suite *s, const cJSON *rule)
{
	const char *kind = loom__json_true(rule, "failed")	? "failure"
			   : loom__json_true(rule, "undecided") ? "skipped"
								: NULL;
	const char *text = loom__json_text(rule, "text");
	add_case(s, "gate", loom__json_text(rule, "rule"), NAN, kind, text, kind ? "" : text);
}

void loom__report_junit(struct loom__text *out, const struct loom__view *view)
{
	struct suite s = {0};
	const cJSON *rule;
	const char *status = loom__json_text(view->head, "status"), *title = *view->title ? view->title : "gpuloom";
	const char *error = loom__json_text(loom__json_object(view->head, "error"), "text");
	double seconds = loom__json_number(loom__json_object(view->head, "design"), "seconds");
	int compares = view->kind == LOOM__DOC_COMPARE && view->comparisons;
	cJSON_ArrayForEach(rule, loom__json_list(view->head, "gate"))
	{
		add_rule(&s, rule);
	}
	for (size_t i = 0; i < view->comparisons; i++)
		add_comparison(&s, view, &view->compared[i]);
	for (size_t i = 0; i < view->variants; i++)
		if (!compares || strcmp(view->variant[i].status, "ok"))
			add_variant(&s, view, &view->variant[i]);
	if (view->kind == LOOM__DOC_COMPARE && *status && strcmp(status, "ok"))
		add_case(&s, "run", title, NAN, "error", *error ? error : status, "");
	loom__text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	for (int i = 0; i < 2; i++) {
		add(out, "%s<%s name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", i ? "  " : "",
		    i ? "testsuite" : "testsuites", i ? title : "gpuloom", s.tests, s.failures, s.errors);
		if (i)
			loom__text_add(out, " skipped=\"%zu\"", s.skipped);
		if (isfinite(seconds) && seconds >= 0) {
			loom__text_add(out, " time=\"");
			loom__text_double(out, seconds);
			loom__text_add(out, "\"");
		}
		loom__text_add(out, ">\n");
	}
	loom__markup_move(out, &s.cases);
	loom__text_add(out, "  </testsuite>\n</testsuites>\n");
}
