/* SPDX-License-Identifier: Apache-2.0 */
#include "experts_routing.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "lib/replace.h"

/* ---- draws --------------------------------------------------------------------------------------- */

/* What a step draws from. */
struct draw {
	enum experts_skew skew;
	uint64_t state;
	uint32_t n, top; /* n: number of experts that tokens may choose */
	uint32_t hot;	 /* half of the choices go to the experts hot_at[0] to hot_at[hot - 1]; 0: none are hot */
	uint32_t hot_at[EXPERTS_MOST];
	double sum; /* of all 1 / i^exponent */
};

static double share(uint64_t *state)
{
	return (double)(loom__random(state) >> 11) * 0x1p-53;
}

/* Returns a number below n by Zipf's law; 0 has the highest probability. */
static uint32_t zipf(struct draw *d, double exponent)
{
	double left = share(&d->state) * d->sum;
	uint32_t i = 0;
	for (; i + 1 < d->n && (left -= pow(i + 1, -exponent)) > 0; i++)
		;
	return i;
}

static uint32_t draw(struct draw *d)
{
	if (d->skew == EXPERTS_SQRT || d->skew == EXPERTS_ZIPF)
		return zipf(d, d->skew == EXPERTS_SQRT ? 0.5 : 1);
	if (d->hot && share(&d->state) < 0.5)
		return d->hot_at[loom__random(&d->state) % d->hot];
	return (uint32_t)(loom__random(&d->state) % d->n);
}

static int is_among(const uint32_t *choice, uint32_t n, uint32_t expert)
{
	for (uint32_t i = 0; i < n; i++)
		if (choice[i] == expert)
			return 1;
	return 0;
}

static uint32_t first_of(const struct routing *shape, uint64_t rank)
{
	return (uint32_t)(rank * shape->experts / shape->ranks);
}

/* Finds the hot experts of a step. */
static void heat(struct draw *d, const struct routing *shape, uint64_t step)
{
	uint64_t rank = d->skew == EXPERTS_ROTATING ? step % shape->ranks : 0;
	uint32_t each = first_of(shape, rank + 1) - first_of(shape, rank), first = first_of(shape, rank);
	for (uint32_t i = 0; i < shape->experts; i++)
		d->hot_at[i] = i;
	if (d->skew == EXPERTS_HOT_EIGHTH) {
		d->hot = d->n / 8 > d->top ? d->n / 8 : d->top;
		return;
	}
	if (d->skew < EXPERTS_HOT_SET || d->skew == EXPERTS_RAGGED_SOURCE || d->skew == EXPERTS_IDLE_RANK)
		return;
	d->hot = each ? each : 1;
	for (uint32_t i = 0; i < d->hot; i++) {
		uint32_t other = i + (uint32_t)(loom__random(&d->state) % (shape->experts - i)), was = d->hot_at[i];
		if (d->skew == EXPERTS_HOT_SET) {
			d->hot_at[i] = d->hot_at[other];
			d->hot_at[other] = was;
		} else {
			d->hot_at[i] = d->skew == EXPERTS_HOT_SPREAD ? (uint32_t)((uint64_t)i * shape->experts / d->hot) : first + i;
		}
	}
}

uint32_t routing_some(enum experts_skew skew, const struct routing *shape)
{
	return skew == EXPERTS_IDLE_RANK ? first_of(shape, shape->ranks - 1) : shape->experts;
}

void routing_draw(enum experts_skew skew, uint64_t seed, uint64_t step, const struct routing *shape, uint32_t *choice,
		  uint32_t *source)
{
	struct draw d = {.skew = skew,
			 .state = loom__mix64(seed ^ 0x657870657274ull ^ step * 0x9e3779b97f4a7c15ull),
			 .n = routing_some(skew, shape),
			 .top = shape->top};
	double all = 0, before = 0;
	uint32_t rank = 0;
	if (skew == EXPERTS_BURST)
		d.skew = step % 8 == 4 ? EXPERTS_HOT_RANK : EXPERTS_EQUAL;
	heat(&d, shape, step);
	for (uint32_t i = 0; i < shape->experts; i++)
		d.sum += pow(i + 1, skew == EXPERTS_SQRT ? -0.5 : -1);
	for (uint32_t i = 0; i < shape->ranks; i++)
		all += skew == EXPERTS_RAGGED_SOURCE ? 1.0 / (i + 1) : 1;
	for (uint32_t t = 0; t < shape->tokens; t++) {
		while (rank + 1 < shape->ranks &&
		       (before + (skew == EXPERTS_RAGGED_SOURCE ? 1.0 / (rank + 1) : 1)) / all * shape->tokens <= t)
			before += skew == EXPERTS_RAGGED_SOURCE ? 1.0 / (rank + 1) : 1, rank++;
		if (source)
			source[t] = rank;
		for (uint32_t k = 0; k < shape->top; k++) {
			uint32_t *c = choice + (uint64_t)t * shape->top, tries = 0;
			if (d.skew == EXPERTS_EQUAL) {
				c[k] = (uint32_t)(((uint64_t)t * shape->top + k) % shape->experts);
				continue;
			}
			if (skew == EXPERTS_HOT_TOP || (skew == EXPERTS_HOT_ONE && !k)) {
				c[k] = k;
				continue;
			}
			/* If the token has already chosen this expert, draw again. After many draws, take the next
			 * expert that is free. */
			do
				c[k] = draw(&d);
			while (is_among(c, k, c[k]) && ++tries < 64);
			while (is_among(c, k, c[k]))
				c[k] = (c[k] + 1) % d.n;
		}
	}
}

/* ---- files --------------------------------------------------------------------------------------- */

#define HEAD	  "gpuloom-routing 1 experts %" SCNu32 " tokens %" SCNu32 " top %" SCNu32 " ranks %" SCNu32 " steps %" SCNu32 " checksum %" SCNx64
#define FILE_MOST ((size_t)256 << 20)

uint64_t routing_checksum(const struct routing *r)
{
	uint64_t sum = loom__mix64((uint64_t)r->experts << 32 | r->tokens) + loom__mix64((uint64_t)r->ranks << 32 | r->top);
	for (uint64_t i = 0; i < (uint64_t)r->steps * r->tokens; i++) {
		sum = loom__mix64(sum ^ r->source[i]);
		for (uint32_t k = 0; k < r->top; k++)
			sum = loom__mix64(sum ^ r->choice[i * r->top + k]);
	}
	return sum;
}

void routing_free(struct routing *r)
{
	free(r->choice);
	free(r->source);
	r->choice = r->source = NULL;
}

/* Reads a number below `end`. Returns where the text goes on, or NULL. */
static const char *number(const char *at, uint32_t end, uint32_t *value)
{
	at += strspn(at, " \t");
	size_t digits = strspn(at, "0123456789");
	unsigned long long v = digits && digits < 10 ? strtoull(at, NULL, 10) : end;
	*value = (uint32_t)v;
	return v < end ? at + digits : NULL;
}

static int rows(const struct loom_host *host, const char *name, const char *at, struct routing *r, struct loom_error *err)
{
	for (uint64_t i = 0; i < (uint64_t)r->steps * r->tokens; i++) {
		uint32_t *choice = r->choice + i * r->top;
		at = *at == '\n' ? number(at + 1, r->ranks, &r->source[i]) : NULL;
		for (uint32_t k = 0; at && k < r->top; k++) {
			at = number(at, r->experts, &choice[k]);
			at = at && is_among(choice, k, choice[k]) ? NULL : at;
		}
		if (!at)
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "%s:%" PRIu64 ": expected a rank below %u and %u different experts below %u", name, i + 2,
					 r->ranks, r->top, r->experts);
	}
	if (at[strspn(at, "\n")])
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: has more than %u steps of %u tokens", name, r->steps, r->tokens);
	return 0;
}

int routing_parse(const struct loom_host *host, const char *name, const char *text, struct routing *r, struct loom_error *err)
{
	uint64_t sum = 0;
	int end = 0;
	*r = (struct routing){0};
	if (sscanf(text, HEAD "%n", &r->experts, &r->tokens, &r->top, &r->ranks, &r->steps, &sum, &end) != 6 || !r->experts ||
	    r->experts > EXPERTS_MOST || !r->tokens || r->tokens > EXPERTS_TOKENS_MOST || !r->top || r->top > EXPERTS_TOP_MOST ||
	    r->top > r->experts || !r->ranks || r->ranks > r->experts || !r->steps || r->steps > EXPERTS_STEPS_MOST)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s:1: expected 'gpuloom-routing 1 experts E tokens T top K ranks R steps S checksum HEX', with at most %u "
				 "experts, %u tokens, %u choices and %u steps",
				 name, EXPERTS_MOST, EXPERTS_TOKENS_MOST, EXPERTS_TOP_MOST, EXPERTS_STEPS_MOST);
	/* Each number of a row takes two bytes or more, so a short text needs little memory. */
	uint64_t lines = (uint64_t)r->steps * r->tokens;
	int rc = 0;
	if (strlen(text) / 2 < lines * (r->top + 1))
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: has fewer than %u steps of %u tokens", name, r->steps, r->tokens);
	r->choice = rc ? NULL : calloc(lines * r->top, sizeof(*r->choice));
	r->source = rc ? NULL : calloc(lines, sizeof(*r->source));
	if (!rc && (!r->choice || !r->source))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	rc = rc ? rc : rows(host, name, text + end, r, err);
	if (!rc && routing_checksum(r) != sum)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: its checksum is %016" PRIx64 ", and that of its rows is %016" PRIx64, name,
			       sum, routing_checksum(r));
	if (rc)
		routing_free(r);
	return rc;
}

int routing_read(const struct loom_host *host, const char *path, struct routing *r, struct loom_error *err)
{
	struct loom__text text = {0};
	const char *why = loom__text_read(&text, path, FILE_MOST);
	*r = (struct routing){0};
	int rc = why ? LOOM_FAIL(host, err, loom__errno_code(errno), "%s: %s", path, why)
		     : routing_parse(host, path, text.at ? text.at : "", r, err);
	loom__text_free(&text);
	return rc;
}

int routing_inputs(const struct loom_host *host, enum experts_skew skew, const char *trace, struct loom_error *err)
{
	struct routing r = {0};
	int rc = skew == EXPERTS_TRACE ? routing_read(host, trace, &r, err) : 0;
	routing_free(&r);
	return rc;
}

int routing_create(const struct loom_host *host, enum experts_skew skew, const char *trace, const struct routing *shape,
		   struct routing *r, struct loom_error *err)
{
	int rc = 0;
	*r = *shape;
	if (skew == EXPERTS_TRACE) {
		rc = routing_read(host, trace, r, err);
		if (!rc && (r->experts != shape->experts || r->tokens != shape->tokens || r->top != shape->top))
			rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: set experts = %u, tokens = %u and top = %u", trace, r->experts, r->tokens,
				       r->top);
	} else {
		r->choice = calloc((uint64_t)r->tokens * r->top, sizeof(*r->choice));
		r->source = calloc(r->tokens, sizeof(*r->source));
		rc = r->choice && r->source ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	if (rc)
		routing_free(r);
	return rc;
}

int routing_write(const struct loom_host *host, const char *path, const struct routing *r, struct loom_error *err)
{
	struct loom__text text = {0};
	loom__text_add(&text, "gpuloom-routing 1 experts %u tokens %u top %u ranks %u steps %u checksum %016" PRIx64 "\n", r->experts,
		       r->tokens, r->top, r->ranks, r->steps, routing_checksum(r));
	for (uint64_t i = 0; i < (uint64_t)r->steps * r->tokens; i++) {
		loom__text_add(&text, "%u", r->source[i]);
		for (uint32_t k = 0; k < r->top; k++)
			loom__text_add(&text, " %u", r->choice[i * r->top + k]);
		loom__text_put(&text, "\n", 1);
	}
	int number = loom__text_ok(&text) ? loom__replace(path, text.at, text.length) : ENOMEM;
	loom__text_free(&text);
	return number ? LOOM_FAIL(host, err, loom__errno_code(number), "%s: %s", path, strerror(number)) : 0;
}
