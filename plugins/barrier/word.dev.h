/* SPDX-License-Identifier: Apache-2.0 */
/* What the barrier plug-ins share: words that count rounds, where they lie, and how a worker waits for one. Device code.
 *
 * All words only grow (they wrap at 2^32, so what is compared is the distance), and nothing is reset between rounds: a
 * word is reached when it is at or past what is waited for. Each scope, the device's, the stack's, the job's and each grouping,
 * has words of its own: its slot. */
#ifndef BARRIER_WORD_DEV_H
#define BARRIER_WORD_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#endif

/* 128 bytes: a line of a GPU, and two of a CPU, which fetches them in pairs. */
struct barrier_word {
	uint32_t value;
	uint32_t sleepers; /* workers that sleep on it, or are about to; on a CPU */
	uint32_t left[2];  /* of a counter: workers that left in the last even and odd round, */
	uint32_t gone;     /* and in those before, which is the last to come's. Of a device's word: 1: all its workers have left */
	uint32_t pad[27];
};

/* BARRIER_GROUP + k: grouping k, whose words lie elsewhere. */
enum { BARRIER_SLOTS = 3, BARRIER_JOB = 2, BARRIER_GROUP = 3, BARRIER_ALL_SLOTS = BARRIER_GROUP + LOOM_GROUPINGS };

enum { BARRIER_SPIN = 0, BARRIER_YIELD, BARRIER_NAP, BARRIER_FUTEX };
enum { BARRIER_RELEASED = 1, BARRIER_COUNTED }; /* who waits looks at the door, or at the counter itself */
enum { BARRIER_SAYS = 256 }; /* looks in vain after which a worker says that it waits */

/* A device's block, in its own memory. Words follow: for each slot one that says which round is over; then the plug-in's,
 * those of both slots in turn. */
struct barrier_hall {
	uint32_t spin, end; /* looks before a wait gives the core away, and how it does: BARRIER_SPIN ... */
	uint32_t deaf;      /* 1: a word of several devices wakes nobody, for not all of them are CPUs that share atomics */
	uint32_t how;    /* not 0. tree: arity, as a power of two; auto: BARRIER_RELEASED or BARRIER_COUNTED */
	uint32_t stride; /* flags: bytes from one worker's flag to the next */
	uint32_t ranks;  /* of the job */
	uint32_t tag;    /* the trigger's tag and arrival word of a job's first step; the next ones are those of the others */
	uint32_t drops;  /* BARRIER_STAY or BARRIER_DROP: workers may leave for good */
	uint32_t groupings, most; /* most workers of a device */
	uint64_t groups_at;       /* where those of the groupings are, from here */
	uint32_t pad[20];
	uint32_t first[LOOM_MAX_DEVICES]; /* worker of each device */
};
enum { BARRIER_STAY = 1, BARRIER_DROP };

/* A worker's group in a grouping. Its words on this device are those of the first of its workers here. */
struct barrier_place {
	uint32_t first; /* ... as a number within the device */
	uint32_t count; /* its workers here; 0: this worker is of no group */
	uint32_t wide;  /* 1: others are on other devices */
	uint32_t known; /* in a worker's own copy: it is one */
};

/* A worker's block, which all see. Words follow: of dissemination, or, for stack and job, one per device that says which
 * round that device has come to. Of these, the ones of a device's first worker are used. */
struct barrier_seat {
	uint32_t came[BARRIER_ALL_SLOTS]; /* the round that this worker has come to: for missing() */
	uint32_t pad[32 - BARRIER_ALL_SLOTS];
};
#define BARRIER_FAR (1u << 30) /* rounds by which who leaves is ahead there */

/* A worker's own. */
struct barrier_self {
	uint32_t round[BARRIER_ALL_SLOTS];
	uint32_t step[BARRIER_SLOTS]; /* dissemination, flags: how far this worker is in that round */
	uint32_t code;                /* minus the error of one lane, for all of them */
	uint32_t how;                 /* of the hall, from which a GPU would read it in each round; 0: not read yet */
	uint32_t stage;               /* job: of its round, enum barrier_stage */
	uint32_t fired;               /* worker 0: steps of all rounds of the job that it has fired, */
	uint32_t heard;               /* and whose messages it has got */
	uint32_t drops;               /* of the hall, too */
	struct barrier_place place[LOOM_GROUPINGS];
};

/* A round of the job: two of the rank's workers in slot BARRIER_JOB; between them worker 0 meets the other ranks. */
enum barrier_stage { BARRIER_COMING = 0, BARRIER_RANKS, BARRIER_LEAVING };

/* A lane's wait: what it looks at. */
struct barrier_watch {
	struct barrier_word *at;   /* where its words begin */
	struct barrier_word *word; /* the first that is not reached, */
	uint32_t seen, shared;     /* what it was, and 1: other devices write to it */
	uint32_t wide;             /* several devices meet */
	uint32_t counted;          /* counter.dev.h: it looks at the counter itself */
	uint32_t drops;            /* wide: a device may have been left by all its workers */
	uint32_t open;             /* devices whose word was reached */
	uint32_t next, step;       /* of the words that are this lane's */
};

LOOM_FN struct barrier_hall *barrier_hall(const struct loom_ctx *c)
{
	return (struct barrier_hall *)c->on_device[LOOM_BARRIER];
}

LOOM_FN struct barrier_self *barrier_self(const struct loom_ctx *c)
{
	return (struct barrier_self *)c->local[LOOM_BARRIER];
}

/* By lane 0, or all lanes of a wave, to which it is the same word. A program for GPUs has it as a constant where it is
 * the same on all of them. */
LOOM_FN uint32_t barrier_how(const struct loom_ctx *c, const struct barrier_hall *h)
{
#ifdef BARRIER_IS_how
	(void)c, (void)h;
	return BARRIER_IS_how;
#else
	struct barrier_self *self = barrier_self(c);
	if (!self->how)
		self->how = h->how;
	return self->how;
#endif
}

LOOM_FN int barrier_drops(const struct loom_ctx *c, const struct barrier_hall *h)
{
#ifdef BARRIER_IS_drops
	(void)c, (void)h;
	return BARRIER_IS_drops == BARRIER_DROP;
#else
	struct barrier_self *self = barrier_self(c);
	if (!self->drops)
		self->drops = h->drops;
	return self->drops == BARRIER_DROP;
#endif
}

/* ---- groups: for each grouping the counters and the doors of all workers of the device, their places, for each of them the
 * first worker of its group on each device, and the group of each worker of the stack */

LOOM_FN uint64_t barrier_grouping_bytes(uint32_t most, uint32_t devices, uint32_t workers)
{
	uint64_t bytes = (uint64_t)most * (2 * sizeof(struct barrier_word) + sizeof(struct barrier_place) + 4ull * devices) + 4ull * workers;
	return (bytes + 127) / 128 * 128;
}

LOOM_FN struct barrier_word *barrier_group_words(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot)
{
	return (struct barrier_word *)((char *)h + h->groups_at +
				       (slot - BARRIER_GROUP) * barrier_grouping_bytes(h->most, c->devices, c->workers));
}

LOOM_FN struct barrier_place *barrier_group_places(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot)
{
	return (struct barrier_place *)(barrier_group_words(c, h, slot) + 2 * h->most);
}

/* [devices]: of the group whose first worker here is `first`; LOOM_NO_GROUP: none is there. */
LOOM_FN uint32_t *barrier_group_firsts(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t first)
{
	return (uint32_t *)(barrier_group_places(c, h, slot) + h->most) + (uint64_t)first * c->devices;
}

/* [workers] */
LOOM_FN uint32_t *barrier_group_of(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot)
{
	return barrier_group_firsts(c, h, slot, h->most);
}

/* By lane 0, or all lanes of a wave. */
LOOM_FN const struct barrier_place *barrier_place(const struct loom_ctx *c, uint32_t slot)
{
	struct barrier_place *own = &barrier_self(c)->place[slot - BARRIER_GROUP];
	struct barrier_hall *h = barrier_hall(c);
	if (!own->known) {
		*own = barrier_group_places(c, h, slot)[c->worker - c->first];
		own->known = 1;
	}
	return own;
}

/* Workers of this device that are of the scope. */
LOOM_FN uint32_t barrier_count(const struct loom_ctx *c, uint32_t slot)
{
	return slot < BARRIER_GROUP ? c->count : barrier_place(c, slot)->count;
}

/* The first of them on device d; LOOM_NO_GROUP: there is none. */
LOOM_FN uint32_t barrier_first(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t d)
{
	return slot < BARRIER_GROUP ? h->first[d] : barrier_group_firsts(c, h, slot, barrier_place(c, slot)->first)[d];
}

/* ---- words */

/* Says which round is over. */
LOOM_FN struct barrier_word *barrier_door(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot)
{
	return slot < BARRIER_GROUP ? (struct barrier_word *)(h + 1) + slot
				    : barrier_group_words(c, h, slot) + h->most + barrier_place(c, slot)->first;
}

LOOM_FN struct barrier_word *barrier_node(struct barrier_hall *h, uint32_t slot, uint32_t i)
{
	return (struct barrier_word *)(h + 1) + BARRIER_SLOTS * (1 + i) + slot;
}

LOOM_FN struct barrier_word *barrier_seat_words(const struct loom_ctx *c, uint32_t worker)
{
	return (struct barrier_word *)((struct barrier_seat *)loom_public(c, LOOM_BARRIER, worker) + 1);
}

LOOM_FN int barrier_reached(uint32_t value, uint32_t want)
{
	return (int32_t)(value - want) >= 0;
}

/* 1: more than one device meets. */
LOOM_FN uint32_t barrier_is_wide(const struct loom_ctx *c, uint32_t slot)
{
	return slot < BARRIER_GROUP ? slot && c->devices > 1 : barrier_place(c, slot)->wide;
}

/* 1: reached. Acquire: pairs with the release of whoever wrote the value. */
LOOM_FN int barrier_saw(struct barrier_watch *w, struct barrier_word *word, uint32_t shared, uint32_t want)
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

/* After `word` was changed. */
LOOM_FN void barrier_wake(const struct loom_ctx *c, const struct barrier_hall *h, struct barrier_word *word,
			  uint32_t wide)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c, (void)h, (void)word, (void)wide;
#else
	/* Both sides change `sleepers`: who comes second sees what the first did before. So either the sleeper finds the
	 * new value, or it is seen here. */
	if (h->end == BARRIER_FUTEX && !(wide && h->deaf) && loom_fetch_add_acq_rel_sys(&word->sleepers, 0u))
		loom_wake(c, &word->value, ~0u);
#endif
}

/* Release: what this worker wrote, and what it acquired of others, is before the value. */
LOOM_FN void barrier_tell(const struct loom_ctx *c, const struct barrier_hall *h, struct barrier_word *word,
			  uint32_t wide, uint32_t value)
{
	if (wide)
		loom_store_release_sys(&word->value, value);
	else
		loom_store_release_dev(&word->value, value);
	barrier_wake(c, h, word, wide);
}

/* The device i places after this one. */
LOOM_FN uint32_t barrier_next_device(const struct loom_ctx *c, uint32_t i)
{
	return c->device + i - (c->device + i >= c->devices ? c->devices : 0);
}

/* All of this device have come: its own workers are told, or, where several devices meet, each of them, by a word that
 * this device alone writes and that lies with those who look at it. */
LOOM_FN void barrier_open(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	if (!barrier_is_wide(c, slot)) {
		barrier_tell(c, h, barrier_door(c, h, slot), 0, round);
		return;
	}
#ifdef LOOM_DEVICE_COMPILE
	loom_fence_release_sys(); /* one for all: a release would wait for the store before it, across the link */
#endif
	for (uint32_t i = 1; i <= c->devices; i++) {
		uint32_t first = barrier_first(c, h, slot, barrier_next_device(c, i));
		if (first == LOOM_NO_GROUP)
			continue;
		struct barrier_word *word = barrier_seat_words(c, first) + (slot - 1) * c->devices + c->device;
#ifdef LOOM_DEVICE_COMPILE
		loom_store_relaxed_sys(&word->value, round);
#else
		barrier_tell(c, h, word, 1, round);
#endif
	}
}

/* Where the words are that barrier_open() writes. */
LOOM_FN void barrier_watch_open(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot,
				struct barrier_watch *w)
{
	w->at = w->wide ? barrier_seat_words(c, barrier_first(c, h, slot, c->device)) + (slot - 1) * c->devices : barrier_door(c, h, slot);
}

LOOM_FN int barrier_is_open(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, struct barrier_watch *w, uint32_t round)
{
	uint32_t n = w->wide ? c->devices : 1;
	/* This device's word comes first, and what has been reached is not looked at again. */
	for (; w->open < n; w->open++) {
		uint32_t d = w->wide ? barrier_next_device(c, w->open) : 0;
		if (slot >= BARRIER_GROUP && w->wide && barrier_first(c, h, slot, d) == LOOM_NO_GROUP)
			continue;
		if (!barrier_saw(w, w->at + d, w->wide, round) && !(w->drops && loom_load_acquire_sys(&w->word->gone)))
			return 0;
	}
	return 1;
}

/* The run was stopped. */
LOOM_FN int barrier_over(const struct loom_ctx *c, uint32_t slot)
{
	/* Acquire: the core wrote it before `stop`. */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	return died && (slot || died - 1 == c->device) ? LOOM_EDIED : LOOM_EINTR;
}

/* Between two looks in vain. `since`: when the wait began, 0 before the first call; `left_ns`: until its deadline, 0: it
 * has none. */
LOOM_FN void barrier_rest(const struct loom_ctx *c, const struct barrier_hall *h, const struct barrier_watch *w,
			  uint32_t looks, uint64_t *since, uint64_t left_ns)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)h, (void)w, (void)looks, (void)since, (void)left_ns;
	loom_pause(c);
#else
	/* Longest sleep: by then the sleeper looks at `stop`. */
	const uint64_t longest = 20000000, least = 20000;
	uint32_t end = h->end == BARRIER_FUTEX && w->shared && h->deaf ? BARRIER_NAP : h->end;
	uint64_t now;
	if (looks < h->spin || end == BARRIER_SPIN) {
		loom_pause(c); /* on a crowded device it yields */
		return;
	}
	/* Nobody wakes who waits for another rank; that may need this core. */
	if (end == BARRIER_YIELD || (!w->word && looks - h->spin < BARRIER_SAYS)) {
		loom_yield(c);
		return;
	}
	if (end == BARRIER_NAP || !w->word) {
		now = loom_clock_ns(c);
		*since = *since ? *since : now;
		loom_nap(now - *since, left_ns && left_ns < least ? left_ns : least);
		return;
	}
	loom_fetch_add_acq_rel_sys(&w->word->sleepers, 1u); /* see barrier_wake() */
	loom_sleep_on(c, &w->word->value, w->seen, left_ns && left_ns < longest ? left_ns : longest);
	loom_fetch_add_relaxed_sys(&w->word->sleepers, ~0u);
#endif
}

#endif
