/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a: a hash for tables and file names, and a checksum against accidental changes. An adversary can find
 * collisions. */
#ifndef LOOM_LIB_HASH_H
#define LOOM_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>

#define LOOM__FNV1A 0xcbf29ce484222325ull /* the hash of an empty text */

/* Continues a hash with n more bytes. `hash` is the hash of all bytes before them, or LOOM__FNV1A if there are none. */
static inline uint64_t loom__fnv1a(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ull;
	return hash;
}

#endif
