/* SPDX-License-Identifier: Apache-2.0 */
/* contains: searches documents for a word, with one task per document. Device code. */
#ifndef WORKLOAD_CONTAINS_DEV_H
#define WORKLOAD_CONTAINS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif
#ifdef GPULOOM_DEV_CPU_H
#include <string.h>
#endif

enum { CONTAINS_SUBSTRING, CONTAINS_WORD };
/* Results of a task. All bits set: the task has not run. */
enum { CONTAINS_NO, CONTAINS_YES, CONTAINS_UNREADABLE, CONTAINS_TWICE };

/* Texts start at multiples of this. Behind the last text, the block has as many more bytes. */
#define CONTAINS_ALIGN 16

/* The start of the global block, which is constant. Offsets count from here, in bytes. */
struct contains_job {
	uint64_t documents; /* struct contains_document[] at `list` */
	uint64_t list;
	uint64_t word; /* offset of the word's bytes */
	uint32_t word_bytes;
	uint32_t match; /* CONTAINS_SUBSTRING or CONTAINS_WORD */
	double spacing; /* mean distance of the word in generated documents; 0: documents are files */
	uint64_t pad[3];
};

struct contains_document {
	uint64_t name;             /* offset of the file's path, NUL-terminated */
	uint64_t at, bytes;        /* part of a file: offset, length (0: all); generated text: seed, length */
	uint64_t text, text_bytes; /* offset and length of a text that was loaded ahead */
	uint32_t bad;		   /* 1: the file could not be read to its end */
	uint32_t pad[5];
};

LOOM_FN struct contains_job *contains_job(const struct loom_ctx *c)
{
	return (struct contains_job *)c->global[LOOM_WORKLOAD];
}

/* Returns the task's document. param[0] is its index. */
LOOM_FN struct contains_document *contains_document(const struct loom_ctx *c,
						    const struct loom_task *t)
{
	struct contains_job *job = contains_job(c);
	return (struct contains_document *)((char *)job + job->list) + t->param[0];
}

/* Returns where the task's result is stored: in the device's block, which has the results of tasks that this device
 * ran. */
LOOM_FN uint32_t *contains_result(const struct loom_ctx *c, const struct loom_task *t)
{
	return (uint32_t *)c->on_device[LOOM_WORKLOAD] + t->param[0];
}

/* Returns whether a byte belongs to a letter. This needs no tables of UTF-8: a letter is an ASCII letter, a digit, an
 * underscore, or any byte of a longer character. */
LOOM_FN int contains_letter(char byte)
{
	unsigned char b = (unsigned char)byte, low = (unsigned char)(b | 0x20);
	return b >= 0x80 || (low >= 'a' && low <= 'z') || (b >= '0' && b <= '9') || b == '_';
}

/* Returns whether no letter is next to the n bytes at `at`. */
LOOM_FN int contains_whole(const char *text, uint64_t bytes, uint64_t at, uint64_t n)
{
	return !(at > 0 && contains_letter(text[at - 1])) &&
	       !(at + n < bytes && contains_letter(text[at + n]));
}

#ifdef GPULOOM_DEV_CPU_H
/* Returns 1 if a match starts in [from, to). */
LOOM_FN int contains_find(const struct contains_job *job, const char *text, uint64_t bytes, uint64_t from, uint64_t to)
{
	const char *word = (const char *)job + job->word;
	uint64_t n = job->word_bytes, end = bytes - to < n - 1 ? bytes : to + n - 1; /* where the last match may end */
	while (from < end) {
		const char *p = (const char *)memmem(text + from, end - from, word, n);
		if (!p)
			return 0;
		from = (uint64_t)(p - text);
		if (job->match == CONTAINS_SUBSTRING || contains_whole(text, bytes, from, n))
			return 1;
		from++;
	}
	return 0;
}

LOOM_FN int contains_search(struct loom_ctx *c, const struct contains_job *job, const char *text, uint64_t bytes,
			    const uint32_t *result)
{
	(void)c, (void)result; /* a CPU's worker has only one lane here */
	return contains_find(job, text, bytes, 0, bytes);
}
#else
/* Lanes read neighbouring pieces, so that a wave reads whole lines of memory, several lines at a time. */
#ifdef GPULOOM_DEV_HIP_H
#define CONTAINS_PIECES 2 /* with four, compilers for gfx90a spill registers */
#else
#define CONTAINS_PIECES 4
#endif
#define CONTAINS_ONES 0x0101010101010101ull
struct __attribute__((aligned(CONTAINS_ALIGN))) contains_piece {
	uint64_t low, high;
};

/* Returns a mask with the highest bit of each byte of `v` that equals `pattern`. Above a true match, false ones are
 * possible. */
LOOM_FN uint64_t contains_equal(uint64_t v, uint64_t pattern)
{
	uint64_t x = v ^ pattern;
	return (x - CONTAINS_ONES) & ~x & CONTAINS_ONES << 7;
}

/* Returns 1 if the word starts at one of the bytes from `text` + `at` on that `mask` marks. */
LOOM_FN int contains_begins(const struct contains_job *job, const char *text, uint64_t bytes, uint64_t at,
			    uint64_t mask)
{
	const char *word = (const char *)job + job->word;
	uint64_t n = job->word_bytes;
	LOOM_NO_UNROLL
	for (; mask; mask >>= 8, at++) {
		uint64_t i = 0;
		if (!(mask & 0x80) || at + n > bytes)
			continue;
		while (i < n && text[at + i] == word[i])
			i++;
		if (i == n && (job->match == CONTAINS_SUBSTRING || contains_whole(text, bytes, at, n)))
			return 1;
	}
	return 0;
}

/* Returns 1 if the word is in this lane's pieces. A lane ends early when another lane has found the word. Pieces
 * start at multiples of their size, so the last piece may include bytes behind the text. */
LOOM_FN int contains_search(struct loom_ctx *c, const struct contains_job *job, const char *text, uint64_t bytes,
			    const uint32_t *result)
{
	const unsigned char *word = (const unsigned char *)job + job->word;
	uint64_t first = CONTAINS_ONES * word[0], second = CONTAINS_ONES * word[job->word_bytes > 1];
	uint64_t last = job->word_bytes > 1 ? 0 : ~(uint64_t)0,
		 step = (uint64_t)c->lanes * sizeof(struct contains_piece);
	for (uint64_t from = c->lane * sizeof(struct contains_piece); from < bytes; from += CONTAINS_PIECES * step) {
		struct contains_piece v[CONTAINS_PIECES];
		unsigned char next[CONTAINS_PIECES];
		uint32_t found = loom_load_relaxed_dev(result);
		for (uint32_t k = 0; k < CONTAINS_PIECES; k++) {
			uint64_t at = from + k * step;
			v[k].low = v[k].high = 0;
			if (at < bytes)
				v[k] = *(const struct contains_piece *)(text + at);
			next[k] = at + sizeof(v[k]) < bytes ? (unsigned char)text[at + sizeof(v[k])] : 0;
		}
		for (uint32_t k = 0; k < CONTAINS_PIECES; k++) {
			/* Find the places of the word's first byte with its second byte behind it. */
			uint64_t at = from + k * step, low = v[k].low, high = v[k].high;
			uint64_t here =
			    contains_equal(low, first) & (contains_equal(low >> 8 | high << 56, second) | last);
			uint64_t there = contains_equal(high, first) &
					 (contains_equal(high >> 8 | (uint64_t)next[k] << 56, second) | last);
			if (here && contains_begins(job, text, bytes, at, here))
				return 1;
			if (there && contains_begins(job, text, bytes, at + sizeof(low), there))
				return 1;
		}
		if (found == CONTAINS_YES)
			return 0;
	}
	return 0;
}
#endif

/* Task with load = ahead. All lanes together search the text, which is in the global block. */
LOOM_FN void workload_contains_search(struct loom_ctx *c, const struct loom_task *t)
{
	struct contains_job *job = contains_job(c);
	struct contains_document *d = contains_document(c, t);
	uint32_t *result = contains_result(c, t);
	if (c->lane == 0)
		loom_store_relaxed_dev(result, (uint32_t)(d->bad ? CONTAINS_UNREADABLE : CONTAINS_NO));
	loom_barrier_lanes(c); /* the store above precedes each store of CONTAINS_YES */
	/* All lanes store the same value, in any order. */
	if (contains_search(c, job, (const char *)job + d->text, d->text_bytes, result))
		loom_store_relaxed_dev(result, (uint32_t)CONTAINS_YES);
}

/* Task with load = task. The version for CPUs, in contains_read.c, opens, inflates and searches a file. */
#ifndef GPULOOM_DEV_CPU_H
LOOM_FN void workload_contains_file(struct loom_ctx *c, const struct loom_task *t)
{
	(void)t;
	loom_worker_fail(c, LOOM_ENOTSUP, 0);
}
#endif

#endif
