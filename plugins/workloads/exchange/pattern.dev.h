/* SPDX-License-Identifier: Apache-2.0 */
/* Communication without an application: every model of communication with every pattern of access (WIC, section 3.1).
 * The only computation is the work that options request. Each value encodes its message, iteration and position, and
 * the receiver checks all values. Device code. */
#ifndef PATTERN_DEV_H
#define PATTERN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { PATTERN_ROLES = 0, PATTERN_INDEX, PATTERN_FIELD, PATTERN_PACKED, PATTERN_COUNTS };
enum { PATTERN_MODEL = 0, PATTERN_WORDS, PATTERN_N0, PATTERN_N1, PATTERN_PERCENT, PATTERN_PAIRS, PATTERN_FIELDS,
       PATTERN_INDEPENDENT };
enum { PATTERN_UNIDIRECTIONAL = 0, PATTERN_ALTERNATING, PATTERN_MULTIPLE, PATTERN_PROBABILISTIC };
#define PATTERN_NONE 0xffffffffu

/* `pair` is the index of a worker's pair, or PATTERN_NONE. `end` is 0 or 1, the worker's end of the pair. `to` and
 * `from` are the channels to the other end and to this worker. */
struct pattern_role {
	uint32_t pair, end, to, from;
	/* index of this pair among the pairs that connect the same two devices; an upper bound of that index: the smaller
	 * number of workers of the two devices */
	uint32_t place, places;
};
struct pattern_count {
	uint64_t messages, wrong;
};

LOOM_FN uint64_t pattern_hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull + b * 0xbf58476d1ce4e5b9ull + c;
	x ^= x >> 30;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Returns how many messages end `end` of a pair sends in iteration t. The random choice is a hash, so that both ends
 * get the same number. */
LOOM_FN uint32_t pattern_messages(const uint64_t *param, uint64_t pair, uint32_t end, uint32_t t)
{
	uint32_t n = (uint32_t)param[end ? PATTERN_N1 : PATTERN_N0], sent = 0;
	if (param[PATTERN_MODEL] == PATTERN_UNIDIRECTIONAL)
		return end == 0;
	if (param[PATTERN_MODEL] == PATTERN_ALTERNATING)
		return 1;
	if (param[PATTERN_MODEL] == PATTERN_MULTIPLE)
		return n;
	for (uint32_t i = 0; i < n; i++)
		sent += pattern_hash(pair * 2 + end, t, i) % 100 < param[PATTERN_PERCENT];
	return sent;
}

LOOM_FN uint64_t pattern_value(uint64_t pair, uint32_t end, uint32_t number, uint64_t place)
{
	return pattern_hash(pair * 2 + end + 1, number, place);
}

/* Stores the values of a message where the pattern of access gathers them. Then gathers and sends them. */
LOOM_FN int pattern_send(struct loom_ctx *c, const struct pattern_role *r, uint32_t number, uint32_t tag)
{
	const struct ex_head *h = ex_head(c);
	uint64_t words = h->param[PATTERN_WORDS];
	const uint32_t *index = (const uint32_t *)ex_at(c, PATTERN_INDEX);
	uint64_t *field = (uint64_t *)ex_at(c, PATTERN_FIELD) + c->worker * h->param[PATTERN_FIELDS];
	uint64_t *packed = (uint64_t *)ex_at(c, PATTERN_PACKED) + c->worker * words;
	ex_work(c, h->work_p);
	EX_EACH(c, i, 0, words)
		field[index[i]] = pattern_value(r->pair, r->end, number, index[i]);
	loom_barrier_lanes(c);
	EX_EACH(c, i, 0, words)
		packed[i] = field[index[i]];
	return ex_send(c, r->to, tag, packed, 8 * words);
}

LOOM_FN int pattern_receive(struct loom_ctx *c, const struct pattern_role *r, uint32_t number, uint32_t tag)
{
	const struct ex_head *h = ex_head(c);
	const uint32_t *index = (const uint32_t *)ex_at(c, PATTERN_INDEX);
	struct pattern_count *count = (struct pattern_count *)ex_at(c, PATTERN_COUNTS) + c->worker;
	const void *data;
	/* Consumers begin to wait at different times (WIC's Tc): each works for 25 to 175 per cent of the option
	 * `tc`. */
	ex_work(c, (uint32_t)(h->work_c * (25 + pattern_hash(r->pair, number, 7) % 151) / 100));
	int rc = ex_recv(c, r->from, tag, &data);
	uint64_t wrong = 0;
	EX_EACH(c, i, 0, rc ? 0 : h->param[PATTERN_WORDS])
		wrong += ((const uint64_t *)data)[i] != pattern_value(r->pair, !r->end, number, index[i]);
	if (rc)
		return rc;
	ex_release(c, r->from, tag);
	if (wrong)
		loom_fetch_add_relaxed_dev(&count->wrong, wrong);
	if (c->lane == 0)
		count->messages++;
	return 0;
}

/* Works in pieces, so that it can end when the run is stopped. */
LOOM_FN void pattern_independent(struct loom_ctx *c, uint32_t rounds)
{
	enum { PIECE = 16 };
	for (uint32_t done = 0; done < rounds && !loom_stopped(c); done += PIECE)
		ex_work(c, rounds - done < PIECE ? rounds - done : PIECE);
}

LOOM_FN void workload_pattern_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const struct pattern_role role = ((const struct pattern_role *)ex_at(c, PATTERN_ROLES))[c->worker];
	uint32_t sent = 0, got = 0, rc = 0;
	if (role.pair == PATTERN_NONE && !h->param[PATTERN_INDEPENDENT])
		return;
	ex_begin(c);
	if (role.pair == PATTERN_NONE) {
		pattern_independent(c, (uint32_t)h->param[PATTERN_INDEPENDENT]);
		ex_end(c);
		return;
	}
	for (uint32_t t = 0; t < h->iterations && !rc; t++)
		for (uint32_t end = 0; end < 2 && !rc; end++) {
			uint32_t n = pattern_messages(h->param, role.pair, end, t);
			for (uint32_t i = 0; i < n && !rc; i++) {
				/* Each pair has a slot of its own on each channel. */
				if (end == role.end) {
					rc = pattern_send(c, &role, sent, sent * role.places + role.place) != 0;
					sent++;
				} else {
					rc = pattern_receive(c, &role, got,
							     got * role.places + role.place) != 0;
					got++;
				}
				loom_barrier_lanes(c);
			}
		}
	ex_end(c);
}

#endif
