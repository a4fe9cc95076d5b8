/* SPDX-License-Identifier: Apache-2.0 */
/* The page's part on the configuration: every option in force and where its value came from. */
#include <string.h>

#include "report/html.h"
#include "facts/must.h"

#define MOST_VARIANTS 64

/* An option of a variant; the cells of a sweep share the conf in its first line. */
static const cJSON *conf_of(const struct loom__view *view, size_t i)
{
	const cJSON *result = view->variant[i].result;
	return loom__json_object(result ? result : view->head, "config");
}

/* The distinct values that the variants have for an option. */
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

/* A table of the options that were left at their defaults, or of the others; nothing without a row. */
static void conf_table(struct loom__text *out, const struct loom__view *view, int defaults)
{
	struct loom__pool pool = {0};
	struct loom__names done = {0};
	const cJSON *o;
	for (size_t i = 0; i < view->variants && i < MOST_VARIANTS; i++)
		cJSON_ArrayForEach(o, conf_of(view, i))
		{
			size_t before = done.count;
			int given = strcmp(loom__json_text(o, "source"), "default") != 0;
			if (!o->string || given == defaults || before >= 1000)
				continue;
			loom__names_add(&pool, &done, o->string);
			if (done.count == before)
				continue;
			if (!before)
				loom__html_table(out, "wrap", defaults ? "Defaults" : "Options that were set",
						 "Option|Value|From|Default");
			loom__markup_add(out, "<tr><th scope=\"row\"><code>%s</code></th><td>", o->string);
			conf_values(out, view, o->string);
			loom__markup_add(out,
					 "</td><td>%s <span class=\"soft\">%s</span></td><td class=\"soft\">%s</td></tr>\n",
					 loom__json_text(o, "source"), loom__json_text(o, "at"),
					 loom__json_text(o, "default"));
		}
	if (done.count)
		loom__html_table_end(out);
	loom__pool_free(&pool);
}

void loom__html_conf(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text body = {0}, defaults = {0};
	conf_table(&body, view, 0);
	conf_table(&defaults, view, 1);
	if (*loom__must_text(&defaults))
		loom__text_add(&body,
			       "<details class=\"print\"><summary>Options left at their defaults</summary>\n%s</details>\n",
			       defaults.at);
	loom__text_free(&defaults);
	loom__html_section_of(out, "conf", "Configuration",
			      "Every option in force and where its value came from. An option with "
			      "several values is what the variants differ in.",
			      &body);
}
