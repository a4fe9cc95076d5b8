/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* Returns whether loom__json_miss() has marked the object or array. The mark is a NaN in valuedouble, a field that
 * cJSON sets to 0 and copies, but does not use in objects and arrays. */
static int is_marked(const cJSON *item)
{
	return (cJSON_IsObject(item) || cJSON_IsArray(item)) && isnan(item->valuedouble);
}

void loom__json_miss(cJSON *in)
{
	if (in)
		in->valuedouble = NAN;
}

void loom__json_add(cJSON *object, const char *name, cJSON *item)
{
	if (!object || !item || !cJSON_AddItemToObject(object, name, item)) {
		cJSON_Delete(item);
		loom__json_miss(object);
	}
}

void loom__json_append(cJSON *array, cJSON *item)
{
	if (!array || !item || !cJSON_AddItemToArray(array, item)) {
		cJSON_Delete(item);
		loom__json_miss(array);
	}
}

/* Adds the item and returns it, or frees it on failure. Returns NULL if the object is marked, because a marked object
 * needs no more parts. */
static cJSON *added(cJSON *object, const char *name, cJSON *item)
{
	loom__json_add(object, name, item);
	return object && !is_marked(object) ? item : NULL;
}

cJSON *loom__json_add_object(cJSON *object, const char *name)
{
	return added(object, name, cJSON_CreateObject());
}

cJSON *loom__json_add_array(cJSON *object, const char *name)
{
	return added(object, name, cJSON_CreateArray());
}

cJSON *loom__json_append_object(cJSON *array)
{
	cJSON *item = cJSON_CreateObject();
	loom__json_append(array, item);
	return array && !is_marked(array) ? item : NULL;
}

void loom__json_add_text(cJSON *object, const char *name, const char *text)
{
	loom__json_add(object, name, cJSON_CreateString(text));
}

void loom__json_add_number(cJSON *object, const char *name, double value)
{
	loom__json_add(object, name, cJSON_CreateNumber(value));
}

void loom__json_add_copy(cJSON *object, const char *name, const cJSON *of)
{
	if (of)
		loom__json_add(object, name, cJSON_Duplicate(of, 1));
}

/* Returns a number as a raw text, because cJSON stores numbers as doubles, which have only 53 bits. */
static cJSON *count(uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_CreateRaw(text);
}

void loom__json_add_count(cJSON *object, const char *name, uint64_t value)
{
	loom__json_add(object, name, count(value));
}

void loom__json_add_bool(cJSON *object, const char *name, int value)
{
	loom__json_add(object, name, cJSON_CreateBool(value));
}

void loom__json_add_time(cJSON *object, const char *name, time_t value)
{
	char when[32];
	struct tm utc;
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&value, &utc));
	loom__json_add_text(object, name, when);
}

void loom__json_add_null(cJSON *object, const char *name)
{
	loom__json_add(object, name, cJSON_CreateNull());
}

void loom__json_append_text(cJSON *array, const char *text)
{
	loom__json_append(array, cJSON_CreateString(text));
}

void loom__json_append_count(cJSON *array, uint64_t value)
{
	loom__json_append(array, count(value));
}

int loom__json_broken(const cJSON *doc)
{
	int broken = !doc || is_marked(doc);
	for (const cJSON *part = doc ? doc->child : NULL; part && !broken; part = part->next)
		broken = loom__json_broken(part);
	return broken;
}

/* cJSON does not check strings, and writes \u00XX for control characters below U+0020. This function replaces them,
 * except newlines and tabs, so that readers of the document can show the text. */
static void clean(char *text)
{
	char *to = text;
	for (const char *at = text; *at;) {
		size_t n = *at == '\\' && at[1] ? at[1] == 'u' ? 6 : 2 : 1;
		if (n == 6 || (n == 2 && (at[1] == 'b' || at[1] == 'f' || at[1] == 'r'))) {
			*to++ = n == 2 && at[1] == 'r' ? ' ' : '?';
		} else {
			memmove(to, at, n);
			to += n;
		}
		at += n;
	}
	text[loom__clean_bytes(text, (size_t)(to - text), "\n\t")] = 0;
}

char *loom__json_print(const cJSON *doc, int pretty)
{
	char *text = loom__json_broken(doc) ? NULL : pretty ? cJSON_Print(doc) : cJSON_PrintUnformatted(doc);
	if (text)
		clean(text);
	return text;
}

