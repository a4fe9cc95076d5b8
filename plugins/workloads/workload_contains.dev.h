/* SPDX-License-Identifier: Apache-2.0 */
/* contains: which documents contain a word? One task per document. Device code. */
#ifndef WORKLOAD_CONTAINS_DEV_H
#define WORKLOAD_CONTAINS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif
#ifdef GPULOOM_DEV_CPU_H
#include <string.h>
#endif

enum { CONTAINS_SUBSTRING, CONTAINS_WORD };
/* Results; all ones: the task has not run. */
enum { CONTAINS_NO, CONTAINS_YES, CONTAINS_UNREADABLE, CONTAINS_TWICE };

/* The global block begins with this, and is constant; offsets count from its start. */
struct contains_job {
	uint64_t documents; /* struct contains_document[] at `list` */
	uint64_t list;
	uint64_t word; /* offset of its bytes */
	uint32_t word_bytes;
	uint32_t match; /* CONTAINS_SUBSTRING or CONTAINS_WORD */
	uint64_t pad[4];
};

struct contains_document {
	uint64_t name;             /* offset of the file's path, NUL-terminated */
	uint64_t at, bytes;        /* part of the file (bytes 0: all of it) ... */
	uint64_t text, text_bytes; /* ... and what was loaded ahead: offset, length */
	uint32_t bad;		   /* not all of it could be */
	uint32_t pad[5];
};

LOOM_FN struct contains_job *contains_job(const struct loom_ctx *c)
{
	return (struct contains_job *)c->global[LOOM_WORKLOAD];
}

/* param[0]: number of the document. */
LOOM_FN struct contains_document *contains_document(const struct loom_ctx *c,
						    const struct loom_task *t)
{
	struct contains_job *job = contains_job(c);
	return (struct contains_document *)((char *)job + job->list) + t->param[0];
}

/* In the device's block: what the tasks that ran there found. */
LOOM_FN uint32_t *contains_result(const struct loom_ctx *c, const struct loom_task *t)
{
	return (uint32_t *)c->on_device[LOOM_WORKLOAD] + t->param[0];
}

/* UTF-8 without tables: a letter is an ASCII letter, digit or underscore, or any byte of a longer
 * character. */
LOOM_FN int contains_letter(char byte)
{
	unsigned char b = (unsigned char)byte, low = (unsigned char)(b | 0x20);
	return b >= 0x80 || (low >= 'a' && low <= 'z') || (b >= '0' && b <= '9') || b == '_';
}

/* The neighbours of the n bytes at `at` are no letters. */
LOOM_FN int contains_whole(const char *text, uint64_t bytes, uint64_t at, uint64_t n)
{
	return !(at > 0 && contains_letter(text[at - 1])) &&
	       !(at + n < bytes && contains_letter(text[at + n]));
}

/* The first place at or after `from` where the n bytes of `word` stand, if it lies in front of
 * `to`; else `to`. */
LOOM_FN uint64_t contains_next(const char *text, uint64_t bytes, uint64_t from, uint64_t to,
			       const char *word, uint64_t n)
{
	uint64_t end = bytes - to < n - 1 ? bytes : to + n - 1; /* of the last match that counts */
#ifdef GPULOOM_DEV_CPU_H
	const char *p = end > from ? (const char *)memmem(text + from, end - from, word, n) : 0;
	return p ? (uint64_t)(p - text) : to;
#else
	for (; from + n <= end; from++) {
		uint64_t i = 0;
		while (i < n && text[from + i] == word[i])
			i++;
		if (i == n)
			return from;
	}
	return to;
#endif
}

/* 1 when a match begins in [from, to). */
LOOM_FN int contains_find(const struct contains_job *job, const char *text, uint64_t bytes,
			  uint64_t from, uint64_t to)
{
	const char *word = (const char *)job + job->word;
	uint64_t n = job->word_bytes, at;
	while ((at = contains_next(text, bytes, from, to, word, n)) < to) {
		if (job->match == CONTAINS_SUBSTRING || contains_whole(text, bytes, at, n))
			return 1;
		from = at + 1;
	}
	return 0;
}

/* load = ahead: searches the text in the segment; each lane a part of it. */
LOOM_FN void workload_contains_search(struct loom_ctx *c, const struct loom_task *t)
{
	struct contains_job *job = contains_job(c);
	struct contains_document *d = contains_document(c, t);
	uint32_t *result = contains_result(c, t);
	uint64_t bytes = d->text_bytes, each = bytes / c->lanes + 1, from = each * c->lane;
	uint64_t to = from + each < bytes ? from + each : bytes;
	if (c->lane == 0)
		loom_store_relaxed_sys(result, (uint32_t)(d->bad ? CONTAINS_UNREADABLE : CONTAINS_NO));
	loom_barrier_lanes(c); /* no lane's find is overwritten */
	/* Lanes store the same value: which one comes last does not matter. */
	if (from < to && contains_find(job, (const char *)job + d->text, bytes, from, to))
		loom_store_relaxed_sys(result, (uint32_t)CONTAINS_YES);
}

/* load = task: opens, inflates and searches a file; contains_read.c has it. */
#ifndef GPULOOM_DEV_CPU_H
LOOM_FN void workload_contains_file(struct loom_ctx *c, const struct loom_task *t)
{
	(void)t;
	loom_worker_fail(c, LOOM_ENOTSUP, 0);
}
#endif

#endif
