/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of documents that may lack them or have others in their place. */
#include <math.h>
#include <string.h>

#include "lib/hash.h"
#include "report/view/document.h"

int loom__runs_command(const char *key)
{
	return !strncmp(key, "workload.exec.", 14);
}

const cJSON *loom__json_object(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
	return cJSON_IsObject(item) ? item : NULL;
}

const cJSON *loom__json_list(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
	return cJSON_IsArray(item) ? item : NULL;
}

const char *loom__json_string(const cJSON *item)
{
	return cJSON_IsString(item) && item->valuestring ? item->valuestring : "";
}

const char *loom__json_text(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ? loom__json_string(cJSON_GetObjectItemCaseSensitive(o, key)) : "";
}

double loom__json_double(const cJSON *item)
{
	/* In a document that was just created, counts are raw JSON text. In a parsed document, they are numbers. */
	double v = cJSON_IsNumber(item) ? item->valuedouble : NAN;
	if (cJSON_IsRaw(item) && item->valuestring) {
		const char *end;
		if (loom__read_double(item->valuestring, &end, &v) || *end)
			v = NAN;
	}
	if (!isfinite(v) || fabs(v) > 1e150)
		return NAN;
	return fabs(v) < 1e-150 ? 0 : v;
}

double loom__json_number(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ? loom__json_double(cJSON_GetObjectItemCaseSensitive(o, key)) : NAN;
}

void loom__json_add_finite(cJSON *o, const char *key, double v)
{
	if (isfinite(v))
		loom__json_add_number(o, key, v);
	else
		loom__json_add_null(o, key);
}

int loom__json_true(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, key));
}

size_t loom__json_length(const cJSON *list)
{
	size_t n = 0;
	for (const cJSON *i = list ? list->child : NULL; i; i = i->next)
		n++;
	return n;
}

uint64_t loom__json_hash(uint64_t hash, const cJSON *item)
{
	const cJSON *part;
	double number = cJSON_IsNumber(item) ? item->valuedouble : 0;
	const char *text[] = {item && item->string ? item->string : "", loom__json_string(item)};
	if (!item)
		return hash;
	hash = loom__fnv1a(hash, &item->type, sizeof(item->type));
	hash = loom__fnv1a(hash, &number, sizeof(number));
	for (size_t i = 0; i < LOOM__COUNT(text); i++)
		hash = loom__fnv1a(hash, text[i], strlen(text[i]) + 1);
	cJSON_ArrayForEach(part, item)
	{
		hash = loom__json_hash(hash, part);
	}
	return hash;
}
