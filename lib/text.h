/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and lists that grow. */
#ifndef LOOM_LIB_TEXT_H
#define LOOM_LIB_TEXT_H

#include <errno.h>
#include <gpuloom/error.h>
#include <stddef.h>

/* A text that grows. Initialise it with zeros, and free it by loom__text_free(). After an allocation has failed,
 * appends do nothing and loom__text_ok() returns 0. */
struct loom__text {
	char *at;            /* the text with a NUL at its end; NULL before the first append */
	size_t length, room; /* bytes without the NUL; bytes allocated */
	int failed;          /* 1 after a failed allocation */
};
void loom__text_add(struct loom__text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void loom__text_put(struct loom__text *t, const char *bytes, size_t n);
void loom__text_free(struct loom__text *t);
/* Appends a regular file of at most `most` bytes. Returns NULL. After a failure returns the words to follow the name of
 * the file; errno is 0 if they do not come from the system. */
const char *loom__text_read(struct loom__text *t, const char *path, size_t most);
/* Returns the error code for an errno of such a failure. */
static inline int loom__errno_code(int number)
{
	return number == ENOENT ? LOOM_ENOENT : number == ENOMEM ? LOOM_ENOMEM : LOOM_EIO;
}
static inline int loom__text_ok(const struct loom__text *t)
{
	return !t->failed;
}

/* Returns the list of n elements of `size` bytes, with room for at least one more. If memory runs out, returns NULL and
 * leaves the list unchanged. The room is always 8 or a larger power of two, so the caller need not store it. */
void *loom__more(void *list, size_t n, size_t size);

#endif
