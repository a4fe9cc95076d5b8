/* SPDX-License-Identifier: Apache-2.0 */
#include "ragged_lengths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "lib/text.h"

#define TRACE_MOST ((size_t)256 << 20)

static uint32_t within(double length)
{
	return length < 1 ? 1 : length > RAGGED_LONGEST ? RAGGED_LONGEST : (uint32_t)(length + 0.5);
}

void ragged_shuffle(uint32_t *length, uint32_t n, uint64_t seed)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)(loom__random(&seed) % i), t = length[i - 1];
		length[i - 1] = length[k];
		length[k] = t;
	}
}

void ragged_draw(enum ragged_law law, uint32_t mean, uint64_t seed, uint32_t n, uint32_t *length)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < n; i++)
		switch (law) {
		case RAGGED_UNIFORM:
			length[i] = 1 + (uint32_t)(loom__random(&seed) % (2ull * mean));
			break;
		case RAGGED_ZIPF:
			length[i] = within((double)mean * n * (1.0 / (i + 1)) / sum);
			break;
		case RAGGED_TWO:
			length[i] = within(i % 8 == 0 ? 4.5 * mean : 0.5 * mean);
			break;
		default:
			length[i] = mean;
		}
	ragged_shuffle(length, n, seed);
}

int ragged_parse(const struct loom_host *host, const char *name, const char *text, uint32_t **length, uint32_t *n,
		 struct loom_error *err)
{
	int line = 1;
	*length = NULL;
	*n = 0;
	for (const char *at = text; *at; line++) {
		size_t end = strcspn(at, "\n");
		size_t from = strspn(at, " \t\r"), digits = strspn(at + from, "0123456789"),
		       after = from + digits + strspn(at + from + digits, " \t\r");
		unsigned long long value = digits && digits < 10 ? strtoull(at + from, NULL, 10) : 0;
		if (digits && (value < 1 || value > RAGGED_LONGEST || (after < end && at[after] != '#')))
			digits = 0, after = end + 1;
		if (!digits && (after > end || (after < end && at[after] != '#'))) {
			free(*length);
			*length = NULL;
			return LOOM_FAIL(host, err, LOOM_EINVAL, "%s:%d: expected a length from 1 to %u", name, line,
					 RAGGED_LONGEST);
		}
		if (digits) {
			uint32_t *more = loom__more(*length, *n, sizeof(**length));
			if (!more) {
				free(*length);
				*length = NULL;
				return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
			}
			*length = more;
			more[(*n)++] = (uint32_t)value;
		}
		at += end + (at[end] == '\n');
	}
	return *n ? 0 : LOOM_FAIL(host, err, LOOM_EINVAL, "%s: has no lengths: a number per line is expected", name);
}

int ragged_read(const struct loom_host *host, const char *path, uint32_t **length, uint32_t *n, struct loom_error *err)
{
	struct loom__text text = {0};
	const char *why = loom__text_read(&text, path, TRACE_MOST);
	*length = NULL;
	int rc = why ? LOOM_FAIL(host, err, loom__errno_code(errno), "%s: %s", path, why)
		     : ragged_parse(host, path, text.at, length, n, err);
	loom__text_free(&text);
	return rc;
}
