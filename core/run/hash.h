/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): which plug-in files a result was measured with. */
#ifndef LOOM_HASH_H
#define LOOM_HASH_H

#include "base/base.h"

struct loom__hash {
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};
#define LOOM__HASH_TEXT 65 /* 64 hexadecimal digits and a NUL */

void loom__hash_begin(struct loom__hash *h);
void loom__hash_add(struct loom__hash *h, const void *data, size_t n);
void loom__hash_end(struct loom__hash *h, char text[LOOM__HASH_TEXT]);

/* The digest of a file's content. */
int loom__hash_file(const char *path, char text[LOOM__HASH_TEXT], struct loom_error *err);

#endif
