/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that devices report about their hardware. A result has each fact once, also if several devices report it. */
#include <math.h>
#include <string.h>

#include "facts/environment.h"
#include "facts/facts.h"
#include "facts/must.h"

/* Returns 1 if `one` is an item of the list "a; b". */
static int is_listed(const char *list, const char *one)
{
	size_t n = strlen(one);
	for (const char *at = list; (at = strstr(at, one)); at++)
		if ((at == list || (at - list > 1 && !strncmp(at - 2, "; ", 2))) && (!at[n] || at[n] == ';'))
			return 1;
	return 0;
}

/* Adds a value. Different values of a fact become a list. `value` belongs to the group afterwards. */
static void add_value(cJSON *group, const char *name, cJSON *value)
{
	cJSON *was = cJSON_GetObjectItemCaseSensitive(group, name);
	struct loom__text all = {0}, one = {0};
	if (!was) {
		loom__json_add(group, name, value);
		return;
	}
	loom__environment_text(was, &all);
	loom__environment_text(value, &one);
	if (!is_listed(loom__must_text(&all), loom__must_text(&one))) {
		loom__text_add(&all, "; %s", one.at);
		cJSON_ReplaceItemInObjectCaseSensitive(group, name, cJSON_CreateString(loom__must_text(&all)));
	}
	cJSON_Delete(value);
	loom__text_free(&all);
	loom__text_free(&one);
}

/* Extends the range of a reading. */
static void add_reading(cJSON *group, const char *name, double number)
{
	cJSON *range = cJSON_GetObjectItemCaseSensitive(group, name);
	cJSON *low = cJSON_GetObjectItemCaseSensitive(range, "low"), *high = cJSON_GetObjectItemCaseSensitive(range, "high");
	if (low && high) {
		cJSON_SetNumberValue(low, fmin(low->valuedouble, number));
		cJSON_SetNumberValue(high, fmax(high->valuedouble, number));
	} else {
		cJSON_DeleteItemFromObjectCaseSensitive(group, name); /* an earlier reading may have failed */
		range = loom__json_add_object(group, name);
		loom__json_add_number(range, "low", number);
		loom__json_add_number(range, "high", number);
	}
}

static cJSON *group_of(cJSON *environment, const char *name)
{
	cJSON *group = cJSON_GetObjectItemCaseSensitive(environment, name);
	return group ? group : loom__json_add_object(environment, name);
}

static void row(struct loom_facts *out, const char *name, uint32_t flags, const char *text, double number)
{
	cJSON *group = group_of(out->ctx, flags & LOOM_FACT_FIXED ? "devices" : "readings"), *value;
	if (flags & LOOM_FACT_UNKNOWN) {
		value = cJSON_CreateObject();
		loom__json_add_text(value, "null_because", text);
		add_value(group, name, value);
	} else if (text) {
		add_value(group, name, cJSON_CreateString(text));
	} else if (flags & LOOM_FACT_FIXED) {
		add_value(group, name, cJSON_CreateNumber(number));
	} else {
		add_reading(group, name, number);
	}
}

void loom__facts_look(const struct loom_stack *s, struct loom_result *r)
{
	struct loom_facts out = {
		.size = sizeof(out), .row = row, .ctx = cJSON_GetObjectItemCaseSensitive(r->about, "environment")};
	for (uint32_t d = 0; out.ctx && d < s->layout.devices; d++)
		if (LOOM_HAS(s->device[d].hardware, facts))
			s->device[d].hardware->facts(s->device[d].self, &out);
}
