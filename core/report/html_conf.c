/* SPDX-License-Identifier: Apache-2.0 */
/* The page's part on the configuration: every option in force and where its value came from. */
#include <string.h>

#include "report/html.h"

/* The conf of a variant; the cells of a sweep share the one in its first line. */
static const cJSON *conf_of(const struct loom__view *view, size_t i)
{
	const cJSON *result = view->variant[i].result;
	return loom__json_object(result ? result : view->head, "config");
}

static int is_default(const cJSON *o)
{
	return !strcmp(loom__json_text(o, "source"), "default");
}

/* The distinct values that the variants have for an option. */
static void conf_values(struct loom__text *out, const struct loom__view *view, const char *key)
{
	const char *seen[4];
	size_t n = 0;
	for (size_t i = 0; i < view->variants && i < 64; i++) {
		const cJSON *o = loom__json_object(conf_of(view, i), key);
		const char *written = loom__json_text(o, "written"),
			   *value = loom__json_text(o, "value");
		size_t k = 0;
		value = *written ? written : value;
		while (o && k < n && strcmp(seen[k], value))
			k++;
		if (!o || k < n)
			continue;
		loom__html_element(out, n ? "<br><code>" : "<code>", value, "</code>");
		if (n == LOOM__COUNT(seen))
			return;
		seen[n++] = value;
	}
}

static void conf_rows(struct loom__text *out, const struct loom__view *view, int defaults)
{
	struct loom__pool pool = {0};
	struct loom__names done = {0};
	const cJSON *o;
	for (size_t i = 0; i < view->variants && i < 64; i++)
		cJSON_ArrayForEach(o, conf_of(view, i))
		{
			size_t before = done.count;
			if (!o->string || is_default(o) != defaults || before >= 1000)
				continue;
			loom__names_add(&pool, &done, o->string);
			if (done.count == before)
				continue;
			loom__html_element(out, "<tr><th scope=\"row\"><code>", o->string,
					   "</code></th><td>");
			conf_values(out, view, o->string);
			loom__html_element(out, "</td><td>", loom__json_text(o, "source"), "");
			loom__html_element(out, " <span class=\"soft\">", loom__json_text(o, "at"),
					   "</span></td>");
			loom__html_element(out, "<td class=\"soft\">",
					   loom__json_text(o, "default"), "</td></tr>\n");
		}
	loom__pool_free(&pool);
}

static void conf_table(struct loom__text *out, const char *caption, const struct loom__text *rows)
{
	loom__html_table(out, "wrap", caption);
	loom__text_add(
	    out,
	    "<thead><tr><th scope=\"col\">Option</th><th scope=\"col\">Value</th>"
	    "<th scope=\"col\">From</th><th scope=\"col\">Default</th></tr></thead>\n<tbody>\n");
	loom__text_put(out, rows->at, rows->length);
	loom__html_table_end(out);
}

void loom__html_conf(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text set = {0}, defaults = {0};
	conf_rows(&set, view, 0);
	conf_rows(&defaults, view, 1);
	if (set.at || defaults.at)
		loom__html_section(
		    out, "conf", "Configuration",
		    "Every option in force and where its value came from. An option with "
		    "several values is what the variants differ in.");
	if (set.at)
		conf_table(out, "Options that were set", &set);
	if (defaults.at) {
		loom__text_add(
		    out,
		    "<details class=\"print\"><summary>Options left at their defaults</summary>\n");
		conf_table(out, "Defaults", &defaults);
		loom__text_add(out, "</details>\n");
	}
	if (set.at || defaults.at)
		loom__text_add(out, "</section>\n");
	loom__text_free(&set);
	loom__text_free(&defaults);
}
