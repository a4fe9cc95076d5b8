/* SPDX-License-Identifier: Apache-2.0 */
/* workload_gem: host half. */
#include "gem.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("160", 16, 4096, "Rows and columns of the matrices. Iterations follow from it: one per panel "
		"of 16.", "1"),
	{.name = NULL},
};

struct gem {
	double *want;
	uint64_t n;
};

static int reference(struct gem *s, uint64_t seed)
{
	uint64_t n = s->n;
	double *b = malloc(8 * n * n);
	s->want = calloc(n * n, 8);
	for (uint64_t i = 0; b && i < n * n; i++)
		b[i] = gem_element(seed, 1, i / n, i % n);
	for (uint64_t i = 0; b && s->want && i < n; i++)
		for (uint64_t k = 0; k < n; k++) {
			double a = gem_element(seed, 0, i, k);
			for (uint64_t j = 0; j < n; j++)
				s->want[i * n + j] += a * b[k * n + j];
		}
	free(b);
	return b && s->want ? 0 : LOOM_ENOMEM;
}

static int plan(struct ex *x, const struct loom_layout *layout, struct loom_error *err)
{
	struct gem *s = x->own;
	uint32_t consumers = layout->workers - layout->device[0].workers;
	uint64_t n = s->n = x->o->size > consumers ? x->o->size : consumers;
	uint64_t most = (n + consumers - 1) / consumers;
	if (layout->devices > EX_PARAMS - 5)
		return LOOM_FAIL(x->host, err, LOOM_EINVAL, "workload_gem: at most %d devices", EX_PARAMS - 5);
	if (reference(s, x->seed))
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "workload_gem: out of memory");
	for (uint32_t d = 1; d < layout->devices; d++) {
		uint32_t count = layout->device[d].workers;
		ex_channel(x, 0, d, 2 * count, 1, 8 * most * GEM_K);
		ex_channel(x, 0, d, 2, count, 8 * GEM_K * n);
		x->head.param[4 + d] = count;
	}
	ex_channel(x, LOOM_ANY_DEVICE, 0, consumers, 1, 8 * most * n);
	ex_array(x, GEM_C, 8 * n * n);
	ex_array(x, GEM_ROOM, 8 * n * n);
	ex_array(x, GEM_PANEL, 8 * layout->device[0].workers * (n * GEM_K + n));
	x->head.param[GEM_N] = n;
	x->head.param[GEM_SEED] = x->seed;
	x->head.param[GEM_CONSUMERS] = consumers;
	return 0;
}

static int fill(struct ex *x, struct ex_head *h, const struct loom_layout *layout)
{
	const struct gem *s = x->own;
	(void)layout;
	memset(ex_of(h, GEM_C), 0, 8 * s->n * s->n);
	memset(ex_of(h, GEM_ROOM), 0, 8 * s->n * s->n);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, const struct loom_layout *layout,
		 struct loom_report *report, struct loom_error *err)
{
	const struct gem *s = x->own;
	(void)layout, (void)report;
	return ex_compare(x, ex_of(h, GEM_C), s->want, s->n * s->n, "element", err);
}

static void finish(struct ex *x)
{
	free(((struct gem *)x->own)->want);
}

static const struct ex_app app = {.name = "gem", .bytes = sizeof(struct gem), .plan = plan, .fill = fill,
				  .check = check, .finish = finish};

EX_PLUGIN(gem, app, rows, "G_GEM: matrix multiplication in panels (multiple, streaming)", "")
