/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_peer, whose workers store into the memory of other ranks without a NIC. It has the tables. Host
 * threads post operations by the same code as workers. */
#include "trigger_peer.dev.h"

#include <gpuloom/device.h>
#include <pthread.h>
#include <string.h>

#include "../trigger_common/nic/nic.h"
#include "peer_map.h"

/* Longest time in ns that a host thread waits for a worker that serves a counter. The worker may have been killed. */
#define PATIENCE_NS 10000000000ull

struct peer_opts {
	uint32_t posts, tags, slots, arrivals;
	uint8_t stamp;
	uint64_t stage;
};

static const struct loom_opt peer_rows[] = {
	NIC_TABLE_ROWS(struct peer_opts), NIC_STAMP_ROW(struct peer_opts),
	LOOM_OPT(struct peer_opts, stage, LOOM_OPT_SIZE, "auto",
		 "Memory for arriving paired messages from each rank: twice the size of the messages. Larger ones are "
		 "copied to their place, before a release. auto: 256 KiB on a GPU, else 1 KiB.",
		 .max = 1u << 30, .flags = LOOM_OPT_AUTO),
	{.name = NULL}};

struct peer {
	const struct loom_host *host;
	const struct peer_opts *opts;
	pthread_mutex_t lock; /* held by a host thread that posts */
	pthread_t core;	      /* the thread that called start(); on a GPU, no other thread may post */
	int on_gpu;	      /* 1: the workers belong to a GPU */
	uint32_t next;	      /* index at which the search for a free post starts, minus 1 */
	uint32_t generations; /* number of posts in all samples, which makes ids unique */
	uint64_t bytes; /* size of the block without the windows */
	uint64_t stage; /* size in bytes of the part that each sending rank has in a stage */
	uint64_t *staged; /* [target rank]: number of bytes in use in this rank's part of the target's stage */
	struct nic_table table;
	struct loom_net_need needs; /* what the workload needs of the network */
	struct nic_shape shape;
	struct peer_head head; /* copied to the block before each sample */
	struct peer_map *map; /* NULL: the memory of other ranks is not mapped yet */
	struct loom_ctx ctx; /* context of host threads, which run device code */
	struct loom_ctl ctl;
	struct nic_device device;
};

static int peer_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct peer *p;
	if (!LOOM_HAS(host, allgather))
		return LOOM_FAIL(host, err, LOOM_EABI, "trigger_peer needs ranks, which this version of gpuloom does "
			"not have");
	p = host->alloc(host, sizeof(*p));
	if (!p)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "trigger_peer: out of memory");
	p->host = host;
	p->opts = opts;
	pthread_mutex_init(&p->lock, NULL);
	*self = p;
	return 0;
}

static void peer_destroy(void *self)
{
	struct peer *p = self;
	if (!p)
		return;
	const struct loom_host *host = p->host;
	peer_map_close(p->map);
	pthread_mutex_destroy(&p->lock);
	host->free(host, (void *)p->ctx.segment);
	host->free(host, p->staged);
	host->free(host, p);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static uint64_t shape(struct peer *p, const struct loom_layout *layout)
{
	const struct peer_opts *o = p->opts;
	struct nic_table options = NIC_TABLE(o);
	if (!p->map) /* the first run fixes the sizes */
		p->table = nic_table(&options, layout, &p->needs);
	struct nic_shape s = {.slots = p->table.slots,
			      .arrivals = p->table.arrivals,
			      .extra = p->table.tags,
			      .slot_at = sizeof(struct peer_head)};
	s.arrival_at = s.slot_at + (uint64_t)s.slots * sizeof(struct nic_slot);
	s.extra_at = s.arrival_at + (uint64_t)s.arrivals * sizeof(struct nic_arrival);
	p->head.post_at = s.extra_at + s.extra * sizeof(struct peer_counter);
	p->head.flats = 16;
	while (p->head.flats < 2 * p->needs.posts && p->head.flats < 8192)
		p->head.flats *= 2;
	p->stage = o->stage ? o->stage & ~63ull : p->on_gpu ? 256u << 10 : 1u << 10;
	p->head.flat_at = p->head.post_at + (((uint64_t)p->table.posts * sizeof(struct peer_post) + 63) & ~63ull);
	p->head.stage_at =
	    p->head.flat_at + p->head.flats * (sizeof(struct peer_flat) + sizeof(struct peer_flow));
	p->head.window_at = p->head.stage_at + p->host->ranks * p->stage;
	p->head.posts = p->table.posts;
	p->head.stamp = o->stamp;
	p->head.rank = p->host->rank;
	p->head.ranks = p->host->ranks;
	p->shape = s;
	p->bytes = p->head.window_at;
	return p->bytes + (uint64_t)p->host->ranks * PEER_WINDOWS(LOOM_MAX_SEGMENTS + 1ull) * sizeof(struct peer_window);
}

static int peer_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct peer *p = self;
	p->on_gpu = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		p->on_gpu |= layout->device[d].kind == LOOM_ON_GPU;
	if (LOOM_HAS(layout, clock) && p->host->ranks > 1)
		return LOOM_FAIL(
		    p->host, err, LOOM_ENOTSUP,
		    "trigger_peer: simulated GPUs of different ranks share no memory: run one rank, or choose another "
		    "trigger, as in --set trigger.use=gputn");
	if (layout->noncoherent || (p->on_gpu && layout->devices > 1))
		return LOOM_FAIL(
		    p->host, err, LOOM_ENOTSUP,
		    "trigger_peer: these devices cannot count in the same words: run one device, or choose another "
		    "trigger, as in --set trigger.use=gputn");
	need->global = shape(p, layout);
	need->device = sizeof(struct nic_device);
	need->device_place = LOOM_PLACE_DEVICE;
	return 0;
}

static int peer_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      const struct loom_segments *segments, struct loom_error *err)
{
	struct peer *p = self;
	const struct loom_host *host = p->host;
	(void)layout;
	p->core = pthread_self();
	if (p->map)
		return 0;
	struct peer_head *head = view->global;
	const struct peer_part parts[PEER_PARTS] = {
	    [PEER_ARRIVALS] = {p->shape.arrival_at, p->shape.arrivals * sizeof(struct nic_arrival)},
	    [PEER_STAGE] = {p->head.stage_at, p->stage * host->ranks}};
	int rc = peer_map_open(host, segments, p->on_gpu, head, parts, &p->map, err);
	if (rc)
		return rc;
	p->head.segments = peer_segments(p->map);
	p->head.token = head->token;
	char **at = host->alloc(host, p->head.segments * sizeof(*at));
	p->staged = host->alloc(host, host->ranks * sizeof(*p->staged));
	if (!at || !p->staged)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "trigger_peer: out of memory");
	memcpy(at, segments->at, segments->count * sizeof(*at));
	p->device.shape = p->shape;
	p->ctx = (struct loom_ctx){
	    .lanes = 1, .workers = 1, .count = 1, .flags = LOOM_CTX_OVERSUBSCRIBED, .segment = at, .ctl = &p->ctl};
	p->ctx.global[LOOM_TRIGGER] = view->global;
	p->ctx.on_device[LOOM_TRIGGER] = &p->device;
	return 0;
}

static int peer_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct peer *p = self;
	(void)err;
	pthread_mutex_lock(&p->lock);
	memset((char *)view->global + sizeof(p->head), 0, p->bytes - sizeof(p->head));
	*(struct peer_head *)view->global = p->head;
	memcpy((char *)view->global + p->head.window_at, peer_windows(p->map),
	       (uint64_t)p->head.ranks * PEER_WINDOWS(p->head.segments) * sizeof(struct peer_window));
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct nic_device *device = view->device[d];
		*device = (struct nic_device){.shape = p->shape,
					      .launch_ns = layout->device[d].launch_ns,
					      .teardown_ns = layout->device[d].teardown_ns};
	}
	p->next = 0;
	memset(p->staged, 0, p->head.ranks * sizeof(*p->staged));
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int failure(const struct peer *p, struct loom_error *err)
{
	int code = (int)__atomic_load_n(&peer_head(&p->ctx)->failed, __ATOMIC_ACQUIRE);
	if (!code)
		return 0;
	if (code == LOOM_EFULL)
		return LOOM_FAIL(p->host, err, code, "trigger_peer: a tag finds no counter: %u are in use; %s",
				 p->table.tags, nic_raise("tags", nic_more_tags(&p->table, &p->needs)));
	return LOOM_FAIL(
	    p->host, err, code,
	    code == LOOM_EINVAL
		? "trigger_peer: a fire places an addition where its elements are not aligned to their size"
		: "trigger_peer: an operation names a rank or memory that the workers cannot access");
}

static int peer_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_report *report, struct loom_error *err)
{
	struct peer *p = self;
	const struct loom_host *host = p->host;
	uint64_t runs = 0, arrivals = 0;
	(void)layout, (void)view;
	for (uint32_t i = 1; i <= p->shape.extra; i++)
		runs += peer_counter(&p->ctx, i)->runs;
	for (uint32_t i = 0; i < p->head.flats; i++)
		runs += peer_flow(&p->ctx, i)->sent;
	for (uint32_t i = 0; i < p->shape.arrivals; i++)
		arrivals += (uint64_t)peer_arrival(&p->ctx, i)->count + peer_arrival(&p->ctx, i)->first[1];
	host->metric(host, report, "trigger.operations", "", LOOM_BETTER_NONE, (double)runs);
	host->metric(host, report, "trigger.arrivals", "", LOOM_BETTER_NONE, (double)arrivals);
	/* 0, because no host thread takes part. The metric permits comparisons with other triggers. */
	host->metric(host, report, "trigger.cpu_ns", "ns", LOOM_BETTER_LESS, 0);
	return failure(p, err);
}

/* ---- what workloads call ------------------------------------------------------------------------------- */

static const struct peer_window *window_of(const struct peer *p, uint32_t rank, uint32_t segment)
{
	return &peer_windows(p->map)[(uint64_t)rank * PEER_WINDOWS(p->head.segments) + segment];
}

static int reaches(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	const struct peer *p = of;
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	if (segment == 0 || segment >= p->head.segments)
		return 0;
	const struct peer_window *w = window_of(p, rank, segment);
	uint64_t offset = LOOM_REF_OFFSET(ref);
	return offset <= w->bytes && bytes <= w->bytes - offset && (w->at || rank == p->head.rank);
}

static int adds(const void *of, const struct loom_trigger_post *what)
{
	uint64_t size = what->type == LOOM_NET_F32 ? 4 : 8;
	(void)of;
	return (what->bytes | what->local | what->remote) % size == 0;
}

static int peer_check(void *self, const struct loom_trigger_post *w, struct loom_error *err)
{
	const struct peer *p = self;
	struct nic_bounds b = {.host = p->host,
			       .name = "trigger_peer",
			       .adder = "a worker",
			       .table = p->table,
			       .needs = p->needs,
			       .of = p,
			       .reaches = reaches,
			       .adds = adds};
	int rc = nic_check_bounds(&b, w, err);
	if (rc)
		return rc;
	if (w->op == LOOM_NET_SEND || w->op == LOOM_NET_RECV)
		return LOOM_FAIL(
		    p->host, err, LOOM_ENOTSUP,
		    "trigger_peer: there is no NIC to match sends and receives: use put, or choose another trigger");
	if (w->tag > LOOM_TAG_MAX || w->chain > LOOM_TAG_MAX)
		return LOOM_FAIL(
		    p->host, err, LOOM_ENOTSUP,
		    "trigger_peer: an arrival triggers nothing, because no NIC sees it: wait for it in a worker (chain "
		    "= no), or choose another trigger, as in --set trigger.use=gputn");
	if (p->on_gpu && !w->threshold)
		return LOOM_FAIL(p->host, err, LOOM_ENOTSUP,
				 "trigger_peer: threshold = 0: the host cannot access a GPU's memory to run the "
				 "operation at once: fire it, or choose another trigger, as in --set "
				 "trigger.use=gputn");
	if (p->on_gpu && !pthread_equal(p->core, pthread_self()))
		return LOOM_FAIL(
		    p->host, err, LOOM_ENOTSUP,
		    "trigger_peer: on a GPU all operations are posted before the workers start: choose order = "
		    "post-first, or another trigger, as in --set trigger.use=gputn");
	return 0;
}

/* Waits until this host thread has claimed the counter and serves it. Returns 0 or LOOM_ETIMEDOUT. */
static int visit(const struct peer *p, struct peer_counter *k, struct loom_error *err)
{
	uint64_t begin = p->host->now_ns(p->host);
	while (!peer_claim(k)) {
		if (p->host->now_ns(p->host) - begin > PATIENCE_NS)
			return LOOM_FAIL(p->host, err, LOOM_ETIMEDOUT,
					 "trigger_peer: a worker has been running operations of tag %#llx for 10 s",
					 (unsigned long long)k->tag);
		loom_cpu_yield();
	}
	return 0;
}

/* Returns the index of a free post, or 0 if there is none. */
static uint32_t free_post(struct peer *p)
{
	for (uint32_t n = 0; n < p->table.posts; n++) {
		uint32_t at = 1 + (p->next + n) % p->table.posts;
		/* Acquire: pairs with the release in peer_first(), after which no run uses the post. */
		if (__atomic_load_n(&peer_post(&p->ctx, at)->state, __ATOMIC_ACQUIRE) == PEER_FREE) {
			p->next = at % p->table.posts;
			return at;
		}
	}
	return 0;
}

/* Returns 1 if the post may have a struct peer_flat. It must be a paired put of whole words, without flags and chain.
 * It must also be posted while no worker runs, because such records are constant while workers run. */
static int may_be_flat(const struct peer *p, const struct loom_trigger_post *w)
{
	return LOOM_HAS(w, paired) && w->op == LOOM_NET_PUT && w->notify && w->bytes && !w->flags && !w->chain &&
	       !p->head.stamp && (w->bytes | w->local | w->remote) % 8 == 0 && w->bytes / 8 < UINT32_MAX / 8 &&
	       w->threshold - 1 < UINT32_MAX && (!w->rearm || w->rearm == w->threshold) &&
	       pthread_equal(p->core, pthread_self());
}

/* Returns the place of a new record, or NULL if half of the places are taken. More records would make searches long. */
static struct peer_flat *flat_place(struct peer *p, uint64_t tag)
{
	uint32_t used = 0;
	struct peer_flat *f = peer_flat(&p->ctx, 0);
	for (uint32_t i = 0; i < p->head.flats; i++)
		used += f[i].tag != 0;
	if (used >= p->head.flats / 2)
		return NULL;
	uint32_t i = (uint32_t)((tag * 0x9e3779b97f4a7c15ull) >> 32);
	while (f[i & (p->head.flats - 1)].tag)
		i++;
	return &f[i & (p->head.flats - 1)];
}

/* Posts a paired operation. Returns 1, or 0 if there is no room for its record. */
static int post_flat(struct peer *p, const struct loom_trigger_post *w)
{
	int own = w->target == p->head.rank;
	const struct peer_window *arrivals = window_of(p, w->target, p->head.segments + PEER_ARRIVALS);
	const struct peer_window *stage = window_of(p, w->target, p->head.segments + PEER_STAGE);
	struct peer_flat *f = flat_place(p, w->tag);
	if (!f || w->notify >= arrivals->bytes / sizeof(struct peer_arrival))
		return 0;
	/* Each sending rank has its own part of the target's stage. */
	uint64_t part = stage->bytes / p->head.ranks, begin = part * p->head.rank + p->staged[w->target];
	uint64_t takes = (w->bytes / 8 - 1) * 16, lines = (takes + 63) & ~63ull;
	*f = (struct peer_flat){.tag = w->tag,
				.local = w->local,
				.remote = w->remote,
				.line = own ? 0 : arrivals->at + w->notify * sizeof(struct peer_arrival),
				.words = (uint32_t)(w->bytes / 8),
				.threshold = (uint32_t)w->threshold,
				.slot = w->slot,
				.notify = w->notify,
				.once = !w->rearm,
				.staged = lines <= part - p->staged[w->target] && begin < UINT32_MAX};
	if (f->staged) {
		f->stage = (uint32_t)begin;
		f->to = (own ? p->head.stage_at : stage->at) + begin;
		p->staged[w->target] += lines;
	} else {
		f->to = own ? 0 : window_of(p, w->target, LOOM_REF_SEGMENT(w->remote))->at + LOOM_REF_OFFSET(w->remote);
	}
	return 1;
}

static int post_locked(struct peer *p, const struct loom_trigger_post *w, uint64_t *id, struct loom_error *err)
{
	if (peer_flat_index(&p->ctx, w->tag) != PEER_NONE)
		return LOOM_FAIL(p->host, err, LOOM_EINVAL,
				 "trigger_peer: tag %#llx has a paired post, which is promised to be its only one",
				 (unsigned long long)w->tag);
	if (may_be_flat(p, w) && post_flat(p, w)) {
		*id = (uint64_t)++p->generations << 32;
		return 0;
	}
	uint32_t at = free_post(p), counter = at ? peer_find(&p->ctx, w->tag) : 0;
	if (!counter)
		return LOOM_FAIL(p->host, err, LOOM_EFULL,
				 "trigger_peer: no room for another post: %s of %u are in use; %s",
				 at ? "tags" : "posts", at ? p->table.tags : p->table.posts,
				 at ? nic_raise("tags", nic_more_tags(&p->table, &p->needs))
				    : nic_raise("posts", nic_more_posts(&p->table, &p->needs)));
	struct peer_counter *k = peer_counter(&p->ctx, counter);
	int rc = visit(p, k, err);
	if (rc)
		return rc;
	if (w->flags && w->threshold <= k->value) {
		peer_serve(&p->ctx, counter, 0);
		return nic_too_late(p->host, "trigger_peer", w, err);
	}
	struct peer_post *place = peer_post(&p->ctx, at);
	*place = (struct peer_post){.threshold = w->threshold,
				    .rearm = w->rearm,
				    .local = w->local,
				    .remote = w->remote,
				    .bytes = w->bytes,
				    .window = w->window,
				    .chain = w->chain,
				    .op = w->op,
				    .target = w->target,
				    .slot = w->slot,
				    .notify = w->notify,
				    .type = w->type,
				    .flags = w->flags,
				    .counter = counter,
				    .generation = ++p->generations,
				    .state = PEER_WAITS};
	*id = (uint64_t)place->generation << 32 | at;
	peer_insert(&p->ctx, k, at);
	peer_serve(&p->ctx, counter, 0); /* the tag may have been fired before (GPU-TN, 3.2) */
	return 0;
}

static int peer_do_post(void *self, const struct loom_trigger_post *w, uint64_t *id, struct loom_error *err)
{
	struct peer *p = self;
	int rc = peer_check(p, w, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	rc = post_locked(p, w, id, err);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* There is nothing to wait for. A fire returns when its operations are done, or when they are left to another lane
 * whose fire has not returned. So all operations are done when workers are parked. */
static int peer_flush(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	(void)timeout_ns;
	return failure(self, err);
}

static int peer_do_reach(void *self, uint32_t rank, loom_ref ref, uint64_t bytes, uint64_t *at, struct loom_error *err)
{
	struct peer *p = self;
	if (rank >= p->head.ranks || rank == p->head.rank || !reaches(p, rank, ref, bytes))
		return LOOM_FAIL(p->host, err, LOOM_ENOTSUP,
				 "trigger_peer: %llu bytes at segment %u are not in memory of rank %u",
				 (unsigned long long)bytes, LOOM_REF_SEGMENT(ref), rank);
	*at = window_of(p, rank, LOOM_REF_SEGMENT(ref))->at + LOOM_REF_OFFSET(ref);
	return 0;
}

static int peer_anywhere(void *self)
{
	(void)self; /* workers move the data, so any memory that workers can access is allowed */
	return 1;
}

static const struct loom_trigger_ops peer_ops = {
	.size = sizeof(peer_ops),
	.create = peer_create,
	.destroy = peer_destroy,
	.need = peer_need,
	.init = peer_init,
	.collect = peer_collect,
	.start = peer_start,
	.post = peer_do_post,
	.flush = peer_flush,
	.check = peer_check,
	.reach = peer_do_reach,
	.anywhere = peer_anywhere,
};

NIC_DEVICE_CODE(trigger_peer, .fire_together = trigger_peer_fire_together,
		.await_together = trigger_peer_await_together);

LOOM_PLUGIN_DEFINE(TRIGGER, "trigger_peer", "0.1.0", "Apache-2.0",
		   "No NIC: workers store into the memory of other ranks of the host", .opts = peer_rows,
		   .opts_size = sizeof(struct peer_opts), .ops = &peer_ops,
		   .dev = &trigger_peer_code)
