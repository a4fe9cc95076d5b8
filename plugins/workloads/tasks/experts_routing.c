/* SPDX-License-Identifier: Apache-2.0 */
#include "experts_routing.h"

#include <math.h>

#include "lib/random.h"

static double share(uint64_t *state)
{
	return (double)(loom__random(state) >> 11) * 0x1p-53;
}

/* Returns a number below n by Zipf's law; 0 has the highest probability. `sum` is the sum of all 1 / i^exponent. */
static uint32_t zipf(uint64_t *state, uint32_t n, double exponent, double sum)
{
	double left = share(state) * sum;
	uint32_t i = 0;
	for (; i + 1 < n && (left -= pow(i + 1, -exponent)) > 0; i++)
		;
	return i;
}

static uint32_t draw(enum experts_skew skew, uint64_t *state, uint64_t sample, uint32_t n, uint32_t top, double sum)
{
	uint32_t hot = n / 8 > top ? n / 8 : top;
	switch (skew) {
	case EXPERTS_SQRT:
		return zipf(state, n, 0.5, sum);
	case EXPERTS_ZIPF:
		return zipf(state, n, 1, sum);
	case EXPERTS_DRIFT:
		return (uint32_t)((zipf(state, n, 1, sum) + sample) % n);
	case EXPERTS_HOT_EIGHTH:
		n = share(state) < 0.5 ? hot : n; /* fall through */
	default:
		return (uint32_t)(loom__random(state) % n);
	}
}

static int is_among(const uint32_t *choice, uint32_t n, uint32_t expert)
{
	for (uint32_t i = 0; i < n; i++)
		if (choice[i] == expert)
			return 1;
	return 0;
}

void experts_route(enum experts_skew skew, uint64_t seed, uint64_t sample, uint32_t experts, uint32_t tokens, uint32_t top,
		   uint32_t *choice)
{
	uint64_t state = loom__mix64(seed ^ 0x657870657274ull);
	double sum = 0;
	for (uint32_t i = 0; i < experts; i++)
		sum += pow(i + 1, skew == EXPERTS_SQRT ? -0.5 : -1);
	for (uint32_t t = 0; t < tokens; t++)
		for (uint32_t k = 0; k < top; k++) {
			uint32_t *c = choice + (uint64_t)t * top, tries = 0;
			if (skew == EXPERTS_EQUAL) {
				c[k] = (uint32_t)(((uint64_t)t * top + k) % experts);
				continue;
			}
			if (skew == EXPERTS_HOT_TOP || (skew == EXPERTS_HOT_ONE && !k)) {
				c[k] = k;
				continue;
			}
			/* If the token has already chosen this expert, draw again. After many draws, take the next
			 * expert that is free. */
			do
				c[k] = draw(skew, &state, sample, experts, top, sum);
			while (is_among(c, k, c[k]) && ++tries < 64);
			while (is_among(c, k, c[k]))
				c[k] = (c[k] + 1) % experts;
		}
}
