/* SPDX-License-Identifier: Apache-2.0 */
/* The page's part on the machine, before and after, and on the plug-ins. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"

#define MOST_FACTS 400

static const cJSON *first_result(const struct loom__view *view)
{
	return view->variants && view->variant[0].result ? view->variant[0].result : view->head;
}

static void add_fact(struct loom__text *out, const cJSON *fact)
{
	const char *why = loom__json_text(fact, "null_because");
	if (!fact) {
		loom__text_add(out, "\xe2\x80\x93");
	} else if (cJSON_IsNull(fact) || *why) {
		loom__html_element(out, "<span class=\"soft\">not known", *why ? ": " : "", "");
		loom__html_element(out, "", why, "</span>");
	} else if (cJSON_IsString(fact)) {
		loom__markup_text(out, loom__json_string(fact));
	} else if (cJSON_IsNumber(fact) && fact->valuedouble != floor(fact->valuedouble)) {
		/* The data have all digits. */
		loom__text_add(out, "<span class=\"nw\">%.6g</span>", fact->valuedouble);
	} else {
		char *text = cJSON_PrintUnformatted(fact);
		loom__markup_cut(out, text ? text : "", 300);
		free(text);
	}
}

/* Facts with a null_because are leaves; other objects are groups of facts. */
static int is_group(const cJSON *fact)
{
	return cJSON_IsObject(fact) && fact->child &&
	       !cJSON_GetObjectItemCaseSensitive(fact, "null_because");
}

static void add_facts(struct loom__text *out, const cJSON *before, const cJSON *after,
		      const char *prefix, int depth, int *left)
{
	const cJSON *fact;
	cJSON_ArrayForEach(fact, before)
	{
		const cJSON *then = cJSON_IsObject(after) && fact->string
					? cJSON_GetObjectItemCaseSensitive(after, fact->string)
					: NULL;
		struct loom__text name = {0};
		loom__text_add(&name, "%s%s%s", prefix, *prefix ? "." : "",
			       fact->string ? fact->string : "");
		if (is_group(fact) && depth < 3) {
			add_facts(out, fact, then, name.at ? name.at : "", depth + 1, left);
		} else if ((*left)-- > 0) {
			int same = !then || cJSON_Compare(fact, then, 1);
			loom__text_add(out, "<tr%s>", same ? " class=\"same\"" : "");
			loom__html_element(out, "<th scope=\"row\">", name.at ? name.at : "",
					   "</th><td>");
			add_fact(out, fact);
			loom__text_add(out, "</td><td>");
			if (!same)
				add_fact(out, then);
			else
				loom__text_add(out, then ? "same" : "");
			loom__text_add(out, "</td></tr>\n");
		}
		loom__text_free(&name);
	}
}

static void environment_table(struct loom__text *out, const cJSON *environment)
{
	int left = MOST_FACTS;
	const cJSON *before = loom__json_object(environment, "before");
	const cJSON *after = loom__json_object(environment, "after");
	loom__html_table(out, "wrap", "The machine before and after the run");
	loom__text_add(out, "<thead><tr><th scope=\"col\">Fact</th><th scope=\"col\">Before</th>"
			    "<th scope=\"col\">After</th></tr></thead>\n<tbody>\n");
	add_facts(out, before ? before : environment, after, "", 0, &left);
	loom__html_table_end(out);
}

static void plugin_table(struct loom__text *out, const struct loom__view *view)
{
	struct loom__names seen = {0};
	struct loom__pool pool = {0};
	const cJSON *p;
	int rows = 0;
	for (size_t i = 0; i < view->variants && rows < 100; i++)
		cJSON_ArrayForEach(
		    p,
		    loom__json_list(view->variant[i].result ? view->variant[i].result : view->head,
				    "plugins"))
		{
			struct loom__text key = {0};
			size_t before = seen.count;
			const char *hash = loom__json_text(p, "sha256");
			loom__text_add(&key, "%s %s %s", loom__json_text(p, "name"),
				       loom__json_text(p, "version"), hash);
			loom__names_add(&pool, &seen, key.at ? key.at : "");
			loom__text_free(&key);
			if (seen.count == before || rows++ > 100)
				continue;
			if (rows == 1) {
				loom__html_table(out, "wrap cards", "Plug-ins that took part");
				loom__text_add(
				    out, "<thead><tr><th scope=\"col\">Plug-in</th>"
					 "<th scope=\"col\">Kind</th><th scope=\"col\">Version</th>"
					 "<th scope=\"col\">SHA-256</th></tr></thead>\n<tbody>\n");
			}
			loom__html_element(out, "<tr><th scope=\"row\">",
					   loom__json_text(p, "name"), "</th>");
			loom__html_element(out, "<td data-label=\"Kind\">",
					   loom__json_text(p, "kind"), "</td>");
			loom__html_element(out, "<td data-label=\"Version\">",
					   loom__json_text(p, "version"),
					   "</td><td data-label=\"SHA-256\"><code>");
			loom__markup_cut(out, hash, 16);
			loom__text_add(out, "</code></td></tr>\n");
		}
	if (rows)
		loom__html_table_end(out);
	loom__pool_free(&pool);
}

void loom__html_environment(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text part = {0};
	const cJSON *environment = loom__json_object(view->head, "environment");
	if (!environment)
		environment = loom__json_object(first_result(view), "environment");
	if (environment && environment->child)
		environment_table(&part, environment);
	plugin_table(&part, view);
	if (part.at) {
		loom__html_section(out, "environment", "Environment", "");
		loom__text_put(out, part.at, part.length);
		loom__text_add(out, "</section>\n");
	}
	loom__text_free(&part);
}
