/* SPDX-License-Identifier: Apache-2.0 */
/* sched_mgws: work stealing between the public queues of all workers. Host half. */
#include <stdio.h>
#include <string.h>

#include "sched_mgws.dev.h"
#include "host.h"

_Static_assert(sizeof(struct sched_mgws_queue) % 64 == 0, "the ring starts on a line");
_Static_assert(sizeof(struct sched_mgws_global) % 64 == 0, "so do the lists");
_Static_assert(sizeof(struct sched_mgws_mine) % 64 == 0, "and the indices of the lanes");
_Static_assert(sizeof(struct sched_config) == 128, "nothing hot shares its lines");

static const char *const victims[] = {"random", "biased", "local", "neighbour", "none", NULL};
static const char *const overflows[] = {"two_atomics", "damping", NULL};
static const char *const grains[] = {"worker", "lane", NULL};
static const char *const transfers[] = {"body", "id", NULL};
static const char *const claims[] = {"guided", "fixed", NULL};
static const char *const sched_idles[] = {"spin", "yield", "park", NULL};

struct sched_mgws_opts {
	uint32_t local_queue, public_queue, owners, claim, claim_size, victim, overflow, transfer, idle;
	uint32_t in_place_depth, grain, backlog;
	uint64_t spill, spin;
	double bias;
	uint8_t priorities;
};

static const struct loom_opt sched_mgws_rows[] = {
	LOOM_OPT(struct sched_mgws_opts, local_queue, LOOM_OPT_U32, "0",
		 "tasks in a worker's private queue; a power of two from 2 on. 0: 32, or 128 with grain = lane",
		 .min = 0, .max = 4096),
	LOOM_OPT(struct sched_mgws_opts, public_queue, LOOM_OPT_U32, "0",
		 "tasks in the queue that others steal from; a power of two. 0: 64, or 1024 with grain = lane",
		 .min = 0, .max = 65536),
	LOOM_OPT(struct sched_mgws_opts, backlog, LOOM_OPT_U32, "0",
		 "tasks that a worker keeps for itself in a third, larger queue when both of its queues are "
		 "full; a power of two. 0: four times public_queue with grain = lane, at least 256 where GPUs "
		 "take part, else none",
		 .min = 0, .max = 1 << 20),
	LOOM_OPT(struct sched_mgws_opts, grain, LOOM_OPT_ENUM, "worker",
		 "on workers of several lanes, as on a GPU: worker runs a task by all lanes together, lane "
		 "gives each lane a task of its own, which suits small tasks that use one lane",
		 .choices = grains),
	LOOM_OPT(struct sched_mgws_opts, owners, LOOM_OPT_U32, "1",
		 "workers of a device that share a public queue: 1, 2 or 4", .min = 1, .max = 4),
	LOOM_OPT(struct sched_mgws_opts, claim, LOOM_OPT_ENUM, "guided",
		 "initial tasks that a worker claims at a time: guided takes an eighth of its share of "
		 "what is left, fixed takes claim_size",
		 .choices = claims),
	LOOM_OPT(struct sched_mgws_opts, claim_size, LOOM_OPT_U32, "16", "for claim = fixed", .min = 1,
		 .max = 1 << 20),
	LOOM_OPT(struct sched_mgws_opts, victim, LOOM_OPT_ENUM, "random",
		 "whom to steal from: random takes any other worker, biased one of the same device "
		 "with probability bias and else another device's, local only the same device's, "
		 "neighbour the next worker and then the one after it, none nobody",
		 .choices = victims),
	LOOM_OPT(struct sched_mgws_opts, bias, LOOM_OPT_SHARE, "90%",
		 "victim = biased: how often a victim is of the same device", .min = 0, .max = 1),
	LOOM_OPT(struct sched_mgws_opts, overflow, LOOM_OPT_ENUM, "two_atomics",
		 "what keeps the count of steal attempts from wrapping: two_atomics looks before each "
		 "claim, damping only at queues that were empty last time",
		 .choices = overflows),
	LOOM_OPT(struct sched_mgws_opts, transfer, LOOM_OPT_ENUM, "body",
		 "what public queues carry: tasks, or ids of 4 bytes of tasks that stay in a pool",
		 .choices = transfers),
	SCHED_IDLE_ROWS(struct sched_mgws_opts),
	LOOM_OPT(struct sched_mgws_opts, priorities, LOOM_OPT_BOOL, "no",
		 "heed the priority of spawned tasks: a worker runs what it holds high first and low "
		 "last; takes twice local_queue more private memory"),
	LOOM_OPT(struct sched_mgws_opts, in_place_depth, LOOM_OPT_U32, "64",
		 "when both queues are full, run new tasks inside their spawner, nested at most "
		 "this "
		 "deep; 0 never does",
		 .max = 4096),
	LOOM_OPT(struct sched_mgws_opts, spill, LOOM_OPT_U64, "65536",
		 "tasks that may be set aside on a list that all workers share when queues are "
		 "full and "
		 "tasks are nested too deep; 0: none",
		 .max = 1 << 28),
	{.name = NULL},
};

struct sched_mgws {
	const struct loom_host *host;
	const struct sched_mgws_opts *o; /* &opts */
	struct sched_mgws_opts opts;      /* as given, with sizes that are chosen here */
};

/* Tasks of an affinity may come by workers that may not run them, and there are others that may. */
static int sched_mgws_mixed(const struct loom_layout *layout)
{
	return sched_has_gpu(layout) && sched_has_cpu(layout);
}

static uint32_t sched_mgws_or(uint32_t given, uint32_t chosen)
{
	return given ? given : chosen;
}

static uint32_t sched_mgws_lists(const struct loom_layout *layout)
{
	return sched_mgws_mixed(layout) ? MGWS_LISTS : 1;
}

static int sched_mgws_create(const struct loom_host *host, const void *opts, void **self,
			     struct loom_error *err)
{
	struct sched_mgws_opts chosen = *(const struct sched_mgws_opts *)opts;
	const struct sched_mgws_opts *o = &chosen;
	int many = o->grain == SCHED_LANE; /* lanes hold as much as a worker each */
	chosen.local_queue = sched_mgws_or(o->local_queue, many ? 128 : 32);
	chosen.public_queue = sched_mgws_or(o->public_queue, many ? 1024 : 64);
	if (many)
		chosen.backlog = sched_mgws_or(o->backlog, MGWS_BACKLOG_SLOTS(o->public_queue));
	int rc = sched_check_ring(host, "local_queue", o->local_queue, 2, 4096, err);
	if (!rc)
		rc = sched_check_ring(host, "public_queue", o->public_queue, 1, 65536, err);
	if (!rc && o->backlog)
		rc = sched_check_ring(host, "backlog", o->backlog, 1, 1 << 20, err);
	if (!rc && o->owners == 3)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "owners = 3: must be 1, 2 or 4");
	if (!rc && o->grain == SCHED_LANE && o->priorities)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL,
			       "grain = lane heeds no priorities: say priorities = no, or grain = worker");
	if (rc)
		return rc;
	struct sched_mgws *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_mgws: out of memory");
	s->host = host;
	s->opts = chosen;
	s->o = &s->opts;
	*self = s;
	return 0;
}

static void sched_mgws_destroy(void *self)
{
	struct sched_mgws *s = self;
	if (s)
		s->host->free(s->host, s);
}

/* Slots. A GPU's stack is small: it runs no tasks in place. */
static uint32_t sched_mgws_backlog_of(const struct sched_mgws *s, const struct loom_layout *layout)
{
	uint32_t slots = MGWS_BACKLOG_SLOTS(s->o->public_queue);
	return sched_mgws_or(s->o->backlog, !sched_has_gpu(layout) ? 0 : slots < 256 ? 256 : slots);
}

static uint32_t sched_mgws_kind(const struct loom_device_shape *shape)
{
	return sched_other_kind(shape->kind) == LOOM_ON_GPU ? LOOM_ON_CPU : LOOM_ON_GPU;
}

static int sched_mgws_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			   struct loom_error *err)
{
	const struct sched_mgws *s = self;
	if (layout->workers > MGWS_MAX_WORKERS)
		return LOOM_FAIL(
			s->host, err, LOOM_ENOTSUP,
			"sched_mgws: %u workers, but the count of steal attempts bounds them to %u",
			layout->workers, MGWS_MAX_WORKERS);
	if (s->o->transfer == MGWS_ID &&
	    (uint64_t)layout->workers * MGWS_POOL_SLOTS(s->o->public_queue) >= MGWS_ID_INITIAL)
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_mgws: transfer = id cannot number the tasks of %u workers",
				 layout->workers);
	if (s->o->transfer == MGWS_ID && layout->initial_tasks >= MGWS_ID_INITIAL)
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_mgws: transfer = id cannot number %llu initial tasks",
				 (unsigned long long)layout->initial_tasks);
	if (sched_apart(layout) && layout->initial_tasks >= MGWS_RANGE_MAX)
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_mgws: %llu initial tasks are more than devices that cannot change the "
				 "same word can share",
				 (unsigned long long)layout->initial_tasks);
	for (uint32_t d = 0; sched_apart(layout) && d < layout->devices; d++)
		if (layout->device[d].workers == 1 && sched_mgws_kind(&layout->device[d]) == LOOM_ON_GPU)
			return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
					 "sched_mgws: %s has one worker; beside a device with which it cannot change the "
					 "same word a GPU needs two, of which one carries mail",
					 layout->device[d].name);
	uint32_t lanes = sched_most_lanes(layout);
	uint64_t shared = sizeof(struct sched_mgws_global) +
			  sched_mgws_lists(layout) * s->o->spill * sizeof(struct loom_task);
	need->global = sched_apart(layout) ?
			       sizeof(struct sched_mgws_global) + MGWS_MAIL_BYTES(layout->devices) :
			       shared;
	need->device = sizeof(struct sched_mgws_site) +
		       (sched_apart(layout) ? shared + MGWS_DESK_BYTES(layout->devices) : 0);
	need->worker = MGWS_QUEUE_BYTES(s->o->public_queue, s->o->transfer) +
		       (uint64_t)sched_mgws_backlog_of(s, layout) * sizeof(struct loom_task);
	need->local = SCHED_LOCAL_BYTES(lanes, s->o->local_queue) +
		      MGWS_MINE_BYTES(lanes, s->o->priorities, s->o->local_queue, layout->workers);
	return 0;
}

/* The worker whose queue a worker uses. */
static uint32_t sched_mgws_leader(const struct sched_mgws *s, const struct loom_device_shape *device,
				  uint32_t worker)
{
	return worker - (worker - device->first_worker) % s->o->owners;
}

static struct sched_config sched_mgws_config(const struct sched_mgws *s, const struct loom_layout *layout)
{
	const struct sched_mgws_opts *o = s->o;
	int apart = sched_apart(layout), near = o->victim == MGWS_LOCAL || o->victim == MGWS_NONE;
	/* What crosses between devices goes by mail. */
	uint32_t victim = apart && o->victim != MGWS_NEIGHBOUR && !near ? MGWS_LOCAL : o->victim;
	return (struct sched_config){
		.local_queue = o->local_queue,
		.public_queue = o->public_queue,
		.in_place_depth = o->in_place_depth,
		.claim = o->claim ? o->claim_size : 0,
		.spill = o->spill,
		.spin_ns = o->spin,
		.park_ns = sched_park_ns(layout),
		.idle = o->idle,
		.owners = o->owners,
		.overflow = o->overflow,
		.victim = victim,
		.transfer = o->transfer,
		.priorities = o->priorities,
		.bias = o->bias < 1 ? (uint32_t)(o->bias * 4294967296.0) : ~0u,
		.mixed = (uint32_t)sched_mgws_mixed(layout),
		.grain = o->grain,
		.backlog = sched_mgws_backlog_of(s, layout),
		.apart = (uint32_t)apart,
		.afar = !near,
	};
}

static int sched_mgws_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				struct loom_error *err)
{
	const struct sched_mgws *s = self;
	struct sched_config cfg = sched_mgws_config(s, layout);
	return sched_constants(s->host, &cfg, MGWS_KEEP_WORDS(s->o->priorities), text, room, err);
}

/* What the workers of a device share: the stack's, or the device's own. */
static struct sched_mgws_global *sched_mgws_shared(const struct loom_layout *layout, const struct loom_view *view,
						   uint32_t device)
{
	return sched_apart(layout) ? (void *)((struct sched_mgws_site *)view->device[device] + 1) : view->global;
}

/* The first task of a device's part of the initial set: as many per worker, with every device. */
static uint64_t sched_mgws_first_of(const struct loom_layout *layout, uint32_t device)
{
	uint64_t worker = device < layout->devices ? layout->device[device].first_worker : layout->workers;
	return layout->initial_tasks * worker / layout->workers;
}

/* Devices that are apart: a part of the initial set for each; desks and mail. */
static void sched_mgws_part(const struct sched_mgws *s, const struct loom_layout *layout,
			    const struct loom_view *view)
{
	const struct sched_mgws_global *all = view->global;
	struct sched_mgws_mail *mail = (struct sched_mgws_mail *)((struct sched_mgws_global *)view->global + 1);
	for (uint32_t i = 0; i < layout->devices * layout->devices; i++)
		memset(&mail[i], 0, offsetof(struct sched_mgws_mail, slot));
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct sched_mgws_global *g = sched_mgws_shared(layout, view, d);
		struct loom_task *slots = (struct loom_task *)(g + 1);
		struct sched_mgws_desk *desk = (void *)&slots[sched_mgws_lists(layout) * s->o->spill];
		struct sched_mgws_peer *peer = (void *)(desk + 1);
		uint64_t from = sched_mgws_first_of(layout, d), to = sched_mgws_first_of(layout, d + 1);
		*g = (struct sched_mgws_global){.common = all->common, .range = to << 32 | from};
		*desk = (struct sched_mgws_desk){0};
		for (uint32_t i = 0; i < layout->devices; i++)
			peer[i] = (struct sched_mgws_peer){.kind = sched_mgws_kind(&layout->device[i]),
							 .workers = layout->device[i].workers,
							 .share = sched_mgws_first_of(layout, i + 1) -
								  sched_mgws_first_of(layout, i)};
	}
}

static int sched_mgws_init(void *self, const struct loom_layout *layout,
			   const struct loom_view *view, struct loom_error *err)
{
	const struct sched_mgws *s = self;
	const struct sched_mgws_opts *o = s->o;
	struct sched_mgws_global *g = view->global;
	(void)err;
	*g = (struct sched_mgws_global){.common.cfg = sched_mgws_config(s, layout)};
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		*(struct sched_mgws_site *)view->device[d] = (struct sched_mgws_site){
			.kind = sched_mgws_kind(shape), .other = sched_other_kind(shape->kind)};
		for (uint32_t i = 0; i < shape->workers; i++) {
			uint32_t w = shape->first_worker + i;
			struct sched_mgws_queue *q = view->worker[w];
			memset(q, 0, sizeof(*q));
			q->leader = sched_mgws_leader(s, shape, w);
			q->books.mask = o->public_queue - 1;
			q->books.word = MGWS_NO_WORD;
			if (o->transfer == MGWS_ID)
				memset((char *)(q + 1) + MGWS_IDS_BYTES(o->public_queue), 0,
				       MGWS_POOL_MARKS(o->public_queue));
		}
	}
	if (sched_apart(layout))
		sched_mgws_part(s, layout, view);
	return 0;
}

/* Nothing is on its way. */
static int sched_mgws_check_mail(const struct sched_mgws *s, const struct loom_layout *layout,
				 const struct loom_view *view, struct loom_error *err)
{
	const struct sched_mgws_mail *mail =
		(const struct sched_mgws_mail *)((const struct sched_mgws_global *)view->global + 1);
	for (uint32_t i = 0; i < layout->devices * layout->devices; i++)
		if (mail[i].taken != mail[i].granted)
			return LOOM_FAIL(s->host, err, LOOM_EWRONG,
					 "sched_mgws: mail %u from %s to %s was never taken", mail[i].granted,
					 layout->device[i / layout->devices].name,
					 layout->device[i % layout->devices].name);
	return 0;
}

static int sched_mgws_check_shared(const struct sched_mgws *s, const struct sched_mgws_global *g, uint64_t next,
				   uint64_t end, struct loom_error *err)
{
	uint64_t listed = g->list[0].count + g->list[1].count + g->list[2].count;
	if (next < end || listed)
		return LOOM_FAIL(s->host, err, LOOM_EWRONG,
				 "sched_mgws: %llu of %llu initial tasks claimed, %llu spilled tasks left",
				 (unsigned long long)next, (unsigned long long)end, (unsigned long long)listed);
	if (g->common.bell.sleepers)
		return LOOM_FAIL(s->host, err, LOOM_EWRONG, "sched_mgws: %u workers still sleep",
				 g->common.bell.sleepers);
	return 0;
}

/* The core checks sums over workers; here, what each queue alone knows. */
static int sched_mgws_collect(void *self, const struct loom_layout *layout,
			      const struct loom_view *view, struct loom_report *report,
			      struct loom_error *err)
{
	const struct sched_mgws *s = self;
	(void)report;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct sched_mgws_queue *q = view->worker[w];
		const struct sched_mgws_own *b = &q->books;
		for (int e = 0; e < 2; e++)
			if (b->started[e] != q->completed[e])
				return LOOM_FAIL(
					s->host, err, LOOM_EWRONG,
					"sched_mgws: worker %u, epoch %d: %llu tasks taken by "
					"thieves, %llu copied",
					w, e, (unsigned long long)b->started[e],
					(unsigned long long)q->completed[e]);
		if (b->given != b->started[0] + b->started[1] + b->acquired)
			return LOOM_FAIL(
				s->host, err, LOOM_EWRONG,
				"sched_mgws: worker %u made %llu tasks public, but %llu were "
				"stolen and %llu taken back",
				w, (unsigned long long)b->given,
				(unsigned long long)(b->started[0] + b->started[1]),
				(unsigned long long)b->acquired);
		for (uint32_t i = 0; s->o->transfer == MGWS_ID && i < MGWS_POOL_SLOTS(s->o->public_queue); i++)
			if (((const uint32_t *)((const char *)(q + 1) + MGWS_IDS_BYTES(s->o->public_queue)))[i])
				return LOOM_FAIL(s->host, err, LOOM_EWRONG,
						 "sched_mgws: slot %u of the pool of worker %u was never "
						 "given back",
						 i, w);
	}
	if (!sched_apart(layout)) {
		const struct sched_mgws_global *g = view->global;
		return sched_mgws_check_shared(s, g, g->next, layout->initial_tasks, err);
	}
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct sched_mgws_global *g = sched_mgws_shared(layout, view, d);
		int rc = sched_mgws_check_shared(s, g, (uint32_t)g->range, g->range >> 32, err);
		if (rc)
			return rc;
	}
	return sched_mgws_check_mail(s, layout, view, err);
}

/* The failures of the device code: the last rung of the overflow ladder, and tasks that no device may
 * run. */
static int sched_mgws_explain(void *self, uint32_t worker, int code, uint64_t info,
			      struct loom_error *err)
{
	const struct sched_mgws *s = self;
	if (code == LOOM_ENOTSUP)
		return LOOM_FAIL(s->host, err, code,
				 "sched_mgws: worker %u came by a task for a kind of device that the stack "
				 "does not have: add one to [run] devices, or give the task another affinity",
				 worker);
	if (code == LOOM_EUNAVAIL)
		return LOOM_FAIL(s->host, err, code,
				 "sched_mgws: worker %u ended a task whose join belongs to another device, and these "
				 "devices cannot change the same word: use one device, or a program without joins",
				 worker);
	if (code != LOOM_EFULL)
		return 0;
	return LOOM_FAIL(s->host, err, code,
			 "sched_mgws: worker %u had no place for a new task: local queue (%u) and "
			 "public queue (%u) are full, tasks are nested %u deep, and %llu are spilled; "
			 "raise spill, in_place_depth or the queue sizes",
			 worker, s->o->local_queue, s->o->public_queue, s->o->in_place_depth,
			 (unsigned long long)info);
}

/* Where the tasks are. Relaxed: workers may run. */
static void sched_mgws_stuck(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     char *text, size_t size)
{
	const struct sched_mgws *s = self;
	uint64_t public = 0, most = 0, listed = 0, unclaimed = 0;
	uint32_t where = 0, asleep = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct sched_mgws_queue *q = view->worker[w];
		uint64_t left = sched_mgws_left(loom_load_relaxed_sys(&q->word));
		public += left;
		if (left > most) {
			most = left;
			where = w;
		}
	}
	for (uint32_t d = 0; d < (sched_apart(layout) ? layout->devices : 1); d++) {
		struct sched_mgws_global *g = sched_mgws_shared(layout, view, d);
		uint64_t next = loom_load_relaxed_sys(&g->next);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			listed += loom_load_relaxed_sys(&g->list[i].count);
		asleep += loom_load_relaxed_sys(&g->common.bell.sleepers);
		unclaimed += sched_apart(layout)	    ? sched_mgws_undrawn(loom_load_relaxed_sys(&g->range)) :
			     next < layout->initial_tasks ? layout->initial_tasks - next :
							    0;
	}
	int n = snprintf(text, size,
			 "sched_mgws: %llu of %llu initial tasks unclaimed, %llu tasks public",
			 (unsigned long long)unclaimed,
			 (unsigned long long)layout->initial_tasks, (unsigned long long)public);
	if (most && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n, " (most with worker %u: %llu)", where,
			      (unsigned long long)most);
	if (n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, ", %llu of %llu places for spilled tasks taken, %u workers asleep",
			 (unsigned long long)listed, (unsigned long long)s->o->spill,
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
};

static const struct loom_sched_dev sched_mgws_cpu = {
	.size = sizeof(struct loom_sched_dev),
	.run = sched_mgws_run,
	.spawn = sched_mgws_spawn,
	.wanted = sched_mgws_wanted,
};

static const struct loom_sched_dev sched_alone_cpu = {
	.size = sizeof(struct loom_sched_dev),
	.run = sched_mgws_run,
	.spawn = sched_alone_spawn,
};

LOOM_EMBED_CODE(sched_mgws_text, LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("lists.dev.h") LOOM_CODE_FILE("public.dev.h")
		LOOM_CODE_FILE("transfer.dev.h") LOOM_CODE_FILE("owner.dev.h") LOOM_CODE_FILE("keep.dev.h")
		LOOM_CODE_FILE("steal.dev.h") LOOM_CODE_FILE("lanes.dev.h") LOOM_CODE_FILE("mail.dev.h")
		LOOM_CODE_FILE("claim.dev.h") LOOM_CODE_FILE("spawn.dev.h") LOOM_CODE_FILE("levels.dev.h")
		LOOM_CODE_FILE("news.dev.h") LOOM_CODE_FILE("rounds.dev.h") LOOM_CODE_FILE("work.dev.h")
		LOOM_CODE_FILE("idle.dev.h") LOOM_CODE_FILE("sched_mgws.dev.h"));

static const struct loom_device_code sched_mgws_code = {
	.size = sizeof(struct loom_device_code),
	.cpu = &sched_mgws_cpu,
	.source_name = "sched_mgws.dev.h",
	.source = sched_mgws_text,
	.source_end = sched_mgws_text_end,
};

LOOM_PLUGIN_DEFINE(SCHED, "sched_mgws", "0.1.0", "Apache-2.0",
		   "Work stealing: thieves take half of a public queue with one fetch-and-add",
		   .opts = sched_mgws_rows, .opts_size = sizeof(struct sched_mgws_opts),
		   .ops = &sched_mgws_ops, .dev = &sched_mgws_code)
