/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_contains: finds and reads documents. */
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
	char *path;         /* documents of one file share it; one of them has `owned` set */
	uint64_t at, bytes; /* part of the file; bytes = 0: the whole file */
	uint64_t seed;      /* seed of a generated document */
	const struct contains_list *list; /* for a generated document: its list, with word and spacing; NULL: a file */
	char *text;         /* text that was loaded ahead, or NULL */
	uint64_t text_bytes;
	uint8_t owned;    /* 1: this entry frees `path` */
	uint8_t bad;      /* 1: reading the file failed before its end */
	uint8_t expected; /* expected result, if `checked` is set in struct contains */
};

struct contains_list {
	struct contains_source *source;
	size_t count, room;
	size_t skipped; /* number of names that match, but are no readable files */
	/* Members for generated documents: */
	const char *word;
	size_t word_bytes;
	double spacing; /* mean distance between occurrences of the word in bytes */
};

/* Lists the documents, in the order of their names. */
int contains_scan(const struct loom_host *host, const struct contains_opts *o,
		  struct contains_list *list, struct loom_error *err);
/* Fills the list with o->documents generated documents. A text is generated when it is read. */
int contains_generate(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		      struct loom_error *err);
/* Op `inputs`: checks that the option `path` is readable. */
int contains_inputs(const struct loom_host *host, const void *opts, struct loom_error *err);
void contains_list_free(struct contains_list *list);

/* State of a generated document, which is written piece by piece. */
struct contains_pen {
	uint64_t state, random, bytes; /* the generator; its last number; unused bytes of that number */
	uint64_t gap, inside;	       /* bytes before the next occurrence; unwritten bytes of the current one */
	char last;
};
/* Does for a generated document what contains_next() does. */
uint64_t contains_write(struct contains_pen *pen, const struct contains_source *s, uint64_t done, char *to, uint64_t room);

/* The file that was read last. It stays open, because further documents of the same file may follow. {0}: no file. */
struct contains_reader {
	gzFile file;
	const char *path; /* `path` of the source; the pointer identifies the file */
	struct contains_pen pen;
};

/* Reads up to `room` bytes of a document, after the first `done` bytes, which earlier calls have read. Returns the
 * number of bytes. At the end, returns 0 and sets *bad to 1 if the document could not be read to its end. */
uint64_t contains_next(struct contains_reader *r, const struct contains_source *s, uint64_t done, char *to,
		       uint64_t room, uint8_t *bad);
/* Returns the text of a document, inflated if necessary. The caller frees it with free(). After a read error the text
 * ends before the error, and *bad is 1. NULL: out of memory. */
char *contains_read(struct contains_reader *r, const struct contains_source *s, uint64_t *bytes, uint8_t *bad);
/* Returns Z_OK, or an error of zlib. */
int contains_reader_close(struct contains_reader *r);

struct loom_ctx;
struct loom_task;
void workload_contains_file(struct loom_ctx *c, const struct loom_task *t);

#endif
