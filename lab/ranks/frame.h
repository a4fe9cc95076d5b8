/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a rank and the hub, as bytes: no sockets here. A message (a frame) is a head and a body of as many bytes as
 * the head says. Both sides are of one architecture. */
#ifndef LOOM_FRAME_H
#define LOOM_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum loom__frame_kind {
	LOOM__FRAME_HELLO = 1, /* the first of a rank that connects; body: struct loom__hello */
	LOOM__FRAME_GIVE,      /* what a rank gives to an exchange */
	LOOM__FRAME_ALL,       /* what all have given */
	LOOM__FRAME_DONE,      /* a rank ends; body: why, as text */
	LOOM__FRAME_END,       /* there is no answer; body: why, as text */
	LOOM__FRAME_WELCOME,   /* the answer to HELLO */
	LOOM__FRAME_KINDS
};
#define LOOM__FRAME_BIT(kind) (1u << (kind))

struct loom__frame_head {
	uint32_t kind;
	uint32_t value; /* HELLO: rank; GIVE: turn; DONE: status */
	uint64_t bytes; /* of the body */
};

/* Another version of gpuloom may have other exchanges. */
#define LOOM__HELLO_VERSION 1u
struct loom__hello {
	unsigned char token[16];
	uint32_t ranks, version;
};

#define LOOM__GIVE_MOST (16u << 20) /* bytes of a rank in one exchange */
#define LOOM__TEXT_MOST 999u	    /* bytes of a text */

/* A frame that is whole. */
struct loom__frame {
	struct loom__frame_head head;
	const char *body; /* head.bytes of it and a NUL, in the reader, until its next call */
};

/* The bytes of one connection. Zero-initialise it, and set the first two. */
struct loom__frame_reader {
	uint32_t kinds; /* LOOM__FRAME_BIT() of each kind that may come */
	uint64_t most;	/* bytes that the body of GIVE or ALL may have; the other kinds have bounds of their own */
	struct loom__frame_head head;
	uint64_t have; /* bytes of this frame so far, its head included */
	char *body;
	uint64_t room;
	int failed; /* the error that ended it */
};

/* Takes bytes as a connection brings them, in pieces of any size. Returns 1 when a frame is whole: *frame is filled, and
 * *used says how many of the bytes were taken: call again with the rest. 0: all were taken, and more must come. LOOM_EINVAL: a
 * kind that may not come here or a body longer than its kind may have; LOOM_ENOMEM. Both are final. Memory is taken
 * for bytes that have come, not for those that were announced. */
int loom__frame_take(struct loom__frame_reader *r, const void *data, size_t bytes, size_t *used, struct loom__frame *frame);
/* How many bytes are missing of the head, or, once that is known, of the body. */
uint64_t loom__frame_wants(const struct loom__frame_reader *r);
/* Whether a frame has begun and is not whole. */
int loom__frame_is_cut(const struct loom__frame_reader *r);
void loom__frame_reader_free(struct loom__frame_reader *r);

#endif
