/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a sweep. It has one JSON object per line. Each line is synced when it is written, so that a crash loses
 * at most one sample. */
#ifndef LOOM_JOURNAL_H
#define LOOM_JOURNAL_H

#include "base/json.h"
#include <stdio.h>

#include "report/view/document.h"

/* Each file of a sweep starts with this text, which open_journal() of lab/cli writes. */
#define LOOM__JOURNAL_BEGINNING "{\"schema\":\"gpuloom.sweep/"

struct loom__journal {
	int fd;           /* descriptor of the file, or of anonymous memory if there is no file */
	FILE *stream;     /* a second output of the lines, or NULL */
	const char *path; /* NULL: there is no file, so the sweep cannot be resumed */
	int failed; /* 1: writing has failed */
	int created;  /* 1: the file was new or empty */
	int unlocked; /* 1: the file system has no locks, so another gpuloom may write to the file */
	int torn;     /* 1: cut the file to `whole` bytes before the next line is added */
	off_t whole;
	struct loom__doc before; /* the previous content of the file; its root is NULL if there was none */
};

enum loom__journal_mode {
	LOOM__JOURNAL_NEW,    /* rejects a file with content */
	LOOM__JOURNAL_RESUME, /* reads the content and cuts an incomplete last line */
	LOOM__JOURNAL_RESTART,   /* discards the content if it is a sweep */
};
/* Opens or creates the file `path`, and locks it against other writers, if its file system has locks. If path is NULL,
 * the lines go to memory. */
int loom__journal_open(const char *path, FILE *stream, enum loom__journal_mode mode, struct loom__journal *j,
		       struct loom_error *err);
/* Returns all lines that were written so far, as a document. */
int loom__journal_read(const struct loom__journal *j, struct loom__doc *doc, struct loom_error *err);
/* Appends one line by one write(). If there is a file, syncs it with fdatasync(). */
int loom__journal_add(struct loom__journal *j, const cJSON *line, struct loom_error *err);
void loom__journal_close(struct loom__journal *j);
/* Closes a journal without samples. Removes the file if it had no content before. */
void loom__journal_drop(struct loom__journal *j);

#endif
