/* SPDX-License-Identifier: Apache-2.0 */
/* The host half of `contains`: finding and reading documents. */
#ifndef CONTAINS_H
#define CONTAINS_H

#include <gpuloom/plugin.h>
#include <zlib.h>

struct contains_opts {
	const char *path, *glob, *index, *word;
	uint32_t match, load;
	uint64_t limit, documents, seed;
	double drift;
};

struct contains_list;

struct contains_source {
	char *path;         /* shared by the documents of one file: see `owned` */
	uint64_t at, bytes; /* bytes 0: the whole file */
	uint64_t seed;      /* of a generated document */
	const struct contains_list *list; /* of a generated document; NULL: a file */
	char *text;         /* loaded ahead, or NULL */
	uint64_t text_bytes;
	uint8_t owned;    /* this entry frees `path` */
	uint8_t bad;      /* could not be read to its end */
	uint8_t expected; /* the check's result, once `checked` is set */
};

struct contains_list {
	struct contains_source *source;
	size_t count, room;
	size_t skipped; /* matching names that are not readable files */
	/* Of generated documents. */
	const char *word;
	size_t word_bytes;
	double spacing; /* mean distance of its occurrences in bytes */
};

/* Lists the documents, in the order of their names. */
int contains_scan(const struct loom_host *host, const struct contains_opts *o,
		  struct contains_list *list, struct loom_error *err);
/* Fills the list with o->documents generated documents. Their texts are written when they are read. */
int contains_generate(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		      struct loom_error *err);
/* Whether `path` is readable. */
int contains_inputs(const struct loom_host *host, const void *opts, struct loom_error *err);
void contains_list_free(struct contains_list *list);

/* The state of a generated document that is written piece by piece. */
struct contains_pen {
	uint64_t state, random, bytes; /* of random numbers; the last one, and its unused bytes */
	uint64_t gap, inside;	       /* bytes to the next occurrence; bytes of this one that are still to be written */
	char last;
};
/* As contains_next() for a generated document. */
uint64_t contains_write(struct contains_pen *pen, const struct contains_source *s, uint64_t done, char *to, uint64_t room);

/* The file that was read last: kept open for further documents of it. {0}: none. */
struct contains_reader {
	gzFile file;
	const char *path; /* the pointer of the source */
	struct contains_pen pen;
};

/* Reads up to `room` bytes of a document after the first `done`, which were read by consecutive calls. Returns how
 * many; 0: the end, with *bad = 1 if it could not be read to its end. */
uint64_t contains_next(struct contains_reader *r, const struct contains_source *s, uint64_t done, char *to,
		       uint64_t room, uint8_t *bad);
/* The text of a document, inflated if necessary; free() it. On a read error: the text before it, and *bad = 1. NULL:
 * out of memory. */
char *contains_read(struct contains_reader *r, const struct contains_source *s, uint64_t *bytes, uint8_t *bad);
/* 0, or zlib's error. */
int contains_reader_close(struct contains_reader *r);

struct loom_ctx;
struct loom_task;
void workload_contains_file(struct loom_ctx *c, const struct loom_task *t);

#endif
