/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a rank and the hub, independent of sockets. A message is called a frame. It has a head, and a body
 * whose size is in the head. Both sides have the same byte order and type sizes. */
#ifndef LOOM_FRAME_H
#define LOOM_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum loom__frame_kind {
	LOOM__FRAME_GIVE = 1, /* the contribution of a rank to an exchange */
	LOOM__FRAME_ALL,      /* the contributions of all ranks */
	LOOM__FRAME_DONE,     /* the rank ends; body: the reason, as text */
	LOOM__FRAME_END,      /* the exchange has failed; body: the reason, as text */
	LOOM__FRAME_KINDS
};
#define LOOM__FRAME_BIT(kind) (1u << (kind))

struct loom__frame_head {
	uint32_t kind;
	uint32_t value; /* GIVE: number of the exchange; DONE: exit status */
	uint64_t bytes; /* size of the body */
};

#define LOOM__GIVE_MOST (16u << 20) /* limit on the bytes that one rank contributes to an exchange */
#define LOOM__TEXT_MOST 999u        /* limit on the bytes of a text */

/* A complete frame. */
struct loom__frame {
	struct loom__frame_head head;
	const char *body; /* head.bytes bytes and a NUL, valid until the next call with the same reader */
};

/* Parses the bytes of one connection. Zero-initialise it, then set `kinds` and `most`. */
struct loom__frame_reader {
	uint32_t kinds; /* LOOM__FRAME_BIT() of each accepted kind */
	uint64_t most;  /* limit on the bytes in the body of GIVE or ALL; the limits of other kinds are fixed */
	struct loom__frame_head head;
	uint64_t have; /* number of bytes of this frame so far, head included */
	char *body;
	uint64_t room;
	int failed; /* 0, or the error that ended the reader */
};

/* Parses `bytes` bytes, which may be any part of the stream. Sets *used to the number of bytes taken. If a frame is
 * complete, sets *frame and returns 1; the caller must call it again with the rest of the bytes. Returns 0 if all bytes
 * were taken and the frame needs more. LOOM_ENOMEM and LOOM_EINVAL are final; LOOM_EINVAL means a kind that is not
 * accepted, or a body above the limit of its kind. Memory is allocated for bytes that have arrived, not for the
 * announced size. */
int loom__frame_take(struct loom__frame_reader *r, const void *data, size_t bytes, size_t *used,
		     struct loom__frame *frame);
/* Returns the number of missing bytes of the head or, when the head is complete, of the body. */
uint64_t loom__frame_wants(const struct loom__frame_reader *r);
void loom__frame_reader_free(struct loom__frame_reader *r);

#endif
