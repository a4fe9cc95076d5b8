/* SPDX-License-Identifier: Apache-2.0 */
/* The page's part on the machine, before and after, and on the plug-ins. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "facts/must.h"

#define MOST_FACTS 400

static void add_fact(struct loom__text *out, const cJSON *fact)
{
	const char *why = loom__json_text(fact, "null_because");
	if (!fact) {
		loom__text_add(out, "\xe2\x80\x93");
	} else if (cJSON_IsNull(fact) || *why) {
		loom__markup_add(out, "<span class=\"soft\">not known%s%s</span>", *why ? ": " : "", why);
	} else if (cJSON_IsString(fact)) {
		loom__markup_text(out, loom__json_string(fact));
	} else if (cJSON_IsNumber(fact) && fact->valuedouble != floor(fact->valuedouble)) {
		/* The data have all digits. */
		loom__text_add(out, "<span class=\"nw\">%.6g</span>", fact->valuedouble);
	} else {
		char *text = loom__must(loom__json_print(fact, 0));
		loom__markup_cut(out, text, 300);
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
			add_facts(out, fact, then, loom__must_text(&name), depth + 1, left);
		} else if ((*left)-- > 0) {
			int same = !then || cJSON_Compare(fact, then, 1);
			loom__markup_add(out, same ? "<tr class=\"same\"><th scope=\"row\">%s</th><td>" :
						     "<tr><th scope=\"row\">%s</th><td>",
					 loom__must_text(&name));
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
	loom__html_table(out, "wrap", "The machine before and after the run", "Fact|Before|After");
	add_facts(out, before ? before : environment, after, "", 0, &left);
	loom__html_table_end(out);
}

static void plugin_table(struct loom__text *out, const struct loom__view *view)
{
	struct loom__names seen = {0};
	struct loom__pool pool = {0};
	const cJSON *p, *result;
	for (size_t i = 0; i < view->variants && seen.count < 100; i++) {
		result = view->variant[i].result;
		cJSON_ArrayForEach(p, loom__json_list(result ? result : view->head, "plugins"))
		{
			struct loom__text key = {0};
			size_t before = seen.count;
			const char *hash = loom__json_text(p, "build_id"), *name = loom__json_text(p, "name");
			const char *version = loom__json_text(p, "version");
			loom__text_add(&key, "%s %s %s", name, version, hash);
			loom__names_add(&pool, &seen, loom__must_text(&key));
			loom__text_free(&key);
			if (seen.count == before || before > 100)
				continue;
			if (!before)
				loom__html_table(out, "wrap cards", "Plug-ins that took part",
						 "Plug-in|Kind|Version|Build ID");
			loom__markup_add(out,
					 "<tr><th scope=\"row\">%s</th><td data-label=\"Kind\">%s</td>"
					 "<td data-label=\"Version\">%s</td>"
					 "<td data-label=\"Build ID\"><code>%.16s</code></td></tr>\n",
					 name, loom__json_text(p, "kind"), version, hash);
		}
	}
	if (seen.count)
		loom__html_table_end(out);
	loom__pool_free(&pool);
}

void loom__html_environment(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text body = {0};
	const cJSON *environment = loom__json_object(view->head, "environment");
	if (!environment && view->variants)
		environment = loom__json_object(view->variant[0].result, "environment");
	if (environment && environment->child)
		environment_table(&body, environment);
	plugin_table(&body, view);
	loom__html_section_of(out, "environment", "Environment", "", &body);
}
