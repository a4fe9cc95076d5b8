/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const char *const model_choices[] = {"unidirectional", "alternating", "multiple", "probabilistic", NULL};
static const char *const access_choices[] = {"streaming", "adjacent", "scatter_gather", "random", NULL};
enum { STREAMING, ADJACENT, SCATTER_GATHER, RANDOM };
enum { MODEL, ACCESS, MESSAGES, PERCENT, INDEPENDENT }; /* indices of ex_opts.extra */

#define EXTRA(n, opt, kind, dflt_, help_, ...)                                                     \
	{                                                                                          \
		.name = opt, .dflt = dflt_, .type = kind, .help = help_,                           \
		.offset = offsetof(struct ex_opts, extra) + 4 * n, .size = sizeof(uint32_t),       \
		__VA_ARGS__                                                                        \
	}

static const struct loom_opt rows[] = {
	EX_ROWS("512", 1, 1 << 20, "Words of 8 bytes per message.", "10"),
	EXTRA(MODEL, "model", LOOM_OPT_ENUM, "unidirectional",
	      "Which workers of a pair send in an iteration. unidirectional: the first. alternating: the first, "
	      "then the second. multiple: each, several messages. probabilistic: each, several messages or none.",
	      .choices = model_choices),
	EXTRA(ACCESS, "access", LOOM_OPT_ENUM, "streaming",
	      "Order of a message's values in the memory of their owner. streaming: consecutive. adjacent: a "
	      "column of a grid. scatter_gather: a permutation. random: random places.",
	      .choices = access_choices),
	EXTRA(MESSAGES, "messages", LOOM_OPT_U32, "3",
	      "model = multiple or probabilistic: messages each way per iteration.", .min = 1, .max = 1000),
	EXTRA(PERCENT, "percent", LOOM_OPT_U32, "40",
	      "model = probabilistic: probability in percent that each of these messages is sent.", .max = 100),
	EXTRA(INDEPENDENT, "independent", LOOM_OPT_U32, "0",
	      "Work of the workers that have no other worker to communicate with, where the other device has fewer, "
	      "in units of about 1 us. 0: they do not take part.", .max = 1e6),
	{.name = NULL},
};

struct pattern {
	uint32_t fields;
	uint32_t *index;
	uint64_t *expect; /* number of messages that each worker receives */
};

static void make_index(struct pattern *s, const struct ex_opts *o, uint64_t seed)
{
	uint32_t n = o->size;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = i ? (uint32_t)(ex_random(&seed) >> 33) % (i + 1) : 0;
		switch (o->extra[ACCESS]) {
		case STREAMING:
			s->index[i] = i;
			break;
		case ADJACENT:
			s->index[i] = 8 * i + 7; /* the last column of a grid with rows of 8 */
			break;
		case SCATTER_GATHER: /* inside-out shuffle */
			s->index[i] = s->index[other];
			s->index[other] = i;
			break;
		default:
			s->index[i] = (uint32_t)(ex_random(&seed) >> 33) % s->fields;
		}
	}
}

static int plan(struct ex *x)
{
	struct pattern *s = x->own;
	const struct ex_opts *o = x->o;
	s->fields = o->extra[ACCESS] == ADJACENT || o->extra[ACCESS] == RANDOM ? 8 * o->size : o->size;
	struct ex_pair *pair;
	uint32_t pairs = ex_pairs(x, &pair), workers = x->layout->workers;
	struct pattern_role *role = ex_alloc(x, workers, sizeof(*role));
	s->index = ex_alloc(x, o->size, 4);
	s->expect = ex_alloc(x, workers, 8);
	if (!pair || !role || !s->index || !s->expect)
		return EX_NO_MEMORY;
	make_index(s, o, x->seed);
	uint64_t *p = x->head.param;
	p[PATTERN_MODEL] = o->extra[MODEL];
	p[PATTERN_WORDS] = o->size;
	p[PATTERN_N0] = p[PATTERN_N1] = o->extra[MESSAGES];
	p[PATTERN_PERCENT] = o->extra[PERCENT];
	p[PATTERN_PAIRS] = pairs;
	p[PATTERN_FIELDS] = s->fields;
	p[PATTERN_INDEPENDENT] = o->extra[INDEPENDENT];
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, 2 * x->layout->device[d].workers, 1, 8ull * o->size);
	for (uint32_t w = 0; w < workers; w++)
		role[w].pair = PATTERN_NONE;
	for (uint32_t q = 0; q < pairs; q++) {
		uint32_t a = pair[q].a, b = pair[q].b;
		uint32_t da = ex_device_of(x->layout, a), db = ex_device_of(x->layout, b);
		const struct loom_device_shape *of_a = &x->layout->device[da], *of_b = &x->layout->device[db];
		uint32_t both = of_a->workers < of_b->workers ? of_a->workers : of_b->workers,
			 place = a - of_a->first_worker;
		role[a] = (struct pattern_role){q, 0, db, da, place, both};
		role[b] = (struct pattern_role){q, 1, da, db, place, both};
		for (uint32_t t = 0; t < o->iterations; t++) {
			s->expect[b] += pattern_messages(p, q, 0, t);
			s->expect[a] += pattern_messages(p, q, 1, t);
		}
	}
	ex_copy(x, PATTERN_ROLES, role, workers * sizeof(*role));
	ex_copy(x, PATTERN_INDEX, s->index, 4ull * o->size);
	ex_array(x, PATTERN_FIELD, 8ull * workers * s->fields, EX_KEEP);
	ex_array(x, PATTERN_PACKED, 8ull * workers * o->size, EX_KEEP);
	ex_array(x, PATTERN_COUNTS, workers * sizeof(struct pattern_count), EX_ZERO);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct pattern *s = x->own;
	const struct pattern_count *count = ex_ptr(h, PATTERN_COUNTS);
	uint64_t all = 0;
	for (uint32_t w = 0; w < x->layout->workers; w++) {
		if (count[w].wrong || count[w].messages != s->expect[w])
			return EX_WRONG(x, err, "worker %u: expected %llu messages, found %llu, and %llu wrong words",
					w, (unsigned long long)s->expect[w],
					(unsigned long long)count[w].messages,
					(unsigned long long)count[w].wrong);
		all += count[w].messages;
	}
	x->host->metric(x->host, x->report, "messages", "", LOOM_BETTER_NONE, (double)all);
	return 0;
}

EX_PLUGIN(pattern, struct pattern, rows, "messages", "Every model of communication with every pattern of access", "")
