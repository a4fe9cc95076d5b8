/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a page about the machine before and after the run, and about the plug-ins. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/html.h"
#include "facts/must.h"

#define MOST_FACTS 400

static void add_fact(struct loom__grid *g, unsigned flags, const cJSON *fact)
{
	const char *why = loom__json_text(fact, "null_because");
	struct loom__text text = {0};
	if (!fact) {
		loom__grid_cell(g, flags, "\xe2\x80\x93");
	} else if (cJSON_IsNull(fact) || *why) {
		loom__grid_cell(g, LOOM__CELL_SOFT, "not known%s%s", *why ? ": " : "", why);
	} else if (cJSON_IsString(fact)) {
		loom__grid_cell(g, flags, "%s", loom__json_string(fact));
	} else if (cJSON_IsNumber(fact) && fact->valuedouble != floor(fact->valuedouble)) {
		loom__grid_cell(g, flags | LOOM__CELL_NOWRAP, "%.6g",
				fact->valuedouble); /* the document has all digits */
	} else {
		char *json = loom__must(loom__json_print(fact, 0));
		loom__markup_cut(&text, json, 300);
		loom__grid_markup(g, &text);
		free(json);
	}
}

/* Returns 1 if the object is a group of facts. An object with "null_because" is a single fact without a value. */
static int is_group(const cJSON *fact)
{
	return cJSON_IsObject(fact) && fact->child &&
	       !cJSON_GetObjectItemCaseSensitive(fact, "null_because");
}

static void add_facts(struct loom__grid *g, const cJSON *before, const cJSON *after, const char *prefix, int depth)
{
	const cJSON *fact;
	cJSON_ArrayForEach(fact, before)
	{
		const cJSON *then = cJSON_IsObject(after) && fact->string ?
					    cJSON_GetObjectItemCaseSensitive(after, fact->string) : NULL;
		struct loom__text name = {0};
		loom__text_add(&name, "%s%s%s", prefix, *prefix ? "." : "", fact->string ? fact->string : "");
		if (is_group(fact) && depth < 3) {
			add_facts(g, fact, then, loom__must_text(&name), depth + 1);
		} else if (g->cells < MOST_FACTS * g->columns) {
			int same = !then || cJSON_Compare(fact, then, 1);
			unsigned flags = same ? LOOM__CELL_SOFT : 0;
			loom__grid_cell(g, flags, "%s", loom__must_text(&name));
			add_fact(g, flags, fact);
			if (!same)
				add_fact(g, 0, then);
			else
				loom__grid_cell(g, flags, "%s", then ? "same" : "");
		}
		loom__text_free(&name);
	}
}

static void environment_table(struct loom__text *out, const cJSON *environment)
{
	struct loom__grid g = {0};
	const cJSON *before = loom__json_object(environment, "before");
	const cJSON *after = loom__json_object(environment, "after");
	loom__grid_columns(&g, "fact|before|after");
	add_facts(&g, before ? before : environment, after, "", 0);
	add_facts(&g, loom__json_object(environment, "devices"), loom__json_object(environment, "devices"), "", 0);
	add_facts(&g, loom__json_object(environment, "readings"), loom__json_object(environment, "readings"), "", 0);
	loom__grid_html(&g, out, "wrap", "The machine before and after the run");
}

static void plugin_table(struct loom__text *out, const struct loom__view *view)
{
	struct loom__names seen = {0};
	struct loom__arena arena = {0};
	struct loom__grid g = {0};
	loom__grid_columns(&g, "plug-in|kind|version|build ID");
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
			loom__names_add(&arena, &seen, loom__must_text(&key));
			loom__text_free(&key);
			if (seen.count == before || before > 100)
				continue;
			loom__grid_cell(&g, 0, "%s", name);
			loom__grid_cell(&g, 0, "%s", loom__json_text(p, "kind"));
			loom__grid_cell(&g, 0, "%s", version);
			loom__grid_cell(&g, LOOM__CELL_CODE, "%.16s", hash);
		}
	}
	loom__grid_html(&g, out, "wrap cards", "Plug-ins of the run");
	loom__arena_free(&arena);
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
