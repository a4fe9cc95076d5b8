/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text, in memory of the host table. */
#ifndef GPULOOM_COMPOSE_TEXT_H
#define GPULOOM_COMPOSE_TEXT_H

#include <gpuloom/plugin.h>

struct text {
	const struct loom_host *host;
	char *at; /* NUL-terminated; NULL: empty, or out of memory */
	size_t length, room;
	int failed; /* out of memory: what was added since is lost */
};

void text_bytes(struct text *t, const char *bytes, size_t n);
void text_add(struct text *t, const char *fmt, ...) LOOM_PRINTF(2, 3);
void text_free(struct text *t);

#endif
