/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts as JSON and as JUnit XML. */
#include <cjson/cJSON.h>
#include <gpuloom/gpuloom.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "plugin/registry.h"
#include "validate/validate.h"

size_t loom__validate_count(const struct loom__verdicts *v, enum loom__ending ending)
{
	size_t n = 0;
	for (size_t i = 0; i < v->n; i++)
		n += v->list[i].ending == ending;
	return n;
}

static void add_whole(cJSON *object, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	cJSON_AddRawToObject(object, name, text); /* a double would lose digits of a seed */
}

char *loom__validate_json(const struct loom__verdicts *v)
{
	cJSON *doc = cJSON_CreateObject();
	cJSON_AddStringToObject(doc, "schema", "gpuloom.validate/1");
	cJSON_AddStringToObject(doc, "gpuloom", loom_version());
	cJSON_AddStringToObject(doc, "path", v->path);
	cJSON_AddStringToObject(doc, "plugin", v->name);
	cJSON_AddStringToObject(doc, "version", v->version);
	cJSON_AddStringToObject(doc, "kind", loom__kind_section(v->kind));
	cJSON_AddNumberToObject(doc, "level", v->level);
	add_whole(doc, "seed", v->seed);
	size_t bad =
	    v->n - loom__validate_count(v, LOOM__PASSED) - loom__validate_count(v, LOOM__SKIPPED);
	cJSON_AddBoolToObject(doc, "conforms", !bad);
	cJSON *counts = cJSON_AddObjectToObject(doc, "counts");
	for (int e = 0; e < LOOM__ENDINGS; e++)
		add_whole(counts, loom__ending_name((enum loom__ending)e),
			  loom__validate_count(v, (enum loom__ending)e));
	cJSON *tests = cJSON_AddArrayToObject(doc, "tests");
	for (size_t i = 0; i < v->n; i++) {
		const struct loom__outcome *o = &v->list[i];
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "test", o->test);
		cJSON_AddNumberToObject(row, "level", o->level);
		cJSON_AddStringToObject(row, "status", loom__ending_name(o->ending));
		if (o->why[0])
			cJSON_AddStringToObject(row, "why", o->why);
		if (o->ending != LOOM__PASSED && o->ending != LOOM__SKIPPED)
			add_whole(row, "seed", o->seed);
		cJSON_AddNumberToObject(row, "seconds", o->seconds);
		cJSON_AddItemToArray(tests, row);
	}
	char *text = cJSON_Print(doc);
	cJSON_Delete(doc);
	return text;
}

static void escape(struct loom__text *out, const char *text)
{
	for (; *text; text++) {
		const char *as = *text == '&'   ? "&amp;"
				 : *text == '<' ? "&lt;"
				 : *text == '>' ? "&gt;"
				 : *text == '"' ? "&quot;"
						: NULL;
		if (as)
			loom__text_add(out, "%s", as);
		else
			loom__text_put(out, text, 1);
	}
}

static void junit_case(const struct loom__verdicts *v, const struct loom__outcome *o,
		       struct loom__text *out)
{
	static const char *const element[] = {NULL, "failure", "skipped", "error", "error"};
	const char *tag = element[o->ending];
	loom__text_add(out, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\"%s>\n", v->name,
		       o->test, o->seconds, tag ? "" : "/");
	if (!tag)
		return;
	loom__text_add(out, "    <%s message=\"%s: ", tag, loom__ending_name(o->ending));
	escape(out, o->why);
	loom__text_add(out, "\"/>\n  </testcase>\n");
}

void loom__validate_junit(const struct loom__verdicts *v, struct loom__text *out)
{
	double seconds = 0;
	for (size_t i = 0; i < v->n; i++)
		seconds += v->list[i].seconds;
	loom__text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
	escape(out, v->path);
	loom__text_add(
	    out,
	    "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
	    v->n, loom__validate_count(v, LOOM__FAILED),
	    loom__validate_count(v, LOOM__CRASHED) + loom__validate_count(v, LOOM__TIMEOUT),
	    loom__validate_count(v, LOOM__SKIPPED), seconds);
	for (size_t i = 0; i < v->n; i++)
		junit_case(v, &v->list[i], out);
	loom__text_add(out, "</testsuite>\n");
}
