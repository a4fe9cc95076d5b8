/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents that cannot lose a part unnoticed. Functions that build a document return no errors: when memory runs
 * out, they mark the tree, and loom__json_print() returns NULL for it. */
#ifndef LOOM_JSON_H
#define LOOM_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Each adds to an object. A NULL item or text stands for a failed allocation, which marks the object. */
void loom__json_add(cJSON *object, const char *name, cJSON *item); /* takes ownership of item */
void loom__json_append(cJSON *array, cJSON *item);		    /* takes ownership of item */
cJSON *loom__json_add_object(cJSON *object, const char *name);
cJSON *loom__json_add_array(cJSON *object, const char *name);
cJSON *loom__json_append_object(cJSON *array);
void loom__json_add_text(cJSON *object, const char *name, const char *text);
void loom__json_add_number(cJSON *object, const char *name, double value);
void loom__json_add_count(cJSON *object, const char *name, uint64_t value); /* keeps all 64 bits */
void loom__json_add_bool(cJSON *object, const char *name, int value);
void loom__json_add_null(cJSON *object, const char *name);
void loom__json_add_time(cJSON *object, const char *name, time_t value); /* as UTC, to the second */
void loom__json_append_text(cJSON *array, const char *text);
void loom__json_append_count(cJSON *array, uint64_t value);
/* Adds a copy of `of`, or nothing for NULL. */
void loom__json_add_copy(cJSON *object, const char *name, const cJSON *of);

/* Marks `in`, a part of which could not be allocated. */
void loom__json_miss(cJSON *in);

/* Returns 1 when a part of the document is missing because memory ran out, and for NULL. */
int loom__json_broken(const cJSON *doc);
/* Returns the document as text that the caller frees, or NULL when memory ran out, now or while it was built. Strings
 * are clean as base.h says; newlines and tabs stay, escaped. */
char *loom__json_print(const cJSON *doc, int pretty);

#endif
