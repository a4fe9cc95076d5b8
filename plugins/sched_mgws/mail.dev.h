/* SPDX-License-Identifier: Apache-2.0 */
/* Between devices that are non-coherent (loom_layout.noncoherent) tasks go by mail. Device code.
 *
 * Each device has a part of the initial set, lists and a bell of its own, and its workers steal from each other only.
 * For each pair of devices there is a mail box in the stack's block. Each word of a box is written by one device and
 * read by the other:
 *
 *   asked    written by the thief: it wants tasks. The number of this wish, which stands until it is granted.
 *   granted  written by the victim: it has answered that wish by `tasks` slots or by a range of the initial set. Nothing
 *            of that is written again before the next wish.
 *   taken    written by the thief: it has all of it. The next wish comes later.
 *   hint     written by the thief: the number of the wish while its workers lack work.
 *
 * A wish costs nobody anything until there is something to give, and no answer is ever "nothing".
 *
 * Who deals with mail. Of a GPU the first worker, its postmaster, which runs no tasks: the other workers run the same
 * program as on a GPU alone, and only one reads words over the link. The postmaster steals like any thief and mails what
 * it has stolen; mail that comes it shares, so that the other workers steal it. On a CPU the workers without work
 * take turns at it, and the workers with work grant wishes between two tasks or inside a long task that asks.
 *
 * When, and how much. A device asks when an eighth of its workers are hungry: fewer find work at home. Both devices know
 * how much of the initial set each has dealt with since the sample began. So a device that asks gets as large a share of
 * what is left as it has of what is done. It gets it from the end, while the giver's workers claim from the beginning.
 * Queued tasks need more care. A worker of a large device may hold the roots of most of the work; half of that would be
 * far too much for a few threads of a CPU, and a way back takes long. So queued tasks are mailed only where half of what
 * a worker holds is no more than the thief's share of what the device has, judged by the number of busy workers; and at
 * most one task for each worker of the thief.
 *
 * Termination needs nothing new. The worker that mails does not report idle before its mail is taken, and the one that
 * receives calls busy() before it says so: what a detector is promised of steals. A worker that has reported idle and
 * claims from a range that came by mail calls busy() first, and the worker that received the range reports idle only
 * when it finds the range empty. Model: tests/models/mail.pml. */
#ifndef SCHED_MGWS_MAIL_DEV_H
#define SCHED_MGWS_MAIL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "steal.dev.h"
#endif

#define MGWS_MAIL_SLOTS 64u
#define MGWS_MAIL_TASKS 64u /* a CPU looks for wishes after so many short tasks */
#define MGWS_MAIL_HUNGRY 8u /* a device asks when one of so many workers is hungry */

struct mgws_box {
	/* The thief writes. */
	uint32_t asked, taken, hint;
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

/* What a device knows about another, in its own block; `asked`, `taken`, `hint` and `granted` are what it wrote into the
 * boxes. In the entry for itself only `workers` and `share` are used. */
struct mgws_peer {
	uint32_t asked, taken, hint; /* as thief */
	uint32_t received;           /* as thief: slots taken of mail that came */
	uint64_t got;                /* initial tasks that came from there */
	uint32_t granted;            /* as victim */
	uint32_t kind, workers, pad; /* LOOM_ON_*, and how many; constant */
	uint64_t gave;               /* initial tasks that went there */
	uint64_t share;              /* of the initial set, as it was dealt out */
};

/* Where a device deals with mail. It has two seats, for one worker each. Its peers follow, one per device. */
struct mgws_desk {
	uint32_t asking; /* by the worker that asks and receives */
	uint32_t pad0[15];
	uint32_t granting; /* by the one that mails */
	uint32_t hungry;   /* workers without work; a hint */
	uint32_t pad1[14];
};

#define MGWS_DESK_BYTES(devices) (sizeof(struct mgws_desk) + MGWS_LINES((devices) * sizeof(struct mgws_peer)))
#define MGWS_MAIL_BYTES(devices) ((uint64_t)(devices) * (devices) * sizeof(struct mgws_box))

/* Behind the lists of the device's block. */
LOOM_FN struct mgws_desk *mgws_desk(const struct loom_ctx *c)
{
	return (struct mgws_desk *)mgws_list_slots(c, SCHED_CFG(c, mixed) ? MGWS_LISTS : 1);
}

LOOM_FN struct mgws_peer *mgws_peer(const struct loom_ctx *c, uint32_t device)
{
	return (struct mgws_peer *)(mgws_desk(c) + 1) + device;
}

/* Mail from a device to another: behind the stack's block. */
LOOM_FN struct mgws_box *mgws_box(const struct loom_ctx *c, uint32_t from, uint32_t to)
{
	struct mgws_global *g = (struct mgws_global *)c->global[LOOM_SCHED];
	return (struct mgws_box *)(g + 1) + from * c->devices + to;
}

/* The next of the other devices; and each of them in turn. */
LOOM_FN uint32_t mgws_next_peer(const struct loom_ctx *c, uint32_t device)
{
	do
		device = device + 1 < c->devices ? device + 1 : 0;
	while (device == c->device);
	return device;
}

#define MGWS_EACH_PEER(c, d)                                                                       \
	uint32_t i = 1, d = mgws_next_peer(c, (c)->device);                                        \
	i < (c)->devices;                                                                          \
	i++, d = mgws_next_peer(c, d)

/* Lane 0: takes one of the desk's seats if it is free. Nobody waits for one. */
LOOM_FN int mgws_try_seat(uint32_t *lock)
{
	uint32_t free = 0;
	/* Acquire: pairs with the release of who left; peers are as left there. */
	return !loom_load_relaxed_dev(lock) && loom_cas_acq_rel_dev(lock, &free, 1u);
}

LOOM_FN void mgws_leave_seat(uint32_t *lock)
{
	loom_store_release_dev(lock, 0u);
}

/* ---- the device's range of the initial set ----------------------------------------------------------
 *
 * One word, so that a worker that claims from it learns which end it has: the upper half is the end, the lower half the
 * next task. A new range is installed when the old one is used up, by one worker at a time. */

LOOM_FN uint64_t mgws_range_left(uint64_t range)
{
	uint32_t next = (uint32_t)range, end = (uint32_t)(range >> 32);
	return next < end ? end - next : 0;
}

#define MGWS_RANGE_MAX (1ull << 31) /* initial tasks: adds behind the end do not wrap */

/* ---- victim -------------------------------------------------------------------------------- */

/* The first worker of a GPU, which has others. */
LOOM_FN int mgws_is_postmaster(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) && c->worker == c->first && mgws_kind(c) == LOOM_ON_GPU;
}

/* Lane 0: how many of `left` initial tasks go to another device. A device has dealt with what it had less what is left. */
LOOM_FN uint64_t mgws_fair_part(const struct loom_ctx *c, uint32_t to, uint64_t left)
{
	const struct mgws_peer *peer = mgws_peer(c, to);
	uint64_t theirs = peer->share + peer->gave - loom_load_relaxed_dev(&peer->got);
	uint64_t ours = mgws_peer(c, c->device)->share - left, n;
	for (MGWS_EACH_PEER(c, d))
		ours += loom_load_relaxed_dev(&mgws_peer(c, d)->got) - mgws_peer(c, d)->gave;
	n = theirs ? left * theirs / (theirs + ours) : left * peer->workers / (peer->workers + c->count);
	return n / 2 ? n / 2 : 1; /* half of it: the rest later, when more is known */
}

/* Lane 0, at the seat `granting`: takes initial tasks for another device from the end of the range; how many, and *from.
 * Nobody else changes the end now. */
LOOM_FN uint64_t mgws_mail_range(struct loom_ctx *c, uint32_t to, uint64_t *from)
{
	struct mgws_global *g = mgws_global(c);
	uint64_t range = loom_load_acquire_dev(&g->range), left = mgws_range_left(range), n;
	if (left < 2)
		return 0;
	n = mgws_fair_part(c, to, left);
	range = loom_fetch_add_acq_rel_dev(&g->range, 0 - (n << 32));
	left = mgws_range_left(range);
	n = n < left ? n : left;
	*from = (range >> 32) - n;
	return n;
}

/* Tasks that only the other kind of device may run, from their list into the slots; how many. */
LOOM_FN uint32_t mgws_mail_spilled(struct loom_ctx *c, struct mgws_box *m)
{
	uint32_t which = mgws_other_kind(c);
	struct mgws_list *s = &mgws_global(c)->list[which];
	uint64_t count = mgws_open_list(c, s), n;
	if (!count)
		return 0;
	n = count < MGWS_MAIL_SLOTS ? count : MGWS_MAIL_SLOTS;
	sched_copy_ring(c, m->slot, 0, ~0ull, mgws_list_slots(c, which), count - n, ~0ull, (uint32_t)n);
	loom_barrier_lanes(c);
	mgws_close_list(c, s, count, n);
	return (uint32_t)n;
}

/* Lane 0: half of what a worker holds is no more than the peer's share of what this device has. */
LOOM_FN int mgws_has_plenty(const struct loom_ctx *c, const struct mgws_peer *peer)
{
	uint64_t busy = c->count - loom_load_relaxed_dev(&mgws_desk(c)->hungry);
	return SCHED_CFG(c, mail_queued) && 2 * busy * peer->workers >= (uint64_t)peer->workers + c->count;
}

/* The oldest `most` of the local queue into the slots, up to the first with a join: no other device can lower that. How
 * many. */
LOOM_FN uint32_t mgws_mail_tasks(struct loom_ctx *c, struct mgws_box *m, uint32_t most)
{
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), n = 0;
	most = most < MGWS_MAIL_SLOTS ? most : MGWS_MAIL_SLOTS;
	while (n < most && !ring[(mine->head + n) & mask].join)
		n++;
	sched_copy_ring(c, m->slot, 0, ~0ull, ring, mine->head, mask, n);
	loom_barrier_lanes(c);
	mine->head += n;
	mine->count -= n;
	return n;
}

/* Collective, by a worker that is not idle: grants the wish of a device if there is something for it: tasks for its kind,
 * or initial tasks, or up to `most` of the local queue. The caller has had a barrier since the last push. */
LOOM_FN void mgws_mail(struct loom_ctx *c, uint32_t to, uint32_t most)
{
	struct mgws_desk *desk = mgws_desk(c);
	struct mgws_peer *peer = mgws_peer(c, to);
	struct mgws_box *m = mgws_box(c, c->device, to);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, held = 0, cut = 0, from = 0, plenty = 0;
	uint32_t asked = 0, n = 0;
	if (c->lane == 0 && mgws_try_seat(&desk->granting)) {
		/* Acquire: pairs with the release of the wish, and so with that of `taken`: the slots and the
		 * range are no longer read. */
		asked = loom_load_acquire_sys(&m->asked);
		held = asked != peer->granted;
		if (!held)
			mgws_leave_seat(&desk->granting);
	}
	if (!loom_from_lane0(c, held))
		return;
	if (SCHED_CFG(c, mixed) && peer->kind == mgws_other_kind(c))
		n = mgws_mail_spilled(c, m);
	if (!n && c->lane == 0) {
		cut = mgws_mail_range(c, to, &from);
		plenty = !cut && mgws_has_plenty(c, peer);
	}
	if (loom_from_lane0(c, plenty))
		n = mgws_mail_tasks(c, m, most < peer->workers ? most : peer->workers);
	if (c->lane != 0)
		return;
	if (n || cut) {
		struct mgws_mine *mine = mgws_mine(c);
		m->tasks = n;
		m->worker = c->worker;
		m->from = from;
		m->to = from + cut;
		peer->gave += cut;
		loom_store_relaxed_dev(&peer->granted, asked);
		mine->owed |= 1ull << to;
		mine->mailed++;
		sched_local(c)->tally.stolen_out += n + cut;
		/* Release: pairs with the thief's acquire; the tasks are there. */
		loom_store_release_sys(&m->granted, asked);
		loom_trace_add(c, LOOM_TRACE_RELEASE, begin, c->worker, n + cut);
	}
	mgws_leave_seat(&desk->granting);
}

/* A hint that is newer than the last grant is a wish that stands. A device that wants nothing writes the number of the
 * last mail that it took. While mail is under way that number is older than the grant. */
LOOM_FN int mgws_wish_stands(uint32_t hint, uint32_t granted)
{
	return (int32_t)(hint - granted) > 0;
}

/* Lane 0: a device whose wish stands, or MGWS_NOBODY. Each call looks at one device, the next at another. */
LOOM_FN uint32_t mgws_next_wish(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	uint32_t device = mine->polled = mgws_next_peer(c, mine->polled);
	return mgws_wish_stands(loom_load_relaxed_sys(&mgws_box(c, c->device, device)->hint),
				loom_load_relaxed_dev(&mgws_peer(c, device)->granted)) ?
		       device :
		       MGWS_NOBODY;
}

/* Lane 0: there is something to mail besides what this worker holds. */
LOOM_FN int mgws_has_mailable(const struct loom_ctx *c)
{
	return mgws_filled_for_others(c) || mgws_range_left(loom_load_relaxed_dev(&mgws_global(c)->range)) >= 2;
}

/* Lane 0, on a CPU, of a worker that has work: there is a wish that it can grant. `spare`: it holds tasks that it need not
 * keep. */
LOOM_FN int mgws_can_grant(struct loom_ctx *c, int spare)
{
	return mgws_kind(c) == LOOM_ON_CPU && mgws_next_wish(c) != MGWS_NOBODY &&
	       ((spare && SCHED_CFG(c, mail_queued)) || mgws_has_mailable(c));
}

/* Grants the wish that was seen last, with up to `most` tasks of the local queue; `most_large`: if that device has more
 * workers than this one. */
LOOM_FN void mgws_mail_to_looked(struct loom_ctx *c, uint32_t most, uint32_t most_large)
{
	uint32_t to = loom_word_from_lane0(c, c->lane == 0 ? mgws_mine(c)->polled : 0);
	mgws_mail(c, to, mgws_peer(c, to)->workers > c->count ? most_large : most);
}

/* Between two tasks: half of the local queue. To a device with more workers all but one task: they end sooner there. */
SCHED_SLOW void mgws_mail_between(struct loom_ctx *c)
{
	uint32_t held = sched_lane(c)->count;
	mgws_mail_to_looked(c, held / 2, held > 1 ? held - 1 : held / 2);
}

/* Inside a task that keeps work to itself: 1 when another device wants some and there is none at hand. */
LOOM_FN int mgws_mail_inside(struct loom_ctx *c)
{
	uint64_t asked = c->lane == 0 && !loom_stopped(c) && mgws_can_grant(c, 1);
	if (!loom_from_lane0(c, asked))
		return 0;
	mgws_mail_to_looked(c, sched_lane(c)->count, sched_lane(c)->count);
	asked = c->lane == 0 && mgws_next_wish(c) != MGWS_NOBODY;
	return loom_from_lane0(c, asked) && !sched_lane(c)->count;
}

/* Lane 0: not all that this worker mailed is taken, as far as it is known. */
LOOM_FN int mgws_owes(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	for (uint32_t d = 0; d < c->devices && mine->owed; d++) {
		/* Acquire: pairs with the thief's release, behind its busy(). Another worker may have granted since; then
		 * this one is kept from being idle for longer than necessary. */
		if (mine->owed >> d & 1 && loom_load_acquire_sys(&mgws_box(c, c->device, d)->taken) ==
						   loom_load_relaxed_dev(&mgws_peer(c, d)->granted))
			mine->owed &= ~(1ull << d);
	}
	return mine->owed != 0;
}

/* ---- thief --------------------------------------------------------------------------------- */

/* Of a worker without work. Lane 0's. */
struct mgws_search_state {
	uint32_t asking; /* it has that seat */
	uint32_t looks;  /* how often it has looked for work; each lane's */
};

/* Lane 0, at the seat `asking`. */
LOOM_FN void mgws_hint(struct mgws_peer *peer, struct mgws_box *m, uint32_t number)
{
	if (peer->hint != number)
		loom_store_relaxed_sys(&m->hint, number);
	peer->hint = number;
}

/* Lane 0, at the seat `asking`: asks all devices that have granted the last wish. A device that mail has come from, plus
 * 1; or 0. */
LOOM_FN uint64_t mgws_ask(struct loom_ctx *c)
{
	struct mgws_desk *desk = mgws_desk(c);
	int asks = loom_load_relaxed_dev(&desk->hungry) * MGWS_MAIL_HUNGRY >= c->count;
	uint64_t left = mgws_range_left(loom_load_acquire_dev(&mgws_global(c)->range));
	for (MGWS_EACH_PEER(c, d)) {
		struct mgws_peer *peer = mgws_peer(c, d);
		struct mgws_box *m = mgws_box(c, d, c->device);
		if (peer->asked != peer->taken) {
			/* Acquire: pairs with the release of the grant. A range has to wait until the last one is used
			 * up and nobody mails from it; nobody else installs one now. */
			if (loom_load_acquire_sys(&m->granted) == peer->asked &&
			    (m->tasks || (!left && mgws_try_seat(&desk->granting))))
				return d + 1;
			mgws_hint(peer, m, asks ? peer->asked : peer->taken);
		} else if (asks) {
			peer->asked++;
			/* Release: what was taken before is no longer read. */
			loom_store_release_sys(&m->asked, peer->asked);
			mgws_hint(peer, m, peer->asked);
		}
	}
	return 0;
}

/* Collective, by a worker without work: it has the seat `asking`. Of a GPU only the postmaster ever has. */
LOOM_FN int mgws_at_desk(struct loom_ctx *c, struct mgws_search_state *s)
{
	if (mgws_kind(c) == LOOM_ON_GPU)
		return 0;
	if (c->lane == 0 && !s->asking)
		s->asking = (uint32_t)mgws_try_seat(&mgws_desk(c)->asking);
	return (int)loom_word_from_lane0(c, s->asking);
}

LOOM_FN void mgws_leave_desk(struct loom_ctx *c, struct mgws_search_state *s)
{
	if (!s->asking)
		return;
	for (MGWS_EACH_PEER(c, d))
		mgws_hint(mgws_peer(c, d), mgws_box(c, d, c->device), mgws_peer(c, d)->taken);
	mgws_leave_seat(&mgws_desk(c)->asking);
	s->asking = 0;
}

/* Collective: receives what has come from a device: tasks into the empty local queue, or a range. */
LOOM_FN void mgws_receive(struct loom_ctx *c, uint32_t from, int idle)
{
	struct mgws_peer *peer = mgws_peer(c, from);
	struct mgws_box *m = mgws_box(c, from, c->device);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, left = 0, at = 0;
	uint32_t most = (sched_mask(c) + 1) / 2, n = 0;
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		at = peer->received;
		left = m->tasks - at;
	}
	left = loom_from_lane0(c, left);
	if (left) {
		at = loom_from_lane0(c, at);
		/* Half: others may be without work here, too. */
		n = (uint32_t)(left - left / 2 < most ? left - left / 2 : most);
		sched_copy_ring(c, sched_ring(c), sched_lane(c)->head, sched_mask(c), m->slot, at, ~0ull, n);
		sched_lane(c)->count = n;
		loom_barrier_lanes(c);
	}
	if (c->lane == 0) {
		struct mgws_global *g = mgws_global(c);
		struct loom_counters *tally = &sched_local(c)->tally;
		uint64_t came = n;
		if (!n) {
			came = m->to - m->from;
			loom_store_relaxed_dev(&peer->got, peer->got + came);
			loom_store_relaxed_dev(&g->ranges, g->ranges + 1);
			/* Release: pairs with the acquire of who looks at the range and then at `ranges`. */
			loom_store_release_dev(&g->range, m->to << 32 | m->from);
			mgws_leave_seat(&mgws_desk(c)->granting);
		}
		peer->received += n;
		tally->steals++;
		tally->stolen_in += came;
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, m->worker, came);
		if (n == left) {
			peer->received = 0;
			peer->taken = peer->asked;
			/* Release, behind busy() and the copy: pairs with the acquire of the worker that mailed and then
			 * reports idle, and of the one that mails next and writes there. */
			loom_store_release_sys(&m->taken, peer->taken);
		}
		sched_wake(c, mgws_bell(c), 1u);
	}
}

/* Collective, at the desk, by a worker that holds nothing: grants a wish. The postmaster steals for that. Whether the
 * worker is idle afterwards. */
LOOM_FN int mgws_mail_from_desk(struct loom_ctx *c, int idle)
{
	enum { NOTHING, GIVE, STEAL };
	uint32_t asker = 0, how = NOTHING;
	int post = mgws_is_postmaster(c);
	if (c->lane == 0 && (asker = mgws_next_wish(c)) != MGWS_NOBODY) {
		if (post ? mgws_has_mailable(c) : mgws_filled_for_others(c))
			how = GIVE;
		else if (post && mgws_has_plenty(c, mgws_peer(c, asker)))
			how = STEAL;
	}
	how = loom_word_from_lane0(c, how);
	if (how == NOTHING || (how == STEAL && !mgws_steal(c, idle, 1)))
		return idle;
	if (how == GIVE && idle)
		LOOM_CALL(term, busy, c);
	mgws_mail(c, loom_word_from_lane0(c, asker), sched_lane(c)->count);
	return 0;
}

/* Collective, at the desk, by a worker without work: receives mail that has come, or grants a wish. What the postmaster
 * then holds it shares. Whether the worker is idle afterwards. */
SCHED_SLOW int mgws_tend_desk(struct loom_ctx *c, int idle)
{
	struct sched_lane *mine = sched_lane(c);
	if (!mine->count) {
		uint64_t from = loom_from_lane0(c, c->lane == 0 ? mgws_ask(c) : 0);
		if (from) {
			mgws_receive(c, (uint32_t)from - 1, idle);
			idle = 0;
		} else {
			idle = mgws_mail_from_desk(c, idle);
		}
	}
	if (mine->count && mgws_is_postmaster(c))
		mgws_share_local(c, mine->count);
	return idle;
}

/* Lane 0, before it sleeps: there is a range to claim from, or mail. */
LOOM_FN int mgws_mail_waits(const struct loom_ctx *c)
{
	if (mgws_range_left(loom_load_acquire_dev(&mgws_global(c)->range)))
		return 1;
	for (MGWS_EACH_PEER(c, d)) {
		const struct mgws_box *m = mgws_box(c, d, c->device);
		if (loom_load_relaxed_sys(&m->granted) != loom_load_relaxed_sys(&m->taken))
			return 1;
	}
	return 0;
}

#endif
