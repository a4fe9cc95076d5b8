/* SPDX-License-Identifier: Apache-2.0 */
/* Between devices that are apart (loom_layout.apart): tasks go by mail. Device code.
 *
 * Each device has a part of the initial set, lists and a bell of its own, and its workers steal from each other
 * only. For each pair of devices there is a mail box in the stack's block; each of its words is written by one
 * device and read by the other:
 *
 *   asked    the thief wants tasks: the number of this wish. It stands until it is granted.
 *   granted  the victim has answered it: `tasks` slots, or a range of the initial set. Nothing of that is
 *            written again before the next wish.
 *   taken    the thief has all of it. The next wish comes later.
 *   wanted   a hint: the number of the wish, while the thief's workers lack work.
 *
 * A wish costs nobody anything until there is something to give, and no answer is ever "nothing".
 *
 * Who deals with mail. Of a GPU the first worker, and it runs no tasks: the others' program is that of a GPU alone,
 * and only one reads words over the link. It is a thief like any other, for the devices that ask: what it steals
 * it posts. What comes for its own device it makes public, for the others to steal. On a CPU those without work do it in
 * turn (`fetching`), and the others answer wishes between two tasks, or inside a long one that asks.
 *
 * What is to be had, and when. A device asks when an eighth of its workers are `hungry`: a few find work among
 * their like. Of the initial set both sides know how much of it each has dealt with since the sample began: so a
 * device gets of what is left a share as large as of what is done, from the end, while its giver's workers claim at the
 * beginning. A worker of a large device that holds the roots of most of the work would give half of that to a few
 * threads of a CPU, and a way back takes long: so queued tasks go only where one worker's half is no more than the
 * thief's share of what the device has, judged by its busy workers, and no more than one for each of the thief's.
 *
 * Termination needs nothing new: the worker that grants does not report idle before its mail is taken, and who
 * takes mail has called busy() before it says so. That is what a detector is promised of steals. A range that
 * came by mail is drawn from by workers that have reported idle: they call busy() first, and the worker that
 * installed it finds it empty before it reports idle itself. Model: tests/models/mail.pml. */
#ifndef SCHED_MGWS_MAIL_DEV_H
#define SCHED_MGWS_MAIL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "owner.dev.h"
#include "steal.dev.h"
#endif

#define MGWS_MAIL_SLOTS 64u
/* A CPU looks for wishes this many short tasks apart. */
#define MGWS_MAIL_TASKS 64u
/* Of so many workers one is without work before their device asks another. */
#define MGWS_MAIL_HUNGRY 8u

struct sched_mgws_mail {
	/* The thief writes. */
	uint32_t asked, taken, wanted;
	uint32_t pad0[13];
	/* The victim writes. */
	uint32_t granted;
	uint32_t tasks;    /* in `slot`; 0: a range */
	uint32_t worker;   /* who granted */
	uint32_t pad1;
	uint64_t from, to; /* of the initial set */
	uint64_t pad2[4];
	struct loom_task slot[MGWS_MAIL_SLOTS];
};

/* What a device knows about another, in its own block: as in the mail boxes, of which it wrote these words. Its own
 * entry has `workers` and `share` alone. */
struct sched_mgws_peer {
	uint32_t asked, taken, read; /* as thief; `read`: slots taken of mail that came */
	uint32_t wanted;
	uint64_t got;		     /* initial tasks that came from there */
	uint32_t granted;            /* as victim */
	uint32_t kind, workers, pad; /* LOOM_ON_*, and how many; constant */
	uint64_t gave;               /* initial tasks that went there */
	uint64_t share;              /* of the initial set, as it was dealt out */
};

/* A device's desk: its workers take turns at it. Its peers follow, one per device of the stack. */
struct sched_mgws_desk {
	uint32_t fetching; /* by the one that looks for mail, and writes as thief */
	uint32_t pad0[15];
	uint32_t granting; /* by the one that answers */
	uint32_t hungry;   /* workers without work; a hint */
	uint32_t pad1[14];
};

#define MGWS_DESK_BYTES(devices)                                                                   \
	(sizeof(struct sched_mgws_desk) +                                                          \
	 (((uint64_t)(devices) * sizeof(struct sched_mgws_peer) + 63) & ~63ull))
#define MGWS_MAIL_BYTES(devices)                                                                   \
	((uint64_t)(devices) * (devices) * sizeof(struct sched_mgws_mail))

/* Behind the lists of the device's block. */
LOOM_FN struct sched_mgws_desk *sched_mgws_desk(const struct loom_ctx *c)
{
	return (struct sched_mgws_desk *)sched_mgws_slots(c, SCHED_CFG(c, mixed) ? MGWS_LISTS : 1);
}

LOOM_FN struct sched_mgws_peer *sched_mgws_peer(const struct loom_ctx *c, uint32_t device)
{
	return (struct sched_mgws_peer *)(sched_mgws_desk(c) + 1) + device;
}

/* Mail from a device to another: behind the stack's block. */
LOOM_FN struct sched_mgws_mail *sched_mgws_mail(const struct loom_ctx *c, uint32_t from, uint32_t to)
{
	struct sched_mgws_global *g = (struct sched_mgws_global *)c->global[LOOM_SCHED];
	return (struct sched_mgws_mail *)(g + 1) + from * c->devices + to;
}

/* The next of the other devices. */
LOOM_FN uint32_t sched_mgws_next_peer(const struct loom_ctx *c, uint32_t device)
{
	do
		device = device + 1 < c->devices ? device + 1 : 0;
	while (device == c->device);
	return device;
}

/* One of the desk's two locks, by lane 0. Nobody waits for them. */
LOOM_FN int sched_mgws_sit(uint32_t *lock)
{
	uint32_t free = 0;
	/* Acquire: pairs with the release of who leaves; peers are as left there. */
	return !loom_load_relaxed_dev(lock) && loom_cas_acq_rel_dev(lock, &free, 1u);
}

LOOM_FN void sched_mgws_rise(uint32_t *lock)
{
	loom_store_release_dev(lock, 0u);
}

/* ---- the device's range of the initial set ----------------------------------------------------------
 *
 * One word, so that who draws from it learns which end it has: upper half the end, lower half the next one. A
 * new range is installed when the old one is used up, and by one worker at a time. */

LOOM_FN uint64_t sched_mgws_undrawn(uint64_t range)
{
	uint32_t next = (uint32_t)range, end = (uint32_t)(range >> 32);
	return next < end ? end - next : 0;
}

#define MGWS_RANGE_MAX (1ull << 31) /* of initial tasks: adds behind the end do not run over */

/* ---- victim -------------------------------------------------------------------------------- */

/* Of a GPU, which has others. */
LOOM_FN int sched_mgws_is_postmaster(const struct loom_ctx *c)
{
	return SCHED_CFG(c, apart) && c->worker == c->first && sched_mgws_own_kind(c) == LOOM_ON_GPU;
}


/* Lane 0: of `left` initial tasks, those for another device. Each has dealt with what it had less what is left. */
LOOM_FN uint64_t sched_mgws_fair(const struct loom_ctx *c, uint32_t to, uint64_t left)
{
	const struct sched_mgws_peer *peer = sched_mgws_peer(c, to);
	uint64_t theirs = peer->share + peer->gave - loom_load_relaxed_dev(&peer->got);
	uint64_t ours = sched_mgws_peer(c, c->device)->share - left, n;
	for (uint32_t i = 1, d = c->device; i < c->devices; i++) {
		d = sched_mgws_next_peer(c, d);
		ours += loom_load_relaxed_dev(&sched_mgws_peer(c, d)->got) - sched_mgws_peer(c, d)->gave;
	}
	n = theirs ? left * theirs / (theirs + ours) : left * peer->workers / (peer->workers + c->count);
	return n / 2 ? n / 2 : 1; /* half of it: the rest later, when more is known */
}

/* Lane 0, who holds `granting`: the end of what this device has yet to claim, for another; how many, and *from. Nobody
 * else changes the end now. */
LOOM_FN uint64_t sched_mgws_cut(struct loom_ctx *c, uint32_t to, uint64_t *from)
{
	struct sched_mgws_global *g = sched_mgws_global(c);
	uint64_t range = loom_load_acquire_dev(&g->range), left = sched_mgws_undrawn(range), n;
	if (left < 2)
		return 0;
	n = sched_mgws_fair(c, to, left);
	range = loom_fetch_add_acq_rel_dev(&g->range, 0 - (n << 32));
	left = sched_mgws_undrawn(range);
	n = n < left ? n : left;
	*from = (range >> 32) - n;
	return n;
}

/* Tasks for the other kind of device, into the slots; how many. */
LOOM_FN uint32_t sched_mgws_post_listed(struct loom_ctx *c, struct sched_mgws_mail *m)
{
	uint32_t which = sched_mgws_other(c);
	struct sched_mgws_list *s = &sched_mgws_global(c)->list[which];
	uint64_t count = sched_mgws_open_list(c, s), n;
	if (!count)
		return 0;
	n = count < MGWS_MAIL_SLOTS ? count : MGWS_MAIL_SLOTS;
	sched_move(c, m->slot, 0, ~0ull, sched_mgws_slots(c, which), count - n, ~0ull, (uint32_t)n);
	loom_barrier_lanes(c);
	sched_mgws_close_list(c, s, count, n);
	return (uint32_t)n;
}

/* Lane 0: half of what a worker holds is no more than a device's share of what there is here. */
LOOM_FN int sched_mgws_has_plenty(const struct loom_ctx *c, const struct sched_mgws_peer *peer)
{
	uint64_t busy = c->count - loom_load_relaxed_dev(&sched_mgws_desk(c)->hungry);
	return SCHED_CFG(c, afar) && 2 * busy * peer->workers >= (uint64_t)peer->workers + c->count;
}

/* The oldest `most` of the local queue into the slots, up to the first that others wait for; how many. */
LOOM_FN uint32_t sched_mgws_post_tasks(struct loom_ctx *c, struct sched_mgws_mail *m, uint32_t most)
{
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), n = 0;
	most = most < MGWS_MAIL_SLOTS ? most : MGWS_MAIL_SLOTS;
	while (n < most && !ring[(mine->head + n) & mask].join)
		n++;
	sched_move(c, m->slot, 0, ~0ull, ring, mine->head, mask, n);
	loom_barrier_lanes(c);
	mine->head += n;
	mine->count -= n;
	return n;
}

/* Collective, by a worker that is not idle: answers the wish of a device, if there is something for it: tasks of its
 * kind, or initial ones, or up to `most` of the local queue. The caller has had a barrier since the last push. */
LOOM_FN void sched_mgws_grant(struct loom_ctx *c, uint32_t to, uint32_t most)
{
	struct sched_mgws_desk *desk = sched_mgws_desk(c);
	struct sched_mgws_peer *peer = sched_mgws_peer(c, to);
	struct sched_mgws_mail *m = sched_mgws_mail(c, c->device, to);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, held = 0, cut = 0, from = 0, plenty = 0;
	uint32_t asked = 0, n = 0;
	if (c->lane == 0 && sched_mgws_sit(&desk->granting)) {
		/* Acquire: pairs with the release of the wish, and so with that of `taken`: the slots and the
		 * range are no longer read. */
		asked = loom_load_acquire_sys(&m->asked);
		held = asked != peer->granted;
		if (!held)
			sched_mgws_rise(&desk->granting);
	}
	if (!loom_from_lane0(c, held))
		return;
	if (SCHED_CFG(c, mixed) && peer->kind == sched_mgws_other(c))
		n = sched_mgws_post_listed(c, m);
	if (!n && c->lane == 0) {
		cut = sched_mgws_cut(c, to, &from);
		plenty = !cut && sched_mgws_has_plenty(c, peer);
	}
	if (loom_from_lane0(c, plenty))
		n = sched_mgws_post_tasks(c, m, most < peer->workers ? most : peer->workers);
	if (c->lane != 0)
		return;
	if (n || cut) {
		struct sched_mgws_mine *mine = sched_mgws_mine(c);
		m->tasks = n;
		m->worker = c->worker;
		m->from = from;
		m->to = from + cut;
		peer->gave += cut;
		loom_store_relaxed_dev(&peer->granted, asked);
		mine->owed |= 1ull << to;
		mine->posted++;
		sched_local(c)->tally.stolen_out += n + cut;
		/* Release: pairs with the thief's acquire; the tasks are there. */
		loom_store_release_sys(&m->granted, asked);
		loom_trace_add(c, LOOM_TRACE_RELEASE, begin, c->worker, n + cut);
	}
	sched_mgws_rise(&desk->granting);
}

/* A hint is a wish if it is newer than what was granted: who lacks nothing says the last one that was taken, which is
 * older while mail is in the box. */
LOOM_FN int sched_mgws_newer(uint32_t wish, uint32_t granted)
{
	return (int32_t)(wish - granted) > 0;
}

/* Lane 0: a device whose wish this one has not granted; MGWS_NOBODY. Each look is at another. */
LOOM_FN uint32_t sched_mgws_asker(struct loom_ctx *c)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	uint32_t device = mine->looked = sched_mgws_next_peer(c, mine->looked);
	return sched_mgws_newer(loom_load_relaxed_sys(&sched_mgws_mail(c, c->device, device)->wanted),
				loom_load_relaxed_dev(&sched_mgws_peer(c, device)->granted)) ?
		       device :
		       MGWS_NOBODY;
}

/* Lane 0: there is something to give but what this worker holds. */
LOOM_FN int sched_mgws_can_give(const struct loom_ctx *c)
{
	return sched_mgws_withheld(c) || sched_mgws_undrawn(loom_load_relaxed_dev(&sched_mgws_global(c)->range)) >= 2;
}

/* Lane 0, of a worker that has work: a wish that it can grant. `spare`: it holds tasks that it need not keep. */
LOOM_FN int sched_mgws_asked(struct loom_ctx *c, int spare)
{
	return sched_mgws_own_kind(c) == LOOM_ON_CPU && sched_mgws_asker(c) != MGWS_NOBODY &&
	       ((spare && SCHED_CFG(c, afar)) || sched_mgws_can_give(c));
}

/* Answers the wish that was seen last, with half of the local queue. To where there are more workers all but one task
 * goes: there it will be done soonest. */
SCHED_SLOW void sched_mgws_answer(struct loom_ctx *c)
{
	uint32_t to = loom_word_from_lane0(c, c->lane == 0 ? sched_mgws_mine(c)->looked : 0);
	uint32_t held = sched_lane(c)->count;
	sched_mgws_grant(c, to, held > 1 && sched_mgws_peer(c, to)->workers > c->count ? held - 1 : held / 2);
}

/* Inside a task that keeps work to itself: 1 when another device wants some and there is none at hand. */
LOOM_FN int sched_mgws_wanted_afar(struct loom_ctx *c)
{
	uint64_t asked = c->lane == 0 && !loom_stopped(c) && sched_mgws_asked(c, 1);
	if (!loom_from_lane0(c, asked))
		return 0;
	sched_mgws_grant(c, loom_word_from_lane0(c, c->lane == 0 ? sched_mgws_mine(c)->looked : 0),
			 sched_lane(c)->count);
	asked = c->lane == 0 && sched_mgws_asker(c) != MGWS_NOBODY;
	return loom_from_lane0(c, asked) && !sched_lane(c)->count;
}

/* Lane 0: what this worker granted is not all taken, as far as it is known. */
LOOM_FN int sched_mgws_owes(struct loom_ctx *c)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	for (uint32_t d = 0; d < c->devices && mine->owed; d++) {
		/* Acquire: pairs with the thief's release, behind its busy(). A later grant by another worker
		 * keeps this one from being idle for longer than it need be. */
		if (mine->owed >> d & 1 && loom_load_acquire_sys(&sched_mgws_mail(c, c->device, d)->taken) ==
						   loom_load_relaxed_dev(&sched_mgws_peer(c, d)->granted))
			mine->owed &= ~(1ull << d);
	}
	return mine->owed != 0;
}

/* ---- thief --------------------------------------------------------------------------------- */

/* A worker without work. Lane 0's. */
struct sched_mgws_courier {
	uint32_t fetching; /* it is the one */
	uint32_t looks;    /* for work; each lane's */
};

/* Lane 0, at the desk: the hint for a device that has been asked. */
LOOM_FN void sched_mgws_want(struct sched_mgws_peer *peer, struct sched_mgws_mail *m, uint32_t number)
{
	if (peer->wanted != number)
		loom_store_relaxed_sys(&m->wanted, number);
	peer->wanted = number;
}

/* Lane 0: a device that mail has come from, plus 1, or 0. Asks all that have not been asked. */
LOOM_FN uint64_t sched_mgws_await_mail(struct loom_ctx *c)
{
	struct sched_mgws_desk *desk = sched_mgws_desk(c);
	int asks = loom_load_relaxed_dev(&desk->hungry) * MGWS_MAIL_HUNGRY >= c->count;
	uint64_t undrawn = sched_mgws_undrawn(loom_load_acquire_dev(&sched_mgws_global(c)->range));
	for (uint32_t i = 1, d = c->device; i < c->devices; i++) {
		d = sched_mgws_next_peer(c, d);
		struct sched_mgws_peer *peer = sched_mgws_peer(c, d);
		struct sched_mgws_mail *m = sched_mgws_mail(c, d, c->device);
		if (peer->asked != peer->taken) {
			/* Acquire: pairs with the release of the grant. A range has to wait until the last one is
			 * used up, and nobody grants from it; nobody else installs one now. */
			if (loom_load_acquire_sys(&m->granted) == peer->asked &&
			    (m->tasks || (!undrawn && sched_mgws_sit(&desk->granting))))
				return d + 1;
			sched_mgws_want(peer, m, asks ? peer->asked : peer->taken);
		} else if (asks) {
			peer->asked++;
			/* Release: what was taken before is no longer read. */
			loom_store_release_sys(&m->asked, peer->asked);
			sched_mgws_want(peer, m, peer->asked);
		}
	}
	return 0;
}

/* Collective, by a worker without work: whether it is at the desk. A GPU's are not: its postmaster is always there. */
LOOM_FN int sched_mgws_at_desk(struct loom_ctx *c, struct sched_mgws_courier *k)
{
	if (sched_mgws_own_kind(c) == LOOM_ON_GPU)
		return 0;
	if (c->lane == 0 && !k->fetching)
		k->fetching = (uint32_t)sched_mgws_sit(&sched_mgws_desk(c)->fetching);
	return (int)loom_word_from_lane0(c, k->fetching);
}

LOOM_FN void sched_mgws_leave_desk(struct loom_ctx *c, struct sched_mgws_courier *k)
{
	if (!k->fetching)
		return;
	for (uint32_t i = 1, d = c->device; i < c->devices; i++) {
		d = sched_mgws_next_peer(c, d);
		struct sched_mgws_peer *peer = sched_mgws_peer(c, d);
		sched_mgws_want(peer, sched_mgws_mail(c, d, c->device), peer->taken);
	}
	sched_mgws_rise(&sched_mgws_desk(c)->fetching);
	k->fetching = 0;
}

/* Collective: takes what has come from a device: tasks into the empty local queue, or a range. */
LOOM_FN void sched_mgws_open_mail(struct loom_ctx *c, uint32_t from, int idle)
{
	struct sched_mgws_peer *peer = sched_mgws_peer(c, from);
	struct sched_mgws_mail *m = sched_mgws_mail(c, from, c->device);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, left = 0, at = 0;
	uint32_t most = (sched_mask(c) + 1) / 2, n = 0;
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		at = peer->read;
		left = m->tasks - at;
	}
	left = loom_from_lane0(c, left);
	if (left) {
		at = loom_from_lane0(c, at);
		/* A share: there may be more without work here. */
		n = (uint32_t)(left - left / 2 < most ? left - left / 2 : most);
		sched_move(c, sched_ring(c), sched_lane(c)->head, sched_mask(c), m->slot, at, ~0ull, n);
		sched_lane(c)->count = n;
		loom_barrier_lanes(c);
	}
	if (c->lane == 0) {
		struct sched_mgws_global *g = sched_mgws_global(c);
		struct loom_counters *tally = &sched_local(c)->tally;
		uint64_t came = n;
		if (!n) {
			came = m->to - m->from;
			loom_store_relaxed_dev(&peer->got, peer->got + came);
			loom_store_relaxed_dev(&g->ranges, g->ranges + 1);
			/* Release: pairs with the acquire of who looks, and then at `ranges`. */
			loom_store_release_dev(&g->range, m->to << 32 | m->from);
			sched_mgws_rise(&sched_mgws_desk(c)->granting);
		}
		peer->read += n;
		tally->steals++;
		tally->stolen_in += came;
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, m->worker, came);
		if (n == left) {
			peer->read = 0;
			peer->taken = peer->asked;
			/* Release: pairs with the acquire of who granted, and then reports idle; and of who
			 * grants next, and writes there. Behind busy() and the copy. */
			loom_store_release_sys(&m->taken, peer->taken);
		}
		sched_wake(c, &g->common.bell, 1u);
	}
}

/* Collective, at the desk, by a worker that holds nothing: grants a wish, for which the postmaster steals. Whether it
 * is idle after that. */
LOOM_FN int sched_mgws_serve(struct loom_ctx *c, int idle)
{
	enum { NOTHING, GIVE, STEAL };
	uint32_t asker = 0, how = NOTHING;
	int post = sched_mgws_is_postmaster(c);
	if (c->lane == 0 && (asker = sched_mgws_asker(c)) != MGWS_NOBODY) {
		if (post ? sched_mgws_can_give(c) : sched_mgws_withheld(c))
			how = GIVE;
		else if (post && sched_mgws_has_plenty(c, sched_mgws_peer(c, asker)))
			how = STEAL;
	}
	how = loom_word_from_lane0(c, how);
	if (how == NOTHING || (how == STEAL && !sched_mgws_steal(c, idle, 1)))
		return idle;
	if (how == GIVE && idle)
		LOOM_CALL(term, busy, c);
	sched_mgws_grant(c, loom_word_from_lane0(c, asker), sched_lane(c)->count);
	return 0;
}

/* Collective, at the desk, by a worker without work: one round. Takes mail that has come; grants a wish. What the
 * postmaster then holds it makes public. Whether it is idle after that. */
SCHED_SLOW int sched_mgws_deliver(struct loom_ctx *c, int idle)
{
	struct sched_lane *mine = sched_lane(c);
	if (!mine->count) {
		uint64_t from = loom_from_lane0(c, c->lane == 0 ? sched_mgws_await_mail(c) : 0);
		if (from) {
			sched_mgws_open_mail(c, (uint32_t)from - 1, idle);
			idle = 0;
		} else {
			idle = sched_mgws_serve(c, idle);
		}
	}
	if (mine->count && sched_mgws_is_postmaster(c)) {
		uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_mask(c), mine->count);
		mine->head += n;
		mine->count -= n;
	}
	return idle;
}

/* Lane 0, in front of a sleep: a range to draw from, or mail. */
LOOM_FN int sched_mgws_posted(const struct loom_ctx *c)
{
	if (sched_mgws_undrawn(loom_load_acquire_dev(&sched_mgws_global(c)->range)))
		return 1;
	for (uint32_t i = 1, d = c->device; i < c->devices; i++) {
		d = sched_mgws_next_peer(c, d);
		const struct sched_mgws_mail *m = sched_mgws_mail(c, d, c->device);
		if (loom_load_relaxed_sys(&m->granted) != loom_load_relaxed_sys(&m->taken))
			return 1;
	}
	return 0;
}

#endif
