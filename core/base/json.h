/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents that cannot lose a part. Their builder checks nothing in between: where memory was short, the tree itself
 * carries a mark, and loom__json_print gives NULL for it. */
#ifndef LOOM_JSON_H
#define LOOM_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Each adds to an object. NULL, after a lack of memory, is marked in the object that it should have been added to.
 * A text of NULL is one that could not be made. */
void loom__json_add(cJSON *object, const char *name, cJSON *item); /* takes item */
void loom__json_append(cJSON *array, cJSON *item);		    /* takes item */
cJSON *loom__json_add_object(cJSON *object, const char *name);
cJSON *loom__json_add_array(cJSON *object, const char *name);
cJSON *loom__json_append_object(cJSON *array);
void loom__json_add_text(cJSON *object, const char *name, const char *text);
void loom__json_add_number(cJSON *object, const char *name, double value);
void loom__json_add_count(cJSON *object, const char *name, uint64_t value); /* all 64 bits */
void loom__json_add_bool(cJSON *object, const char *name, int value);
void loom__json_add_null(cJSON *object, const char *name);
void loom__json_add_time(cJSON *object, const char *name, time_t value); /* UTC, to the second */
void loom__json_append_text(cJSON *array, const char *text);
void loom__json_append_count(cJSON *array, uint64_t value);
/* A copy of `of`; nothing for NULL. */
void loom__json_add_copy(cJSON *object, const char *name, const cJSON *of);

/* A part could not be made: marks `in`. */
void loom__json_miss(cJSON *in);

/* A part of the document is missing for want of memory. NULL misses all of it. */
int loom__json_broken(const cJSON *doc);
/* Its strings are fit to be shown, as base.h says; ends of lines and tabs stay, escaped. NULL: out of memory, now or
 * when it was built. free() it. */
char *loom__json_print(const cJSON *doc, int pretty);

#endif
