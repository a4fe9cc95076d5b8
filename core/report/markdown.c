/* SPDX-License-Identifier: Apache-2.0 */
/* For pull requests: the verdict first, then the figures, the rest folded away. */
#include <math.h>
#include <string.h>

#include "report/markup.h"
#include "report/report.h"
#include "report/table.h"

#define MOST_ROWS    60
#define MOST_COLUMNS 6

/* Text that stays text: no markup, no link, no mention of a person or an issue. */
static void put(struct loom__text *out, const char *text)
{
	struct loom__text safe = {0};
	loom__markup_text(&safe, text);
	for (const char *s = safe.at ? safe.at : ""; *s; s++) {
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

static void figure(struct loom__text *out, double v, const char *unit)
{
	char name[40], text[160];
	strncat(strcpy(name, ""), unit, sizeof(name) - 1);
	if (isnan(v)) {
		loom__text_add(out, "\xe2\x80\x93");
	} else {
		loom__figure(v, name, text, sizeof(text));
		put(out, text);
	}
}

static void verdicts(struct loom__text *out, const struct loom__view *view)
{
	static const char *const sign[] = {"\xe2\x96\xb2 ", "\xe2\x96\xbc ", "\xe2\x96\xa0 ",
					   "\xe2\x97\x86 ", "\xe2\x97\x8b ", ""};
	char p[32];
	if (!view->comparisons)
		return;
	loom__text_add(
	    out, "| variant | against | metric | verdict | change | 95 %% interval | p | blocks |\n"
		 "|---|---|---|---|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < view->comparisons && i < MOST_ROWS; i++) {
		const struct loom__compared *c = &view->compared[i];
		loom__text_add(out, "| ");
		put(out, view->variant[c->variant].label);
		loom__text_add(out, " | ");
		put(out, view->variant[c->baseline].label);
		loom__text_add(out, " | ");
		put(out, c->name);
		loom__text_add(out, " | **%s", sign[c->verdict]);
		put(out, c->word);
		loom__text_add(out, "** | %s | ", LOOM__CHANGE(c->effect));
		loom__text_add(out, "%s", isnan(c->low) ? "open" : LOOM__CHANGE(c->low));
		loom__text_add(out, " \xe2\x80\xa6 %s",
			       isnan(c->high) ? "open" : LOOM__CHANGE(c->high));
		loom__text_add(out, " | ");
		put(out, loom__p_value(p, isnan(c->p_holm) ? c->p : c->p_holm));
		loom__text_add(out, " | ");
		if (c->blocks >= 0 && c->blocks < 1e12)
			loom__text_add(out, "%.0f", c->blocks);
		loom__text_add(out, " |\n");
	}
	loom__text_add(out, "\n");
}

static void head(struct loom__text *out, const char *const *column, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		loom__text_add(out, i ? " | " : "| ");
		put(out, column[i]);
	}
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
		loom__text_add(out, "| ");
		put(out, view->metric[m].name);
		for (size_t i = 0; i < view->variants; i++) {
			const struct loom__series *s = view->variant[i].series;
			loom__text_add(out, " | ");
			figure(out, s && s[m].n ? s[m].median.at : NAN, view->metric[m].unit);
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
		loom__text_add(out, "| ");
		put(out, v->name);
		for (size_t k = 0; k < wish->metrics; k++) {
			const struct loom__series *s = &v->series[wish->metric[k]];
			loom__text_add(out, " | ");
			figure(out, s->n ? s->median.at : NAN, view->metric[wish->metric[k]].unit);
		}
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
		if (!*v->note)
			continue;
		loom__text_add(out, n++ ? "- " : "\nNot run, or not to the end:\n\n- ");
		put(out, v->name);
		loom__text_add(out, ": ");
		put(out, v->status);
		loom__text_add(out, ": ");
		put(out, v->note);
		loom__text_add(out, "\n");
	}
}

static void command(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *word, *list = loom__json_list(view->head, "command");
	const char *started = loom__json_text(view->head, "started");
	loom__text_add(out, "\n<sub>");
	cJSON_ArrayForEach(word, list)
	{
		put(out, loom__json_string(word));
		loom__text_add(out, " ");
	}
	if (*started) {
		loom__text_add(out, "\xc2\xb7 ");
		put(out, started);
	}
	loom__text_add(out, "</sub>\n");
}

void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_wish *wish)
{
	const char *status = loom__json_text(view->head, "status");
	const char *error = loom__json_text(loom__json_object(view->head, "error"), "text");
	loom__text_add(out, "### ");
	put(out, *view->title ? view->title : "gpuloom");
	loom__text_add(out, "\n\n");
	if (*status && strcmp(status, "ok")) {
		loom__text_add(out, "**Did not end well: ");
		put(out, *error ? error : status);
		loom__text_add(out, "**\n\n");
	}
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
