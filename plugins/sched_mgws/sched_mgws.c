/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_mgws: work stealing between the public queues of all workers. */
#include <stdio.h>
#include <string.h>

#include "sched_mgws.dev.h"
#include "../sched_common/schedulers.h"
#include "lib/host_mark.h"

_Static_assert(sizeof(struct mgws_queue) % 64 == 0, "the ring starts on a line");
_Static_assert(sizeof(struct mgws_global) % 64 == 0, "so do the lists");
_Static_assert(sizeof(struct mgws_worker) % 64 == 0, "and the indices of the lanes");
_Static_assert(offsetof(struct sched_common, event) % 64 == 0, "nothing hot shares a line with the options");

static const char *const victims[] = {"random", "biased", "local", "neighbour", "none", NULL};
static const char *const attempts_choices[] = {"two_atomics", "damping", NULL};
static const char *const transfers[] = {"body", "id", NULL};
static const char *const claims[] = {"guided", "fixed", "queues", NULL};

#define MGWS_OPTION(where, type, name, ...) SCHED_ROW(name, __VA_ARGS__),
#define MGWS_DERIVED(where, type, name)
static const struct loom_opt sched_mgws_rows[] = {SCHED_CONFIG(MGWS_OPTION, MGWS_DERIVED){.name = NULL}};

struct sched_mgws {
	const struct loom_host *host;
	struct sched_config cfg;                 /* the options, with the chosen sizes for options that are auto */
	uint32_t rank, ranks;                    /* number of this rank; number of ranks that share tasks */
	const struct loom_remote_blocks *remote; /* [rank]: blocks of that rank; NULL: ranks share no tasks */
	uint8_t *distance;                       /* [rank]: MGWS_SAME_NODE, MGWS_SAME_HOST or MGWS_OTHER_HOST */
};

#define MGWS_FAIL(code, ...) LOOM_FAIL(s->host, err, code, "sched_mgws: " __VA_ARGS__)
typedef unsigned long long mgws_llu;

/* Returns whether the stack has both CPUs and GPUs. In such a stack a worker may pop a task that only the other kind of
 * device may run. */
static int mgws_mixed(const struct loom_layout *layout)
{
	return sched_has(layout, 1) && sched_has(layout, 0);
}

static uint32_t mgws_or(uint32_t given, uint32_t chosen)
{
	return given ? given : chosen;
}

static uint32_t mgws_lists(const struct loom_layout *layout)
{
	return mgws_mixed(layout) ? MGWS_LISTS : 1;
}

/* Returns the options, with the chosen sizes for options that are auto (0). */
static struct sched_config mgws_chosen(const void *opts)
{
	struct sched_config o = *(const struct sched_config *)opts;
	int many = o.granularity == SCHED_LANE; /* 1: each lane needs as many tasks as otherwise a whole worker */
	o.local_queue = mgws_or(o.local_queue, many ? 128 : 32);
	o.public_queue = mgws_or(o.public_queue, many ? 1024 : 64);
	if (many)
		o.backlog = mgws_or(o.backlog, MGWS_BACKLOG_SLOTS(o.public_queue));
	return o;
}

static int sched_mgws_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	struct sched_config o = mgws_chosen(opts);
	int rc = sched_check_ring(host, "local_queue", o.local_queue, 2, 4096, err);
	if (!rc)
		rc = sched_check_ring(host, "public_queue", o.public_queue, 1, 65536, err);
	if (!rc && o.backlog)
		rc = sched_check_ring(host, "backlog", o.backlog, 1, 1 << 20, err);
	if (!rc && o.owners == 3)
		rc = LOOM_REFUSE(host, err, "owners", "owners = 3: must be 1, 2 or 4");
	return rc;
}

static int sched_mgws_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct sched_mgws *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_mgws: out of memory");
	s->host = host;
	s->cfg = mgws_chosen(opts);
	*self = s;
	return 0;
}

static void sched_mgws_destroy(void *self)
{
	struct sched_mgws *s = self;
	if (!s)
		return;
	s->host->free(s->host, s->distance);
	s->host->free(s->host, s);
}

/* Returns the number of slots of a worker's backlog. With GPUs there must be one, because a GPU runs no tasks in place: its
 * call stack is small. */
static uint32_t mgws_backlog_slots(const struct sched_mgws *s, const struct loom_layout *layout)
{
	uint32_t slots = MGWS_BACKLOG_SLOTS(s->cfg.public_queue);
	return mgws_or(s->cfg.backlog, !sched_has(layout, 1) ? 0 : slots < 256 ? 256 : slots);
}

static uint32_t mgws_kind_of(const struct loom_device_shape *shape)
{
	return sched_other_kind(shape->kind) == LOOM_ON_GPU ? LOOM_ON_CPU : LOOM_ON_GPU;
}

static int mgws_has_ranks(const struct loom_layout *layout)
{
	return LOOM_HAS(layout, ranks) && layout->ranks > 1;
}

/* Returns whether the memory of other ranks is reached by RMA only. */
static int mgws_uses_rma(const struct loom_layout *layout)
{
	return mgws_has_ranks(layout) && layout->rma;
}

/* Returns the number of workers of other ranks that run the same tasks. */
static uint32_t mgws_remote_workers(const struct loom_layout *layout)
{
	return mgws_has_ranks(layout) ? layout->remote_workers : 0;
}

/* Rejects configurations in which ranks cannot share tasks. */
static int mgws_check_ranks(const struct sched_mgws *s, const struct loom_layout *layout, struct loom_error *err)
{
	int real = 0; /* 1: this rank has a GPU that is not simulated */
	for (uint32_t d = 0; d < layout->devices; d++)
		real |= layout->device[d].kind == LOOM_ON_GPU && !layout->clock;
	if (sched_noncoherent(layout))
		return MGWS_FAIL(LOOM_ENOTSUP,
				 "ranks share tasks between workers that change the same words, and devices of this "
				 "rank cannot: name one device in [run], or set tasks = own there");
	if (real && layout->rma)
		return MGWS_FAIL(LOOM_ENOTSUP,
				 "a NIC cannot change the words of a GPU's queues while the GPU works: ranks on GPUs "
				 "share tasks by trigger peer, on one host. Set use = peer in [trigger], or tasks = "
				 "own in [run]");
	if (s->cfg.transfer == MGWS_ID)
		return MGWS_FAIL(LOOM_ENOTSUP,
				 "transfer = id: other ranks do not reach the pools that hold the tasks: set transfer "
				 "= body");
	if (s->cfg.owners > 1)
		return MGWS_FAIL(LOOM_ENOTSUP,
				 "owners = %u: other ranks steal only from queues of one owner: set owners = 1",
				 s->cfg.owners);
	return 0;
}

static int sched_mgws_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	uint32_t all = layout->workers + mgws_remote_workers(layout);
	int rc = mgws_has_ranks(layout) ? mgws_check_ranks(s, layout, err) : 0;
	if (rc)
		return rc;
	if (all > MGWS_MAX_WORKERS)
		return MGWS_FAIL(LOOM_ENOTSUP, "%u workers are too many: the counter of steal attempts allows %u. "
			"Reduce workers", all,
				 MGWS_MAX_WORKERS);
	if (s->cfg.transfer == MGWS_ID &&
	    (uint64_t)layout->workers * MGWS_POOL_SLOTS(s->cfg.public_queue) >= MGWS_ID_INITIAL)
		return MGWS_FAIL(LOOM_ENOTSUP, "transfer = id cannot number the tasks of %u workers", layout->workers);
	if (s->cfg.transfer == MGWS_ID && layout->initial_tasks >= MGWS_ID_INITIAL)
		return MGWS_FAIL(LOOM_ENOTSUP, "transfer = id cannot number %llu initial tasks",
				 (mgws_llu)layout->initial_tasks);
	if (layout->devices > 1 && !mgws_has_ranks(layout) && layout->initial_tasks >= MGWS_RANGE_MAX)
		return MGWS_FAIL(LOOM_ENOTSUP,
				 "%llu initial tasks are more than several devices can share",
				 (mgws_llu)layout->initial_tasks);
	for (uint32_t d = 0; sched_noncoherent(layout) && d < layout->devices; d++)
		if (layout->device[d].workers == 1 && mgws_kind_of(&layout->device[d]) == LOOM_ON_GPU)
			return MGWS_FAIL(LOOM_ENOTSUP,
					 "%s has one worker; beside a device with which it cannot change "
					 "the same word a GPU needs two, of which one exchanges tasks",
					 layout->device[d].name);
	/* A run may end without late workers, except in three cases. One of these cases is several owners of a queue, because
	 * only the leader counts the steals from it at the end of the sample. */
	if (s->cfg.owners == 1 && !sched_noncoherent(layout) && !mgws_has_ranks(layout))
		need->flags |= LOOM_NEED_LATE;
	if (s->cfg.owners == 1 && layout->devices == 1 && !mgws_has_ranks(layout) && s->cfg.granularity != SCHED_LANE)
		need->flags |= LOOM_NEED_SMALL;
	uint32_t lanes = sched_max_lanes(layout);
	uint64_t shared =
	    sizeof(struct mgws_global) + mgws_lists(layout) * s->cfg.overflow_list * sizeof(struct loom_task);
	need->global = sched_noncoherent(layout) ? sizeof(struct mgws_global) + MGWS_MAILBOXES_BYTES(layout->devices)
						 : shared + mgws_remote_workers(layout) * sizeof(struct mgws_remote);
	need->device =
	    sizeof(struct mgws_site) + (sched_noncoherent(layout) ? shared + MGWS_EXCHANGE_BYTES(layout->devices) : 0);
	/* All idle workers poll these words, and claims add to them. A link would serve them one after the other. */
	need->device_place = LOOM_PLACE_DEVICE;
	need->global_place = layout->devices == 1 && !mgws_has_ranks(layout) ? LOOM_PLACE_DEVICE : LOOM_PLACE_ANY;
	need->worker =
	    MGWS_QUEUE_BYTES(s->cfg.public_queue, s->cfg.transfer) +
	    (uint64_t)mgws_backlog_slots(s, layout) * sizeof(struct loom_task) +
	    (mgws_has_ranks(layout) ? MGWS_QUEUE_BYTES(s->cfg.public_queue, MGWS_BODY) : 0); /* mgws_rma_ring() */
	need->local = SCHED_LOCAL_BYTES(lanes, s->cfg.local_queue) + MGWS_WORKER_BYTES(lanes, all);
	if (mgws_has_ranks(layout))
		return 0; /* init() writes tables behind the lists */
	need->flags |= LOOM_NEED_RESET | (layout->devices > 1 ? LOOM_NEED_VARIES : 0);
	need->reset_global.head = sched_noncoherent(layout) ? need->global : sizeof(struct mgws_global);
	need->reset_device.head = sizeof(struct mgws_site) + (sched_noncoherent(layout) ? sizeof(struct mgws_global) : 0);
	need->reset_device.tail = sched_noncoherent(layout) ? MGWS_EXCHANGE_BYTES(layout->devices) : 0;
	need->reset_worker.head = sizeof(struct mgws_queue);
	if (s->cfg.transfer == MGWS_ID)
		need->reset_worker.head += MGWS_IDS_BYTES(s->cfg.public_queue) + MGWS_POOL_MARKS(s->cfg.public_queue);
	return 0;
}

/* Returns the value of sched_config.spread: whether each device has a range of the initial set in its own memory. Ranks that
 * share tasks claim from one word instead, or have one range each. */
static int mgws_spreads(const struct loom_layout *layout)
{
	return layout->devices > 1 && !sched_noncoherent(layout) && !mgws_has_ranks(layout);
}

/* Returns the options, with the DERIVED fields of options.dev.h filled in. */
static struct sched_config sched_mgws_config(const struct sched_mgws *s, const struct loom_layout *layout)
{
	struct sched_config cfg = s->cfg;
	cfg.noncoherent = (uint32_t)sched_noncoherent(layout);
	cfg.mixed = (uint32_t)mgws_mixed(layout);
	cfg.mailbox_queued = cfg.victim != MGWS_LOCAL && cfg.victim != MGWS_NONE;
	if (cfg.noncoherent && (cfg.victim == MGWS_RANDOM || cfg.victim == MGWS_BIASED))
		cfg.victim = MGWS_LOCAL; /* only through mailboxes do tasks move between devices */
	cfg.bias_of_2_32 = cfg.bias < 1 ? (uint32_t)(cfg.bias * 4294967296.0) : ~0u;
	cfg.backlog = mgws_backlog_slots(s, layout);
	cfg.remote_workers = mgws_remote_workers(layout);
	cfg.one_device = cfg.noncoherent || (layout->devices == 1 && !cfg.remote_workers);
	cfg.rma = (uint32_t)mgws_uses_rma(layout);
	cfg.spread = (uint32_t)mgws_spreads(layout);
	cfg.park_ns = cfg.rma ? SCHED_RMA_NS : sched_park_ns(layout);
	return cfg;
}

static int sched_mgws_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				struct loom_error *err)
{
	const struct sched_mgws *s = self;
	struct sched_config cfg = sched_mgws_config(s, layout);
	cfg.remote_workers = cfg.remote_workers != 0; /* when programs are composed, the number is not known yet */
	return sched_constants(s->host, &cfg, MGWS_REGISTER_WORDS, text, room, err);
}

/* Returns the block that the workers of a device share: the stack's block, or with non-coherent devices the device's own. */
static struct mgws_global *mgws_global_of(const struct loom_layout *layout, const struct loom_view *view,
					  uint32_t device)
{
	return sched_noncoherent(layout) ? (void *)((struct mgws_site *)view->device[device] + 1) : view->global;
}

/* Returns the first task of a device's part of the initial set. The part is in proportion to the number of workers. The
 * result is rounded to the nearest task. So if there is only one task, such as the root of a tree, the larger device
 * gets it. */
static uint64_t mgws_first_of(const struct loom_layout *layout, uint32_t device)
{
	uint64_t worker = device < layout->devices ? layout->device[device].first_worker : layout->workers;
	return (layout->initial_tasks * worker + layout->workers / 2) / layout->workers;
}

/* Returns the queue whose field `range` is the range of the device. */
static struct mgws_queue *mgws_range_at(const struct loom_layout *layout, const struct loom_view *view, uint32_t device)
{
	return view->worker[layout->device[device].first_worker];
}

/* Gives each non-coherent device a part of the initial set, and initialises the mailboxes. */
static void mgws_init_noncoherent(const struct sched_mgws *s, const struct loom_layout *layout,
				  const struct loom_view *view)
{
	const struct mgws_global *all = view->global;
	struct mgws_mailbox *mailbox = (struct mgws_mailbox *)((struct mgws_global *)view->global + 1);
	for (uint32_t i = 0; i < layout->devices * layout->devices; i++)
		memset(&mailbox[i], 0, offsetof(struct mgws_mailbox, slot));
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct mgws_global *g = mgws_global_of(layout, view, d);
		struct loom_task *slots = (struct loom_task *)(g + 1);
		struct mgws_exchange *exchange = (void *)&slots[mgws_lists(layout) * s->cfg.overflow_list];
		struct mgws_device *device = (void *)(exchange + 1);
		uint64_t from = mgws_first_of(layout, d), to = mgws_first_of(layout, d + 1);
		*g = (struct mgws_global){.common = all->common, .range = to << 32 | from};
		*exchange = (struct mgws_exchange){0};
		for (uint32_t i = 0; i < layout->devices; i++)
			device[i] =
			    (struct mgws_device){.kind = mgws_kind_of(&layout->device[i]),
						 .workers = layout->device[i].workers,
						 .share = mgws_first_of(layout, i + 1) - mgws_first_of(layout, i)};
	}
}

/* Returns the first initial task of a rank's part. */
static uint64_t mgws_part_of(const struct loom_layout *layout, uint32_t ranks, uint32_t rank)
{
	return layout->initial_tasks * rank / ranks;
}

/* The record that each rank sends to all ranks. */
struct mgws_rank_card {
	struct sched_config cfg;
	struct host_mark mark;
	int32_t node; /* the NUMA node of the rank's first device; negative: unknown */
	uint32_t unused;
};
_Static_assert(sizeof(struct mgws_rank_card) == sizeof(struct sched_config) + sizeof(struct host_mark) + 8,
	       "it is compared as bytes, so it has no padding");

static uint8_t mgws_distance(const struct mgws_rank_card *a, const struct mgws_rank_card *b)
{
	if (!a->mark.boot[0] || memcmp(&a->mark, &b->mark, sizeof(a->mark)))
		return MGWS_OTHER_HOST;
	return a->node >= 0 && a->node == b->node ? MGWS_SAME_NODE : MGWS_SAME_HOST;
}

static int sched_mgws_connect(void *self, const struct loom_layout *layout, const struct loom_remote_blocks *remote,
			      struct loom_error *err)
{
	struct sched_mgws *s = self;
	struct mgws_rank_card mine = {.cfg = s->cfg, .node = layout->device[0].numa_node};
	struct mgws_rank_card *all = s->host->alloc(s->host, layout->ranks * sizeof(*all));
	if (!s->distance)
		s->distance = s->host->alloc(s->host, layout->ranks);
	host_mark_read(&mine.mark);
	int rc = all && s->distance ? s->host->allgather(s->host, &mine, all, sizeof(*all), err)
				    : MGWS_FAIL(LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; !rc && r < layout->ranks; r++) {
		s->distance[r] = mgws_distance(&mine, &all[r]);
		if (memcmp(&all[r].cfg, &s->cfg, sizeof(s->cfg)))
			rc = MGWS_FAIL(LOOM_EINVAL,
				       "rank %u has other options than rank %u: start all ranks with the same conf", r,
				       layout->rank);
	}
	s->host->free(s->host, all);
	s->rank = layout->rank;
	s->ranks = layout->ranks;
	s->remote = remote;
	if (!rc && mgws_uses_rma(layout) && layout->initial_tasks >= MGWS_RANGE_MAX)
		rc = MGWS_FAIL(LOOM_ENOTSUP,
			       "%llu initial tasks are more than ranks can share that reach each other through a "
			       "network",
			       (mgws_llu)layout->initial_tasks);
	return rc;
}

/* Fills in the table of remote workers (ranks.dev.h), which is behind the lists. The nearest ranks come first. */
static void mgws_init_remote(const struct sched_mgws *s, const struct loom_layout *layout, struct mgws_global *g)
{
	struct loom_task *slots = (struct loom_task *)(g + 1);
	struct mgws_remote *at = (struct mgws_remote *)&slots[mgws_lists(layout) * s->cfg.overflow_list];
	uint32_t victim = layout->workers;
	for (uint32_t d = MGWS_SAME_NODE; d <= MGWS_OTHER_HOST; d++) {
		for (uint32_t i = 1; i < s->ranks; i++) {
			uint32_t rank = (s->rank + i) % s->ranks, first = victim;
			const struct loom_remote_blocks *remote = &s->remote[rank];
			for (uint32_t w = 0; s->distance[rank] == d && w < remote->workers; w++, victim++)
				*at++ = (struct mgws_remote){.queue = (uintptr_t)remote->worker[w],
							     .global = (uintptr_t)remote->global,
							     .rank = rank,
							     .first = first,
							     .used_up = mgws_part_of(layout, s->ranks, rank) ==
									mgws_part_of(layout, s->ranks, rank + 1)};
		}
		if (d < MGWS_OTHER_HOST)
			g->within[d] = victim - layout->workers;
	}
	if (g->common.cfg.rma)
		g->range = mgws_part_of(layout, s->ranks, s->rank + 1) << 32 | mgws_part_of(layout, s->ranks, s->rank);
	else if (s->rank)
		g->job = (uintptr_t)s->remote[0].global;
}

static int sched_mgws_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	const struct sched_mgws *s = self;
	const struct sched_config *o = &s->cfg;
	struct mgws_global *g = view->global;
	(void)err;
	*g = (struct mgws_global){.common.cfg = sched_mgws_config(s, layout)};
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		*(struct mgws_site *)view->device[d] =
		    (struct mgws_site){.kind = mgws_kind_of(shape), .other = sched_other_kind(shape->kind)};
		for (uint32_t i = 0; i < layout->devices; i++)
			((struct mgws_site *)view->device[d])->first[i] = layout->device[i].first_worker;
		for (uint32_t i = 0; i < shape->workers; i++) {
			uint32_t w = shape->first_worker + i;
			struct mgws_queue *q = view->worker[w];
			memset(q, 0, sizeof(*q));
			q->leader = w - i % o->owners; /* the worker whose queue this worker uses */
			q->meta.mask = o->public_queue - 1;
			q->meta.word = MGWS_NO_WORD;
			if (o->transfer == MGWS_ID)
				memset((char *)(q + 1) + MGWS_IDS_BYTES(o->public_queue), 0,
				       MGWS_POOL_MARKS(o->public_queue));
		}
	}
	for (uint32_t d = 0; d < layout->devices && mgws_spreads(layout); d++)
		mgws_range_at(layout, view, d)->range = mgws_first_of(layout, d + 1) << 32 | mgws_first_of(layout, d);
	if (sched_noncoherent(layout))
		mgws_init_noncoherent(s, layout, view);
	if (s->remote)
		mgws_init_remote(s, layout, g);
	return 0;
}

/* Checks that all grants were taken. */
static int mgws_check_mailboxes(const struct sched_mgws *s, const struct loom_layout *layout,
				const struct loom_view *view, struct loom_error *err)
{
	const struct mgws_mailbox *mailbox =
	    (const struct mgws_mailbox *)((const struct mgws_global *)view->global + 1);
	uint32_t n = layout->devices;
	for (uint32_t i = 0; i < n * n; i++)
		if (mgws_is_granted(mailbox[i].asked, mailbox[i].granted))
			return MGWS_FAIL(LOOM_EWRONG, "grant %u from %s to %s was never taken", mailbox[i].granted,
					 layout->device[i / n].name, layout->device[i % n].name);
	return 0;
}

static int mgws_check_shared(const struct sched_mgws *s, const struct mgws_global *g, uint64_t next, uint64_t end,
			     struct loom_error *err)
{
	uint64_t listed = g->list[0].count + g->list[1].count + g->list[2].count;
	if (next < end || listed)
		return MGWS_FAIL(LOOM_EWRONG, "%llu of %llu initial tasks claimed, %llu tasks left on overflow lists",
				 (mgws_llu)next, (mgws_llu)end, (mgws_llu)listed);
	if (g->common.event.waiters)
		return MGWS_FAIL(LOOM_EWRONG, "%u workers still sleep", g->common.event.waiters);
	return 0;
}

static int mgws_check_queue(const struct sched_mgws *s, const struct mgws_queue *q, uint32_t w, struct loom_error *err)
{
	const struct mgws_meta *b = &q->meta;
	const uint32_t *marks = (const void *)((const char *)(q + 1) + MGWS_IDS_BYTES(s->cfg.public_queue));
	uint64_t stolen = b->started[0] + b->started[1];
	for (int e = 0; e < 2; e++)
		if (b->started[e] != q->completed[e])
			return MGWS_FAIL(LOOM_EWRONG, "worker %u, epoch %d: %llu tasks taken by thieves, %llu copied",
					 w, e, (mgws_llu)b->started[e], (mgws_llu)q->completed[e]);
	if (b->published != stolen + b->acquired)
		return MGWS_FAIL(LOOM_EWRONG, "worker %u published %llu tasks, but %llu were stolen and %llu acquired",
				 w, (mgws_llu)b->published, (mgws_llu)stolen, (mgws_llu)b->acquired);
	for (uint32_t i = 0; s->cfg.transfer == MGWS_ID && i < MGWS_POOL_SLOTS(s->cfg.public_queue); i++)
		if (marks[i])
			return MGWS_FAIL(LOOM_EWRONG, "slot %u of the pool of worker %u was never freed", i, w);
	return 0;
}

/* Reports the number of steals between ranks and the number of tasks that these steals took, as sums over all ranks. */
static int mgws_report_remote(const struct sched_mgws *s, const struct loom_layout *layout,
			      const struct loom_view *view, struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = s->host;
	struct {
		uint64_t steals, tasks, host;
	} mine = {0}, sum = {0}, *all = host->alloc(host, s->ranks * sizeof(*all));
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct mgws_queue *q = view->worker[w];
		mine.steals += q->remote_steals;
		mine.tasks += q->remote_tasks;
		mine.host += q->host_steals;
	}
	int rc = all ? host->allgather(host, &mine, all, sizeof(mine), err) : MGWS_FAIL(LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; !rc && r < s->ranks; r++) {
		sum.steals += all[r].steals;
		sum.tasks += all[r].tasks;
		sum.host += all[r].host;
	}
	host->free(host, all);
	host->metric(host, report, "remote_steals", "", LOOM_BETTER_NONE, (double)sum.steals);
	host->metric(host, report, "remote_steals_of_host", "", LOOM_BETTER_NONE, (double)sum.host);
	host->metric(host, report, "remote_stolen", "tasks", LOOM_BETTER_NONE, (double)sum.tasks);
	return rc;
}

/* The core checks sums over all workers. This function checks each queue, list and range. */
static int sched_mgws_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_report *report, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	int rc = 0, noncoherent = sched_noncoherent(layout), ranged = noncoherent || mgws_uses_rma(layout);
	for (uint32_t w = 0; !rc && w < layout->workers; w++)
		rc = mgws_check_queue(s, view->worker[w], w, err);
	for (uint32_t d = 0; !rc && d < (noncoherent ? layout->devices : 1); d++) {
		const struct mgws_global *g = mgws_global_of(layout, view, d);
		/* If ranks share one word for the initial set, it is in rank 0. Words of other ranks are unused: 0 tasks. */
		rc = mgws_check_shared(s, g, ranged ? (uint32_t)g->range : g->next,
				       ranged				    ? g->range >> 32
				       : s->rank || mgws_spreads(layout) ? 0
									    : layout->initial_tasks,
				       err);
	}
	for (uint32_t d = 0; !rc && d < layout->devices && mgws_spreads(layout); d++)
		if (mgws_range_left(mgws_range_at(layout, view, d)->range))
			rc = MGWS_FAIL(LOOM_EWRONG, "%llu initial tasks of %s were not claimed",
				       (mgws_llu)mgws_range_left(mgws_range_at(layout, view, d)->range),
				       layout->device[d].name);
	if (!rc && s->remote)
		rc = mgws_report_remote(s, layout, view, report, err);
	return rc || !noncoherent ? rc : mgws_check_mailboxes(s, layout, view, err);
}

/* Explains the failures that the device code reports: no room for a task, a task that no device may run, or a join whose
 * memory this worker cannot change. */
static int sched_mgws_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	if (code == LOOM_ENOTSUP)
		return MGWS_FAIL(code,
				 "worker %u has a task for a kind of device that the stack does not have: add "
				 "one to [run] devices, or give the task another affinity",
				 worker);
	if (code == LOOM_EUNAVAIL && s->remote)
		return MGWS_FAIL(
		    code,
		    "worker %u ended a task with a join, but the task may come from another rank, where the join "
		    "refers to other memory: set tasks = own in [run], or choose a program without joins",
		    worker);
	if (code == LOOM_EUNAVAIL)
		return MGWS_FAIL(code,
				 "worker %u ended a task whose join belongs to another device, and these devices "
				 "cannot change the same word: use one device, or a program without joins",
				 worker);
	if (code != LOOM_EFULL)
		return 0;
	return MGWS_FAIL(code,
			 "worker %u had no room for a new task: local queue (%u) and public queue (%u) are full, "
			 "tasks are nested %u deep, and the overflow list (%llu) is full; raise overflow_list, "
			 "in_place_depth or the queue "
			 "sizes",
			 worker, s->cfg.local_queue, s->cfg.public_queue, s->cfg.in_place_depth, (mgws_llu)info);
}

/* Writes into `text` where tasks are. The loads are relaxed and the numbers approximate, because workers may be running. */
static void sched_mgws_stuck(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
			     size_t size)
{
	const struct sched_mgws *s = self;
	uint64_t public = 0, most = 0, listed = 0, unclaimed = 0;
	uint32_t where = 0, asleep = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct mgws_queue *q = view->worker[w];
		uint64_t left = mgws_left(loom_load_relaxed_sys(&q->word));
		public += left;
		if (left > most) {
			most = left;
			where = w;
		}
	}
	for (uint32_t d = 0; d < (sched_noncoherent(layout) ? layout->devices : 1); d++) {
		struct mgws_global *g = mgws_global_of(layout, view, d);
		int ranged = sched_noncoherent(layout) || mgws_uses_rma(layout);
		/* The host cannot read the memory of other ranks' GPUs. */
		int remote = s->rank && !ranged, hidden = remote && sched_has(layout, 1);
		struct mgws_global *job = remote && !hidden ? s->remote[0].global : g;
		uint64_t next = hidden ? layout->initial_tasks : loom_load_relaxed_sys(&job->next);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			listed += loom_load_relaxed_sys(&g->list[i].count);
		asleep += loom_load_relaxed_sys(&job->common.event.waiters);
		unclaimed += ranged                         ? mgws_range_left(loom_load_relaxed_sys(&g->range))
			     : next < layout->initial_tasks ? layout->initial_tasks - next
							    : 0;
	}
	for (uint32_t d = 0; d < layout->devices && mgws_spreads(layout); d++)
		unclaimed = (d ? unclaimed : 0) +
			    mgws_range_left(loom_load_relaxed_sys(&mgws_range_at(layout, view, d)->range));
	int n = snprintf(text, size, "sched_mgws: %llu of %llu initial tasks unclaimed, %llu tasks public",
			 (mgws_llu)unclaimed, (mgws_llu)layout->initial_tasks, (mgws_llu) public);
	if (most && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n, " (most with worker %u: %llu)", where, (mgws_llu)most);
	if (n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, ", %llu of %llu places of overflow lists taken, %u workers asleep",
			 (mgws_llu)listed, (mgws_llu)s->cfg.overflow_list, asleep);
}

SCHED_TABLES(sched_mgws, sched_mgws_small, .stuck = sched_mgws_stuck, .connect = sched_mgws_connect);

/* Each file uses only files that precede it in this list; tests/check-layers.sh checks this. */
LOOM_DEVICE_CODE(sched_mgws_code, sched_mgws_cpu, "sched_mgws.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("state.dev.h") LOOM_CODE_FILE("list.dev.h")
			 LOOM_CODE_FILE("public.dev.h") LOOM_CODE_FILE("owners.dev.h") LOOM_CODE_FILE("ids.dev.h")
			     LOOM_CODE_FILE("publish.dev.h") LOOM_CODE_FILE("claim.dev.h") LOOM_CODE_FILE("ranks.dev.h")
				 LOOM_CODE_FILE("steal.dev.h") LOOM_CODE_FILE("mailbox.dev.h")
				     LOOM_CODE_FILE("overflow.dev.h")
					 LOOM_CODE_FILE("spawn.dev.h") LOOM_CODE_FILE("lanes.dev.h")
					     LOOM_CODE_FILE("poll.dev.h") LOOM_CODE_FILE("work.dev.h")
						 LOOM_CODE_FILE("idle.dev.h") LOOM_CODE_FILE("sched_mgws.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_mgws", "0.1.0", "Apache-2.0",
		   "Work stealing: thieves take half of a public queue with one fetch-and-add", .opts = sched_mgws_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_mgws_check, .ops = &sched_mgws_ops,
		   .dev = &sched_mgws_code)
