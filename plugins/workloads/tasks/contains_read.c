/* SPDX-License-Identifier: Apache-2.0 */
/* Reads documents, plain or gzip. The host reads a whole document, a task reads it in pieces. */
#include "contains.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "workload_contains.dev.h"

/* Opens a file and detects its type. Otherwise gzseek() would read everything before the position. */
static gzFile open_file(const char *path)
{
	gzFile f = gzopen(path, "rbe");
	if (f)
		gzdirect(f); /* detects plain files, in which a seek takes no time */
	return f;
}

static gzFile open_at(const char *path, uint64_t at)
{
	gzFile f = open_file(path);
	if (f && at && gzseek(f, (z_off_t)at, SEEK_SET) < 0) {
		gzclose(f);
		return NULL;
	}
	return f;
}

int contains_reader_close(struct contains_reader *r)
{
	int rc = r->file ? gzclose(r->file) : Z_OK;
	*r = (struct contains_reader){0};
	return rc;
}

/* Goes to the start of a document. Documents of one file have the same pointer `path`. A seek forward in a gzip file
 * inflates only the part in between. */
static gzFile go_to(struct contains_reader *r, const struct contains_source *s)
{
	if (r->path != s->path) {
		contains_reader_close(r);
		r->file = open_file(s->path);
		r->path = s->path;
	}
	return r->file && gzseek(r->file, (z_off_t)s->at, SEEK_SET) >= 0 ? r->file : NULL;
}

uint64_t contains_next(struct contains_reader *r, const struct contains_source *s, uint64_t done, char *to,
		       uint64_t room, uint8_t *bad)
{
	if (s->list) {
		*bad = 0;
		return contains_write(&r->pen, s, done, to, room);
	}
	uint64_t left = s->bytes ? s->bytes - done : ~0ull;
	gzFile f = done ? r->file : go_to(r, s);
	int n = 0;
	room = room < left ? room : left;
	*bad = !f;
	if (f && room)
		n = gzread(f, to, room < 1u << 30 ? (unsigned)room : 1u << 30);
	if (n > 0)
		return (uint64_t)n;
	if (n < 0 || (s->bytes && left)) /* the index names bytes behind the file's end */
		*bad = 1;
	/* Closing a file after it was read whole detects a truncated file. After an error no more can be read. */
	if ((*bad || !s->bytes) && contains_reader_close(r) != Z_OK)
		*bad = 1;
	return 0;
}

char *contains_read(struct contains_reader *r, const struct contains_source *s, uint64_t *bytes, uint8_t *bad)
{
	uint64_t room = s->bytes ? s->bytes : 65536, have = 0, n;
	char *text = malloc(room);
	while (text && (n = contains_next(r, s, have, text + have, room - have, bad))) {
		have += n;
		if (have < room || have == s->bytes)
			continue;
		char *more = realloc(text, room *= 2);
		if (!more)
			free(text);
		text = more;
	}
	*bytes = have;
	return text;
}

/* Bytes that a task reads at a time. A word may span two pieces, so the end of a piece is searched with the next
 * piece. */
#define PIECE 65536u

static uint32_t search(const struct contains_job *job, gzFile f, const struct contains_source *generated, uint64_t most)
{
	struct contains_pen pen;
	char text[PIECE];
	uint64_t have = 0, from = 0, read = 0;
	uint64_t tail = job->word_bytes; /* a match that starts in the last `tail` bytes may need the next piece */
	for (;;) {
		uint64_t ask = PIECE - have < most - read ? PIECE - have : most - read;
		int n = !ask ? 0 :
			f    ? gzread(f, text + have, (unsigned)ask) :
			       (int)contains_write(&pen, generated, read, text + have, ask);
		if (n < 0) /* the text before the damage is searched, as zgrep does */
			return contains_find(job, text, have, from, have) ? CONTAINS_YES
									  : CONTAINS_UNREADABLE;
		read += (uint64_t)n;
		have += (uint64_t)n;
		int last = (uint64_t)n < ask || read == most;
		uint64_t to = last ? have : have > tail ? have - tail : 0;
		if (from < to && contains_find(job, text, have, from, to))
			return CONTAINS_YES;
		if (last)
			return CONTAINS_NO;
		/* Keep the text that was not searched, and the byte before it. */
		if (to > from) {
			uint64_t keep = to - 1;
			memmove(text, text + keep, have - keep);
			have -= keep;
			from = 1;
		}
	}
}

void workload_contains_file(struct loom_ctx *c, const struct loom_task *t)
{
	const struct contains_job *job = contains_job(c);
	struct contains_document *d = contains_document(c, t);
	if (c->lane != 0)
		return;
	if (job->spacing > 0) {
		struct contains_list list = {.word = (const char *)job + job->word,
					     .word_bytes = job->word_bytes,
					     .spacing = job->spacing};
		struct contains_source s = {.bytes = d->bytes, .seed = d->at, .list = &list};
		*contains_result(c, t) = search(job, NULL, &s, d->bytes);
		return;
	}
	gzFile f = open_at((const char *)job + d->name, d->at);
	uint32_t result = CONTAINS_UNREADABLE;
	if (f) {
		result = search(job, f, NULL, d->bytes ? d->bytes : ~0ull);
		if (gzclose(f) != Z_OK && result == CONTAINS_NO)
			result = CONTAINS_UNREADABLE;
	}
	*contains_result(c, t) = result;
}
