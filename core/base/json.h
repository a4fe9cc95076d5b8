/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents in which a missing part is always noticed. Functions that build a document return no errors. When
 * memory runs out, these functions mark the document, and loom__json_print() returns NULL for a marked document. */
#ifndef LOOM_JSON_H
#define LOOM_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Each function adds to an object or array. If `item` or `text` is NULL because an allocation failed, the function
 * marks that object or array. */
void loom__json_add(cJSON *object, const char *name, cJSON *item); /* `item` belongs to it afterwards */
void loom__json_append(cJSON *array, cJSON *item);		    /* `item` belongs to it afterwards */
cJSON *loom__json_add_object(cJSON *object, const char *name);
cJSON *loom__json_add_array(cJSON *object, const char *name);
cJSON *loom__json_append_object(cJSON *array);
void loom__json_add_text(cJSON *object, const char *name, const char *text);
void loom__json_add_number(cJSON *object, const char *name, double value);
void loom__json_add_count(cJSON *object, const char *name, uint64_t value); /* keeps all 64 bits */
void loom__json_add_bool(cJSON *object, const char *name, int value);
void loom__json_add_null(cJSON *object, const char *name);
void loom__json_add_time(cJSON *object, const char *name, time_t value); /* in UTC, in whole seconds */
void loom__json_append_text(cJSON *array, const char *text);
void loom__json_append_count(cJSON *array, uint64_t value);
/* Adds a copy of `of`. Adds nothing if `of` is NULL. */
void loom__json_add_copy(cJSON *object, const char *name, const cJSON *of);

/* Marks `in`, because a part of it could not be allocated. */
void loom__json_miss(cJSON *in);

/* Returns 1 if `doc` is NULL, or if a part is missing because memory ran out. */
int loom__json_broken(const cJSON *doc);
/* Returns the document as text, which the caller frees. Returns NULL if memory ran out, in this call or while the
 * document was built. Strings are cleaned as base.h describes, but keep newlines and tabs, as escape sequences. */
char *loom__json_print(const cJSON *doc, int pretty);

#endif
