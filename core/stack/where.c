/* SPDX-License-Identifier: Apache-2.0 */
/* Describes what the workers do in a sample that does not end. */
#include <stdlib.h>

#include "gpuloom/dev/ctx.h"
#include "stack/stack.h"

#define GROUPS_ROOM 160 /* limit on the characters for the worker numbers of a device */

static const char *const state_text[] = {
#define STATE_TEXT(NAME, text) text,
	LOOM_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
};

/* A worker that leaves may write its counters during this load. The old and the new value are both acceptable. */
__attribute__((no_sanitize("thread"))) static uint32_t state_of(const struct loom_counters *c)
{
	return (uint32_t)__atomic_load_n(&c->state, __ATOMIC_RELAXED);
}

/* Sets out[i] to the state of worker i of device d, an enum loom_worker_state. */
static int ask(const struct loom_stack *s, uint32_t d, uint32_t *out)
{
	const struct loom_device_ops *ops = s->device[d].ops;
	const struct loom_device_shape *shape = &s->shape[d];
	if (LOOM_HAS(ops, states))
		return ops->states(s->device[d].self, out, shape->workers);
	for (uint32_t i = 0; s->counters && i < shape->workers; i++)
		out[i] = state_of(&s->counters[shape->first_worker + i]);
	return s->counters ? 0 : LOOM_EINVAL; /* there are no counters during the coherence probe */
}

/* Appends the numbers of the workers in state `what`, such as "0-2, 7", as far as there is room. Returns the number of
 * these workers. */
static uint32_t add_numbers(const uint32_t *doing, uint32_t n, uint32_t first, uint32_t what, struct loom__text *out)
{
	uint32_t count = 0;
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && doing[end] == what;)
			end++;
		if (end == i) {
			end++;
			continue;
		}
		if (out->length > GROUPS_ROOM) {
			if (out->at[out->length - 1] != '.')
				loom__text_add(out, ", ...");
		} else {
			loom__text_add(out, end - i > 1 ? "%s%u-%u" : "%s%u", count ? ", " : "", first + i, first + end - 1);
		}
		count += end - i;
	}
	return count;
}

void loom__whereabouts(const struct loom_stack *s, struct loom__text *out)
{
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom_device_shape *shape = &s->shape[d];
		uint32_t *doing = calloc(shape->workers, sizeof(*doing));
		int told = doing && !ask(s, d, doing), any = 0;
		for (uint32_t what = 0; told && what < LOOM_STATES; what++) {
			struct loom__text numbers = {0};
			uint32_t n = add_numbers(doing, shape->workers, shape->first_worker, what, &numbers);
			if (n && loom__text_ok(&numbers))
				loom__text_add(out, "%s%s%s%u %s (%s)", any ? ", " : out->length ? "; " : "",
					       any ? "" : shape->name, any ? "" : ": ", n, state_text[what], numbers.at);
			any |= n != 0;
			loom__text_free(&numbers);
		}
		free(doing);
	}
}
