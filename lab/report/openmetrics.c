/* SPDX-License-Identifier: Apache-2.0 */
/* Writes OpenMetrics text, for example for the textfile collector of Prometheus. Samples have no time stamps, which that
 * collector rejects. The label `variant` is a number, so that variants with equal names are different series. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "facts/must.h"
#include "facts/text.h"

/* Appends a text as the value of a label. */
static void put_label(struct loom__text *out, const char *text, size_t most)
{
	struct loom__text line = {0};
	loom__put_line(&line, text, most);
	for (const char *s = loom__must_text(&line); *s; s++) {
		if (*s == '\\' || *s == '"')
			loom__text_put(out, "\\", 1);
		loom__text_put(out, s, 1);
	}
	loom__text_free(&line);
}

#define add(out, ...) loom__text_with(out, put_label, __VA_ARGS__)

static void family(struct loom__text *out, const char *name, const char *type, const char *unit, const char *help)
{
	loom__text_add(out, "# TYPE gpuloom_%s %s\n", name, type);
	if (*unit)
		loom__text_add(out, "# UNIT gpuloom_%s %s\n", name, unit);
	loom__text_add(out, "# HELP gpuloom_%s %s\n", name, help);
}

static void value(struct loom__text *out, double v)
{
	loom__text_add(out, " ");
	loom__text_double(out, v);
	loom__text_add(out, "\n");
}

enum which { MEDIAN, LOW, HIGH, SAMPLES };

static double of_series(const struct loom__series *s, enum which which)
{
	switch (which) {
	case MEDIAN:
		return s->median.at;
	case LOW:
		return s->median.open & LOOM__STATS_OPEN_LOW ? NAN : s->median.low;
	case HIGH:
		return s->median.open & LOOM__STATS_OPEN_HIGH ? NAN : s->median.high;
	default:
		return (double)s->n;
	}
}

static void medians(struct loom__text *out, const struct loom__view *view, enum which which)
{
	static const char *const name[] = {"median", "median_low", "median_high", "samples"};
	static const char *const help[] = {"Median of the metric, in the unit of the label.",
					   "Lower end of the 95 % interval of the median.",
					   "Upper end of the 95 % interval of the median.", "Number of samples."};
	family(out, name[which], "gauge", "", help[which]);
	for (size_t v = 0; v < view->variants; v++)
		for (size_t m = 0; view->variant[v].series && m < view->metrics; m++) {
			const struct loom__series *s = &view->variant[v].series[m];
			double x = s->n ? of_series(s, which) : NAN;
			if (!isfinite(x))
				continue;
			add(out, "gpuloom_%s{metric=\"%s\",unit=\"%s\",better=\"%s\",variant=\"%zu\",name=\"%s\"}", name[which],
			    view->metric[m].name, view->metric[m].unit, loom__better_name(view->metric[m].better), v,
			    view->variant[v].label);
			value(out, x);
		}
}

static void states(struct loom__text *out, const struct loom__view *view)
{
	family(out, "ok", "gauge", "", "1 if the status of the variant is ok.");
	for (size_t v = 0; v < view->variants; v++) {
		add(out, "gpuloom_ok{variant=\"%zu\",name=\"%s\",status=\"%s\"}", v, view->variant[v].label,
		    view->variant[v].status);
		value(out, !strcmp(view->variant[v].status, "ok"));
	}
}

static void labels(struct loom__text *out, const struct loom__view *view, const char *name, size_t c)
{
	const struct loom__compared *one = &view->compared[c];
	add(out, "gpuloom_%s{comparison=\"%zu\",metric=\"%s\",variant=\"%zu\",name=\"%s\"", name, c, one->name, one->variant,
	    view->variant[one->variant].label);
}

static void effects(struct loom__text *out, const struct loom__view *view)
{
	static const char *const name[] = {"effect_ratio", "effect_low_ratio", "effect_high_ratio", "p_value"};
	static const char *const help[] = {"Variant divided by baseline.", "Lower end of the interval of the effect.",
					   "Upper end of the interval of the effect.", "p, adjusted by Holm's rule."};
	for (size_t k = 0; k < LOOM__COUNT(name); k++) {
		family(out, name[k], "gauge", k < 3 ? "ratio" : "", help[k]);
		for (size_t c = 0; c < view->comparisons; c++) {
			const struct loom__compared *one = &view->compared[c];
			double x = k == 0 ? one->effect : k == 1 ? one->low : k == 2 ? one->high : one->p_holm;
			if (!isfinite(x))
				continue;
			labels(out, view, name[k], c);
			loom__text_add(out, "}");
			value(out, x);
		}
	}
}

static void verdicts(struct loom__text *out, const struct loom__view *view)
{
	static const char *const word[] = {"FASTER", "SLOWER", "EQUIVALENT", "TRIVIAL", "INCONCLUSIVE"};
	family(out, "verdict", "stateset", "", "The verdict of the comparison.");
	for (size_t c = 0; c < view->comparisons; c++)
		for (size_t w = 0; w < LOOM__COUNT(word); w++) {
			labels(out, view, "verdict", c);
			loom__text_add(out, ",gpuloom_verdict=\"%s\"}", word[w]);
			value(out, view->compared[c].verdict == (enum loom__verdict)w);
		}
}

static void gates(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *rule;
	size_t n = 0;
	family(out, "gate_failed", "gauge", "", "1 if the rule of --fail-on failed.");
	cJSON_ArrayForEach(rule, loom__json_list(view->head, "gate"))
	{
		add(out, "gpuloom_gate_failed{rule=\"%s\",number=\"%zu\"}", loom__json_text(rule, "rule"), n++);
		value(out, loom__json_true(rule, "failed"));
	}
}

void loom__report_openmetrics(struct loom__text *out, const struct loom__view *view)
{
	for (enum which w = MEDIAN; w <= SAMPLES; w++)
		medians(out, view, w);
	states(out, view);
	effects(out, view);
	verdicts(out, view);
	gates(out, view);
	loom__text_add(out, "# EOF\n");
}
