/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a page about the configuration: every option in effect, and the origin of its value. */
#include <string.h>

#include "report/page/html.h"
#include "facts/must.h"

#define MOST_VARIANTS 64

/* Returns the options of a variant. The configurations of a sweep share the options in its `about` line. */
static const cJSON *conf_of(const struct loom__view *view, size_t i)
{
	const cJSON *result = view->variant[i].result;
	return loom__json_object(result ? result : view->head, "config");
}

/* Appends the distinct values that the variants have for an option. */
static void conf_values(struct loom__text *out, const struct loom__view *view, const char *key)
{
	const char *seen[4];
	size_t n = 0;
	for (size_t i = 0; i < view->variants && i < MOST_VARIANTS; i++) {
		const cJSON *o = loom__json_object(conf_of(view, i), key);
		const char *value = loom__json_text(o, *loom__json_text(o, "written") ? "written" : "value");
		size_t k = 0;
		while (o && k < n && strcmp(seen[k], value))
			k++;
		if (!o || k < n)
			continue;
		loom__markup_add(out, n ? "<br><code>%s</code>" : "<code>%s</code>", value);
		if (n == LOOM__COUNT(seen))
			return;
		seen[n++] = value;
	}
}

/* Appends a table of options. If `defaults` is 1, it has the options left at their defaults, else the options that were
 * set. Without such options, appends nothing. */
static void conf_table(struct loom__text *out, const struct loom__view *view, int defaults)
{
	struct loom__arena arena = {0};
	struct loom__names done = {0};
	struct loom__grid g = {0};
	struct loom__text values = {0};
	const cJSON *o;
	loom__grid_columns(&g, "option|value|from|default");
	for (size_t i = 0; i < view->variants && i < MOST_VARIANTS; i++)
		cJSON_ArrayForEach(o, conf_of(view, i))
		{
			size_t before = done.count;
			int given = strcmp(loom__json_text(o, "source"), "default") != 0;
			if (!o->string || given == defaults || before >= 1000)
				continue;
			loom__names_add(&arena, &done, o->string);
			if (done.count == before)
				continue;
			loom__grid_cell(&g, LOOM__CELL_CODE, "%s", o->string);
			conf_values(&values, view, o->string);
			loom__grid_markup(&g, &values);
			loom__grid_cell(&g, 0, "%s %s", loom__json_text(o, "source"), loom__json_text(o, "at"));
			loom__grid_cell(&g, LOOM__CELL_SOFT, "%s", loom__json_text(o, "default"));
		}
	loom__grid_html(&g, out, "wrap", defaults ? "Defaults" : "Options that were set");
	loom__arena_free(&arena);
}

void loom__html_conf(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text body = {0}, defaults = {0};
	conf_table(&body, view, 0);
	conf_table(&defaults, view, 1);
	if (*loom__must_text(&defaults))
		loom__text_add(
		    &body, "<details class=\"print\"><summary>Options left at their defaults</summary>\n%s</details>\n",
		    defaults.at);
	loom__text_free(&defaults);
	loom__html_section_of(out, "conf", "Configuration",
			      "Every option in effect and the origin of its value. The variants differ in "
			      "options with several values.",
			      &body);
}
