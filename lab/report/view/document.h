/* SPDX-License-Identifier: Apache-2.0 */
/* Result documents that were read from files. They are untrusted: a key may be missing or have any type, lists have any
 * length, strings contain any bytes. So all code must read them with the functions below. */
#ifndef LOOM_DOCUMENT_H
#define LOOM_DOCUMENT_H

#include "base/json.h"

#include "base/base.h"

enum loom__doc_kind { LOOM__DOC_RESULT, LOOM__DOC_COMPARE, LOOM__DOC_SWEEP };

struct loom__doc {
	const char *path; /* belongs to the caller */
	char *bytes;      /* the content of the file */
	size_t length;
	enum loom__doc_kind kind;
	cJSON *root; /* the document or, for a sweep, its first line */
	int foreign; /* 1: converted from a file of another benchmark program, see foreign.h */
	int strange; /* set by loom__doc_read() on failure: 1 if the file may be of another benchmark program */
	int torn;    /* 1: a sweep with an incomplete last line, which was dropped */
};

#define LOOM__DOC_MOST ((size_t)256 << 20)

/* What an input file is: a conf, a document, or a table that another program has printed (foreign.h). Its name tells,
 * also if it ends in .gz. If it does not, the first byte tells. */
enum loom__input { LOOM__INPUT_CONF, LOOM__INPUT_DOCUMENT, LOOM__INPUT_TABLE };
enum loom__input loom__input_kind(const char *path);

/* Reads and checks a file: one JSON document, or a sweep with one JSON object per line. */
int loom__doc_read(const char *path, struct loom__doc *doc, struct loom_error *err);
/* Checks a document in memory. `bytes` comes from malloc() and ends with a NUL. The function takes ownership of
 * `bytes`, also on failure. */
int loom__doc_parse(const char *path, char *bytes, size_t length, struct loom__doc *doc, struct loom_error *err);
void loom__doc_free(struct loom__doc *doc);

/* Returns the next line of a sweep, beginning with the second line, or NULL at the end. The caller deletes it. *at
 * starts at 0. */
cJSON *loom__doc_line(const struct loom__doc *doc, size_t *at);

/* The functions below return NULL, "" or NaN if the member is missing or has another type. Numbers beyond 1e150 count
 * as missing, so that sums and products stay finite. */
/* Returns 1 if the option `key` is a command that gets executed, or a setting of such a command. */
int loom__runs_command(const char *key);
const cJSON *loom__json_object(const cJSON *o, const char *key);
const cJSON *loom__json_list(const cJSON *o, const char *key);
const char *loom__json_text(const cJSON *o, const char *key);
const char *loom__json_string(const cJSON *item);
double loom__json_number(const cJSON *o, const char *key);
/* Adds a number. JSON has no infinity, so values that are infinite or not known become null. */
void loom__json_add_finite(cJSON *o, const char *key, double v);
double loom__json_double(const cJSON *item);
int loom__json_true(const cJSON *o, const char *key);
size_t loom__json_length(const cJSON *list);
/* Continues a hash (lib/hash.h) with names and values of an item and of all items inside it. */
uint64_t loom__json_hash(uint64_t hash, const cJSON *item);

#endif
