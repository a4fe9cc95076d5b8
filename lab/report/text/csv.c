/* SPDX-License-Identifier: Apache-2.0 */
/* Writes comma-separated values in long form: one row per sample. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "report/text/rows.h"
#include "facts/must.h"

/* Returns 1 if a spreadsheet would execute the text as a formula. A number with a sign is no formula. */
static int like_formula(const char *text)
{
	const char *end;
	double v;
	if (!*text || !strchr("=+-@", *text))
		return 0;
	return loom__read_double(text, &end, &v) != 0 || *end;
}

void loom__csv_field(struct loom__text *out, const char *text, size_t most)
{
	struct loom__text line = {0};
	loom__put_line(&line, text, most);
	text = loom__must_text(&line);
	const char *guard = like_formula(text) ? "'" : "";
	if (!strpbrk(text, ",\"") && *text != ' ' && !*guard) {
		loom__text_add(out, "%s", text);
	} else {
		loom__text_add(out, "\"%s", guard);
		for (const char *s = text; *s; s++)
			loom__text_put(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
		loom__text_add(out, "\"");
	}
	loom__text_free(&line);
}

void loom__csv_number(struct loom__text *out, double v)
{
	if (isfinite(v))
		loom__text_double(out, v);
}

void loom__csv_metric(struct loom__text *name, const struct loom__view_metric *m)
{
	char suffix[64] = "";
	size_t n = 0;
	for (const char *u = m->unit; *u && n + 6 < sizeof(suffix); u++) {
		if (*u == '/') {
			memcpy(suffix + n, "_per_", 5);
			n += 5;
		} else {
			suffix[n++] = isalnum((unsigned char)*u) && (unsigned char)*u < 128 ? *u : '_';
		}
	}
	suffix[n] = 0;
	/* The name of some metrics already ends in the unit: tasks_per_s, exit_ns, seconds. */
	size_t length = strlen(m->name), tail = strlen(suffix);
	const char *rate = strstr(suffix, "_per_");
	int said = !tail || (length >= tail && !strcmp(m->name + length - tail, suffix)) ||
		   (rate && length >= strlen(rate) && !strcmp(m->name + length - strlen(rate), rate)) ||
		   (!strcmp(suffix, "s") && !strcmp(m->name, "seconds"));
	loom__text_add(name, said ? "%s" : "%s_%s", m->name, suffix);
}

/* Appends the name of a column for a factor or a metric (`kind`). Documents may have a metric with the name of a
 * factor, or a factor that is called `sample`. The columns of gpuloom come first and keep their names, and then those
 * of the factors; a later one with the same name gets the kind in front of it. */
static void add_column(struct loom__text *out, struct loom__arena *arena, struct loom__names *taken, const char *kind,
		       const char *name)
{
	struct loom__text own = {0}, longer = {0};
	loom__text_add(&own, "%s", name);
	while (loom__names_find(taken, loom__must_text(&own)) != LOOM__NO_NAME) {
		loom__text_add(&longer, "%s.%s", kind, own.at);
		loom__text_free(&own);
		own = longer;
		longer = (struct loom__text){0};
	}
	loom__names_add(arena, taken, own.at);
	loom__csv_add(out, ",%s", own.at);
	loom__text_free(&own);
}

void loom__report_csv(struct loom__text *out, const struct loom__view *view)
{
	static const char *const column[] = {"variant", "sample", "order", "start_ns"};
	struct loom__arena arena = {0};
	struct loom__names taken = {0};
	for (size_t i = 0; i < LOOM__COUNT(column); i++)
		loom__names_add(&arena, &taken, column[i]);
	loom__text_add(out, "variant");
	for (size_t f = 0; f < view->factors; f++)
		add_column(out, &arena, &taken, "factor", view->factor[f]);
	loom__text_add(out, ",sample,order,start_ns");
	for (size_t m = 0; m < view->metrics; m++) {
		struct loom__text name = {0};
		loom__csv_metric(&name, &view->metric[m]);
		add_column(out, &arena, &taken, "metric", loom__must_text(&name));
		loom__text_free(&name);
	}
	loom__text_add(out, "\n");
	loom__arena_free(&arena);
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		for (size_t row = 0; row < v->rows; row++) {
			loom__csv_field(out, v->label, SIZE_MAX);
			for (size_t f = 0; f < view->factors; f++)
				loom__csv_add(out, ",%s", v->level && v->level[f] ? v->level[f] : "");
			loom__text_add(out, ",%zu,", row);
			loom__csv_number(out, v->order[row]);
			loom__text_add(out, ",");
			loom__csv_number(out, v->start_ns[row]);
			for (size_t m = 0; m < view->metrics; m++) {
				loom__text_add(out, ",");
				loom__csv_number(out, loom__view_value(v, m, row));
			}
			loom__text_add(out, "\n");
		}
	}
}
