/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of scatter: a distributed histogram, which must equal a sequential count. */
#include "workload_scatter.dev.h"
#include "net.h"

struct scatter_opts {
	uint64_t records, per, bins;
};

static const struct loom_opt scatter_rows[] = {
    LOOM_OPT(struct scatter_opts, records, LOOM_OPT_U64, "20000", "Keys that each worker draws and sends.", .min = 1,
	     .max = 1ull << 32),
    LOOM_OPT(struct scatter_opts, per, LOOM_OPT_U64, "32", "Keys of a message, which is sent when it is full.",
	     .min = 1, .max = 1 << 20),
    LOOM_OPT(struct scatter_opts, bins, LOOM_OPT_U64, "1024", "Bins of the histogram on each rank.", .min = 1,
	     .max = 1ull << 32),
    {.name = NULL},
};

static struct scatter shape_of(const void *self, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct workload *w = self;
	const struct scatter_opts *o = w->opts;
	struct scatter s = {.records = o->records, .per = o->per, .bins = o->bins, .seed = layout->seed,
			    .rank = loom_net_rank(w->host), .ranks = loom_net_ranks(w->host)};
	uint64_t notes = (uint64_t)s.ranks * layout->workers * sizeof(struct scatter_note);
	s.messages = o->records / o->per + s.ranks; /* full messages, and one that is not full for each rank */
	s.message_bytes = loom_net_line(sizeof(struct scatter_message) + o->per * sizeof(uint64_t));
	s.rank_bytes = layout->workers * s.messages * s.message_bytes;
	s.out_at = loom_net_line(sizeof(s));
	s.in_at = s.out_at + s.rank_bytes;
	s.note_out_at = s.in_at + s.ranks * s.rank_bytes;
	s.note_in_at = s.note_out_at + notes;
	s.bins_at = s.note_in_at + notes;
	*bytes = s.bins_at + o->bins * sizeof(uint64_t);
	return s;
}

static int scatter_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct workload *w = self;
	if (layout->noncoherent && layout->devices > 1)
		return LOOM_FAIL(w->host, err, LOOM_ENOTSUP,
				 "scatter: these devices cannot count in the same bins: use one device");
	need->net = (struct loom_net_need){.posts = 2 * layout->workers, .tags = 2 * layout->workers, .arrivals = 3};
	need->global_place = LOOM_PLACE_NET;
	const struct scatter s = shape_of(self, layout, &need->global);
	need->worker = sizeof(struct scatter_own) + s.ranks * sizeof(struct scatter_open);
	return 0;
}

static int scatter_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_error *err)
{
	struct scatter *s = view->global;
	uint64_t bytes;
	(void)err;
	*s = shape_of(self, layout, &bytes);
	memset((char *)s + s->out_at, 0, bytes - s->out_at);
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct scatter_own *own = view->worker[w];
		*own = (struct scatter_own){0};
		for (uint32_t r = 0; r < s->ranks; r++)
			((struct scatter_open *)(own + 1))[r] = (struct scatter_open){.message = SCATTER_NONE};
	}
	return 0;
}

static int scatter_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct scatter *s = view->global;
	int rc = 0;
	(void)self;
	for (uint32_t w = 0; w < layout->workers && !rc; w++) {
		struct loom_trigger_post message = {
			.tag = SCATTER_TAG(w),
			.threshold = 1,
			.rearm = 1,
			.op = LOOM_NET_PUT,
			.local = global + s->out_at,
			.remote = global + s->in_at + s->rank * s->rank_bytes,
			.bytes = s->message_bytes,
			.notify = SCATTER_MESSAGES,
			.flags = LOOM_NET_TARGET_FROM_FIRE | LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE,
			.window = s->rank_bytes - s->message_bytes};
		struct loom_trigger_post note = message;
		note.tag++;
		note.local = global + s->note_out_at;
		note.remote = global + s->note_in_at +
			      ((uint64_t)s->rank * layout->workers + w) * sizeof(struct scatter_note);
		note.bytes = sizeof(struct scatter_note);
		note.notify = SCATTER_NOTES;
		note.flags = LOOM_NET_TARGET_FROM_FIRE | LOOM_NET_LOCAL_FROM_FIRE;
		note.window = ((uint64_t)s->ranks * layout->workers - 1) * sizeof(struct scatter_note);
		rc = loom_net_post(trigger, &message, err);
		if (!rc)
			rc = loom_net_post(trigger, &note, err);
	}
	return rc;
}

/* Returns the bins of this rank, counted sequentially. */
static uint64_t *expected(const struct workload *w, const struct scatter *s, uint32_t workers)
{
	uint64_t *bins = w->host->alloc(w->host, s->bins * sizeof(*bins));
	for (uint32_t r = 0; bins && r < s->ranks; r++)
		for (uint32_t k = 0; k < workers; k++)
			for (uint64_t i = 0; i < s->records; i++) {
				uint64_t key = scatter_key(s, r, workers, k, i);
				bins[key / s->ranks] += key % s->ranks == s->rank;
			}
	return bins;
}

static int scatter_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct scatter *s = view->global;
	const uint64_t *got = (const uint64_t *)((const char *)s + s->bins_at);
	uint64_t *want = expected(w, s, layout->workers), messages = 0, ns = 0;
	int rc = want ? 0 : LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	if (!rc && s->wrong)
		rc = LOOM_FAIL(w->host, err, LOOM_EWRONG, "scatter: %llu keys on rank %u belong to other ranks",
			       (unsigned long long)s->wrong, s->rank);
	for (uint64_t i = 0; i < s->bins && !rc; i++)
		if (got[i] != want[i])
			rc = LOOM_FAIL(w->host, err, LOOM_EWRONG,
				       "scatter: bin %llu on rank %u holds %llu instead of %llu", (unsigned long long)i,
				       s->rank, (unsigned long long)got[i], (unsigned long long)want[i]);
	w->host->free(w->host, want);
	if (rc)
		return rc;
	for (uint32_t k = 0; k < layout->workers; k++) {
		const struct scatter_own *own = view->worker[k];
		for (uint32_t r = 0; r < s->ranks; r++)
			messages += ((const struct scatter_open *)(own + 1))[r].sent;
		ns = own->ns > ns ? own->ns : ns;
	}
	w->host->metric(w->host, report, "records", "", LOOM_BETTER_NONE,
			(double)s->records * layout->workers * s->ranks);
	w->host->metric(w->host, report, "messages", "", LOOM_BETTER_NONE, (double)messages);
	w->host->metric(w->host, report, "scatter_ns", "ns", LOOM_BETTER_LESS, (double)ns);
	return 0;
}

WORKLOAD_OPS(scatter, .create = workload_create_plain, .destroy = workload_destroy, .tasks = workload_no_tasks,
	     .wire = scatter_wire, .explain = net_explain, .work = "records");

NET_CODE(workload_scatter);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_scatter", "0.1.0", "Apache-2.0",
		   "Histogram of keys that workers send to the ranks that own them", .opts = scatter_rows,
		   .opts_size = sizeof(struct scatter_opts), .ops = &scatter_ops, .dev = &workload_scatter_code)
