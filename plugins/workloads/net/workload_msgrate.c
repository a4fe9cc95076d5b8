/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of msgrate: how many triggers and operations run per second. */
#include "workload_msgrate.dev.h"
#include "net.h"

enum { MSGRATE_COUNT, MSGRATE_PUT };
enum { BY_ITEM, BY_GROUP, BY_KERNEL, BY_MIXED };

struct msgrate_opts {
	uint64_t fires, per;
	uint32_t operation, by;
};

static const char *const operations[] = {"count", "put", NULL};
static const char *const granularities[] = {"item", "group", "kernel", "mixed", NULL};
static const struct loom_opt msgrate_rows[] = {
	LOOM_OPT(struct msgrate_opts, fires, LOOM_OPT_U64, "1000000",
			 "Fires of each firing lane or worker.", .min = 1, .max = 1e12),
	LOOM_OPT(struct msgrate_opts, per, LOOM_OPT_U64, "1",
			 "Fires by each lane or worker that shares a tag, after which one operation runs.",
			 .min = 1, .max = 1e12),
	LOOM_OPT(struct msgrate_opts, operation, LOOM_OPT_ENUM, "put",
			 "count: nothing is sent, which measures only the trigger path. put: 8 bytes to the next "
			 "rank.", .choices = operations),
	LOOM_OPT(struct msgrate_opts, by, LOOM_OPT_ENUM, "group",
		 "Which lanes or workers fire. item: each lane, with a tag of its own. group: each worker. kernel: "
		 "each worker, all with one tag. mixed: each lane, the lanes of two workers with one tag.",
		 .choices = granularities),
	{.name = NULL},
};

/* Upper limit on a worker's fires between two deliveries. A trigger that sends at the end of a kernel keeps a record
 * of each fire until then. */
#define BOUNDARY 512u

static const struct msgrate_opts *opts_of(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static int msgrate_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct msgrate_opts *o = opts;
	if (o->fires % o->per)
		return LOOM_REFUSE(host, err, "per", "per = %llu does not divide fires = %llu",
				 (unsigned long long)o->per, (unsigned long long)o->fires);
	return 0;
}

static uint32_t items(const void *self, const struct loom_layout *layout)
{
	uint32_t by = opts_of(self)->by;
	return by == BY_ITEM || by == BY_MIXED ? layout->device[0].lanes : 1;
}

static uint64_t firing_lanes(const void *self, const struct loom_layout *layout)
{
	return (uint64_t)layout->workers * items(self, layout);
}

/* Returns the number of lanes that share a tag. */
static uint32_t share_of(const void *self, const struct loom_layout *layout)
{
	uint32_t by = opts_of(self)->by;
	return by == BY_KERNEL ? layout->workers : by == BY_MIXED ? 2 * items(self, layout) : 1;
}

static int msgrate_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)err;
	uint64_t posts = (firing_lanes(self, layout) + share_of(self, layout) - 1) / share_of(self, layout);
	need->net =
	    (struct loom_net_need){.posts = (uint32_t)posts, .tags = (uint32_t)posts, .slots = (uint32_t)posts + 1};
	need->global_place = LOOM_PLACE_NET;
	need->worker = sizeof(struct msgrate_times);
	need->global = sizeof(struct msgrate) + 2 * firing_lanes(self, layout) * sizeof(struct msgrate_line);
	return 0;
}

static int msgrate_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_error *err)
{
	struct msgrate *m = view->global;
	(void)err;
	uint32_t lanes = items(self, layout);
	*m = (struct msgrate){.fires = opts_of(self)->fires,
			      .per = opts_of(self)->per,
			      .boundary = lanes < BOUNDARY ? BOUNDARY / lanes : 1,
			      .items = lanes,
			      .sends = opts_of(self)->operation == MSGRATE_PUT,
			      .share = share_of(self, layout)};
	memset(m + 1, 0, 2 * firing_lanes(self, layout) * sizeof(struct msgrate_line));
	return 0;
}

static int msgrate_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct msgrate_opts *o = opts_of(self);
	const struct msgrate *m = view->global;
	uint64_t n = firing_lanes(self, layout);
	int rc = 0;
	for (uint32_t d = 1; d < layout->devices && m->items > 1; d++)
		if (layout->device[d].lanes != m->items)
			return LOOM_FAIL(((const struct workload *)self)->host, err, LOOM_EINVAL,
					 "msgrate: lanes fire, so all devices must have the same number of lanes");
	for (uint64_t i = 0; i < n && !rc; i += m->share) {
		loom_ref from = global + sizeof(struct msgrate) + i * sizeof(struct msgrate_line);
		uint64_t share = n - i < m->share ? n - i : m->share;
		struct loom_trigger_post post = {
			.tag = msgrate_tag(m, i),
			.threshold = o->per * share,
			.rearm = o->per * share,
			.op = o->operation == MSGRATE_PUT ? LOOM_NET_PUT : LOOM_NET_COUNT,
			.target = (trigger->rank + 1) % trigger->ranks,
			.local = from,
			.remote = from + n * sizeof(struct msgrate_line),
			.bytes = (share - 1) * sizeof(struct msgrate_line) + 8,
			.slot = msgrate_tag(m, i)};
		rc = loom_net_post(trigger, &post, err);
	}
	return rc;
}

/* Returns the seconds from the start of the first fire to the end of the last one, on the slowest device. */
static double seconds_of(const struct loom_layout *layout, const struct loom_view *view)
{
	double most = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		uint64_t begin = UINT64_MAX, end = 0;
		for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
			const struct msgrate_times *t = view->worker[w];
			begin = t->begin_ns < begin ? t->begin_ns : begin;
			end = t->end_ns > end ? t->end_ns : end;
		}
		double seconds = end > begin ? (double)(end - begin) / 1e9 : 0;
		most = seconds > most ? seconds : most;
	}
	return most;
}

static int msgrate_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct msgrate_opts *o = w->opts;
	const struct msgrate *m = view->global;
	uint64_t n = firing_lanes(self, layout);
	const struct msgrate_line *to = (const struct msgrate_line *)(m + 1) + n;
	/* The last put is sent after the last fire. So it carries the last values, and arrives last. */
	for (uint64_t i = 0; i < n && o->operation == MSGRATE_PUT; i++)
		if (to[i].word[0] != o->fires)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "msgrate: the last message of number %llu holds %llu instead of %llu",
					 (unsigned long long)i,
					 (unsigned long long)to[i].word[0], (unsigned long long)o->fires);
	double seconds = seconds_of(layout, view);
	if (seconds > 0)
		w->host->metric(w->host, report, "triggers_per_s", "triggers/s", LOOM_BETTER_MORE,
				(double)o->fires * (double)n / seconds);
	return 0;
}

WORKLOAD_OPS(msgrate, .create = workload_create_plain, .destroy = workload_destroy, .tasks = workload_no_tasks,
	     .wire = msgrate_wire, .explain = net_explain, .work = "triggers");

NET_CODE(workload_msgrate);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_msgrate", "0.1.0", "Apache-2.0",
		   "Triggers and small messages as fast as workers can fire them", .opts = msgrate_rows,
		   .opts_size = sizeof(struct msgrate_opts), .check = msgrate_check, .ops = &msgrate_ops,
		   .dev = &workload_msgrate_code)
