/* SPDX-License-Identifier: Apache-2.0 */
/* The state of all barrier plug-ins: words that count rounds, where these words are, and how a worker waits for a word.
 * Device code.
 *
 * The values of words grow from round to round, and no word is reset. A word is reached when its value is at or past the
 * awaited value. Values wrap at 2^32, so barrier_reached() compares differences. Each scope has words of its own. A slot is
 * the index of a scope: 0: device, 1: stack, 2: job, BARRIER_GROUP + k: grouping k, which divides workers into groups. */
#ifndef BARRIER_STATE_DEV_H
#define BARRIER_STATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>

#include "lib/eventcount.h"
#include "lib/wait.h"
#endif

/* A word has 128 bytes: one cache line of a GPU, or two lines of a CPU, which prefetches lines in pairs. On a CPU `value`
 * and `sleepers` are an eventcount (lib/eventcount.h). */
struct barrier_word {
	uint32_t value;
	uint32_t sleepers; /* number of workers that sleep on the word, or are about to */
	uint32_t left[2];  /* in a counter: number of workers that left in the last even round, and in the last odd round */
	/* In a counter: number of workers that left in earlier rounds; only the last arriver uses it. In a word that a
	 * device writes: 1 if all workers of that device have left. */
	uint32_t left_before;
	uint32_t pad[27];
};

/* With at most so many devices, or ranks that reach each other, a worker remembers where the words of the scope are. */
#define BARRIER_NEAR 4u

/* If all devices of the scope stack are GPUs and at most BARRIER_NEAR, and with direct ranks, the words that devices or
 * ranks write are in lines. A line has one cache line, and is as large as a struct barrier_word. Party p, a device or
 * rank, has the words p * split to p * split + split - 1 of a line. Each word has the last round at which one part of
 * the party's workers has arrived, so that fewer workers add to the same counter. Each party has several copies of its line,
 * so that fewer workers poll the same one. A wave polls a whole line by one load. */
#define BARRIER_LINE_WORDS 32u
#define BARRIER_SPLIT 8u /* largest value of split: BARRIER_LINE_WORDS / BARRIER_NEAR */

/* The words of the first BARRIER_SLOTS slots follow struct barrier_state. Those of groupings are at its offset groups_at. */
enum { BARRIER_SLOTS = 3, BARRIER_STACK = 1, BARRIER_JOB = 2, BARRIER_GROUP = 3, BARRIER_ALL_SLOTS = BARRIER_GROUP + LOOM_GROUPINGS };

enum { BARRIER_RELEASED = 1, BARRIER_COUNTED }; /* the word to poll: the release word, or the counter */
/* number of polls without success after which a worker changes its state to LOOM_STATE_BARRIER */
enum { BARRIER_SHORT_POLLS = 256 };

/* A device's block, in the memory of that device. Words follow: a release word per slot, whose value is the number of the
 * last complete round; then the plug-in's words, which barrier_node() returns. */
struct barrier_state {
	uint32_t spin, end; /* as in struct wait_policy (lib/wait.h) */
	/* 1: no worker sleeps on a word that several devices use, because not all devices are CPUs that share atomics */
	uint32_t no_wake;
	uint32_t how;    /* barrier_tree: log2 of the arity; barrier_auto: BARRIER_RELEASED or BARRIER_COUNTED; else 1 */
	uint32_t stride; /* barrier_flags: bytes from one worker's flag to the next */
	uint32_t ranks;  /* number of ranks of the job */
	/* scope job: step k of the dissemination among ranks uses the trigger's tag and arrival word `tag` + k */
	uint32_t tag;
	uint32_t drops;           /* BARRIER_DROP: workers may leave a scope for good; else BARRIER_STAY */
	uint32_t groupings, most; /* number of groupings; number of workers of the largest device */
	uint64_t groups_at;       /* offset of the groupings' words from the start of the block, in bytes */
	/* 1: one worker of this GPU polls the words that other devices write, and then writes the release word */
	uint32_t relays;
	/* Number of ranks that write into each other's words, or 1: ranks synchronise by messages. rank: this rank. */
	uint32_t direct, rank;
	/* [slot - 1], for scopes stack and job: number of words of each device or rank in a line (BARRIER_LINE_WORDS); 0: the
	 * scope has a struct barrier_word for each device or rank instead of lines */
	uint32_t split[BARRIER_JOB], pad0;
	uint64_t far[BARRIER_NEAR]; /* [rank]: address of that rank's array of words; 0: this rank */
	uint32_t pad[6];
	uint32_t first[LOOM_MAX_DEVICES]; /* [device]: its first worker */
};
enum { BARRIER_STAY = 1, BARRIER_DROP };
/* The block of the stack, if there are several ranks. Messages must not be empty, but no rank reads what they contain. */
struct barrier_messages {
	uint64_t out, pad0[7];
	uint64_t in, pad1[7];
	struct barrier_word word[BARRIER_NEAR]; /* if barrier_state.direct > 1: the lines */
};
#define BARRIER_RELAY_POLLS 32u

/* A worker's group in a grouping. On each device the group uses the words of its first worker on this device. */
struct barrier_place {
	uint32_t first;  /* index of the group's first worker on this device, counted within the device */
	uint32_t count;  /* number of the group's workers on this device; 0: the worker is in no group */
	uint32_t wide;   /* 1: the group has workers on other devices */
	uint32_t cached; /* only in barrier_local.place: 1: the copy is filled in */
};

/* A worker's block, which all workers read. If there are several devices, words follow for each slot except the slot of scope
 * device: one word per device, with the last round at which that device has arrived. Only the first worker of a device or group
 * uses these words. With barrier_dissemination, the words of its steps come next. */
struct barrier_arrival {
	uint32_t arrived[BARRIER_ALL_SLOTS]; /* [slot]: the last round at which this worker has arrived, for missing() */
	uint32_t pad[32 - BARRIER_ALL_SLOTS];
};
#define BARRIER_LEFT_AHEAD (1u << 30) /* added to `arrived` by a worker that leaves, so that missing() ignores it */

/* A worker's private block. */
struct barrier_local {
	uint32_t round[BARRIER_ALL_SLOTS]; /* [slot]: the last round at which this worker has arrived */
	uint32_t step[BARRIER_SLOTS]; /* barrier_dissemination: step of the round */
	uint32_t code;                /* minus the error code of one lane, which all lanes return; 0: no error */
	/* a copy of barrier_state.how, so that a GPU does not load it in each round; 0: not copied yet */
	uint32_t how;
	uint32_t stage;    /* enum barrier_stage of the job's round */
	uint32_t sent;     /* in worker 0: number of messages sent, in all rounds of the job */
	uint32_t received; /* in worker 0: number of messages received, in all rounds of the job */
	uint32_t drops;    /* a copy of barrier_state.drops; 0: not copied yet */
	uint32_t leads;    /* a bit per slot: 1: this worker relays the round to its device */
	/* A copy of barrier_state.direct; 0: not copied yet. rank: a copy of barrier_state.rank, set in round 1 of the job.
	 * split: a copy of barrier_state.split, set in round 1 of the scope. */
	uint32_t direct, rank, split[BARRIER_JOB], pad;
	/* [slot - 1][i]: for scopes stack and job, the first line at the device or rank that is i places after this one; without
	 * lines, the word that this device writes there. Set in round 1. A GPU would need two loads from memory to find a word,
	 * because each fence empties its cache. */
	struct barrier_word *near[BARRIER_JOB][BARRIER_NEAR];
	struct barrier_place place[LOOM_GROUPINGS];
};

/* If ranks use messages, a round of the job consists of two rounds of the rank's workers in slot BARRIER_JOB. In between, worker 0
 * synchronises with the other ranks. */
enum barrier_stage { BARRIER_ARRIVING = 0, BARRIER_RANKS, BARRIER_LEAVING };

/* The state of one lane in one wait. */
struct barrier_watch {
	struct barrier_word *at;   /* the first word to poll; NULL: barrier_poll() finds its words by itself */
	struct barrier_word *word; /* the word that was polled last; NULL: no word to sleep on */
	uint32_t seen, shared;     /* the value of `word` when it was polled; 1: other devices write `word` */
	uint32_t wide;             /* 1: several devices take part */
	uint32_t counted;          /* in counter.dev.h: 1: the lane polls the counter */
	uint32_t eager;            /* 1: on a GPU, most polls have no check and no pause in between */
	uint32_t drops;            /* 1: several devices take part, and all workers of one of them may have left */
	uint32_t reached;          /* number of devices whose word was reached */
	/* barrier_flags: this lane polls flag `next`, and after it every flag that is a multiple of `step` further */
	uint32_t next, step;
	uint32_t lined;            /* number of words of the line at `at`; 0: `at` has struct barrier_word */
	uint32_t votes;            /* 1: all lanes of the wave poll, each another word of the line */
	/* 1: one worker of this device relays; number of polls of the release word that this worker writes */
	uint32_t relays, polls;
	uint32_t pad;
};

LOOM_FN struct barrier_state *barrier_state(const struct loom_ctx *c)
{
	return (struct barrier_state *)c->on_device[LOOM_BARRIER];
}

LOOM_FN struct barrier_local *barrier_local(const struct loom_ctx *c)
{
	return (struct barrier_local *)c->local[LOOM_BARRIER];
}

/* Called by lane 0, or by all lanes of a wave. The result is a constant in GPU programs if all GPUs have the same value. */
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

/* Any lane may call it, and all copy the same value. */
LOOM_FN int barrier_has_drops(const struct loom_ctx *c, const struct barrier_state *h)
{
#ifdef BARRIER_IS_drops
	(void)c, (void)h;
	return BARRIER_IS_drops == BARRIER_DROP;
#else
	uint32_t *copy = &barrier_local(c)->drops, drops = loom_load_relaxed_dev(copy);
	if (!drops) {
		drops = h->drops;
		loom_store_relaxed_dev(copy, drops);
	}
	return drops == BARRIER_DROP;
#endif
}

LOOM_FN uint32_t barrier_relays(const struct barrier_state *h)
{
#ifdef BARRIER_IS_relays
	(void)h;
	return BARRIER_IS_relays;
#else
	return h->relays;
#endif
}

/* Returns barrier_state.direct. Any lane may call it, and all copy the same value. */
LOOM_FN uint32_t barrier_direct(const struct loom_ctx *c)
{
	uint32_t *copy = &barrier_local(c)->direct, n = loom_load_relaxed_dev(copy);
	if (!n) {
		n = barrier_state(c)->direct;
		loom_store_relaxed_dev(copy, n);
	}
	return n;
}

/* Returns whether the ranks of the job take part in a round like devices of one rank. */
LOOM_FN int barrier_is_direct(const struct loom_ctx *c, uint32_t slot)
{
	return slot == BARRIER_JOB && barrier_direct(c) > 1;
}

/* ---- groups: each grouping has four tables in a device's block: a counter per worker of the device, then a release word
 * per worker; a place per worker; the first workers of each group on all devices; the group of each worker of the stack */

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

/* Returns an array [device]: the group's first worker on that device, or LOOM_NO_GROUP. first: barrier_place.first of the
 * group on this device. */
LOOM_FN uint32_t *barrier_group_firsts(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t first)
{
	return (uint32_t *)(barrier_group_places(c, h, slot) + h->most) + (uint64_t)first * c->devices;
}

/* Returns an array [worker of the stack]: the worker's group, or LOOM_NO_GROUP. */
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

/* Returns the first worker of the scope on device d, or LOOM_NO_GROUP. */
LOOM_FN uint32_t barrier_first(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t d)
{
	return slot < BARRIER_GROUP ? h->first[d] : barrier_group_firsts(c, h, slot, barrier_place(c, slot)->first)[d];
}

/* ---- words */

/* Returns the release word, whose value is the number of the last complete round. */
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

/* Returns the word that device d writes in the block of worker `first`, which is the first worker of a device or of a
 * group. slot: any slot except the slot of scope device. */
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
	return slot < BARRIER_GROUP ? slot && (c->devices > 1 || barrier_is_direct(c, slot)) : barrier_place(c, slot)->wide;
}

/* Returns the number of devices, or of ranks, that have a word of their own in a scope of several devices. */
LOOM_FN uint32_t barrier_parties(const struct loom_ctx *c, uint32_t slot)
{
	return barrier_is_direct(c, slot) ? barrier_direct(c) : c->devices;
}

/* A load, in a loop, of a word that other devices write. barrier_fence_shared() after the last load makes it an acquire. On
 * a GPU an acquire in each poll would take twice as long. */
#ifdef LOOM_DEVICE_COMPILE
#define barrier_load_shared(p) loom_load_relaxed_sys(p)
#define barrier_fence_shared() loom_fence_poll_sys()
#else
#define barrier_load_shared(p) loom_load_acquire_sys(p)
#define barrier_fence_shared() ((void)0)
#endif

/* Returns 1 if the word is reached. shared: 1: other devices write it. Acquire: pairs with barrier_store(), or with the
 * release add to a counter. */
LOOM_FN int barrier_poll_word(struct barrier_watch *w, struct barrier_word *word, uint32_t shared, uint32_t want)
{
	w->word = word;
	w->shared = shared;
	w->seen = shared ? barrier_load_shared(&word->value) : loom_load_poll_dev(&word->value);
	if (!barrier_reached(w->seen, want))
		return 0;
	if (!shared)
		loom_fence_poll_dev();
	else
		barrier_fence_shared();
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

/* Stores the value into the word. Release: the writes of this worker, and the writes that it has acquired, are visible
 * before the value. */
LOOM_FN void barrier_store(const struct loom_ctx *c, const struct barrier_state *h, struct barrier_word *word,
			   uint32_t wide, uint32_t value)
{
	if (wide)
		loom_store_release_sys(&word->value, value);
	else
		loom_store_release_dev(&word->value, value);
	barrier_notify(c, h, word, wide);
}

/* Returns the device, or with barrier_is_direct() the rank, that is i places after this one, cyclically. */
LOOM_FN uint32_t barrier_next(const struct loom_ctx *c, uint32_t slot, uint32_t i)
{
	uint32_t n = barrier_parties(c, slot), own = barrier_is_direct(c, slot) ? barrier_local(c)->rank : c->device;
	return own + i - (own + i >= n ? n : 0);
}

/* Returns the word that this device writes at the device i places after it, or NULL if the scope has no worker there. i is
 * less than the number of devices. */
LOOM_FN struct barrier_word *barrier_find_word(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t i)
{
	uint32_t first = barrier_first(c, h, slot, barrier_next(c, slot, i));
	return first == LOOM_NO_GROUP ? (struct barrier_word *)0 : barrier_word_of_device(c, first, slot, c->device);
}

/* Returns whether barrier_local.near has the words of the slot, after barrier_remember(). */
LOOM_FN int barrier_is_near(const struct loom_ctx *c, uint32_t slot)
{
	return (slot == BARRIER_STACK && c->devices <= BARRIER_NEAR) || barrier_is_direct(c, slot);
}

/* Called by lane 0 before it arrives at `round`. */
LOOM_FN void barrier_remember(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	struct barrier_local *self = barrier_local(c);
	if (!barrier_is_near(c, slot) || round != 1)
		return;
	self->split[slot - 1] = h->split[slot - 1];
	if (slot == BARRIER_STACK) {
		for (uint32_t i = 0; i < c->devices; i++)
			self->near[slot - 1][i] = barrier_find_word(c, h, slot, i) - (h->split[slot - 1] ? c->device : 0);
		return;
	}
	self->rank = h->rank;
	for (uint32_t i = 0; i < h->direct; i++) {
		uint64_t far = h->far[barrier_next(c, slot, i)];
		struct barrier_word *own = ((struct barrier_messages *)c->global[LOOM_BARRIER])->word;
		self->near[slot - 1][i] = far ? (struct barrier_word *)far : own;
	}
}

/* Returns the number of words of each party in the lines of the slot, after barrier_remember(); 0: there are no lines. */
LOOM_FN uint32_t barrier_split(const struct loom_ctx *c, uint32_t slot)
{
	return slot == BARRIER_STACK || slot == BARRIER_JOB ? barrier_local(c)->split[slot - 1] : 0;
}

/* Called when part `part` of `parts` of this device's workers has arrived. Stores the round into the words of that part, in
 * all lines of all parties. */
LOOM_FN void barrier_release_lines(const struct loom_ctx *c, uint32_t slot, uint32_t round, uint32_t part, uint32_t parts)
{
	uint32_t n = barrier_parties(c, slot), split = barrier_split(c, slot), own = barrier_next(c, slot, 0);
#ifdef LOOM_DEVICE_COMPILE
	loom_fence_acq_rel_sys(); /* as in barrier_release() */
#endif
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t *row = (uint32_t *)barrier_local(c)->near[slot - 1][i < n ? i : 0] + own * split;
		for (uint32_t copy = 0; copy < n; copy++, row += BARRIER_LINE_WORDS)
			for (uint32_t k = part; k < split; k += parts) {
#ifdef LOOM_DEVICE_COMPILE
				loom_store_relaxed_sys(row + k, round);
#else
				loom_store_release_sys(row + k, round);
#endif
			}
	}
}

/* As barrier_find_word(), after barrier_remember(). */
LOOM_FN struct barrier_word *barrier_word_at(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t i)
{
	return barrier_is_near(c, slot) ? barrier_local(c)->near[slot - 1][i] : barrier_find_word(c, h, slot, i);
}

/* Called when all workers of this device have arrived. If only this device takes part, writes the release word. Else stores the
 * round into a word in the memory of each device; only this device writes these words. If barrier_state.relays is 1, this
 * worker later writes the release word, when the words of all devices are reached. */
LOOM_FN void barrier_release(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	if (!barrier_is_wide(c, slot)) {
		barrier_store(c, h, barrier_release_word(c, h, slot), 0, round);
		return;
	}
	if (barrier_split(c, slot)) {
		barrier_release_lines(c, slot, round, 0, 1);
		return;
	}
	if (barrier_relays(h))
		loom_fetch_or_relaxed_dev(&barrier_local(c)->leads, 1u << slot);
#ifdef LOOM_DEVICE_COMPILE
	/* One fence serves all stores, because a release store would wait for the store before it, across the link. Release: of
	 * what this worker has acquired; pairs with barrier_fence_shared() on all devices. Acquire: of what the workers of this
	 * device have released by barrier_add(), which is no acquire itself. */
	loom_fence_acq_rel_sys();
#endif
	uint32_t n = barrier_parties(c, slot);
	for (uint32_t i = 1; i <= n; i++) {
		struct barrier_word *word = barrier_word_at(c, h, slot, i < n ? i : 0);
		if (!word)
			continue;
#ifdef LOOM_DEVICE_COMPILE
		loom_store_relaxed_sys(&word->value, round);
#else
		barrier_store(c, h, word, 1, round);
#endif
	}
}

/* Adds 1 to the counter, and returns its value before. Releases this worker's writes. A worker that polls the counter
 * acquires them from the counter. The last arriver acquires the writes of all workers, and releases them with the words that
 * it writes. On a GPU, if other devices take part, it acquires them by the fence in barrier_release(), so the add need not be an
 * acquire. */
LOOM_FN uint32_t barrier_add(uint32_t *counter, uint32_t wide)
{
#ifdef LOOM_DEVICE_COMPILE
	if (wide)
		return loom_fetch_add_release_dev(counter, 1u);
#else
	(void)wide;
#endif
	return loom_fetch_add_acq_rel_dev(counter, 1u);
}

/* Lets this worker arrive at a scope of several devices that no worker leaves. The workers of a device arrive at a counter, or
 * at one counter for each part of them. The last arriver of a counter notifies all devices. Called by lane 0. */
LOOM_FN void barrier_signal_wide(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	uint32_t split = barrier_split(c, slot), parts = split && c->count >= split ? split : 1;
	uint32_t part = (c->worker - c->first) & (parts - 1), n = (c->count - part + parts - 1) / parts;
	if (barrier_add(&barrier_node(h, slot, part)->value, 1) + 1 != round * n)
		return;
	if (split)
		barrier_release_lines(c, slot, round, part, parts);
	else
		barrier_release(c, h, slot, round);
}

/* Sets w->at to the first of the words that barrier_release() writes for this device's workers. */
LOOM_FN void barrier_watch_release(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot,
				   struct barrier_watch *w)
{
	uint32_t n = w->wide ? barrier_parties(c, slot) : 1;
	w->lined = w->wide ? n * barrier_split(c, slot) : 0;
	if (w->lined) {
		w->at = barrier_local(c)->near[slot - 1][0] + (c->worker - c->first) % n;
		return;
	}
	w->at = w->wide ? barrier_word_at(c, h, slot, 0) - barrier_next(c, slot, 0) : barrier_release_word(c, h, slot);
}

/* Returns 1 if all words of the line are reached. */
LOOM_FN int barrier_line_is_reached(const struct loom_ctx *c, struct barrier_watch *w, uint32_t round)
{
	const uint32_t *word = (const uint32_t *)w->at;
	w->shared = 1;
	if (w->votes) {
		uint32_t seen = c->lane < w->lined ? barrier_load_shared(word + c->lane) : round;
		if (!loom_wave_all(c, barrier_reached(seen, round)))
			return 0;
	} else {
		while (w->reached < w->lined) { /* two loads overlap */
			uint32_t more = w->reached + 1 < w->lined, seen = barrier_load_shared(word + w->reached),
				 next = barrier_load_shared(word + w->reached + more);
			if (!barrier_reached(seen, round))
				return 0;
			w->reached += 1 + (more && barrier_reached(next, round));
		}
	}
	barrier_fence_shared(); /* pairs with the fence in barrier_release_lines(), of all parts of all devices */
	return 1;
}

LOOM_FN int barrier_is_released(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot,
				struct barrier_watch *w, uint32_t round)
{
	if (w->lined)
		return barrier_line_is_reached(c, w, round);
	uint32_t n = w->wide ? barrier_parties(c, slot) : 1;
	uint32_t leads = w->relays ? loom_load_relaxed_dev(&barrier_local(c)->leads) >> slot & 1 : 0;
	if (w->relays && !leads) {
		struct barrier_word *word = barrier_release_word(c, h, slot);
		/* Acquire: pairs with the release of the worker that relays, which has acquired the words of all devices. */
		if (barrier_poll_word(w, word, 0, round))
			return 1;
		/* The worker that relays may be busy between arrive and await. So a worker that waits also checks the
		 * words of all devices itself, but rarely. */
		if (++w->polls % BARRIER_RELAY_POLLS)
			return 0;
	}
#ifdef LOOM_DEVICE_COMPILE
	/* Two loads overlap: the word of this device is often the last but one. One fence serves all words. */
	while (w->wide && slot < BARRIER_GROUP && !w->drops && w->reached < n) {
		uint32_t i = w->reached, more = i + 1 < n;
		struct barrier_word *word = w->at + barrier_next(c, slot, i);
		uint32_t seen = barrier_load_shared(&word->value);
		uint32_t next = more ? barrier_load_shared(&w->at[barrier_next(c, slot, i + more)].value) : 0;
		if (!barrier_reached(seen, round))
			return 0;
		w->reached += 1 + (more && barrier_reached(next, round));
		if (w->reached == n)
			barrier_fence_shared(); /* pairs with the fence in barrier_release(), of all devices */
	}
#endif
	/* Polls this device's word first. After a word was reached, it is not polled again. */
	for (; w->reached < n; w->reached++) {
		uint32_t d = w->wide ? barrier_next(c, slot, w->reached) : 0;
		if (slot >= BARRIER_GROUP && w->wide && barrier_first(c, h, slot, d) == LOOM_NO_GROUP)
			continue;
		if (!barrier_poll_word(w, w->at + d, w->wide, round) &&
		    !(w->drops && loom_load_acquire_sys(&w->word->left_before)))
			return 0;
	}
	if (leads && c->lane == 0) {
		barrier_store(c, h, barrier_release_word(c, h, slot), 0, round);
		/* Load and store need not be one operation, because no other lane of this worker changes `leads`. */
		loom_store_relaxed_dev(&barrier_local(c)->leads, barrier_local(c)->leads & ~(1u << slot));
	}
	return 1;
}

/* Returns the error of a wait after the run was stopped: LOOM_EDIED if a device of the scope has died, else LOOM_EINTR. */
LOOM_FN int barrier_stop_code(const struct loom_ctx *c, uint32_t slot)
{
	/* Acquire: the core stores `died` before it stores `stop`. died: the number of the device + 1, or 0. */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	return died && (slot || died - 1 == c->device) ? LOOM_EDIED : LOOM_EINTR;
}

/* Called after poll number `polls` if the word was not reached. *since: the time of the first nap; 0 before the first
 * call. left_ns: time until the deadline; 0: there is no deadline. */
LOOM_FN void barrier_backoff(const struct loom_ctx *c, const struct barrier_state *h, const struct barrier_watch *w,
			     uint32_t polls, uint64_t *since, uint64_t left_ns)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)h, (void)w, (void)polls, (void)since, (void)left_ns;
	loom_pause(c);
#else
	/* A sleep lasts at most `longest` ns, so that the worker checks the stop word. */
	const uint64_t longest = 20000000, least = 20000;
	struct wait_policy policy = {h->spin, h->end, left_ns && left_ns < least ? left_ns : least};
	if (polls >= h->spin) {
		if (policy.end == WAIT_SLEEP && w->shared && h->no_wake)
			policy.end = WAIT_NAP;
		/* A wait for another rank has no word to sleep on. The worker yields before it naps, because the other rank may
		 * need this core. */
		if (policy.end >= WAIT_NAP && !w->word)
			policy.end = polls - h->spin < BARRIER_SHORT_POLLS ? WAIT_YIELD : WAIT_NAP;
	}
	if (!wait_step(c, &policy, polls, since))
		return;
	/* The operating system starts the sleep only if the word still has the value of the last poll. */
	(void)eventcount_enter(&w->word->value, &w->word->sleepers);
	loom_sleep_on(c, &w->word->value, w->seen, left_ns && left_ns < longest ? left_ns : longest);
	eventcount_leave(&w->word->sleepers);
#endif
}

#endif
