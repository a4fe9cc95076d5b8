/* SPDX-License-Identifier: Apache-2.0 */
/* sched_mgws: work stealing between the public queues of all workers. Host half. */
#include <stdio.h>
#include <string.h>

#include "sched_mgws.dev.h"
#include "../shared/sched/schedulers.h"
#include "lib/host_mark.h"

_Static_assert(sizeof(struct mgws_queue) % 64 == 0, "the ring starts on a line");
_Static_assert(sizeof(struct mgws_global) % 64 == 0, "so do the lists");
_Static_assert(sizeof(struct mgws_mine) % 64 == 0, "and the indices of the lanes");
_Static_assert(offsetof(struct sched_common, bell) % 64 == 0, "nothing hot shares a line with the options");

static const char *const victims[] = {"random", "biased", "local", "neighbour", "none", NULL};
static const char *const overflows[] = {"two_atomics", "damping", NULL};
static const char *const transfers[] = {"body", "id", NULL};
static const char *const claims[] = {"guided", "fixed", NULL};

#define MGWS_OPTION(who, type, name, ...) SCHED_ROW(name, __VA_ARGS__),
#define MGWS_DERIVED(who, type, name)
static const struct loom_opt sched_mgws_rows[] = {SCHED_CONFIG(MGWS_OPTION, MGWS_DERIVED){.name = NULL}};

struct sched_mgws {
	const struct loom_host *host;
	struct sched_config cfg; /* as given, with sizes that are chosen here */
	uint32_t rank, ranks;	 /* that share tasks */
	const struct loom_remote_blocks *far; /* [ranks]; NULL: nobody shares any */
	uint8_t *distance;	    /* [ranks] how far away they are */
};

#define MGWS_FAIL(code, ...) LOOM_FAIL(s->host, err, code, "sched_mgws: " __VA_ARGS__)
typedef unsigned long long mgws_llu;

/* Tasks of an affinity may come by workers that may not run them, and there are others that may. */
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

/* With what 0 stands for. */
static struct sched_config mgws_chosen(const void *opts)
{
	struct sched_config o = *(const struct sched_config *)opts;
	int many = o.granularity == SCHED_LANE; /* lanes hold as much as a worker each */
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
	if (!rc && o.granularity == SCHED_LANE && o.priorities)
		rc = LOOM_REFUSE(host, err, "priorities",
			       "priorities = yes: lanes have none: set priorities = no, or granularity = worker");
	return rc;
}

static int sched_mgws_create(const struct loom_host *host, const void *opts, void **self,
			     struct loom_error *err)
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

/* Slots. A GPU's stack is small: it runs no tasks in place. */
static uint32_t mgws_backlog_slots(const struct sched_mgws *s, const struct loom_layout *layout)
{
	uint32_t slots = MGWS_BACKLOG_SLOTS(s->cfg.public_queue);
	return mgws_or(s->cfg.backlog, !sched_has(layout, 1) ? 0 : slots < 256 ? 256 : slots);
}

static uint32_t mgws_kind_of(const struct loom_device_shape *shape)
{
	return sched_other_kind(shape->kind) == LOOM_ON_GPU ? LOOM_ON_CPU : LOOM_ON_GPU;
}

static int mgws_shares(const struct loom_layout *layout)
{
	return LOOM_HAS(layout, ranks) && layout->ranks > 1;
}

/* The memory of other ranks has no addresses here. */
static int mgws_asks(const struct loom_layout *layout)
{
	return mgws_shares(layout) && layout->rma;
}

/* Workers of other ranks that run the same tasks. */
static uint32_t mgws_far_workers(const struct loom_layout *layout)
{
	return mgws_shares(layout) ? layout->remote_workers : 0;
}

/* What other ranks can take from this one. */
static int mgws_check_ranks(const struct sched_mgws *s, const struct loom_layout *layout, struct loom_error *err)
{
	int real = 0; /* GPUs */
	for (uint32_t d = 0; d < layout->devices; d++)
		real |= layout->device[d].kind == LOOM_ON_GPU && !(layout->device[d].flags & LOOM_SHAPE_IS_VIRTUAL);
	if (sched_noncoherent(layout))
		return MGWS_FAIL(LOOM_ENOTSUP, "ranks share tasks between workers that change the same words, and devices of this "
					       "rank cannot: name one device in [run], or say tasks = own there");
	if (real && layout->rma)
		return MGWS_FAIL(LOOM_ENOTSUP, "a NIC cannot change the words of a GPU's queues while it works: ranks on GPUs share "
					       "tasks by trigger peer, on one host: say use = peer in [trigger], or tasks = own "
					       "in [run]");
	if (s->cfg.transfer == MGWS_ID)
		return MGWS_FAIL(LOOM_ENOTSUP, "transfer = id: other ranks do not reach the pools where tasks stay: say "
					       "transfer = body");
	if (s->cfg.owners > 1)
		return MGWS_FAIL(LOOM_ENOTSUP, "owners = %u: other ranks steal from queues of one owner only: say owners = 1",
				 s->cfg.owners);
	return 0;
}

static int sched_mgws_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			   struct loom_error *err)
{
	const struct sched_mgws *s = self;
	uint32_t all = layout->workers + mgws_far_workers(layout);
	int rc = mgws_shares(layout) ? mgws_check_ranks(s, layout, err) : 0;
	if (rc)
		return rc;
	if (all > MGWS_MAX_WORKERS)
		return MGWS_FAIL(LOOM_ENOTSUP, "%u workers, but the count of steal attempts bounds them to %u", all,
				 MGWS_MAX_WORKERS);
	if (s->cfg.transfer == MGWS_ID &&
	    (uint64_t)layout->workers * MGWS_POOL_SLOTS(s->cfg.public_queue) >= MGWS_ID_INITIAL)
		return MGWS_FAIL(LOOM_ENOTSUP, "transfer = id cannot number the tasks of %u workers", layout->workers);
	if (s->cfg.transfer == MGWS_ID && layout->initial_tasks >= MGWS_ID_INITIAL)
		return MGWS_FAIL(LOOM_ENOTSUP, "transfer = id cannot number %llu initial tasks",
				 (mgws_llu)layout->initial_tasks);
	if (sched_noncoherent(layout) && layout->initial_tasks >= MGWS_RANGE_MAX)
		return MGWS_FAIL(LOOM_ENOTSUP, "%llu initial tasks are more than devices that cannot change the "
					       "same word can share", (mgws_llu)layout->initial_tasks);
	for (uint32_t d = 0; sched_noncoherent(layout) && d < layout->devices; d++)
		if (layout->device[d].workers == 1 && mgws_kind_of(&layout->device[d]) == LOOM_ON_GPU)
			return MGWS_FAIL(LOOM_ENOTSUP, "%s has one worker; beside a device with which it cannot change "
						       "the same word a GPU needs two, of which one carries mail",
					 layout->device[d].name);
	/* What is stolen from a queue of several owners is told by one of them, who must come. */
	if (s->cfg.owners == 1 && !sched_noncoherent(layout) && !mgws_shares(layout))
		need->flags |= LOOM_NEED_LATE;
	uint32_t lanes = sched_most_lanes(layout);
	uint64_t shared = sizeof(struct mgws_global) +
			  mgws_lists(layout) * s->cfg.spill * sizeof(struct loom_task);
	need->global = sched_noncoherent(layout) ?
			       sizeof(struct mgws_global) + MGWS_MAIL_BYTES(layout->devices) :
			       shared + mgws_far_workers(layout) * sizeof(struct mgws_far);
	need->device = sizeof(struct mgws_site) +
		       (sched_noncoherent(layout) ? shared + MGWS_DESK_BYTES(layout->devices) : 0);
	need->worker = MGWS_QUEUE_BYTES(s->cfg.public_queue, s->cfg.transfer) +
		       (uint64_t)mgws_backlog_slots(s, layout) * sizeof(struct loom_task) +
		       (mgws_shares(layout) ? MGWS_QUEUE_BYTES(s->cfg.public_queue, MGWS_BODY) : 0); /* mgws_landing() */
	need->local = SCHED_LOCAL_BYTES(lanes, s->cfg.local_queue) +
		      MGWS_MINE_BYTES(lanes, s->cfg.priorities, s->cfg.local_queue, all);
	return 0;
}

/* What follows from the options and the stack. */
static struct sched_config sched_mgws_config(const struct sched_mgws *s, const struct loom_layout *layout)
{
	struct sched_config cfg = s->cfg;
	cfg.noncoherent = (uint32_t)sched_noncoherent(layout);
	cfg.mixed = (uint32_t)mgws_mixed(layout);
	cfg.mail_queued = cfg.victim != MGWS_LOCAL && cfg.victim != MGWS_NONE;
	if (cfg.noncoherent && (cfg.victim == MGWS_RANDOM || cfg.victim == MGWS_BIASED))
		cfg.victim = MGWS_LOCAL; /* what crosses between devices goes by mail */
	cfg.near_of_2_32 = cfg.bias < 1 ? (uint32_t)(cfg.bias * 4294967296.0) : ~0u;
	cfg.backlog = mgws_backlog_slots(s, layout);
	cfg.far = mgws_far_workers(layout);
	cfg.near = cfg.noncoherent || (layout->devices == 1 && !cfg.far);
	cfg.rma = (uint32_t)mgws_asks(layout);
	cfg.park_ns = cfg.rma ? SCHED_ASK_NS : sched_park_ns(layout);
	return cfg;
}

static int sched_mgws_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				struct loom_error *err)
{
	const struct sched_mgws *s = self;
	struct sched_config cfg = sched_mgws_config(s, layout);
	cfg.far = cfg.far != 0; /* how many is not known yet */
	return sched_constants(s->host, &cfg, MGWS_REGISTER_WORDS(s->cfg.priorities), text, room, err);
}

/* What the workers of a device share: the stack's, or the device's own. */
static struct mgws_global *mgws_global_of(const struct loom_layout *layout, const struct loom_view *view,
						   uint32_t device)
{
	return sched_noncoherent(layout) ? (void *)((struct mgws_site *)view->device[device] + 1) : view->global;
}

/* The first task of a device's part of the initial set: as many per worker, with every device. Rounded, so that the root of
 * a tree is the larger device's, whichever comes first. */
static uint64_t mgws_first_of(const struct loom_layout *layout, uint32_t device)
{
	uint64_t worker = device < layout->devices ? layout->device[device].first_worker : layout->workers;
	return (layout->initial_tasks * worker + layout->workers / 2) / layout->workers;
}

/* Devices that are non-coherent: a part of the initial set for each; desks and mail. */
static void mgws_init_noncoherent(const struct sched_mgws *s, const struct loom_layout *layout,
			    const struct loom_view *view)
{
	const struct mgws_global *all = view->global;
	struct mgws_box *mail = (struct mgws_box *)((struct mgws_global *)view->global + 1);
	for (uint32_t i = 0; i < layout->devices * layout->devices; i++)
		memset(&mail[i], 0, offsetof(struct mgws_box, slot));
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct mgws_global *g = mgws_global_of(layout, view, d);
		struct loom_task *slots = (struct loom_task *)(g + 1);
		struct mgws_desk *desk = (void *)&slots[mgws_lists(layout) * s->cfg.spill];
		struct mgws_peer *peer = (void *)(desk + 1);
		uint64_t from = mgws_first_of(layout, d), to = mgws_first_of(layout, d + 1);
		*g = (struct mgws_global){.common = all->common, .range = to << 32 | from};
		*desk = (struct mgws_desk){0};
		for (uint32_t i = 0; i < layout->devices; i++)
			peer[i] = (struct mgws_peer){.kind = mgws_kind_of(&layout->device[i]),
							 .workers = layout->device[i].workers,
							 .share = mgws_first_of(layout, i + 1) -
								  mgws_first_of(layout, i)};
	}
}

/* The first initial task of a rank's part. */
static uint64_t mgws_part_of(const struct loom_layout *layout, uint32_t ranks, uint32_t rank)
{
	return layout->initial_tasks * rank / ranks;
}

/* What a rank tells the others of itself. */
LOOM_EXACT_BEGIN
struct mgws_card {
	struct sched_config cfg;
	struct host_mark mark;
	int32_t node; /* the NUMA node of its first device */
	uint32_t unused;
};
LOOM_EXACT_END

static uint8_t mgws_distance(const struct mgws_card *a, const struct mgws_card *b)
{
	if (!a->mark.boot[0] || memcmp(&a->mark, &b->mark, sizeof(a->mark)))
		return MGWS_OTHER_HOST;
	return a->node >= 0 && a->node == b->node ? MGWS_SAME_NODE : MGWS_SAME_HOST;
}

static int sched_mgws_meet(void *self, const struct loom_layout *layout, const struct loom_remote_blocks *far, struct loom_error *err)
{
	struct sched_mgws *s = self;
	struct mgws_card mine = {.cfg = s->cfg, .node = layout->device[0].numa_node};
	struct mgws_card *all = s->host->alloc(s->host, layout->ranks * sizeof(*all));
	if (!s->distance)
		s->distance = s->host->alloc(s->host, layout->ranks);
	host_mark_read(&mine.mark);
	int rc = all && s->distance ? s->host->allgather(s->host, &mine, all, sizeof(*all), err) :
				      MGWS_FAIL(LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; !rc && r < layout->ranks; r++) {
		s->distance[r] = mgws_distance(&mine, &all[r]);
		if (memcmp(&all[r].cfg, &s->cfg, sizeof(s->cfg)))
			rc = MGWS_FAIL(LOOM_EINVAL, "rank %u has other options than rank %u: start all ranks with the same conf",
				       r, layout->rank);
	}
	s->host->free(s->host, all);
	s->rank = layout->rank;
	s->ranks = layout->ranks;
	s->far = far;
	if (!rc && mgws_asks(layout) && layout->initial_tasks >= MGWS_RANGE_MAX)
		rc = MGWS_FAIL(LOOM_ENOTSUP, "%llu initial tasks are more than ranks can share that reach each other through a "
					     "network", (mgws_llu)layout->initial_tasks);
	return rc;
}

/* Where the workers of other ranks are: behind the lists, the nearest first. */
static void mgws_init_far(const struct sched_mgws *s, const struct loom_layout *layout, struct mgws_global *g)
{
	struct loom_task *slots = (struct loom_task *)(g + 1);
	struct mgws_far *at = (struct mgws_far *)&slots[mgws_lists(layout) * s->cfg.spill];
	uint32_t victim = layout->workers;
	for (uint32_t d = MGWS_SAME_NODE; d <= MGWS_OTHER_HOST; d++) {
		for (uint32_t i = 1; i < s->ranks; i++) {
			uint32_t rank = (s->rank + i) % s->ranks, first = victim;
			const struct loom_remote_blocks *far = &s->far[rank];
			for (uint32_t w = 0; s->distance[rank] == d && w < far->workers; w++, victim++)
				*at++ = (struct mgws_far){.queue = (uintptr_t)far->worker[w],
							  .global = (uintptr_t)far->global,
							  .rank = rank,
							  .first = first,
							  .used_up = mgws_part_of(layout, s->ranks, rank) == mgws_part_of(layout, s->ranks, rank + 1)};
		}
		if (d < MGWS_OTHER_HOST)
			g->within[d] = victim - layout->workers;
	}
	if (g->common.cfg.rma)
		g->range = mgws_part_of(layout, s->ranks, s->rank + 1) << 32 | mgws_part_of(layout, s->ranks, s->rank);
	else if (s->rank)
		g->job = (uintptr_t)s->far[0].global;
}

static int sched_mgws_init(void *self, const struct loom_layout *layout,
			   const struct loom_view *view, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	const struct sched_config *o = &s->cfg;
	struct mgws_global *g = view->global;
	(void)err;
	*g = (struct mgws_global){.common.cfg = sched_mgws_config(s, layout)};
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		*(struct mgws_site *)view->device[d] = (struct mgws_site){
			.kind = mgws_kind_of(shape), .other = sched_other_kind(shape->kind)};
		for (uint32_t i = 0; i < shape->workers; i++) {
			uint32_t w = shape->first_worker + i;
			struct mgws_queue *q = view->worker[w];
			memset(q, 0, sizeof(*q));
			q->leader = w - i % o->owners; /* the worker whose queue it uses */
			q->books.mask = o->public_queue - 1;
			q->books.word = MGWS_NO_WORD;
			if (o->transfer == MGWS_ID)
				memset((char *)(q + 1) + MGWS_IDS_BYTES(o->public_queue), 0,
				       MGWS_POOL_MARKS(o->public_queue));
		}
	}
	if (sched_noncoherent(layout))
		mgws_init_noncoherent(s, layout, view);
	if (s->far)
		mgws_init_far(s, layout, g);
	return 0;
}

/* Nothing is on its way. */
static int mgws_check_mail(const struct sched_mgws *s, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	const struct mgws_box *mail = (const struct mgws_box *)((const struct mgws_global *)view->global + 1);
	uint32_t n = layout->devices;
	for (uint32_t i = 0; i < n * n; i++)
		if (mail[i].taken != mail[i].granted)
			return MGWS_FAIL(LOOM_EWRONG, "mail %u from %s to %s was never taken", mail[i].granted,
					 layout->device[i / n].name, layout->device[i % n].name);
	return 0;
}

static int mgws_check_shared(const struct sched_mgws *s, const struct mgws_global *g, uint64_t next, uint64_t end,
			     struct loom_error *err)
{
	uint64_t listed = g->list[0].count + g->list[1].count + g->list[2].count;
	if (next < end || listed)
		return MGWS_FAIL(LOOM_EWRONG, "%llu of %llu initial tasks claimed, %llu spilled tasks left",
				 (mgws_llu)next, (mgws_llu)end, (mgws_llu)listed);
	if (g->common.bell.sleepers)
		return MGWS_FAIL(LOOM_EWRONG, "%u workers still sleep", g->common.bell.sleepers);
	return 0;
}

static int mgws_check_queue(const struct sched_mgws *s, const struct mgws_queue *q, uint32_t w, struct loom_error *err)
{
	const struct mgws_books *b = &q->books;
	const uint32_t *marks = (const void *)((const char *)(q + 1) + MGWS_IDS_BYTES(s->cfg.public_queue));
	uint64_t stolen = b->started[0] + b->started[1];
	for (int e = 0; e < 2; e++)
		if (b->started[e] != q->completed[e])
			return MGWS_FAIL(LOOM_EWRONG, "worker %u, epoch %d: %llu tasks taken by thieves, %llu copied", w,
					 e, (mgws_llu)b->started[e], (mgws_llu)q->completed[e]);
	if (b->shared != stolen + b->acquired)
		return MGWS_FAIL(LOOM_EWRONG, "worker %u made %llu tasks public, but %llu were stolen and %llu taken back",
				 w, (mgws_llu)b->shared, (mgws_llu)stolen, (mgws_llu)b->acquired);
	for (uint32_t i = 0; s->cfg.transfer == MGWS_ID && i < MGWS_POOL_SLOTS(s->cfg.public_queue); i++)
		if (marks[i])
			return MGWS_FAIL(LOOM_EWRONG, "slot %u of the pool of worker %u was never given back", i, w);
	return 0;
}

/* What went from rank to rank. */
static int mgws_report_far(const struct sched_mgws *s, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = s->host;
	struct {
		uint64_t steals, tasks, host;
	} mine = {0}, sum = {0}, *all = host->alloc(host, s->ranks * sizeof(*all));
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct mgws_queue *q = view->worker[w];
		mine.steals += q->far_steals;
		mine.tasks += q->far_tasks;
		mine.host += q->host_steals;
	}
	int rc = all ? host->allgather(host, &mine, all, sizeof(mine), err) : MGWS_FAIL(LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; !rc && r < s->ranks; r++) {
		sum.steals += all[r].steals;
		sum.tasks += all[r].tasks;
		sum.host += all[r].host;
	}
	host->free(host, all);
	host->metric(host, report, "far_steals", "", LOOM_BETTER_NONE, (double)sum.steals);
	host->metric(host, report, "far_steals_of_host", "", LOOM_BETTER_NONE, (double)sum.host);
	host->metric(host, report, "far_stolen", "tasks", LOOM_BETTER_NONE, (double)sum.tasks);
	return rc;
}

/* The core checks sums over workers; here, what each queue alone knows. */
static int sched_mgws_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_report *report, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	int rc = 0, apart = sched_noncoherent(layout), ranged = apart || mgws_asks(layout);
	for (uint32_t w = 0; !rc && w < layout->workers; w++)
		rc = mgws_check_queue(s, view->worker[w], w, err);
	for (uint32_t d = 0; !rc && d < (apart ? layout->devices : 1); d++) {
		const struct mgws_global *g = mgws_global_of(layout, view, d);
		/* Of ranks that share tasks and a word of the set the first has it. */
		rc = mgws_check_shared(s, g, ranged ? (uint32_t)g->range : g->next,
				       ranged ? g->range >> 32 : s->rank ? 0 : layout->initial_tasks, err);
	}
	if (!rc && s->far)
		rc = mgws_report_far(s, layout, view, report, err);
	return rc || !apart ? rc : mgws_check_mail(s, layout, view, err);
}

/* The failures of the device code: no place for a task, a task that no device may run, a foreign join. */
static int sched_mgws_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	if (code == LOOM_ENOTSUP)
		return MGWS_FAIL(code, "worker %u came by a task for a kind of device that the stack does not have: add "
				       "one to [run] devices, or give the task another affinity", worker);
	if (code == LOOM_EUNAVAIL && s->far)
		return MGWS_FAIL(code, "worker %u ended a task with a join, and a task of another rank would find other memory "
				       "behind it: say tasks = own in [run], or choose a program without joins", worker);
	if (code == LOOM_EUNAVAIL)
		return MGWS_FAIL(code, "worker %u ended a task whose join belongs to another device, and these devices "
				       "cannot change the same word: use one device, or a program without joins", worker);
	if (code != LOOM_EFULL)
		return 0;
	return MGWS_FAIL(code, "worker %u had no place for a new task: local queue (%u) and public queue (%u) are full, "
			       "tasks are nested %u deep, and %llu are spilled; raise spill, in_place_depth or the queue "
			       "sizes",
			 worker, s->cfg.local_queue, s->cfg.public_queue, s->cfg.in_place_depth, (mgws_llu)info);
}

/* Where the tasks are. Relaxed: workers may run. */
static void sched_mgws_stuck(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     char *text, size_t size)
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
		int ranged = sched_noncoherent(layout) || mgws_asks(layout);
		/* What other ranks have on GPUs the host does not reach. */
		int far = s->rank && !ranged, hidden = far && sched_has(layout, 1);
		struct mgws_global *job = far && !hidden ? s->far[0].global : g;
		uint64_t next = hidden ? layout->initial_tasks : loom_load_relaxed_sys(&job->next);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			listed += loom_load_relaxed_sys(&g->list[i].count);
		asleep += loom_load_relaxed_sys(&job->common.bell.sleepers);
		unclaimed += ranged			    ? mgws_range_left(loom_load_relaxed_sys(&g->range)) :
			     next < layout->initial_tasks ? layout->initial_tasks - next :
							    0;
	}
	int n = snprintf(text, size,
			 "sched_mgws: %llu of %llu initial tasks unclaimed, %llu tasks public",
			 (mgws_llu)unclaimed,
			 (mgws_llu)layout->initial_tasks, (mgws_llu)public);
	if (most && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n, " (most with worker %u: %llu)", where,
			      (mgws_llu)most);
	if (n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, ", %llu of %llu places for spilled tasks taken, %u workers asleep",
			 (mgws_llu)listed, (mgws_llu)s->cfg.spill,
			 asleep);
}

static const struct loom_sched_ops sched_mgws_ops = {
	.size = sizeof(struct loom_sched_ops),
	.create = sched_mgws_create,
	.destroy = sched_mgws_destroy,
	.need = sched_mgws_need,
	.init = sched_mgws_init,
	.collect = sched_mgws_collect,
	.explain = sched_mgws_explain,
	.constants = sched_mgws_constants,
	.stuck = sched_mgws_stuck,
	.connect = sched_mgws_meet,
};

static const struct loom_sched_dev sched_mgws_cpu = {
	.size = sizeof(struct loom_sched_dev),
	.run = sched_mgws_run,
	.spawn = sched_mgws_spawn,
	.wanted = sched_mgws_wanted,
};

static const struct loom_sched_dev mgws_alone_cpu = {
	.size = sizeof(struct loom_sched_dev),
	.run = sched_mgws_run,
	.spawn = mgws_alone_spawn,
};

/* In the order in which they include each other. */
LOOM_DEVICE_CODE(sched_mgws_code, sched_mgws_cpu, "sched_mgws.dev.h", LOOM_CODE_FILE("options.dev.h")
		 LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h") LOOM_CODE_FILE("queue.dev.h")
		 LOOM_CODE_FILE("spill.dev.h") LOOM_CODE_FILE("public.dev.h") LOOM_CODE_FILE("owners.dev.h")
		 LOOM_CODE_FILE("ids.dev.h") LOOM_CODE_FILE("share.dev.h") LOOM_CODE_FILE("keep.dev.h")
		 LOOM_CODE_FILE("damping.dev.h") LOOM_CODE_FILE("priorities.dev.h") LOOM_CODE_FILE("steal.dev.h")
		 LOOM_CODE_FILE("mail.dev.h") LOOM_CODE_FILE("claim.dev.h") LOOM_CODE_FILE("spawn.dev.h")
		 LOOM_CODE_FILE("lanes.dev.h") LOOM_CODE_FILE("look.dev.h") LOOM_CODE_FILE("work.dev.h")
		 LOOM_CODE_FILE("idle.dev.h") LOOM_CODE_FILE("sched_mgws.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_mgws", "0.1.0", "Apache-2.0",
		   "Work stealing: thieves take half of a public queue with one fetch-and-add",
		   .opts = sched_mgws_rows, .opts_size = sizeof(struct sched_config),
		   .check = sched_mgws_check, .ops = &sched_mgws_ops, .dev = &sched_mgws_code)
