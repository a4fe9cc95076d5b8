/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a sweep: one JSON object per line, each written at once and brought to the disk, so
 * that whatever ends the process costs at most the sample in progress. */
#ifndef LOOM_JOURNAL_H
#define LOOM_JOURNAL_H

#include "base/json.h"
#include <stdio.h>

#include "report/document.h"

struct loom__journal {
	int fd;           /* of the file, or of memory when there is none */
	FILE *stream;     /* gets the lines, too; NULL: nothing does */
	const char *path; /* NULL: no file, and nothing to resume from */
	int failed; /* it could not be written */
	int torn;     /* behind `whole` bytes stands what goes away when a line is added */
	off_t whole;
	struct loom__doc before; /* what was there; root NULL: nothing */
};

enum loom__journal_way {
	LOOM__JOURNAL_NEW,    /* a file with content is refused */
	LOOM__JOURNAL_RESUME, /* what is there is read, and half a line at its end cut off */
	LOOM__JOURNAL_ANEW,   /* what is there, if a sweep, is thrown away */
};
/* Opens or creates `path` (NULL: memory) and keeps others from writing to it. */
int loom__journal_open(const char *path, FILE *stream, enum loom__journal_way way, struct loom__journal *j,
		       struct loom_error *err);
/* All lines so far, as a document. */
int loom__journal_read(const struct loom__journal *j, struct loom__doc *doc, struct loom_error *err);
/* Appends one line: one write() and, for a file, fdatasync(). */
int loom__journal_add(struct loom__journal *j, const cJSON *line, struct loom_error *err);
void loom__journal_close(struct loom__journal *j);

#endif
