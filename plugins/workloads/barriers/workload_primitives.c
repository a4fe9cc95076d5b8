/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_primitives: the cost of the hardware's own synchronisation operations. */
#include "workload_primitives.dev.h"

#include <stdlib.h>
#include <string.h>

#include "../common/host.h"

struct primitives_opts {
	uint64_t repeats, checked, parts;
	uint32_t operation, group;
};

static const char *const operations[] = {"add", "tile", "coalesced", "worker", "grid", NULL}; /* as enum primitive */

static const struct loom_opt primitives_rows[] = {
	LOOM_OPT(struct primitives_opts, operation, LOOM_OPT_ENUM, "worker",
			 "What is repeated. add: a float addition that waits for the one before. tile: a barrier of each "
			 "tile of a warp. coalesced: one of the first lanes of a warp, in a branch. worker: one of all "
			 "lanes of a worker. grid: one of all workers, as grid.sync() of CUDA 13.",
			 .choices = operations),
	LOOM_OPT(struct primitives_opts, group, LOOM_OPT_U32, "32",
			 "operation = tile or coalesced: lanes that synchronise; for tile a power of two.",
			 .min = 1, .max = PRIMITIVE_WAVE),
	LOOM_OPT(struct primitives_opts, repeats, LOOM_OPT_U64, "512",
			 "Operations of a chain, one after the other: a multiple of 8.", .min = 8, .max = 1 << 24),
	LOOM_OPT(struct primitives_opts, parts, LOOM_OPT_U64, "5", "Chains of a sample.", .min = 1, .max = 10000),
	LOOM_OPT(struct primitives_opts, checked, LOOM_OPT_U64, "500",
			 "Rounds before the chains in which each lane verifies that another one has arrived; not for "
			 "add, whose sum is verified.", .min = 1, .max = 1e6),
	{.name = NULL},
};

static const struct primitives_opts *opts_of(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static int primitives_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct primitives_opts *o = opts;
	if (o->repeats % PRIMITIVE_UNROLL)
		return LOOM_REFUSE(host, err, "repeats", "repeats = %llu: not a multiple of %d",
				   (unsigned long long)o->repeats, PRIMITIVE_UNROLL);
	if (o->operation == PRIMITIVE_TILE && (o->group & (o->group - 1)))
		return LOOM_REFUSE(host, err, "group", "group = %u: a tile is 1, 2, 4, 8, 16 or 32 lanes", o->group);
	return 0;
}

static int primitives_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	return workload_create_plain(host, opts, self, err);
}

static uint64_t record_bytes(const struct primitives_opts *o)
{
	return sizeof(struct primitives_record) + o->parts * sizeof(struct primitives_time);
}

static uint64_t device_bytes(const struct loom_layout *layout)
{
	return sizeof(struct primitives_device) + 4ull * layout->workers * layout->device[0].lanes;
}

static int primitives_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			   struct loom_error *err)
{
	const struct workload *w = self;
	const struct primitives_opts *o = opts_of(self);
	if (layout->devices > 1)
		return LOOM_FAIL(w->host, err, LOOM_EINVAL,
				 "primitives measures one device: set one in devices, as in devices = cuda:0");
	if ((o->operation == PRIMITIVE_TILE || o->operation == PRIMITIVE_COALESCED) &&
	    (layout->device[0].kind != LOOM_ON_GPU || LOOM_HAS(layout, clock)))
		return LOOM_FAIL(w->host, err, LOOM_ENOTSUP,
				 "operation = %s: lanes that form groups within a worker are those of a GPU's warp: "
				 "choose devices = cuda:0 or hip:0 in [run], or operation = worker",
				 operations[o->operation]);
	need->global = sizeof(struct primitives_head);
	need->worker = record_bytes(o);
	need->device = device_bytes(layout);
	need->device_place = LOOM_PLACE_DEVICE;
	return 0;
}

static int primitives_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	const struct primitives_opts *o = opts_of(self);
	(void)err;
	*(struct primitives_head *)view->global = (struct primitives_head){.repeats = o->repeats,
									   .checked = o->checked,
									   .parts = o->parts,
									   .operation = o->operation,
									   .group = o->group,
									   .lanes = layout->device[0].lanes,
									   .one = 1};
	memset(view->device[0], 0, device_bytes(layout));
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, record_bytes(o));
	return 0;
}

static double median(uint64_t *value, uint64_t n)
{
	qsort(value, n, sizeof(*value), workload_ascending);
	return ((double)value[n / 2] + (double)value[(n - 1) / 2]) / 2;
}

/* Returns the number of groups of a worker that synchronise at the same time. */
static double groups_of(const struct primitives_opts *o, uint32_t lanes)
{
	double waves = (lanes + PRIMITIVE_WAVE - 1) / PRIMITIVE_WAVE;
	switch (o->operation) {
	case PRIMITIVE_ADD:
		return lanes;
	case PRIMITIVE_TILE:
		return lanes >= o->group ? lanes / (double)o->group : 1;
	case PRIMITIVE_COALESCED:
		return waves;
	default:
		return 1;
	}
}

static const struct primitives_time *times_of(const struct loom_view *view, uint32_t worker)
{
	return (const struct primitives_time *)((const struct primitives_record *)view->worker[worker] + 1);
}

/* Returns the time from the first begin to the last end of the workers' chains. */
static uint64_t span_of(const struct loom_layout *layout, const struct loom_view *view, uint64_t part)
{
	uint64_t first = UINT64_MAX, last = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct primitives_time *t = &times_of(view, w)[part];
		first = t->begin_ns < first ? t->begin_ns : first;
		last = t->end_ns > last ? t->end_ns : last;
	}
	return last - first;
}

/* The latencies are those of worker 0. The throughput is that of all workers together, because chains that do not
 * overlap in time would otherwise add up to more than the device can do. */
static int report_times(const struct workload *w, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_report *report, struct loom_error *err)
{
	const struct primitives_opts *o = w->opts;
	const struct loom_host *host = w->host;
	const struct loom_device_shape *device = &layout->device[0];
	double repeats = (double)o->repeats, groups = groups_of(o, device->lanes);
	double workers = o->operation == PRIMITIVE_GRID ? 1 : layout->workers;
	const struct primitives_time *time = times_of(view, 0);
	uint64_t *room = host->alloc(host, o->parts * sizeof(*room));
	if (!room)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	for (uint64_t p = 0; p < o->parts; p++)
		room[p] = time[p].cycles;
	double cycles = median(room, o->parts);
	for (uint64_t p = 0; p < o->parts; p++)
		room[p] = time[p].end_ns - time[p].begin_ns;
	double ns = median(room, o->parts);
	for (uint64_t p = 0; p < o->parts; p++)
		room[p] = span_of(layout, view, p);
	double all_ns = median(room, o->parts);
	host->free(host, room);
	host->metric(host, report, "latency", "ns", LOOM_BETTER_LESS, ns / repeats);
	host->metric(host, report, "operations_per_us", "", LOOM_BETTER_MORE,
		     all_ns > 0 ? groups * repeats * workers / all_ns * 1000 : 0);
	/* Only real GPUs have a cycle counter here. */
	if (device->kind == LOOM_ON_GPU && !LOOM_HAS(layout, clock) && cycles > 0 && ns > 0) {
		host->metric(host, report, "cycles", "", LOOM_BETTER_LESS, cycles / repeats);
		host->metric(host, report, "operations_per_cycle", "", LOOM_BETTER_MORE, groups * repeats / cycles);
		host->metric(host, report, "clock_ghz", "GHz", LOOM_BETTER_NONE, cycles / ns);
	}
	return 0;
}

static int primitives_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct primitives_opts *o = opts_of(self);
	uint64_t checked = o->operation == PRIMITIVE_ADD ? 0 : o->checked;
	for (uint32_t i = 0; i < layout->workers; i++) {
		const struct primitives_record *n = view->worker[i];
		if (n->wrong && !n->wrong_round)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "primitives: lane %llu of worker %u has a wrong sum, %llu times",
					 (unsigned long long)n->wrong_lane, i, (unsigned long long)n->wrong);
		if (n->wrong)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "primitives: early release: lane %llu of worker %u left round %llu before all "
					 "lanes of its group had arrived; %llu times in %llu rounds",
					 (unsigned long long)n->wrong_lane, i, (unsigned long long)n->wrong_round,
					 (unsigned long long)n->wrong, (unsigned long long)checked);
		if (n->rounds != checked || n->chains != o->parts)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "primitives: worker %u completed %llu checked rounds and %llu chains instead of "
					 "%llu and %llu",
					 i, (unsigned long long)n->rounds, (unsigned long long)n->chains,
					 (unsigned long long)checked, (unsigned long long)o->parts);
	}
	w->host->metric(w->host, report, "operations", "", LOOM_BETTER_NONE, (double)(o->repeats * o->parts));
	return report_times(w, layout, view, report, err);
}

static const struct loom_workload_ops primitives_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = primitives_create,
	.destroy = workload_destroy,
	.need = primitives_need,
	.init = primitives_init,
	.tasks = workload_no_tasks,
	.verify = primitives_verify,
	.work = "operations",
};

WORKLOAD_KERNEL(workload_primitives, LOOM_CODE_FILE("workload_primitives.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_primitives", "0.1.0", "Apache-2.0",
		   "Chains of the hardware's own operations: additions, barriers of lanes, grid.sync",
		   .opts = primitives_rows, .opts_size = sizeof(struct primitives_opts), .check = primitives_check,
		   .ops = &primitives_ops, .dev = &workload_primitives_code)
