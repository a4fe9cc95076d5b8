/* SPDX-License-Identifier: Apache-2.0 */
/* State of all barrier plug-ins: words that count rounds, their places, and how a worker waits for one. Device code.
 *
 * All words only grow. They wrap at 2^32, so distances are compared. No word is reset between rounds: a word is reached
 * when it is at or past the awaited value. Each scope (device, stack, job, each grouping) has words of its own: its
 * slot. */
#ifndef BARRIER_STATE_DEV_H
#define BARRIER_STATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>

#include "lib/eventcount.h"
#include "lib/wait.h"
#endif

/* Has 128 bytes: a cache line of a GPU, and two of a CPU, which prefetches lines in pairs. On a CPU `value` and
 * `sleepers` are an eventcount (lib/eventcount.h). */
struct barrier_word {
	uint32_t value;
	uint32_t sleepers; /* workers that sleep on the word, or are about to */
	uint32_t left[2];  /* counter: workers that left in the last even and the last odd round */
	/* Counter: workers that left in earlier rounds, used by the last arriver only. Word of a device: 1: all workers
	 * of that device have left. */
	uint32_t left_before;
	uint32_t pad[27];
};

/* BARRIER_GROUP + k is grouping k, whose words are elsewhere. */
enum { BARRIER_SLOTS = 3, BARRIER_JOB = 2, BARRIER_GROUP = 3, BARRIER_ALL_SLOTS = BARRIER_GROUP + LOOM_GROUPINGS };

enum { BARRIER_RELEASED = 1, BARRIER_COUNTED }; /* the word that waiters poll: the release word, or the counter */
/* number of polls without success after which a worker changes its state to LOOM_STATE_BARRIER */
enum { BARRIER_SHORT_POLLS = 256 };

/* A device's block, in its own memory. Words follow: for each slot a release word with the last round that is over;
 * then the words of the plug-in, for all slots in turn. */
struct barrier_state {
	uint32_t spin, end; /* as in struct wait_policy (lib/wait.h) */
	/* 1: no sleep on a word of several devices, because not all of them are CPUs that share atomics */
	uint32_t no_wake;
	uint32_t how;    /* not 0. tree: log2 of the arity; counters: BARRIER_RELEASED or BARRIER_COUNTED */
	uint32_t stride; /* flags: bytes from one worker's flag to the next */
	uint32_t ranks;  /* ranks of the job */
	/* the trigger's tag and arrival word of the job's first step; later steps use the next ones */
	uint32_t tag;
	uint32_t drops;           /* BARRIER_STAY, or BARRIER_DROP: workers may leave for good */
	uint32_t groupings, most; /* most: the number of workers of the largest device */
	uint64_t groups_at;       /* offset of the groupings' words */
	/* 1: a GPU, of which one worker polls what other devices write, and passes it on in the release word */
	uint32_t relays;
	uint32_t pad[19];
	uint32_t first[LOOM_MAX_DEVICES]; /* first worker of each device */
};
enum { BARRIER_STAY = 1, BARRIER_DROP };
#define BARRIER_RELAY_POLLS 32u

/* A worker's group in a grouping. The group's words on this device are those of its first worker here. */
struct barrier_place {
	uint32_t first;  /* number of that worker within the device */
	uint32_t count;  /* workers of the group here; 0: the worker is in no group */
	uint32_t wide;   /* 1: the group has workers on other devices */
	uint32_t cached; /* used in a worker's own copy; 1: the copy is filled in */
};

/* A worker's block, which all workers read. Words follow: for dissemination those of its steps; else, for stack and
 * job, one per device, with the last round at which that device has arrived. Only the words of a device's first worker
 * are used. */
struct barrier_arrival {
	uint32_t arrived[BARRIER_ALL_SLOTS]; /* the round at which this worker has arrived: for missing() */
	uint32_t pad[32 - BARRIER_ALL_SLOTS];
};
#define BARRIER_LEFT_AHEAD (1u << 30) /* a worker that has left is ahead by so many rounds */

#define BARRIER_LANE_WORDS 32u /* a bit for each lane of a worker */

/* A worker's private block. */
struct barrier_local {
	uint32_t round[BARRIER_ALL_SLOTS];
	uint32_t step[BARRIER_SLOTS]; /* dissemination, flags: progress of this worker in the round */
	uint32_t code;                /* minus the error of one lane, for all lanes */
	/* copies of barrier_state.how and .drops, so that a GPU does not load them in each round; 0: not copied yet */
	uint32_t how;
	uint32_t stage;    /* job: enum barrier_stage of the round */
	uint32_t sent;     /* worker 0: number of messages sent, in all rounds of the job */
	uint32_t received; /* worker 0: number of steps whose message it has received */
	uint32_t drops;    /* the other copy */
	/* flags: the lanes that have seen their part, in words and as bits */
	uint32_t parts[BARRIER_SLOTS], lane_done[BARRIER_SLOTS][BARRIER_LANE_WORDS];
	uint32_t leads;    /* a bit for each slot: this worker relays the round to its device */
	struct barrier_place place[LOOM_GROUPINGS];
};

/* A round of the job has two rounds of the rank's workers in slot BARRIER_JOB. In between worker 0 synchronises with
 * the other ranks. */
enum barrier_stage { BARRIER_ARRIVING = 0, BARRIER_RANKS, BARRIER_LEAVING };

/* The state of a lane's wait. */
struct barrier_watch {
	struct barrier_word *at;   /* the first word to poll */
	struct barrier_word *word; /* the first word that is not reached */
	uint32_t seen, shared;     /* the value of `word`; 1: other devices write `word` */
	uint32_t wide;             /* 1: several devices take part */
	uint32_t counted;          /* counter.dev.h: 1: the lane polls the counter */
	uint32_t drops;            /* wide: 1: all workers of a device may have left */
	uint32_t reached;          /* number of devices whose word was reached */
	uint32_t next, step;       /* this lane polls word next and every step-th word after it */
	uint32_t relays, polls;    /* wide: 1: a worker of this device relays; polls of the word that it writes */
};

LOOM_FN struct barrier_state *barrier_state(const struct loom_ctx *c)
{
	return (struct barrier_state *)c->on_device[LOOM_BARRIER];
}

LOOM_FN struct barrier_local *barrier_local(const struct loom_ctx *c)
{
	return (struct barrier_local *)c->local[LOOM_BARRIER];
}

/* Called by lane 0, or by all lanes of a wave. A constant in GPU programs if all GPUs have the same value. */
LOOM_FN uint32_t barrier_how(const struct loom_ctx *c, const struct barrier_state *h)
{
#ifdef BARRIER_IS_how
	(void)c, (void)h;
	return BARRIER_IS_how;
#else
	struct barrier_local *self = barrier_local(c);
	if (!self->how)
		self->how = h->how;
	return self->how;
#endif
}

LOOM_FN int barrier_has_drops(const struct loom_ctx *c, const struct barrier_state *h)
{
#ifdef BARRIER_IS_drops
	(void)c, (void)h;
	return BARRIER_IS_drops == BARRIER_DROP;
#else
	struct barrier_local *self = barrier_local(c);
	if (!self->drops)
		self->drops = h->drops;
	return self->drops == BARRIER_DROP;
#endif
}

/* ---- groups: each grouping has counters and release words of all workers of the device, their places, the first
 * worker of each group on each device, and the group of each worker of the stack */

LOOM_FN uint64_t barrier_grouping_bytes(uint32_t most, uint32_t devices, uint32_t workers)
{
	uint64_t bytes =
	    (uint64_t)most * (2 * sizeof(struct barrier_word) + sizeof(struct barrier_place) + 4ull * devices) +
	    4ull * workers;
	return (bytes + 127) / 128 * 128;
}

LOOM_FN struct barrier_word *barrier_group_words(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot)
{
	return (struct barrier_word *)((char *)h + h->groups_at +
				       (slot - BARRIER_GROUP) *
					   barrier_grouping_bytes(h->most, c->devices, c->workers));
}

LOOM_FN struct barrier_place *barrier_group_places(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot)
{
	return (struct barrier_place *)(barrier_group_words(c, h, slot) + 2 * h->most);
}

/* Returns [devices]: its first worker of the group whose first worker here is `first`, or LOOM_NO_GROUP. */
LOOM_FN uint32_t *barrier_group_firsts(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t first)
{
	return (uint32_t *)(barrier_group_places(c, h, slot) + h->most) + (uint64_t)first * c->devices;
}

/* Returns [workers]: the group of each worker. */
LOOM_FN uint32_t *barrier_group_of(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot)
{
	return barrier_group_firsts(c, h, slot, h->most);
}

/* Called by lane 0, or by all lanes of a wave. */
LOOM_FN const struct barrier_place *barrier_place(const struct loom_ctx *c, uint32_t slot)
{
	struct barrier_place *own = &barrier_local(c)->place[slot - BARRIER_GROUP];
	struct barrier_state *h = barrier_state(c);
	if (!own->cached) {
		*own = barrier_group_places(c, h, slot)[c->worker - c->first];
		own->cached = 1;
	}
	return own;
}

/* Returns the number of workers of this device in the scope. */
LOOM_FN uint32_t barrier_count(const struct loom_ctx *c, uint32_t slot)
{
	return slot < BARRIER_GROUP ? c->count : barrier_place(c, slot)->count;
}

/* Returns the first of these workers on device d, or LOOM_NO_GROUP. */
LOOM_FN uint32_t barrier_first(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t d)
{
	return slot < BARRIER_GROUP ? h->first[d] : barrier_group_firsts(c, h, slot, barrier_place(c, slot)->first)[d];
}

/* ---- words */

/* Returns the word with the last round that is over. */
LOOM_FN struct barrier_word *barrier_release_word(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot)
{
	return slot < BARRIER_GROUP ? (struct barrier_word *)(h + 1) + slot
				    : barrier_group_words(c, h, slot) + h->most + barrier_place(c, slot)->first;
}

LOOM_FN struct barrier_word *barrier_node(struct barrier_state *h, uint32_t slot, uint32_t i)
{
	return (struct barrier_word *)(h + 1) + BARRIER_SLOTS * (1 + i) + slot;
}

LOOM_FN struct barrier_word *barrier_worker_words(const struct loom_ctx *c, uint32_t worker)
{
	return (struct barrier_word *)((struct barrier_arrival *)loom_public(c, LOOM_BARRIER, worker) + 1);
}

/* Returns a word in the block of a device's first worker: the word for stack, job or grouping that device d writes. */
LOOM_FN struct barrier_word *barrier_word_of_device(const struct loom_ctx *c, uint32_t first, uint32_t slot, uint32_t d)
{
	return barrier_worker_words(c, first) + (slot - 1) * c->devices + d;
}

LOOM_FN int barrier_reached(uint32_t value, uint32_t want)
{
	return (int32_t)(value - want) >= 0;
}

/* Returns 1 if more than one device takes part. */
LOOM_FN uint32_t barrier_is_wide(const struct loom_ctx *c, uint32_t slot)
{
	return slot < BARRIER_GROUP ? slot && c->devices > 1 : barrier_place(c, slot)->wide;
}

/* Returns 1 if the word is reached. Acquire: pairs with the release of the writer. */
LOOM_FN int barrier_poll_word(struct barrier_watch *w, struct barrier_word *word, uint32_t shared, uint32_t want)
{
	w->word = word;
	w->shared = shared;
	w->seen = shared ? loom_load_acquire_sys(&word->value) : loom_load_poll_dev(&word->value);
	if (!barrier_reached(w->seen, want))
		return 0;
	if (!shared)
		loom_fence_poll_dev();
	return 1;
}

/* Wakes sleepers after `word` was changed. */
LOOM_FN void barrier_notify(const struct loom_ctx *c, const struct barrier_state *h, struct barrier_word *word,
			    uint32_t wide)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c, (void)h, (void)word, (void)wide;
#else
	if (h->end == WAIT_SLEEP && !(wide && h->no_wake))
		eventcount_notify(c, &word->value, &word->sleepers);
#endif
}

/* Release: this worker's writes, and those that it has acquired, are visible before the value. */
LOOM_FN void barrier_store(const struct loom_ctx *c, const struct barrier_state *h, struct barrier_word *word,
			   uint32_t wide, uint32_t value)
{
	if (wide)
		loom_store_release_sys(&word->value, value);
	else
		loom_store_release_dev(&word->value, value);
	barrier_notify(c, h, word, wide);
}

/* Returns the device i places after this one, cyclically. */
LOOM_FN uint32_t barrier_next_device(const struct loom_ctx *c, uint32_t i)
{
	return c->device + i - (c->device + i >= c->devices ? c->devices : 0);
}

/* All workers of this device have arrived: releases them. If several devices take part, stores the round into a word at
 * each device, which only this device writes. With `relays` this worker then relays
 * the round, once the words of the others have come. */
LOOM_FN void barrier_release(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	if (!barrier_is_wide(c, slot)) {
		barrier_store(c, h, barrier_release_word(c, h, slot), 0, round);
		return;
	}
	if (h->relays)
		loom_fetch_or_relaxed_dev(&barrier_local(c)->leads, 1u << slot);
#ifdef LOOM_DEVICE_COMPILE
	/* one fence for all: a release store would wait for the store before it, across the link */
	loom_fence_release_sys();
#endif
	for (uint32_t i = 1; i <= c->devices; i++) {
		uint32_t first = barrier_first(c, h, slot, barrier_next_device(c, i));
		if (first == LOOM_NO_GROUP)
			continue;
		struct barrier_word *word = barrier_word_of_device(c, first, slot, c->device);
#ifdef LOOM_DEVICE_COMPILE
		loom_store_relaxed_sys(&word->value, round);
#else
		barrier_store(c, h, word, 1, round);
#endif
	}
}

/* Selects the words that barrier_release() writes. */
LOOM_FN void barrier_watch_release(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot,
				   struct barrier_watch *w)
{
	w->at = w->wide ? barrier_word_of_device(c, barrier_first(c, h, slot, c->device), slot, 0)
			: barrier_release_word(c, h, slot);
}

LOOM_FN int barrier_is_released(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot,
				struct barrier_watch *w, uint32_t round)
{
	uint32_t n = w->wide ? c->devices : 1;
	uint32_t leads = w->relays ? loom_load_relaxed_dev(&barrier_local(c)->leads) >> slot & 1 : 0;
	if (w->relays && !leads) {
		struct barrier_word *word = barrier_release_word(c, h, slot);
		/* Acquire: pairs with the release of the worker that relays, which has acquired the words of all devices. */
		if (barrier_poll_word(w, word, 0, round))
			return 1;
		/* Checked rarely, because the relaying worker may be busy between arrive and await. */
		if (++w->polls % BARRIER_RELAY_POLLS)
			return 0;
	}
	/* This device's word comes first. Words that were reached are not polled again. */
	for (; w->reached < n; w->reached++) {
		uint32_t d = w->wide ? barrier_next_device(c, w->reached) : 0;
		if (slot >= BARRIER_GROUP && w->wide && barrier_first(c, h, slot, d) == LOOM_NO_GROUP)
			continue;
		if (!barrier_poll_word(w, w->at + d, w->wide, round) &&
		    !(w->drops && loom_load_acquire_sys(&w->word->left_before)))
			return 0;
	}
	if (leads && c->lane == 0) {
		barrier_store(c, h, barrier_release_word(c, h, slot), 0, round);
		/* No other lane of this worker changes it while a round of this slot lasts. */
		loom_store_relaxed_dev(&barrier_local(c)->leads, barrier_local(c)->leads & ~(1u << slot));
	}
	return 1;
}

/* Returns the error of a wait when the run was stopped. */
LOOM_FN int barrier_stop_code(const struct loom_ctx *c, uint32_t slot)
{
	/* Acquire: the core stores `died` before `stop`. */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	return died && (slot || died - 1 == c->device) ? LOOM_EDIED : LOOM_EINTR;
}

/* Called after poll number `polls`, without success. *since: when naps began, 0 before the first call. left_ns: time
 * until the deadline; 0: none. */
LOOM_FN void barrier_backoff(const struct loom_ctx *c, const struct barrier_state *h, const struct barrier_watch *w,
			     uint32_t polls, uint64_t *since, uint64_t left_ns)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)h, (void)w, (void)polls, (void)since, (void)left_ns;
	loom_pause(c);
#else
	/* A sleeper polls the stop word at least once per `longest` ns. */
	const uint64_t longest = 20000000, least = 20000;
	struct wait_policy policy = {h->spin, h->end, left_ns && left_ns < least ? left_ns : least};
	if (polls >= h->spin) {
		if (policy.end == WAIT_SLEEP && w->shared && h->no_wake)
			policy.end = WAIT_NAP;
		/* A wait for another rank has no word for a sleep. The worker yields first, as that rank may need its
		 * core. */
		if (policy.end >= WAIT_NAP && !w->word)
			policy.end = polls - h->spin < BARRIER_SHORT_POLLS ? WAIT_YIELD : WAIT_NAP;
	}
	if (!wait_step(c, &policy, polls, since))
		return;
	/* The kernel starts the sleep only if the word still has the value of the last poll. */
	(void)eventcount_enter(&w->word->value, &w->word->sleepers);
	loom_sleep_on(c, &w->word->value, w->seen, left_ns && left_ns < longest ? left_ns : longest);
	eventcount_leave(&w->word->sleepers);
#endif
}

#endif
