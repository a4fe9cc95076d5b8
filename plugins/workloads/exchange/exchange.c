/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/align.h"

void ex_array(struct ex *x, uint32_t array, uint64_t bytes, enum ex_fill fill)
{
	x->content[array] = (struct ex_content){.fill = fill, .bytes = bytes};
	x->head.at[array] = x->bytes;
	x->bytes += loom__align(bytes, 64);
}

void ex_copy(struct ex *x, uint32_t array, const void *from, uint64_t bytes)
{
	ex_array(x, array, bytes, EX_COPY);
	x->content[array].from = from;
}

uint32_t ex_channel(struct ex *x, uint32_t from, uint32_t to, uint32_t slots, uint32_t readers,
		    uint64_t item_bytes)
{
	x->channel[x->channels] = (struct loom_channel){
		.slots = slots, .readers = readers, .from = from, .to = to, .item_bytes = item_bytes};
	return x->channels++;
}

uint32_t ex_sum_channels(struct ex *x)
{
	uint32_t first = ex_channel(x, LOOM_ANY_DEVICE, 0, x->layout->workers, 1, sizeof(double));
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, 0, d, 1, x->layout->device[d].workers, sizeof(double));
	return first;
}

uint64_t ex_random(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dull;
}

void ex_message_channels(struct ex *x, struct ex_message *m, uint32_t n, uint32_t rounds, uint64_t item_bytes)
{
	uint32_t first = x->channels, per_round[LOOM_MAX_DEVICES] = {0};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t d = ex_device_of(x->layout, m[i].to);
		m[i].channel = first + d;
		m[i].slot = per_round[d]++;
	}
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, per_round[d] ? rounds * per_round[d] : 1, 1, item_bytes);
	for (uint32_t i = 0; i < n; i++)
		m[i].stride = per_round[m[i].channel - first];
}

void *ex_alloc(struct ex *x, uint64_t n, size_t bytes)
{
	void *memory = x->allocations < EX_ALLOCATIONS ? calloc(n, bytes) : NULL;
	if (memory)
		x->memory[x->allocations++] = memory;
	return memory;
}

int ex_places(struct ex *x, uint32_t array)
{
	const struct loom_layout *layout = x->layout;
	struct ex_place *place = ex_alloc(x, layout->workers, sizeof(*place));
	for (uint32_t w = 0; place && w < layout->workers; w++) {
		uint32_t d = ex_device_of(layout, w);
		place[w] = (struct ex_place){d, w - layout->device[d].first_worker, layout->device[d].workers, 0};
	}
	ex_copy(x, array, place, layout->workers * sizeof(*place));
	return place ? 0 : EX_NO_MEMORY;
}

double *ex_sweep(struct ex *x, uint64_t grids, uint64_t n, const double *start, ex_row_fn *row)
{
	uint64_t all = grids * n * n;
	struct loom_ctx one = {.lanes = 1};
	double *now = ex_alloc(x, all + 1, 8), *next = ex_alloc(x, all + 1, 8);
	if (!now || !next)
		return NULL;
	memcpy(now, start, 8 * all);
	memcpy(next, start, 8 * all);
	for (uint32_t t = 0; t < x->o->iterations; t++) {
		for (uint64_t i = 0; i < grids * n; i++)
			if (i % n != 0 && i % n != n - 1)
				row(&one, next + i * n, now + (i - 1) * n, now + i * n, now + (i + 1) * n, n);
		double *swap = now;
		now = next;
		next = swap;
	}
	return now;
}

uint32_t ex_pairs(struct ex *x, struct ex_pair **list)
{
	uint32_t n = 0;
	*list = ex_alloc(x, x->layout->workers, sizeof(**list));
	for (uint32_t d = 0; *list && d + 1 < x->layout->devices; d += 2) {
		const struct loom_device_shape *a = &x->layout->device[d], *b = a + 1;
		uint32_t both = a->workers < b->workers ? a->workers : b->workers;
		for (uint32_t i = 0; i < both; i++)
			(*list)[n++] = (struct ex_pair){a->first_worker + i, b->first_worker + i};
	}
	return n;
}

int ex_close(double a, double b)
{
	double scale = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
	return fabs(a - b) <= 1e-9 * scale;
}

int ex_compare(struct ex *x, const double *got, const double *want, uint64_t n, const char *what,
	       struct loom_error *err)
{
	for (uint64_t i = 0; i < n; i++)
		if (!ex_close(got[i], want[i]))
			return EX_WRONG(x, err, "%s %llu: expected %.17g, found %.17g", what,
					(unsigned long long)i, want[i], got[i]);
	return 0;
}

int ex_create(const struct loom_host *host, const void *opts, const struct ex_app *app, void **self,
	      struct loom_error *err)
{
	struct ex *x = host->alloc(host, sizeof(*x));
	void *own = host->alloc(host, app->bytes ? app->bytes : 1);
	if (!x || !own) {
		host->free(host, x);
		host->free(host, own);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "workload_%s: out of memory", app->name);
	}
	*x = (struct ex){.host = host, .app = app, .o = opts, .own = own};
	*self = x;
	return 0;
}

void ex_destroy(void *self)
{
	struct ex *x = self;
	if (!x)
		return;
	while (x->allocations > 0)
		free(x->memory[--x->allocations]);
	x->host->free(x->host, x->own);
	x->host->free(x->host, x);
}

/* Reserves the words of ex_set_ready() after the arrays. */
static int plan_ready(struct ex *x, struct loom_error *err)
{
	uint64_t end = loom__align(x->bytes, 64);
	for (uint32_t d = 0; d < x->layout->devices; d++)
		if (x->layout->device[d].kind != LOOM_ON_CPU)
			return LOOM_FAIL(x->host, err, LOOM_ENOTSUP,
					 "times = yes compares clocks of devices, which only CPUs share: choose CPU "
					 "devices, or times = no in [workload.exchange]");
	x->head.ready_at = end;
	end += x->channels * sizeof(struct ex_ready);
	for (uint32_t i = 0; i < x->channels; i++) {
		x->ready[i] = (struct ex_ready){.words_at = end, .words = 2ull * x->channel[i].slots};
		end += x->ready[i].words * sizeof(uint64_t);
	}
	x->bytes = loom__align(end, 64);
	return 0;
}

static void init_ready(const struct ex *x, struct ex_head *h)
{
	struct ex_ready *ready = (struct ex_ready *)((char *)h + x->head.ready_at);
	memset(ready, 0, x->bytes - x->head.ready_at);
	memcpy(ready, x->ready, x->channels * sizeof(*ready));
}

int ex_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct ex *x = self;
	need->worker = sizeof(struct ex_log) + (x->o->times ? EX_INTERVALS * sizeof(uint64_t) : 0);
	need->global = x->bytes;
	if (x->planned) /* the core calls need() twice */
		return 0;
	x->bytes = sizeof(struct ex_head);
	x->seed = layout->seed * 0x9e3779b97f4a7c15ull | 1;
	x->head.iterations = x->o->iterations;
	x->head.work_c = x->o->tc;
	x->head.work_p = x->o->tp;
	if (layout->devices < 2)
		return LOOM_FAIL(x->host, err, LOOM_EINVAL,
				 "workload_%s needs at least two devices: set devices = cpu:0 cpu:1 in [run]",
				 x->app->name);
	x->err = err;
	x->layout = layout;
	int rc = x->app->plan(x);
	if (rc == EX_NO_MEMORY)
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "workload_%s: out of memory", x->app->name);
	if (rc)
		return rc;
	rc = x->o->times ? plan_ready(x, err) : 0;
	if (rc)
		return rc;
	need->global = x->bytes;
	x->planned = 1;
	return 0;
}

int ex_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	    struct loom_error *err)
{
	struct ex *x = self;
	struct ex_head *h = view->global;
	(void)err;
	*h = x->head;
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, sizeof(struct ex_log));
	x->layout = layout;
	if (x->head.ready_at)
		init_ready(x, h);
	for (uint32_t i = 0; i < EX_ARRAYS; i++) {
		const struct ex_content *c = &x->content[i];
		if (c->fill == EX_COPY)
			memcpy(ex_ptr(h, i), c->from, c->bytes);
		else if (c->fill != EX_KEEP)
			memset(ex_ptr(h, i), c->fill == EX_ZERO ? 0 : 0xff, c->bytes);
	}
	return 0;
}

int ex_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      struct loom_report *report, struct loom_error *err)
{
	struct ex *x = self;
	x->layout = layout;
	x->report = report;
	int rc = x->app->check(x, view->global, err);
	if (rc)
		return rc;
	x->host->metric(x->host, report, "iterations", "", LOOM_BETTER_NONE, x->o->iterations);
	ex_metrics(x, view);
	return 0;
}

int ex_channels_op(void *self, const struct loom_layout *layout, const struct loom_channel **channel,
		   uint32_t *n, struct loom_error *err)
{
	struct ex *x = self;
	(void)layout, (void)err;
	*channel = x->channel;
	*n = x->channels;
	return 0;
}
