/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts as JSON. */
#include "base/json.h"
#include <gpuloom/gpuloom.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "plugin/registry.h"
#include "conform/validate.h"

size_t loom__validate_count(const struct loom__verdicts *v, enum loom__ending ending)
{
	size_t n = 0;
	for (size_t i = 0; i < v->n; i++)
		n += v->list[i].ending == ending;
	return n;
}

char *loom__validate_json(const struct loom__verdicts *v)
{
	cJSON *doc = cJSON_CreateObject();
	loom__json_add_text(doc, "schema", "gpuloom.validate/1");
	loom__json_add_text(doc, "gpuloom", loom_version());
	loom__json_add_text(doc, "path", v->path);
	loom__json_add_text(doc, "plugin", v->name);
	loom__json_add_text(doc, "version", v->version);
	loom__json_add_text(doc, "kind", loom__kind_section(v->kind));
	loom__json_add_number(doc, "level", v->level);
	loom__json_add_count(doc, "seed", v->seed);
	size_t bad =
	    v->n - loom__validate_count(v, LOOM__PASSED) - loom__validate_count(v, LOOM__SKIPPED);
	loom__json_add_bool(doc, "conforms", !bad);
	cJSON *counts = loom__json_add_object(doc, "counts");
	for (int e = 0; e < LOOM__ENDINGS; e++)
		loom__json_add_count(counts, loom__ending_name((enum loom__ending)e),
			  loom__validate_count(v, (enum loom__ending)e));
	cJSON *tests = loom__json_add_array(doc, "tests");
	for (size_t i = 0; i < v->n; i++) {
		const struct loom__outcome *o = &v->list[i];
		cJSON *row = loom__json_append_object(tests);
		loom__json_add_text(row, "test", o->test);
		loom__json_add_number(row, "level", o->level);
		loom__json_add_text(row, "status", loom__ending_name(o->ending));
		if (o->why[0])
			loom__json_add_text(row, "why", o->why);
		if (o->ending != LOOM__PASSED && o->ending != LOOM__SKIPPED)
			loom__json_add_count(row, "seed", o->seed);
		loom__json_add_number(row, "seconds", o->seconds);
	}
	char *text = loom__json_print(doc, 1);
	cJSON_Delete(doc);
	return text;
}
