/* SPDX-License-Identifier: Apache-2.0 */
/* The input has bytes from the connection of a rank. The first byte selects the accepted kinds of messages. The rest is
 * read as a whole, byte by byte, and in pieces that the input chooses. Each way must give the same messages and the
 * same error. No message may be longer than the bound of its kind. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "input.h"
#include "ranks/frame.h"

enum { BODY_MOST = 300 };

/* Writes the messages as text, and the error at the end. */
static void read_in_pieces(const uint8_t *data, size_t size, uint32_t kinds, unsigned step, struct loom__text *out)
{
	struct loom__frame_reader r = {.kinds = kinds, .most = BODY_MOST};
	struct loom__frame f;
	size_t piece = 0, at = 0, used = 0;
	int rc = 0;
	while (at < size && rc >= 0) {
		if (!piece)
			piece = step ? step : 1u + data[at] % 40;
		piece = piece < size - at ? piece : size - at;
		FUZZ_CHECK(loom__frame_wants(&r)); /* with an empty buffer, recv() would return 0 as at the end */
		rc = loom__frame_take(&r, data + at, piece, &used, &f);
		FUZZ_CHECK(used <= piece && (rc || used == piece));
		at += used;
		piece -= used;
		if (rc != 1)
			continue;
		FUZZ_CHECK(kinds & LOOM__FRAME_BIT(f.head.kind));
		FUZZ_CHECK(
		    f.head.bytes <=
		    (f.head.kind == LOOM__FRAME_DONE || f.head.kind == LOOM__FRAME_END ? LOOM__TEXT_MOST : BODY_MOST));
		FUZZ_CHECK(!f.body[f.head.bytes]);
		loom__text_add(out, "%u %u %zu ", f.head.kind, f.head.value, (size_t)f.head.bytes);
		loom__text_put(out, f.body, f.head.bytes);
	}
	loom__text_add(out, "end %d %d", rc < 0 ? rc : 0, rc >= 0 && r.have);
	if (rc < 0) /* the error is permanent */
		FUZZ_CHECK(loom__frame_take(&r, data, size, &used, &f) == rc);
	loom__frame_reader_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned step[] = {1, 7, 0};
	struct loom__text all = {0};
	if (!size)
		return 0;
	read_in_pieces(data + 1, size - 1, data[0], UINT32_MAX, &all);
	for (size_t i = 0; i < LOOM__COUNT(step); i++) {
		struct loom__text pieces = {0};
		read_in_pieces(data + 1, size - 1, data[0], step[i], &pieces);
		FUZZ_CHECK(pieces.length == all.length && !memcmp(pieces.at, all.at, all.length));
		loom__text_free(&pieces);
	}
	loom__text_free(&all);
	return 0;
}
