/* SPDX-License-Identifier: Apache-2.0 */
/* The host half of `contains`: finds and reads documents. */
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
	char *path;         /* path that all documents of one file share; one of them has `owned` set */
	uint64_t at, bytes; /* bytes = 0: the whole file */
	uint64_t seed;      /* seed of a generated document */
	const struct contains_list *list; /* list with the word and the spacing of a generated document; NULL: a file */
	char *text;         /* text that was loaded ahead, or NULL */
	uint64_t text_bytes;
	uint8_t owned;    /* 1: this entry frees `path` */
	uint8_t bad;      /* 1: reading the file failed before its end */
	uint8_t expected; /* result of the check, when `checked` is set */
};

struct contains_list {
	struct contains_source *source;
	size_t count, room;
	size_t skipped; /* number of matching names that are not readable files */
	/* The following members are for generated documents. */
	const char *word;
	size_t word_bytes;
	double spacing; /* mean distance of occurrences of the word in bytes */
};

/* Lists the documents, in the order of their names. */
int contains_scan(const struct loom_host *host, const struct contains_opts *o,
		  struct contains_list *list, struct loom_error *err);
/* Fills the list with o->documents generated documents. Their texts are written when they are read. */
int contains_generate(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		      struct loom_error *err);
/* Checks that `path` is readable. */
int contains_inputs(const struct loom_host *host, const void *opts, struct loom_error *err);
void contains_list_free(struct contains_list *list);

/* The state of a generated document that is written piece by piece. */
struct contains_pen {
	uint64_t state, random, bytes; /* the generator; its last number, and the unused bytes of that number */
	uint64_t gap, inside;	       /* bytes to the next occurrence of the word; unwritten bytes of the current one */
	char last;
};
/* As contains_next() for a generated document. */
uint64_t contains_write(struct contains_pen *pen, const struct contains_source *s, uint64_t done, char *to, uint64_t room);

/* The file that was read last, which stays open for its further documents. {0}: none. */
struct contains_reader {
	gzFile file;
	const char *path; /* pointer of the source */
	struct contains_pen pen;
};

/* Reads up to `room` bytes of a document after the first `done`, which earlier calls have read. Returns how many. 0:
 * the end, with *bad = 1 if the document could not be read to its end. */
uint64_t contains_next(struct contains_reader *r, const struct contains_source *s, uint64_t done, char *to,
		       uint64_t room, uint8_t *bad);
/* Returns the text of a document, inflated if necessary; free() it. After a read error it is the text before the error,
 * and *bad = 1. NULL: out of memory. */
char *contains_read(struct contains_reader *r, const struct contains_source *s, uint64_t *bytes, uint8_t *bad);
/* Returns 0 or zlib's error. */
int contains_reader_close(struct contains_reader *r);

struct loom_ctx;
struct loom_task;
void workload_contains_file(struct loom_ctx *c, const struct loom_task *t);

#endif
