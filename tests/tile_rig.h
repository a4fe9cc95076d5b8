/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a GPU's warp in tile.dev.h, for a test whose lanes are threads of a CPU. Include it before device code.
 * The 32 lanes of a warp exchange their arguments in memory, between two barriers. */
#ifndef TILE_RIG_H
#define TILE_RIG_H

#include <gpuloom/dev/dev.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#define TILE_RIG 1
#define TILE_RIG_WARPS 64

struct tile_rig_warp {
	pthread_barrier_t barrier;
	uint32_t word[32][6]; /* arguments of each lane */
};
static struct tile_rig_warp tile_rig_warps[TILE_RIG_WARPS];
static __thread struct tile_rig_warp *tile_rig_warp;
static __thread uint32_t tile_rig_lane;

/* Called once, before any lane. */
static inline void tile_rig_start(void)
{
	for (int i = 0; i < TILE_RIG_WARPS; i++)
		pthread_barrier_init(&tile_rig_warps[i].barrier, NULL, 32);
}

/* Called by each lane of a worker, before the functions below. */
static inline void tile_rig_enter(const struct loom_ctx *c)
{
	tile_rig_warp = &tile_rig_warps[c->worker * (c->lanes / 32) + c->lane / 32];
	tile_rig_lane = c->lane % 32;
}

static inline void tile_rig_exchange(const uint32_t *words, int n, uint32_t (*all)[6])
{
	memcpy(tile_rig_warp->word[tile_rig_lane], words, (size_t)n * 4);
	pthread_barrier_wait(&tile_rig_warp->barrier);
	memcpy(all, tile_rig_warp->word, sizeof(tile_rig_warp->word));
	pthread_barrier_wait(&tile_rig_warp->barrier);
}

#define TILE_WARP_BARRIER() pthread_barrier_wait(&tile_rig_warp->barrier)

/* A copy is made as late as allowed: by the wait for its group. Until then its place has other bytes. */
typedef char *tile_near;
#define tile_near_of(at)	((tile_near)(at))
#define tile_read(at, w)	memcpy(w, at, 8)
#define TILE_COPY_GROUP() (tile_rig_group++)
static __thread struct tile_rig_copy {
	tile_near to;
	const void *from;
	uint32_t some, group;
} tile_rig_copy[256];
static __thread uint32_t tile_rig_made, tile_rig_asked, tile_rig_group;

static inline void tile_copy(tile_near to, const void *from, int some)
{
	memset(to, 0xff, 16);
	tile_rig_copy[tile_rig_asked++ % 256] = (struct tile_rig_copy){to, from, some ? 16 : 0, tile_rig_group};
}

static inline void TILE_COPY_WAIT(uint32_t pending)
{
	while (tile_rig_made != tile_rig_asked && tile_rig_copy[tile_rig_made % 256].group + pending < tile_rig_group) {
		const struct tile_rig_copy *copy = &tile_rig_copy[tile_rig_made++ % 256];
		memset(copy->to, 0, 16);
		memcpy(copy->to, copy->from, copy->some);
	}
}

/* Returns element `at` of 16 bits: 0 is the lower half. */
static inline double tile_rig_element(uint32_t word, uint32_t at, uint32_t bfloat)
{
	uint32_t bits = word >> 16 * at & 0xffff, exponent = bfloat ? bits >> 7 & 255 : bits >> 10 & 31;
	double digits = bfloat ? bits & 127 : bits & 1023, one = bfloat ? 128 : 1024;
	double value = ldexp(exponent ? one + digits : digits, (int)(exponent ? exponent : 1) - (bfloat ? 134 : 25));
	return bits >> 15 ? -value : value;
}

/* As the hardware, adds exact products and rounds the sum towards 0. */
static inline void tile_multiply(float *sum, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
				 uint32_t bfloat)
{
	uint32_t all[32][6];
	tile_rig_exchange((uint32_t[]){a0, a1, a2, a3, b0, b1}, 6, all);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t row = tile_rig_lane / 4, column = tile_rig_lane % 4 * 2 + i % 2;
		double to = sum[i];
		for (uint32_t k = 0; k < 16; k++) {
			/* a0 and a1 have the columns below 8; a1 and a3 have the rows from 8 on. */
			double a = tile_rig_element(all[row * 4 + k % 8 / 2][k / 8 * 2 + i / 2], k % 2, bfloat);
			to += a * tile_rig_element(all[column * 4 + k % 8 / 2][4 + k / 8], k % 2, bfloat);
		}
		sum[i] = (float)to;
		if (fabs(sum[i]) > fabs(to))
			sum[i] = nextafterf(sum[i], 0);
	}
}

/* Loads element `column` of row `row` of matrix m, in which the lanes from 8 m on name the rows. */
static inline uint32_t tile_rig_load(uint32_t (*all)[6], uint32_t m, uint32_t row, uint32_t column)
{
	const uint16_t *at;
	memcpy(&at, all[8 * m + row], sizeof(at));
	return at[column];
}

static inline void tile_rig_matrices(tile_near at, int transposed, uint32_t *w)
{
	uint32_t all[32][6], words[2], row = tile_rig_lane / 4, column = tile_rig_lane % 4 * 2;
	memcpy(words, &at, sizeof(at));
	tile_rig_exchange(words, 2, all);
	for (uint32_t m = 0; m < 4; m++)
		w[m] = transposed ? tile_rig_load(all, m, column, row) | tile_rig_load(all, m, column + 1, row) << 16
				  : tile_rig_load(all, m, row, column) | tile_rig_load(all, m, row, column + 1) << 16;
}

static inline void tile_matrices(tile_near at, uint32_t *w)
{
	tile_rig_matrices(at, 0, w);
}

static inline void tile_transposed(tile_near at, uint32_t *w)
{
	tile_rig_matrices(at, 1, w);
}

static inline uint32_t tile_transpose(uint32_t word)
{
	uint32_t all[32][6], row = tile_rig_lane / 4, column = tile_rig_lane % 4 * 2;
	tile_rig_exchange(&word, 1, all);
	return (all[column * 4 + row / 2][0] >> row % 2 * 16 & 0xffff) |
	       (all[(column + 1) * 4 + row / 2][0] >> row % 2 * 16) << 16;
}

static inline float tile_other(float value, uint32_t mask)
{
	uint32_t all[32][6], word;
	memcpy(&word, &value, 4);
	tile_rig_exchange(&word, 1, all);
	memcpy(&value, all[tile_rig_lane ^ mask], 4);
	return value;
}

/* Rounds a float to an element, to nearest. */
static inline uint32_t tile_rig_round(float value, uint32_t bfloat)
{
	int exponent, least = bfloat ? -125 : -13, digits = bfloat ? 8 : 11;
	double size = fabs(value);
	if (size == 0)
		return signbit(value) ? 0x8000u : 0;
	frexp(size, &exponent);
	exponent = exponent < least ? least : exponent;
	uint32_t n = (uint32_t)nearbyint(ldexp(size, digits - exponent));
	return (signbit(value) ? 0x8000u : 0) | (((uint32_t)(exponent - least) << (digits - 1)) + n);
}

static inline uint32_t tile_pair(float low, float high, uint32_t bfloat)
{
	return tile_rig_round(low, bfloat) | tile_rig_round(high, bfloat) << 16;
}

#endif
