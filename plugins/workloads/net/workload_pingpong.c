/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of pingpong: the latency of a triggered message. */
#include "workload_pingpong.dev.h"
#include "late_posts.h"

struct pingpong_opts {
	uint64_t rounds, bytes, compute;
	uint32_t order;
	uint8_t kernel, two_sided, counted;
};

static const struct loom_opt pingpong_rows[] = {
	LOOM_OPT(struct pingpong_opts, rounds, LOOM_OPT_U64, "2000", "Messages of each side.", .min = 1, .max = 1e7),
	LOOM_OPT(struct pingpong_opts, bytes, LOOM_OPT_SIZE, "8",
			 "Size of a message: a multiple of 8.", .min = 8, .max = 1ull << 30),
	LOOM_OPT(struct pingpong_opts, kernel, LOOM_OPT_BOOL, "no",
		 "Whether each message is a kernel of its own, modelled by the device's launch_cost and teardown_cost. "
		 "On a GPU with kernels = launched each message is a kernel in any case."),
	LOOM_OPT(struct pingpong_opts, compute, LOOM_OPT_TIME, "0",
		 "Time that a kernel takes before it writes its message.", .max = 1e9),
	LOOM_NET_TWO_SIDED_ROW(struct pingpong_opts),
	LOOM_OPT(struct pingpong_opts, counted, LOOM_OPT_BOOL, "no",
		 "Whether all workers fire each message, whose threshold is their number. The last fire is that of the "
		 "worker that writes the message."),
	NET_ORDER_ROW(struct pingpong_opts, order),
	{.name = NULL},
};

static const struct pingpong_opts *opts_of(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static int pingpong_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct pingpong_opts *o = opts;
	if (o->bytes % 8)
		return LOOM_REFUSE(host, err, "bytes", "bytes = %llu: not a multiple of 8",
				 (unsigned long long)o->bytes);
	if (o->two_sided && o->order != NET_POST_FIRST)
		return LOOM_REFUSE(host, err, "order",
				   "order: with two_sided = yes receives are posted first: choose order = post-first");
	return 0;
}

static int pingpong_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	if (loom_net_ranks(host) > 2)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "pingpong: %u ranks: start 2 ranks (-n 2), or 1 that sends to itself",
				 loom_net_ranks(host));
	return workload_create(host, opts, sizeof(struct late_workload), self, err);
}

static struct pingpong shape_of(const void *self)
{
	const struct workload *w = self;
	const struct pingpong_opts *o = w->opts;
	struct pingpong p = {.rounds = o->rounds,
			     .words = o->bytes / 8,
			     .rank = loom_net_rank(w->host),
			     .ranks = loom_net_ranks(w->host),
			     .kernel = o->kernel,
			     .compute_ns = o->compute,
			     .counted = o->counted,
			     .late = o->order != NET_POST_FIRST};
	p.from_at = loom_net_line(sizeof(p));
	p.to_at = p.from_at + loom_net_line(o->bytes);
	p.times_at = p.to_at + loom_net_line(o->bytes);
	return p;
}

static int pingpong_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)layout, (void)err;
	need->global_place = LOOM_PLACE_NET;
	need->global = shape_of(self).times_at + opts_of(self)->rounds * sizeof(struct pingpong_times);
	return 0;
}

static int pingpong_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	struct pingpong *p = view->global;
	(void)err;
	*p = shape_of(self);
	p->launch_ns = layout->device[0].launch_ns;
	char *payload = (char *)p + p->from_at;
	for (uint64_t i = 0; i < p->times_at - p->from_at; i++)
		payload[i] = (char)0xee;
	return 0;
}

static int pingpong_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	struct late_workload *i = self;
	const struct pingpong_opts *o = i->workload.opts;
	struct pingpong *p = view->global;
	int once = o->order != NET_POST_FIRST; /* 1: one post per message; 0: one post, which re-arms */
	uint32_t posts = once ? (uint32_t)p->rounds : 1;
	uint64_t fires = o->counted ? layout->device[0].workers : 1;
	int rc = late_workload_wire(i, layout, trigger, o->order, posts, 1, err);
	struct loom_trigger_post post = {.tag = PINGPONG_TAG,
					 .rearm = once ? 0 : fires,
					 .op = LOOM_NET_PUT,
					 .target = p->ranks == 1 ? 0 : 1 - p->rank,
					 .local = global + p->from_at,
					 .remote = global + p->to_at,
					 .bytes = p->words * 8,
					 .slot = PINGPONG_SLOT,
					 .notify = PINGPONG_ARRIVAL,
					 .paired = !once && !o->two_sided};
	/* The first receive starts immediately, and each one starts the next. One buffer is enough, because the next
	 * message comes only after the worker has read this one. */
	struct loom_trigger_post receive =
	    loom_net_receive(&(struct loom_trigger_post){.tag = PINGPONG_RECEIVE_TAG}, post.remote, post.bytes, post.notify);
	receive.chain = PINGPONG_RECEIVE_TAG;
	for (; receive.threshold < 2 && o->two_sided && !rc; receive.threshold++, receive.rearm = 1)
		rc = loom_net_post(trigger, &receive, err);
	if (o->two_sided)
		loom_net_send(&post);
	for (uint32_t k = 0; k < posts && !rc; k++) {
		post.threshold = (k + 1) * fires;
		rc = late_posts_add(i->poster, &post, err);
	}
	return rc ? rc : late_posts_start(i->poster, &p->fires, err);
}

/* Adds the median, the 99th percentile and the minimum of the time between two fields of `t`, multiplied by `share`.
 * `from` and `to` are the offsets of the fields. `room` has space for n values. */
static int add_times(const struct workload *w, struct loom_report *report, const char *name,
		     const struct pingpong_times *t, uint64_t n, size_t from, size_t to, double share,
		     uint64_t *room)
{
	char label[48];
	for (uint64_t i = 0; i < n; i++) {
		uint64_t a = *(const uint64_t *)((const char *)&t[i] + from);
		uint64_t b = *(const uint64_t *)((const char *)&t[i] + to);
		room[i] = b > a ? b - a : 0;
	}
	qsort(room, n, sizeof(*room), workload_ascending);
	static const struct {
		const char *suffix;
		double p;
	} which[] = {{"p50", .5}, {"p99", .99}, {"min", 0}};
	for (size_t i = 0; i < 3; i++) {
		snprintf(label, sizeof(label), "%s_%s", name, which[i].suffix);
		w->host->metric(w->host, report, label, "ns", LOOM_BETTER_LESS,
				net_quantile(room, n, which[i].p) * share);
	}
	return 0;
}

#define AT(field) offsetof(struct pingpong_times, field)

/* Adds the median of the time from the arrival of a message to the fire of the next one. */
static void add_turns(const struct workload *w, struct loom_report *report, const struct pingpong_times *t, uint64_t n,
		      uint64_t *room)
{
	for (uint64_t i = 0; i + 1 < n; i++)
		room[i] = t[i + 1].fire > t[i].back ? t[i + 1].fire - t[i].back : 0;
	if (n < 2)
		return;
	qsort(room, n - 1, sizeof(*room), workload_ascending);
	w->host->metric(w->host, report, "turn_p50", "ns", LOOM_BETTER_LESS, net_quantile(room, n - 1, .5));
}

/* Adds the stages of rank 0's messages (GPU-TN, figure 8), if both ranks have the same clock. stage_launch is the
 * launch of the kernel. stage_kernel lasts from the start of the kernel to the fire, and stage_target from the fire
 * until rank 1 sees the message. stage_end lasts from the fire to the end of the kernel, before which the triggers
 * hdn and gds send nothing. stage_total lasts from the launch to the arrival. */
static int add_stages(const struct workload *w, struct loom_report *report, const struct pingpong *p,
		      const struct pingpong_times *own, struct loom_error *err)
{
	uint64_t bytes = p->rounds * sizeof(*own);
	char *all = w->host->alloc(w->host, 2 * bytes + p->rounds * sizeof(uint64_t));
	uint64_t *room = (uint64_t *)(all + 2 * bytes);
	if (!all)
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	int rc = w->host->allgather(w->host, own, all, bytes, err);
	struct pingpong_times *from = (struct pingpong_times *)all;
	const struct pingpong_times *to = from + p->rounds;
	for (uint64_t i = 0; i < p->rounds; i++) {
		from[i].back = to[i].back;
		from[i].ended -= p->launch_ns; /* remove the launch of the next kernel, which `ended` includes */
	}
	if (!rc && p->rank == 0) {
		add_times(w, report, "stage_launch", from, p->rounds, AT(launched), AT(begin), 1, room);
		add_times(w, report, "stage_kernel", from, p->rounds, AT(begin), AT(fired), 1, room);
		add_times(w, report, "stage_end", from, p->rounds, AT(fired), AT(ended), 1, room);
		add_times(w, report, "stage_target", from, p->rounds, AT(fired), AT(back), 1, room);
		add_times(w, report, "stage_total", from, p->rounds, AT(launched), AT(back), 1, room);
	}
	w->host->free(w->host, all);
	return rc;
}

static int pingpong_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct pingpong *p = view->global;
	const struct pingpong_times *t = (const struct pingpong_times *)((const char *)p + p->times_at);
	if (p->wrong)
		return LOOM_FAIL(w->host, err, LOOM_EWRONG, "pingpong: %llu words arrived wrong",
				 (unsigned long long)p->wrong);
	for (uint64_t i = 0; i < p->rounds; i++)
		if (!t[i].back)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG, "pingpong: message %llu never arrived",
					 (unsigned long long)i);
	if (p->kernel && p->ranks == 2 && LOOM_HAS(layout, clock)) {
		int rc = add_stages(w, report, p, t, err);
		if (rc)
			return rc;
	}
	if (p->rank != 0)
		return 0;
	uint64_t *room = w->host->alloc(w->host, p->rounds * sizeof(*room));
	if (!room)
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	w->host->metric(w->host, report, "messages", "", LOOM_BETTER_NONE, (double)p->rounds * p->ranks);
	/* One way is half of the round trip, or the whole way if the rank sends to itself. */
	add_times(w, report, "one_way", t, p->rounds, AT(fire), AT(back), p->ranks == 1 ? 1 : .5, room);
	/* From the arrival of a message to the fire of the next one: the rank compares the words, and writes new ones. Half of it is
	 * part of one_way, because the other rank does the same. */
	add_turns(w, report, t, p->rounds, room);
	add_times(w, report, "trigger", t, p->rounds, AT(fire), AT(fired), 1, room);
	/* From the launch of the kernel to the arrival of its message (figure 8). */
	if (p->kernel && p->ranks == 1 && t[0].visible)
		add_times(w, report, "visible", t, p->rounds, AT(launched), AT(visible), 1, room);
	if (p->kernel && t[0].ended)
		add_times(w, report, "boundary", t, p->rounds, AT(fired), AT(ended), 1, room);
	w->host->free(w->host, room);
	return 0;
}

static uint64_t pingpong_launches(void *self, const struct loom_layout *layout)
{
	struct pingpong p = shape_of(self);
	(void)layout;
	return pingpong_steps(&p);
}

static uint32_t pingpong_awaits(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out)
{
	struct pingpong p = shape_of(self);
	(void)layout;
	*out = (struct loom_await){.index = PINGPONG_ARRIVAL, .count = pingpong_arrived(&p, n)};
	return 1;
}

WORKLOAD_OPS(pingpong, .create = pingpong_create, .destroy = late_workload_destroy, .stop = late_workload_stop,
	     .tasks = workload_no_tasks, .wire = pingpong_wire, .explain = net_explain, .work = "messages",
	     .steps = pingpong_launches, .awaits = pingpong_awaits);

NET_CODE(workload_pingpong, .step = workload_pingpong_step);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_pingpong", "0.1.0", "Apache-2.0",
		   "Triggered messages back and forth between two ranks, or to the same rank", .opts = pingpong_rows,
		   .opts_size = sizeof(struct pingpong_opts), .check = pingpong_check, .ops = &pingpong_ops,
		   .dev = &workload_pingpong_code)
