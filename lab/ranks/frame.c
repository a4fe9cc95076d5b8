/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/frame.h"

#include <gpuloom/error.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096u

static int is_allowed(const struct loom__frame_reader *r)
{
	uint64_t bytes = r->head.bytes;
	switch (r->head.kind) {
	case LOOM__FRAME_GIVE:
	case LOOM__FRAME_ALL:
		return r->kinds & LOOM__FRAME_BIT(r->head.kind) && bytes <= r->most;
	case LOOM__FRAME_DONE:
	case LOOM__FRAME_END:
		return r->kinds & LOOM__FRAME_BIT(r->head.kind) && bytes <= LOOM__TEXT_MOST;
	default:
		return 0;
	}
}

/* Makes room for `bytes` bytes of the body and a NUL. The room doubles each time, so that the body is copied rarely. It
 * does not exceed the announced size. */
static int make_room(struct loom__frame_reader *r, uint64_t bytes)
{
	uint64_t room = r->room ? r->room : FIRST_ROOM;
	if (bytes < r->room)
		return 0;
	while (room <= bytes)
		room *= 2;
	if (room > r->head.bytes + 1)
		room = r->head.bytes + 1;
	char *body = realloc(r->body, room);
	if (!body)
		return LOOM_ENOMEM;
	r->body = body;
	r->room = room;
	return 0;
}

static size_t least(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

/* Copies from `data` the bytes of the head that are still missing. Returns the number of bytes copied. */
static size_t take_head(struct loom__frame_reader *r, const char *data, size_t bytes)
{
	size_t n = r->have < sizeof(r->head) ? least(sizeof(r->head) - r->have, bytes) : 0;
	if (n)
		memcpy((char *)&r->head + r->have, data, n);
	r->have += n;
	return n;
}

int loom__frame_take(struct loom__frame_reader *r, const void *data, size_t bytes, size_t *used,
		     struct loom__frame *frame)
{
	*used = 0;
	if (r->failed)
		return r->failed;
	size_t n = take_head(r, data, bytes);
	*used = n;
	if (r->have < sizeof(r->head))
		return 0;
	if (!is_allowed(r))
		return r->failed = LOOM_EINVAL;
	uint64_t come = r->have - sizeof(r->head);
	size_t more = least(r->head.bytes - come, bytes - n);
	if (make_room(r, come + more))
		return r->failed = LOOM_ENOMEM;
	if (more)
		memcpy(r->body + come, (const char *)data + n, more);
	*used += more;
	r->have += more;
	if (come + more < r->head.bytes)
		return 0;
	r->body[r->head.bytes] = 0;
	*frame = (struct loom__frame){.head = r->head, .body = r->body};
	r->have = 0;
	return 1;
}

uint64_t loom__frame_wants(const struct loom__frame_reader *r)
{
	return r->have < sizeof(r->head) ? sizeof(r->head) - r->have : r->head.bytes - (r->have - sizeof(r->head));
}

void loom__frame_reader_free(struct loom__frame_reader *r)
{
	free(r->body);
	r->body = NULL;
	r->room = 0;
	r->have = 0;
}
