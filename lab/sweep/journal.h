/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a sweep: one JSON object per line, each synced at once, so that a crash costs one sample at most. */
#ifndef LOOM_JOURNAL_H
#define LOOM_JOURNAL_H

#include "base/json.h"
#include <stdio.h>

#include "report/document.h"

struct loom__journal {
	int fd;           /* descriptor of the file, or of memory without a file */
	FILE *stream;     /* receives the lines, too; may be NULL */
	const char *path; /* NULL: no file, and no resuming */
	int failed; /* writing has failed */
	int created;  /* the file was new or empty */
	int torn;     /* 1: cut the file to `whole` bytes before the next line */
	off_t whole;
	struct loom__doc before; /* the previous content; root NULL: none */
};

enum loom__journal_mode {
	LOOM__JOURNAL_NEW,    /* rejects a file with content */
	LOOM__JOURNAL_RESUME, /* reads the content and cuts an incomplete last line */
	LOOM__JOURNAL_RESTART,   /* discards the content if it is a sweep */
};
/* Opens or creates `path` (NULL: memory) and locks it against other writers. */
int loom__journal_open(const char *path, FILE *stream, enum loom__journal_mode mode, struct loom__journal *j,
		       struct loom_error *err);
/* Returns all lines so far, as a document. */
int loom__journal_read(const struct loom__journal *j, struct loom__doc *doc, struct loom_error *err);
/* Appends one line by one write() and, for a file, fdatasync(). */
int loom__journal_add(struct loom__journal *j, const cJSON *line, struct loom_error *err);
void loom__journal_close(struct loom__journal *j);
/* Closes a journal without samples, and removes the file, unless it had content before. */
void loom__journal_drop(struct loom__journal *j);

#endif
