/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes, through which tasks move between non-coherent devices (loom_layout.noncoherent). Device code. This file is a
 * module. Other files call only
 *
 *   mgws_is_proxy                           returns whether the worker exchanges tasks and runs none
 *   mgws_can_grant, mgws_grant_between_tasks, mgws_grant_inside_task        for a worker with tasks
 *   mgws_try_exchange, mgws_exchange_tasks, mgws_end_exchange               for a worker without tasks, and the proxy
 *   mgws_mailbox_filled, mgws_has_untaken   called before a worker sleeps, and before it reports idle
 *
 * Each device has a range of the initial set, lists and an eventcount of its own. Its workers steal only from each other.
 * Each ordered pair of devices has a mailbox in the stack's block. One device is the thief, the other the victim. Each of
 * the two writes one word of the mailbox, and the other reads it:
 *
 *   asked      the number of the thief's last steal request, a multiple of 4, plus two flags. MGWS_OPEN is set until the
 *              thief has copied the whole grant; after that it may request again. MGWS_WANTS is set while the thief's
 *              workers lack tasks
 *   granted    the number of the last request that the victim has granted. The grant is `tasks` slots, or a range of the
 *              initial set. The victim does not change the grant before the next request
 *
 * So a poll is one load over the link. A victim replies only when it has tasks. It never rejects a request.
 *
 * The first worker of a GPU is the proxy worker, which runs no tasks. So the other workers run the same program as on a GPU
 * without other devices, and only one worker polls words over the link. The proxy steals as any thief does, grants the tasks
 * that it has stolen, and publishes the tasks that it receives. On a CPU, one worker without tasks at a time makes requests and
 * receives grants. Workers with tasks grant between two tasks, or inside a long task.
 *
 * A device requests tasks when an eighth of its workers have none, because fewer workers find tasks in their own device. Both
 * devices know how many initial tasks each of them has consumed since the sample began. A thief gets a share of the remaining
 * tasks in this proportion. The share comes from the end of the victim's range, because the victim's workers claim from the
 * start. A queued task may be the root of most of the work. That would be too much work for a few CPU threads, and it takes
 * long to send tasks back. So a device grants no queued tasks while it requests tasks itself. Near the end of a run, when less
 * work is left than a message takes, the last tasks therefore stay where they are, and do not travel to and fro. A grant of
 * queued tasks has at most one task for each worker of the thief.
 *
 * Termination: a worker that has made a grant does not report idle before the other device has taken the grant. A worker that
 * receives a grant calls busy() before it clears MGWS_OPEN, as detectors require of steals. A worker that has reported idle calls
 * busy() before it claims from a received range. The worker that received the range reports idle only when the range is empty.
 * Model: tests/models/mailbox.pml. */
#ifndef SCHED_MGWS_MAILBOX_DEV_H
#define SCHED_MGWS_MAILBOX_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "list.dev.h"
#include "steal.dev.h"
#endif

#define MGWS_MAILBOX_SLOTS     64u
#define MGWS_MAILBOX_TASKS     64u /* number of short tasks that a CPU's worker runs between two polls for requests */
#define MGWS_MAILBOX_SEARCHING 8u  /* a device requests tasks if one in this number of its workers has none */

#define MGWS_WANTS  1u
#define MGWS_OPEN   2u
#define MGWS_NUMBER (~3u) /* the bits of the number */
#define MGWS_NEXT   4u    /* a request's number minus that of the request before it */

struct mgws_mailbox {
	uint32_t asked; /* the thief writes it, and the victim the words below */
	uint32_t pad0[15];
	uint32_t granted;
	uint32_t tasks;  /* the number of tasks in `slot`; 0: the grant is a range */
	uint32_t worker; /* the worker that has made the grant */
	uint32_t pad1;
	uint64_t from, to; /* the granted range of the initial set */
	uint64_t pad2[4];
	struct loom_task slot[MGWS_MAILBOX_SLOTS];
};

/* The record that a device keeps of another device, in its own block. A device also keeps a record of itself, of which
 * only `workers` and `share` are used. */
struct mgws_device {
	uint32_t asked, granted; /* the last values that this device wrote as the thief, and as the victim */
	uint32_t received;       /* number of slots that this device has taken of the current grant */
	uint32_t kind, workers, pad; /* constant: the other device's kind (LOOM_ON_*) and number of workers */
	uint64_t got;   /* number of initial tasks that this device has received from the other device */
	uint64_t gave;  /* number of initial tasks that this device has granted to the other device */
	uint64_t share; /* number of initial tasks of the other device at the start of the sample */
};

/* The trylocks of a device, in its own block. An array of struct mgws_device follows, with an element for each device. */
struct mgws_exchange {
	uint32_t receive_lock; /* 1: held by the worker that requests and receives */
	uint32_t pad0[15];
	uint32_t grant_lock; /* 1: held by the worker that grants */
	uint32_t pad1[15];
};

#define MGWS_EXCHANGE_BYTES(devices)                                                                                   \
	(sizeof(struct mgws_exchange) + MGWS_LINES((devices) * sizeof(struct mgws_device)))
#define MGWS_MAILBOXES_BYTES(devices) ((uint64_t)(devices) * (devices) * sizeof(struct mgws_mailbox))

/* Returns the exchange state of this device, which follows the lists in the device's block. */
LOOM_FN struct mgws_exchange *mgws_exchange(const struct loom_ctx *c)
{
	return (struct mgws_exchange *)mgws_list_slots(c, SCHED_CFG(c, mixed) ? MGWS_LISTS : 1);
}

LOOM_FN struct mgws_device *mgws_device(const struct loom_ctx *c, uint32_t device)
{
	return (struct mgws_device *)(mgws_exchange(c) + 1) + device;
}

/* Returns the mailbox from the victim `from` to the thief `to`. The mailboxes follow struct mgws_global in the stack's
 * block. */
LOOM_FN struct mgws_mailbox *mgws_mailbox(const struct loom_ctx *c, uint32_t from, uint32_t to)
{
	struct mgws_global *g = (struct mgws_global *)c->global[LOOM_SCHED];
	return (struct mgws_mailbox *)(g + 1) + from * c->devices + to;
}

/* Returns the device after `device`, cyclically and without this device. MGWS_EACH_DEVICE is the head of a for loop over
 * the other devices. */
LOOM_FN uint32_t mgws_next_device(const struct loom_ctx *c, uint32_t device)
{
	do
		device = device + 1 < c->devices ? device + 1 : 0;
	while (device == c->device);
	return device;
}

#define MGWS_EACH_DEVICE(c, d)                                                                                         \
	uint32_t i = 1, d = mgws_next_device(c, (c)->device);                                                          \
	i < (c)->devices;                                                                                              \
	i++, d = mgws_next_device(c, d)

/* Called by lane 0. Tries to take the lock, and returns whether this worker has taken it. */
LOOM_FN int mgws_try_lock(uint32_t *lock)
{
	uint32_t free = 0;
	/* Acquire: pairs with the release in mgws_unlock(). The locks protect struct mgws_device. */
	return !loom_load_relaxed_dev(lock) && loom_cas_acq_rel_dev(lock, &free, 1u);
}

LOOM_FN void mgws_unlock(uint32_t *lock)
{
	loom_store_release_dev(lock, 0u);
}

/* Returns whether the thief has not yet taken the grant of the request in `asked`, which has been granted. */
LOOM_FN int mgws_is_granted(uint32_t asked, uint32_t granted)
{
	return (asked & ~MGWS_WANTS) == (granted | MGWS_OPEN);
}

/* Returns whether this device lacks tasks, so that it requests some: whether an eighth of its workers have none. */
LOOM_FN int mgws_lacks_tasks(const struct loom_ctx *c)
{
	return loom_load_relaxed_dev(&mgws_site(c)->searching) * MGWS_MAILBOX_SEARCHING >= c->count;
}

/* ---- victim ---------------------------------------------------------------------------------- */

/* Returns whether this worker is the proxy worker of a non-coherent GPU. Such a GPU has at least two workers. */
LOOM_FN int mgws_is_proxy(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) && c->worker == c->first && mgws_kind(c) == LOOM_ON_GPU;
}

/* Called by lane 0. Returns how many of `left` initial tasks to grant to the device `to`: half of its fair share, because
 * later requests can use better estimates of the devices' speeds. Fair shares are in proportion to the number of tasks that
 * each device has consumed. */
LOOM_FN uint64_t mgws_fair_share(const struct loom_ctx *c, uint32_t to, uint64_t left)
{
	const struct mgws_device *thief = mgws_device(c, to);
	uint64_t theirs = thief->share + thief->gave - loom_load_relaxed_dev(&thief->got);
	uint64_t ours = mgws_device(c, c->device)->share - left, n;
	for (MGWS_EACH_DEVICE(c, d))
		ours += loom_load_relaxed_dev(&mgws_device(c, d)->got) - mgws_device(c, d)->gave;
	if (theirs)
		n = left * theirs / (theirs + ours);
	else /* the thief has consumed no task yet, so shares are in proportion to the numbers of workers */
		n = left * thief->workers / (thief->workers + c->count);
	return n / 2 ? n / 2 : 1;
}

/* Called by lane 0 with grant_lock. Takes initial tasks from the end of the range; only the holder of the lock changes this
 * end. Returns the number of tasks. *from: set to the first task. */
LOOM_FN uint64_t mgws_grant_range(struct loom_ctx *c, uint32_t to, uint64_t *from)
{
	struct mgws_global *g = mgws_global(c);
	uint64_t range = loom_load_acquire_dev(&g->range), left = mgws_range_left(range), n;
	if (left < 2)
		return 0;
	n = mgws_fair_share(c, to, left);
	range = loom_fetch_add_acq_rel_dev(&g->range, 0 - (n << 32));
	left = mgws_range_left(range);
	n = n < left ? n : left;
	*from = (range >> 32) - n;
	return n;
}

/* Moves tasks from the list for the other kind of device into the slots. Returns the number of tasks. */
LOOM_FN uint32_t mgws_grant_listed(struct loom_ctx *c, struct mgws_mailbox *m)
{
	uint32_t which = mgws_other_kind(c);
	struct mgws_list *s = &mgws_global(c)->list[which];
	uint64_t count = mgws_lock_filled_list(c, s), n;
	if (!count)
		return 0;
	n = count < MGWS_MAILBOX_SLOTS ? count : MGWS_MAILBOX_SLOTS;
	sched_copy_ring(c, m->slot, 0, ~0ull, mgws_list_slots(c, which), count - n, ~0ull, (uint32_t)n);
	loom_barrier_lanes(c);
	mgws_shrink_list(c, s, count, n);
	return (uint32_t)n;
}

/* Called by lane 0. Returns whether a worker may grant queued tasks. */
LOOM_FN int mgws_has_plenty(const struct loom_ctx *c)
{
	return SCHED_CFG(c, mailbox_queued) && !mgws_lacks_tasks(c);
}

/* Moves up to `most` of the oldest tasks of the local queue into the slots. Stops before the first task with a join,
 * because another device cannot decrement the join. Returns the number of tasks. */
LOOM_FN uint32_t mgws_grant_queued(struct loom_ctx *c, struct mgws_mailbox *m, uint32_t most)
{
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), n = 0;
	most = most < MGWS_MAILBOX_SLOTS ? most : MGWS_MAILBOX_SLOTS;
	while (n < most && !ring[(mine->head + n) & mask].join)
		n++;
	sched_copy_ring(c, m->slot, 0, ~0ull, ring, mine->head, mask, n);
	loom_barrier_lanes(c);
	mine->head += n;
	mine->count -= n;
	return n;
}

/* Collective, called by a worker that has not reported idle. Grants the request of the device `to` that mgws_next_request() has
 * returned: tasks on the list for its kind; if there are none, initial tasks; else up to `most` tasks of the local queue. The
 * caller has passed a barrier after the last push. */
LOOM_FN void mgws_grant(struct loom_ctx *c, uint32_t to, uint32_t most)
{
	struct mgws_exchange *ours = mgws_exchange(c);
	struct mgws_device *thief = mgws_device(c, to);
	struct mgws_mailbox *m = mgws_mailbox(c, c->device, to);
	struct mgws_worker *mine = mgws_worker(c);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, locked = 0, cut = 0, from = 0, plenty = 0;
	uint32_t n = 0;
	if (c->lane == 0 && mgws_try_lock(&ours->grant_lock)) {
		locked = mine->request - thief->granted == MGWS_NEXT; /* else another worker has granted it */
		if (!locked)
			mgws_unlock(&ours->grant_lock);
	}
	if (!loom_from_lane0(c, locked))
		return;
	if (SCHED_CFG(c, mixed) && thief->kind == mgws_other_kind(c))
		n = mgws_grant_listed(c, m);
	if (!n && c->lane == 0) {
		cut = mgws_grant_range(c, to, &from);
		plenty = !cut && mgws_has_plenty(c);
	}
	if (loom_from_lane0(c, plenty))
		n = mgws_grant_queued(c, m, most < thief->workers ? most : thief->workers);
	if (c->lane != 0)
		return;
	if (n || cut) {
		m->tasks = n;
		m->worker = c->worker;
		m->from = from;
		m->to = from + cut;
		thief->gave += cut;
		loom_store_relaxed_dev(&thief->granted, mine->request);
		mine->untaken |= 1ull << to;
		mine->grants++;
		sched_local(c)->counters.stolen_out += n + cut;
		/* Release: pairs with the acquire in mgws_request(), after which the thief reads the tasks. */
		loom_store_release_sys(&m->granted, mine->request);
		loom_trace_add(c, LOOM_TRACE_PUBLISH, begin, c->worker, n + cut);
	}
	mgws_unlock(&ours->grant_lock);
}

/* Called by lane 0. Polls the device that follows mgws_worker.polled. Returns this device if its workers lack tasks and its
 * request was not granted, else MGWS_NO_VICTIM. */
LOOM_FN uint32_t mgws_next_request(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	uint32_t device = mine->polled = mgws_next_device(c, mine->polled);
	/* Acquire: pairs with the release in mgws_ask(), before which the thief has read all of the last grant. */
	uint32_t asked = loom_load_acquire_sys(&mgws_mailbox(c, c->device, device)->asked);
	mine->request = asked & MGWS_NUMBER;
	if (asked & MGWS_WANTS && mine->request != loom_load_relaxed_dev(&mgws_device(c, device)->granted))
		return device;
	return MGWS_NO_VICTIM;
}

/* Called by lane 0. Returns whether this device can grant other tasks than those in this worker's local queue. */
LOOM_FN int mgws_has_grantable(const struct loom_ctx *c)
{
	return mgws_others_listed(c) || mgws_range_left(loom_load_relaxed_dev(&mgws_global(c)->range)) >= 2;
}

/* Called by lane 0 of a CPU's worker with tasks. Returns whether there is a request that this worker can grant. spare: 1:
 * the worker holds more tasks than it must keep. */
LOOM_FN int mgws_can_grant(struct loom_ctx *c, int spare)
{
	return mgws_kind(c) == LOOM_ON_CPU && mgws_next_request(c) != MGWS_NO_VICTIM &&
	       ((spare && mgws_has_plenty(c)) || mgws_has_grantable(c));
}

/* Grants the request that was polled last. The grant has up to `most` tasks of the local queue, or up to `most_large`
 * if the other device has more workers than this device. */
LOOM_FN void mgws_grant_polled(struct loom_ctx *c, uint32_t most, uint32_t most_large)
{
	uint32_t to = loom_word_from_lane0(c, c->lane == 0 ? mgws_worker(c)->polled : 0);
	mgws_grant(c, to, mgws_device(c, to)->workers > c->count ? most_large : most);
}

/* Called between two tasks. Grants half of the local queue. To a device with more workers, grants all tasks but one, because
 * that device will end them sooner. */
SCHED_SLOW void mgws_grant_between_tasks(struct loom_ctx *c)
{
	uint32_t held = sched_lane(c)->count;
	mgws_grant_polled(c, held / 2, held > 1 ? held - 1 : held / 2);
}

/* Called inside a task that can be divided. Grants the tasks that this worker holds. Returns 1 if another device requests
 * tasks and this worker holds none, so that the task should spawn. */
LOOM_FN int mgws_grant_inside_task(struct loom_ctx *c)
{
	uint64_t pending = c->lane == 0 && !loom_stopped(c) && mgws_can_grant(c, 1);
	if (!loom_from_lane0(c, pending))
		return 0;
	mgws_grant_polled(c, sched_lane(c)->count, sched_lane(c)->count);
	pending = c->lane == 0 && mgws_next_request(c) != MGWS_NO_VICTIM;
	return loom_from_lane0(c, pending) && !sched_lane(c)->count;
}

/* Called by lane 0. Returns 0 if the other devices have taken all grants of this worker. */
LOOM_FN int mgws_has_untaken(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	for (uint32_t d = 0; d < c->devices && mine->untaken; d++) {
		/* Acquire: pairs with the release in mgws_ask(), before which the receiving worker has called busy(). If
		 * another worker has made a grant since then, this worker also waits for that grant, which is longer than
		 * necessary. */
		if (mine->untaken >> d & 1 && !mgws_is_granted(loom_load_acquire_sys(&mgws_mailbox(c, c->device, d)->asked),
							       loom_load_relaxed_dev(&mgws_device(c, d)->granted)))
			mine->untaken &= ~(1ull << d);
	}
	return mine->untaken != 0;
}

/* ---- thief ----------------------------------------------------------------------------------- */

/* Called by lane 0 with receive_lock. Writes `asked`, if it has another value. */
LOOM_FN void mgws_ask(struct mgws_device *victim, struct mgws_mailbox *m, uint32_t asked)
{
	/* Release: pairs with the acquire in mgws_next_request(), and in mgws_has_untaken(), after which the granting worker may
	 * report idle. */
	if (victim->asked != asked)
		loom_store_release_sys(&m->asked, asked);
	victim->asked = asked;
}

/* Called by lane 0 with receive_lock. If workers lack tasks, makes a request to each device without a pending one. Returns
 * the number of a device whose grant can be received, plus 1; 0: there is no such device. */
LOOM_FN uint64_t mgws_request(struct loom_ctx *c)
{
	struct mgws_exchange *ours = mgws_exchange(c);
	uint32_t wants = mgws_lacks_tasks(c) ? MGWS_WANTS : 0;
	uint64_t left = mgws_range_left(loom_load_acquire_dev(&mgws_global(c)->range));
	for (MGWS_EACH_DEVICE(c, d)) {
		struct mgws_device *victim = mgws_device(c, d);
		struct mgws_mailbox *m = mgws_mailbox(c, d, c->device);
		if (victim->asked & MGWS_OPEN) {
			/* Acquire: pairs with the release of `granted` in mgws_grant(). A granted range waits until this
			 * device's range is used up and no worker grants from it. While this worker holds both locks, no
			 * other worker installs a range. */
			if (loom_load_acquire_sys(&m->granted) == (victim->asked & MGWS_NUMBER) &&
			    (m->tasks || (!left && mgws_try_lock(&ours->grant_lock))))
				return d + 1;
			mgws_ask(victim, m, (victim->asked & ~MGWS_WANTS) | wants);
		} else if (wants) {
			mgws_ask(victim, m, (victim->asked + MGWS_NEXT) | MGWS_OPEN | MGWS_WANTS);
		}
	}
	return 0;
}

/* Collective, called by a worker without tasks. Tries to take receive_lock, and returns whether the worker has taken it. Lane 0
 * also stores the result in *locked. Returns 0 on a GPU, where the proxy worker exchanges tasks without the lock. */
LOOM_FN int mgws_try_exchange(struct loom_ctx *c, uint32_t *locked)
{
	if (mgws_kind(c) == LOOM_ON_GPU)
		return 0;
	if (c->lane == 0 && !*locked)
		*locked = (uint32_t)mgws_try_lock(&mgws_exchange(c)->receive_lock);
	return (int)loom_word_from_lane0(c, *locked);
}

LOOM_FN void mgws_end_exchange(struct loom_ctx *c, uint32_t *locked)
{
	if (!*locked)
		return;
	for (MGWS_EACH_DEVICE(c, d))
		mgws_ask(mgws_device(c, d), mgws_mailbox(c, d, c->device), mgws_device(c, d)->asked & ~MGWS_WANTS);
	mgws_unlock(&mgws_exchange(c)->receive_lock);
	*locked = 0;
}

/* Collective. Receives a grant. A range becomes the range of this device; tasks go into the empty local queue. idle: 1:
 * this worker has reported idle. */
LOOM_FN void mgws_receive(struct loom_ctx *c, uint32_t from, int idle)
{
	struct mgws_device *victim = mgws_device(c, from);
	struct mgws_mailbox *m = mgws_mailbox(c, from, c->device);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, left = 0, at = 0;
	uint32_t most = (sched_mask(c) + 1) / 2, n = 0;
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		at = victim->received;
		left = m->tasks - at;
	}
	left = loom_from_lane0(c, left);
	if (left) {
		at = loom_from_lane0(c, at);
		/* Takes half of the tasks, because other workers of this device may also lack tasks. */
		n = (uint32_t)(left - left / 2 < most ? left - left / 2 : most);
		sched_copy_ring(c, sched_ring(c), sched_lane(c)->head, sched_mask(c), m->slot, at, ~0ull, n);
		sched_lane(c)->count = n;
		loom_barrier_lanes(c);
	}
	if (c->lane == 0) {
		struct mgws_global *g = mgws_global(c);
		struct loom_counters *counters = &sched_local(c)->counters;
		uint64_t came = n;
		if (!n) {
			came = m->to - m->from;
			loom_store_relaxed_dev(&victim->got, victim->got + came);
			loom_store_relaxed_dev(&g->ranges, g->ranges + 1);
			/* Release: pairs with the acquire in mgws_range_moved(), after which mgws_range_moved() loads
			 * `ranges`. */
			loom_store_release_dev(&g->range, m->to << 32 | m->from);
			mgws_unlock(&mgws_exchange(c)->grant_lock);
		}
		victim->received += n;
		counters->steals++;
		counters->stolen_in += came;
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, m->worker, came);
		if (n == left) {
			victim->received = 0;
			mgws_ask(victim, m, victim->asked & MGWS_NUMBER); /* after busy() and the copy */
		}
		sched_wake(c, mgws_event(c), 1u);
	}
}

/* Collective, called by a worker that holds no tasks. Grants one steal request. If the proxy worker needs tasks for the
 * grant, it steals them first. idle: 1: the worker has reported idle. Returns the new value of idle: 0 after busy(). */
LOOM_FN int mgws_grant_without_work(struct loom_ctx *c, int idle)
{
	enum { NOTHING, GIVE, STEAL };
	uint32_t thief = 0, how = NOTHING;
	int proxy = mgws_is_proxy(c);
	if (c->lane == 0 && (thief = mgws_next_request(c)) != MGWS_NO_VICTIM) {
		if (proxy ? mgws_has_grantable(c) : mgws_others_listed(c))
			how = GIVE;
		else if (proxy && mgws_has_plenty(c))
			how = STEAL;
	}
	how = loom_word_from_lane0(c, how);
	if (how == NOTHING || (how == STEAL && !mgws_steal(c, idle, 1)))
		return idle;
	if (how == GIVE && idle)
		LOOM_CALL(term, busy, c);
	mgws_grant(c, loom_word_from_lane0(c, thief), sched_lane(c)->count);
	return 0;
}

/* Collective, called with receive_lock or by the proxy worker. Receives a grant, or grants a request. The proxy publishes the
 * tasks that it holds afterwards. idle: 1: the worker has reported idle. Returns the new value of idle: 0 after busy(). */
SCHED_SLOW int mgws_exchange_tasks(struct loom_ctx *c, int idle)
{
	struct sched_lane *mine = sched_lane(c);
	if (!mine->count) {
		uint64_t from = loom_from_lane0(c, c->lane == 0 ? mgws_request(c) : 0);
		if (from) {
			mgws_receive(c, (uint32_t)from - 1, idle);
			idle = 0;
		} else {
			idle = mgws_grant_without_work(c, idle);
		}
	}
	if (mine->count && mgws_is_proxy(c))
		mgws_publish_local(c, mine->count);
	return idle;
}

/* Called by lane 0 before it sleeps. Returns whether there is a range to claim from, or a grant to receive. */
LOOM_FN int mgws_mailbox_filled(const struct loom_ctx *c)
{
	if (mgws_range_left(loom_load_acquire_dev(&mgws_global(c)->range)))
		return 1;
	for (MGWS_EACH_DEVICE(c, d)) {
		const struct mgws_mailbox *m = mgws_mailbox(c, d, c->device);
		if (mgws_is_granted(loom_load_relaxed_sys(&m->asked), loom_load_relaxed_sys(&m->granted)))
			return 1;
	}
	return 0;
}

#endif
