/* SPDX-License-Identifier: Apache-2.0 */
/* For pull requests: the verdict first, then the figures, the rest folded away. */
#include <math.h>
#include <string.h>

#include "report/plot.h"
#include "report/report.h"
#include "report/table.h"
#include "facts/must.h"
#include "facts/text.h"

#define MOST_ROWS    60
#define MOST_COLUMNS 6

/* Text that stays text: no markup, no link, no mention of a person or an issue. */
static void put(struct loom__text *out, const char *text, size_t most)
{
	struct loom__text safe = {0};
	loom__markup_cut(&safe, text, most);
	for (const char *s = loom__must_text(&safe); *s; s++) {
		if (strchr("\\`*_{}[]|!~", *s))
			loom__text_add(out, "\\%c", *s);
		else if (*s == '@')
			loom__text_add(out, "&#64;");
		else if (*s == '#' && (s == safe.at || s[-1] != '&'))
			loom__text_add(out, "&#35;");
		else if (*s == ':' && s[1] == '/')
			loom__text_add(out, "&#58;");
		else if (*s == '\n' || *s == '\t')
			loom__text_add(out, " ");
		else
			loom__text_put(out, s, 1);
	}
	loom__text_free(&safe);
}

#define add(out, ...) loom__text_with(out, put, __VA_ARGS__)

/* The median as a cell. */
static void figure(struct loom__text *out, const struct loom__series *s, const char *unit)
{
	add(out, " | %s", s && s->n ? LOOM__FIGURE(s->median.at, unit) : "\xe2\x80\x93");
}

static void verdicts(struct loom__text *out, const struct loom__view *view)
{
	char p[32], range[80];
	if (!view->comparisons)
		return;
	loom__text_add(
	    out, "| variant | against | metric | verdict | change | 95 %% interval | p | blocks |\n"
		 "|---|---|---|---|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < view->comparisons && i < MOST_ROWS; i++) {
		const struct loom__compared *c = &view->compared[i];
		const char *sign = loom__verdict_sign[c->verdict];
		add(out, "| %s | %s | %s | **%s%s%s** | %s | %s | %s | ", view->variant[c->variant].label,
		    view->variant[c->baseline].label, c->name, sign, *sign ? " " : "", c->word,
		    LOOM__CHANGE(c->effect), loom__change_range(range, c->low, c->high, "open"),
		    loom__p_value(p, isnan(c->p_holm) ? c->p : c->p_holm));
		if (c->blocks >= 0 && c->blocks < 1e12)
			loom__text_add(out, "%.0f", c->blocks);
		loom__text_add(out, " |\n");
	}
	loom__text_add(out, "\n");
}

static void head(struct loom__text *out, const char *const *column, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(out, i ? " | %s" : "| %s", column[i]);
	loom__text_add(out, " |\n|");
	for (size_t i = 0; i < n; i++)
		loom__text_add(out, i ? "---:|" : "---|");
	loom__text_add(out, "\n");
}

/* Few variants: they are the columns and every metric a row. */
static void by_metric(struct loom__text *out, const struct loom__view *view)
{
	const char *column[MOST_COLUMNS + 1] = {"median of"};
	for (size_t i = 0; i < view->variants; i++)
		column[i + 1] = view->variant[i].label;
	head(out, column, view->variants + 1);
	for (size_t m = 0; m < view->metrics; m++) {
		if (!view->metric[m].shown)
			continue;
		add(out, "| %s", view->metric[m].name);
		for (size_t i = 0; i < view->variants; i++) {
			const struct loom__series *s = view->variant[i].series;
			figure(out, s ? &s[m] : NULL, view->metric[m].unit);
		}
		loom__text_add(out, " |\n");
	}
}

static void by_variant(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_wish *wish)
{
	const char *column[LOOM__REPORT_METRICS + 1] = {"cell"};
	for (size_t k = 0; k < wish->metrics; k++)
		column[k + 1] = view->metric[wish->metric[k]].name;
	head(out, column, wish->metrics + 1);
	size_t shown = 0, all = 0;
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (!v->rows || all++ >= MOST_ROWS)
			continue;
		shown++;
		add(out, "| %s", v->name);
		for (size_t k = 0; k < wish->metrics; k++)
			figure(out, &v->series[wish->metric[k]], view->metric[wish->metric[k]].unit);
		loom__text_add(out, " |\n");
	}
	if (all > shown)
		loom__text_add(out, "\n%zu of %zu cells.\n", shown, all);
}

static void not_run(struct loom__text *out, const struct loom__view *view)
{
	size_t n = 0;
	for (size_t i = 0; i < view->variants && n < MOST_ROWS; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (*v->note)
			add(out, n++ ? "- %s: %s: %s\n" : "\nNot run, or not to the end:\n\n- %s: %s: %s\n", v->name,
			    v->status, v->note);
	}
}

static void command(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *word, *list = loom__json_list(view->head, "command");
	const char *started = loom__json_text(view->head, "started");
	loom__text_add(out, "\n<sub>");
	cJSON_ArrayForEach(word, list)
	{
		add(out, "%s ", loom__json_string(word));
	}
	add(out, "%s%s</sub>\n", *started ? "\xc2\xb7 " : "", started);
}

void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_wish *wish)
{
	const char *status = loom__json_text(view->head, "status");
	const char *error = loom__json_text(loom__json_object(view->head, "error"), "text");
	add(out, "### %s\n\n", *view->title ? view->title : "gpuloom");
	if (*status && strcmp(status, "ok"))
		add(out, "**Did not end well: %s**\n\n", *error ? error : status);
	verdicts(out, view);
	if (!view->metrics)
		loom__text_add(out, "No sample was completed.\n");
	else if (view->variants <= MOST_COLUMNS && view->kind != LOOM__DOC_SWEEP)
		by_metric(out, view);
	else if (wish->metrics)
		by_variant(out, view, wish);
	not_run(out, view);
	command(out, view);
}
