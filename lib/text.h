/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and lists that grow. */
#ifndef LOOM_LIB_TEXT_H
#define LOOM_LIB_TEXT_H

#include <stddef.h>

/* Zero-initialise; free by loom__text_free(). After a failed allocation appends do nothing, and loom__text_ok() is
 * 0. */
struct loom__text {
	char *at; /* NUL-terminated after the first append; NULL before */
	size_t length, room;
	int failed;
};
void loom__text_add(struct loom__text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void loom__text_put(struct loom__text *t, const char *bytes, size_t n);
void loom__text_free(struct loom__text *t);
static inline int loom__text_ok(const struct loom__text *t)
{
	return !t->failed;
}

/* Returns the list of n things of `size` bytes with room for one more, or NULL when memory ran out, with the list
 * unchanged. The room doubles, so lists that only this function grows need not store it. */
void *loom__more(void *list, size_t n, size_t size);

#endif
