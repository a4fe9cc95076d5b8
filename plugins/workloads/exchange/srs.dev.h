/* SPDX-License-Identifier: Apache-2.0 */
/* C_SRS: an image pipeline (model: unidirectional, access: streaming). Device 0 makes tiles of 16-bit pixels
 * (radiometric correction) in the memory of a channel. Consumers on the other devices filter a tile (5 x 5) and
 * compute its histogram. Device code. */
#ifndef SRS_DEV_H
#define SRS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { SRS_HISTOGRAMS = 0 };
enum { SRS_N = 0, SRS_SEED, SRS_CONSUMERS, SRS_FIRST };

/* Returns the index of channel i's first consumer. If i is the number of channels, returns the number of consumers.
 * Each parameter from SRS_FIRST on holds two of these numbers. */
LOOM_FN uint32_t srs_first(const struct ex_head *h, uint32_t i)
{
	return (uint32_t)(h->param[SRS_FIRST + i / 2] >> 32 * (i % 2));
}

enum { SRS_BINS = 256 };

/* Returns a raw pixel of the sensor: a scene, with a gain and an offset that differ by column. */
LOOM_FN uint32_t srs_raw(uint64_t seed, uint32_t tile, uint64_t i, uint64_t j)
{
	uint64_t x = seed + tile * 0x9e3779b97f4a7c15ull + (i / 4) * 0xbf58476d1ce4e5b9ull + j;
	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return (uint32_t)(x >> 50) + (uint32_t)(8 * i + j % 16);
}

LOOM_FN uint16_t srs_correct(uint32_t raw, uint64_t j)
{
	uint32_t v = raw * (256 + (uint32_t)(j % 7)) / 256 + 3 * (uint32_t)(j % 5);
	return (uint16_t)(v > 65535 ? 65535 : v);
}

LOOM_FN void srs_make(const struct loom_ctx *c, uint16_t *tile, uint64_t seed, uint32_t number, uint64_t n)
{
	EX_EACH(c, i, 0, n)
		for (uint64_t j = 0; j < n; j++)
			tile[i * n + j] = srs_correct(srs_raw(seed, number, i, j), j);
}

/* Returns a filtered pixel. The weights are 1 4 6 4 1 in both dimensions. A border of two pixels is not in the
 * histogram. */
LOOM_FN uint16_t srs_filter(const uint16_t *tile, uint64_t n, uint64_t i, uint64_t j)
{
	uint32_t sum = 0;
	for (uint32_t a = 0; a < 5; a++)
		for (uint32_t b = 0; b < 5; b++) {
			uint32_t wa = a == 2 ? 6 : a % 2 ? 4 : 1, wb = b == 2 ? 6 : b % 2 ? 4 : 1;
			sum += wa * wb * tile[(i + a - 2) * n + j + b - 2];
		}
	return (uint16_t)(sum / 256);
}

LOOM_FN void srs_consume(const struct loom_ctx *c, uint32_t *histogram, const uint16_t *tile, uint64_t n)
{
	for (uint64_t i = 2; i + 2 < n; i++)
		for (uint64_t j = 2; j + 2 < n; j++) {
			uint32_t bin = srs_filter(tile, n, i, j) / (65536 / SRS_BINS / 4) % SRS_BINS;
			if (bin % c->lanes == c->lane) /* only one lane writes a bin */
				histogram[bin]++;
		}
}

/* Producer k % producers makes tile k, and consumer k % consumers reads it. Each device with consumers has a channel,
 * whose tags number the tiles of this device. */
LOOM_FN void workload_srs_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[SRS_N], seed = h->param[SRS_SEED];
	uint32_t producers = c->workers - h->param[2], consumers = (uint32_t)h->param[2];
	uint32_t tiles = h->iterations * consumers;
	uint32_t *histograms = (uint32_t *)ex_at(c, SRS_HISTOGRAMS);
	ex_begin(c);
	if (c->device == 0) {
		for (uint32_t k = c->worker; k < tiles; k += producers) {
			uint32_t consumer = k % consumers, channel = 0;
			void *at;
			while (channel + 2 < c->devices && consumer >= srs_first(h, channel + 1))
				channel++;
			uint32_t count = srs_first(h, channel + 1) - srs_first(h, channel);
			uint32_t tag = k / consumers * count + consumer - srs_first(h, channel);
			if (ex_reserve(c, channel, tag, &at))
				break;
			srs_make(c, (uint16_t *)at, seed, k, n);
			ex_work(c, h->work_p);
			if (ex_send(c, channel, tag, NULL, 2 * n * n))
				break;
		}
	} else {
		uint32_t me = c->worker - producers;
		for (uint32_t t = 0; t < h->iterations; t++) {
			const void *tile;
			uint32_t tag = t * c->count + c->worker - c->first;
			ex_work(c, h->work_c);
			if (ex_recv(c, c->device - 1, tag, &tile))
				break;
			srs_consume(c, histograms + (t * consumers + me) * SRS_BINS,
				    (const uint16_t *)tile, n);
			ex_release(c, c->device - 1, tag);
		}
	}
	ex_end(c);
}

#endif
