/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (FIPS 180-4) of one 64-byte block with at most six 32-bit words of message, which is all that UTS needs.
 * Words are big-endian numbers, so a digest can be part of the next message. Device code. */
#ifndef WORKLOAD_SHA1_DEV_H
#define WORKLOAD_SHA1_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

LOOM_FN uint32_t sha1_rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

#define SHA1_CHOOSE(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define SHA1_PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define SHA1_MAJORITY(b, c, d) (((b) & (c)) | ((d) & ((b) | (c))))

/* Word t of the message schedule, which is kept in a ring of 16 words. */
#define SHA1_WORD(t)                                                                               \
	((t) < 16 ? w[(t)&15]                                                                      \
		  : (w[(t)&15] = sha1_rotate(w[((t) + 13) & 15] ^ w[((t) + 8) & 15] ^              \
						     w[((t) + 2) & 15] ^ w[(t)&15],                \
					     1)))
/* One step; the caller rotates the variables instead of moving their values. */
#define SHA1_STEP(a, b, c, d, e, t, f, k)                                                          \
	e += sha1_rotate(a, 5) + f(b, c, d) + (k) + SHA1_WORD(t);                                  \
	b = sha1_rotate(b, 30)
#define SHA1_FIVE(t, f, k)                                                                         \
	SHA1_STEP(a, b, c, d, e, (t), f, k);                                                       \
	SHA1_STEP(e, a, b, c, d, (t) + 1, f, k);                                                   \
	SHA1_STEP(d, e, a, b, c, (t) + 2, f, k);                                                   \
	SHA1_STEP(c, d, e, a, b, (t) + 3, f, k);                                                   \
	SHA1_STEP(b, c, d, e, a, (t) + 4, f, k)
#define SHA1_TWENTY(t, f, k)                                                                       \
	SHA1_FIVE(t, f, k);                                                                        \
	SHA1_FIVE((t) + 5, f, k);                                                                  \
	SHA1_FIVE((t) + 10, f, k);                                                                 \
	SHA1_FIVE((t) + 15, f, k)

/* Computes the digest of the first `words` (0 to 6) words of `message`. `digest` and `message` may overlap. */
LOOM_FN void sha1_block(uint32_t digest[5], const uint32_t *message, uint32_t words)
{
	uint32_t w[16] = {0};
	for (uint32_t i = 0; i < words; i++)
		w[i] = message[i];
	w[words] = 0x80000000u;
	w[15] = words * 32;
	uint32_t a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u,
		 e = 0xc3d2e1f0u;
	SHA1_TWENTY(0, SHA1_CHOOSE, 0x5a827999u);
	SHA1_TWENTY(20, SHA1_PARITY, 0x6ed9eba1u);
	SHA1_TWENTY(40, SHA1_MAJORITY, 0x8f1bbcdcu);
	SHA1_TWENTY(60, SHA1_PARITY, 0xca62c1d6u);
	digest[0] = a + 0x67452301u;
	digest[1] = b + 0xefcdab89u;
	digest[2] = c + 0x98badcfeu;
	digest[3] = d + 0x10325476u;
	digest[4] = e + 0xc3d2e1f0u;
}

#endif
