/* SPDX-License-Identifier: Apache-2.0 */
#include "run/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void compress(uint32_t state[8], const unsigned char *block)
{
	uint32_t w[64], v[8];
	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (int t = 16; t < 64; t++) {
		uint32_t s0 = turn(w[t - 15], 7) ^ turn(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t s1 = turn(w[t - 2], 17) ^ turn(w[t - 2], 19) ^ w[t - 2] >> 10;
		w[t] = s1 + w[t - 7] + s0 + w[t - 16];
	}
	memcpy(v, state, sizeof(v));
	for (int t = 0; t < 64; t++) {
		uint32_t e = v[4], a = v[0];
		uint32_t choose = (e & v[5]) ^ (~e & v[6]);
		uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
		uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choose + K[t] + w[t];
		uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

void loom__hash_begin(struct loom__hash *h)
{
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	h->bytes = 0;
	memcpy(h->state, first, sizeof(first));
}

void loom__hash_add(struct loom__hash *h, const void *data, size_t n)
{
	const unsigned char *from = data;
	while (n) {
		size_t at = h->bytes % 64, take = 64 - at < n ? 64 - at : n;
		memcpy(h->block + at, from, take);
		h->bytes += take;
		from += take;
		n -= take;
		if (h->bytes % 64 == 0)
			compress(h->state, h->block);
	}
}

void loom__hash_end(struct loom__hash *h, char text[LOOM__HASH_TEXT])
{
	static const unsigned char padding[64] = {0x80};
	uint64_t bits = h->bytes * 8;
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	size_t at = h->bytes % 64;
	loom__hash_add(h, padding, at < 56 ? 56 - at : 120 - at);
	loom__hash_add(h, length, sizeof(length));
	for (int i = 0; i < 8; i++)
		snprintf(text + 8 * i, 9, "%08x", h->state[i]);
}

int loom__hash_file(const char *path, char text[LOOM__HASH_TEXT], struct loom_error *err)
{
	struct loom__hash h;
	char bytes[16384];
	FILE *f = fopen(path, "rbe");
	if (!f)
		return LOOM__FAIL(err, LOOM_EIO, "%s: %s", path, strerror(errno));
	loom__hash_begin(&h);
	size_t n;
	while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
		loom__hash_add(&h, bytes, n);
	int failed = ferror(f);
	fclose(f);
	if (failed)
		return LOOM__FAIL(err, LOOM_EIO, "%s: cannot be read", path);
	loom__hash_end(&h, text);
	return 0;
}
