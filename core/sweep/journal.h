/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a sweep: one JSON object per line, each written at once and brought to the disk, so
 * that whatever ends the process costs at most the sample in progress. */
#ifndef LOOM_JOURNAL_H
#define LOOM_JOURNAL_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "report/document.h"

struct loom__journal {
	int fd;       /* -1: to `stream` */
	FILE *stream; /* standard output: nothing to resume from */
	const char *path;
	struct loom__doc before; /* what was there; root NULL: nothing */
};

/* Opens or creates `path` and keeps others from writing to it. With `resume` what is there is read,
 * and half a line at its end cut off; without, a file with content is refused. NULL path: `stream`.
 */
int loom__journal_open(const char *path, FILE *stream, int resume, struct loom__journal *j,
		       struct loom_error *err);
/* Appends one line: one write() and, for a file, fdatasync(). */
int loom__journal_add(struct loom__journal *j, const cJSON *line, struct loom_error *err);
void loom__journal_close(struct loom__journal *j);

#endif
