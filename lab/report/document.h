/* SPDX-License-Identifier: Apache-2.0 */
/* Result documents as files hold them. They are not trusted: a key may be missing or of any type, a
 * list of any length, and a string may hold anything. All access goes through the functions below.
 */
#ifndef LOOM_DOCUMENT_H
#define LOOM_DOCUMENT_H

#include "base/json.h"

#include "base/base.h"

enum loom__doc_kind { LOOM__DOC_RESULT, LOOM__DOC_COMPARE, LOOM__DOC_SWEEP };

struct loom__doc {
	const char *path; /* the caller's */
	char *bytes;      /* as in the file */
	size_t length;
	enum loom__doc_kind kind;
	cJSON *root; /* the document; of a sweep its first line */
	int torn;    /* a sweep that ends in half a line, which is not read */
};

#define LOOM__DOC_MOST ((size_t)256 << 20)

/* Reads and checks a file: one JSON document, or of a sweep every line. */
int loom__doc_read(const char *path, struct loom__doc *doc, struct loom_error *err);
/* The same from memory; takes over `bytes` (from malloc, NUL-terminated), also when it fails. */
int loom__doc_parse(const char *path, char *bytes, size_t length, struct loom__doc *doc,
		    struct loom_error *err);
void loom__doc_free(struct loom__doc *doc);

/* The next line of a sweep after its first; *at starts at 0. The caller deletes it. NULL: no more.
 */
cJSON *loom__doc_line(const struct loom__doc *doc, size_t *at);

/* NULL, "" or NaN when it is not there or is something else. Figures beyond 1e150 are taken for
 * mistakes, so that sums and products of what remains stay finite. */
/* 1: the value of that option is a command, or says how one is run: it is executed. */
int loom__runs_command(const char *key);
const cJSON *loom__json_object(const cJSON *o, const char *key);
const cJSON *loom__json_list(const cJSON *o, const char *key);
const char *loom__json_text(const cJSON *o, const char *key);
const char *loom__json_string(const cJSON *item);
double loom__json_number(const cJSON *o, const char *key);
double loom__json_double(const cJSON *item);
int loom__json_true(const cJSON *o, const char *key);
size_t loom__json_length(const cJSON *list);

#endif
