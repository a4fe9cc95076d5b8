/* SPDX-License-Identifier: Apache-2.0 */
/* Applications whose input faults in (the paper's BFS, SpMV, SSSP, BPT and XSBench): what they share. Device code.
 *
 * The workers of a device do one job together, each lane a part of it. They read the input through a table of its pages, in
 * their device's memory. A lane that finds a page absent claims it, and lane 0 of its worker asks the host for what its lanes
 * have claimed. On a CPU the page is then where it belongs. On a GPU it is in a frame of the device's memory, and there may be
 * fewer frames than pages: then a page that nobody reads at this moment is given back first.
 *
 * An entry of the table is one word, which only lanes of this device change. Who reads counts itself in (a pin), reads, and
 * counts itself out; who gives a page back changes the entry only while nobody is counted. Nobody waits while it has a pin, so
 * that wait is short. Epochs of workers would cost a reader less, but who gives back would wait for all workers, also those that
 * themselves wait for the host. With a frame for every page nothing is given back while lanes read, and nobody counts.
 * tests/models/frames.pml. */
#ifndef WORKLOAD_SSR_APP_DEV_H
#define WORKLOAD_SSR_APP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "ssr.dev.h"
#endif

#define SSR_PAGE_BYTES 4096ull

/* Behind the plan in a device's block. Constant. Arrays are named by their byte offsets in the input, each of them aligned to
 * its elements; what is in this block by its offset from the plan. */
struct ssr_input {
	uint64_t bytes; /* of the input: whole pages */
	uint64_t device;	/* 1: pages are in frames of this block; 0: where they belong, in the block for the stack */
	uint64_t data;	/* where the frames, or the pages, begin in that block */
	uint64_t frames;
	uint64_t table, wants, scratch; /* where they are in this one */
	uint64_t n, m;			/* vertices and edges, rows and entries, keys and nodes */
	uint64_t first, second, third;
	uint64_t lookups, levels;
	uint64_t pad[2];
};

/* Behind that: words that all workers of the device share. */
struct ssr_team {
	uint64_t arrived; /* at all meetings so far */
	uint64_t pad0[7];
	uint64_t sum; /* of the answer: the lanes add their parts */
	uint64_t pad1[7];
	uint64_t free; /* frames */
	uint64_t hand; /* where the next search for a page to give back begins */
	uint32_t changed, failed, leave, pad2;
	uint64_t pad3[4];
};

/* One for each lane of a worker: the page that it has claimed; then the frame. */
struct ssr_want {
	uint32_t page, frame; /* SSR_NONE: none */
	uint64_t id;	      /* of the request */
};
#define SSR_NONE 0xffffffffu

struct ssr_wants {
	uint32_t waiting; /* lanes: see ssr_any() */
	uint32_t claims;
	uint64_t posted, done; /* requests of this worker, in this sample */
	uint64_t pad[5];
};

/* Of an entry: its state, how many lanes read the page, and its frame. All three are changed by additions, which leave
 * the others as they are. */
enum { SSR_ABSENT = 0, SSR_COMING, SSR_PRESENT, SSR_GOING, SSR_STATE = 3 };
#define SSR_PIN 4ull
#define SSR_PINS 0xfffffffcull
#define SSR_IN_FRAME(frame) ((uint64_t)(frame) << 32)

struct ssr_reader {
	struct loom_ctx *c;
	struct ssr_input in;
	struct ssr_team *team;
	struct ssr_tally *tally;
	uint64_t *table;
	struct ssr_wants *wants;
	struct ssr_want *want; /* [c->lanes] */
	uint32_t *scratch;
	char *data;
	uint64_t lane, lanes; /* of all that do this job */
	uint64_t rounds, last; /* the first worker's: how often the job was done, and its answer */
	int pins;   /* 1: pages are given back while lanes read */
	int failed; /* on all lanes alike: stopped, or refused. What is read from here on is 0 */
};

LOOM_FN uint64_t ssr_pages(const struct ssr_input *in)
{
	return in->bytes / SSR_PAGE_BYTES;
}

LOOM_FN struct ssr_reader ssr_reader(struct loom_ctx *c)
{
	struct ssr_reader x = {};
	char *block = (char *)c->on_device[LOOM_WORKLOAD];
	const struct ssr_plan *plan = ssr_plan(c);
	x.c = c;
	x.in = *(const struct ssr_input *)(plan + 1);
	x.team = (struct ssr_team *)(block + sizeof(struct ssr_plan) + sizeof(struct ssr_input));
	x.tally = ssr_tally(c);
	x.table = (uint64_t *)(block + x.in.table);
	x.wants = (struct ssr_wants *)(block + x.in.wants + (c->worker - c->first) * plan->own_bytes);
	x.want = (struct ssr_want *)(x.wants + 1);
	x.scratch = (uint32_t *)(block + x.in.scratch);
	x.data = (x.in.device ? block : (char *)c->global[LOOM_WORKLOAD]) + x.in.data;
	x.lane = (uint64_t)(c->worker - c->first) * c->lanes + c->lane;
	x.lanes = (uint64_t)c->count * c->lanes;
	x.pins = x.in.frames < ssr_pages(&x.in);
	return x;
}

/* ---- lanes and workers ------------------------------------------------------------------------------- */

/* The job is over for all: the run was stopped, or a request refused. */
LOOM_FN int ssr_is_over(const struct ssr_reader *x)
{
	return loom_stopped(x->c) || loom_load_relaxed_dev(&x->team->failed);
}

LOOM_FN void ssr_give_up(struct ssr_reader *x, uint32_t service, int64_t answer)
{
	if (answer != LOOM_EINTR)
		ssr_count_wrong(x->tally, service, answer);
	loom_store_relaxed_dev(&x->team->failed, 1u);
}

/* Collective: whether some lane of the worker says so. */
LOOM_FN int ssr_any(struct ssr_reader *x, int flag)
{
	uint32_t n = 0;
	if (x->c->lanes == 1)
		return flag;
	if (flag)
		loom_fetch_add_relaxed_dev(&x->wants->waiting, 1u);
	loom_barrier_lanes(x->c);
	if (x->c->lane == 0) {
		n = loom_load_relaxed_dev(&x->wants->waiting);
		loom_store_relaxed_dev(&x->wants->waiting, 0u);
	}
	return loom_word_from_lane0(x->c, n) != 0;
}

/* Between two looks at what other workers will change. */
LOOM_FN void ssr_look_later(const struct ssr_reader *x, uint32_t looks)
{
#ifdef GPULOOM_DEV_CPU_H
	if (looks < 1000)
		loom_pause(x->c);
	else /* as if each look so far had taken 4 us */
		loom_nap((uint64_t)(looks - 999) * 4000, 0);
#else
	(void)x;
	loom_nanosleep(32u << (looks < 5 ? looks : 5));
#endif
}

/* Collective: all workers of the device meet; 0: the job is over. */
LOOM_FN int ssr_meet(struct ssr_reader *x)
{
	uint64_t *arrived = &x->team->arrived, all = x->c->count;
	int over = 0;
	loom_barrier_lanes(x->c);
	if (x->c->lane == 0) {
		/* Release, of what all lanes wrote; acquire: pairs with that of the others. */
		uint64_t n = loom_fetch_add_acq_rel_dev(arrived, (uint64_t)1);
		uint64_t until = (n / all + 1) * all;
		for (uint32_t looks = 0; loom_load_acquire_dev(arrived) < until && !(over = ssr_is_over(x)); looks++)
			ssr_look_later(x, looks);
		over |= ssr_is_over(x);
	}
	x->failed |= loom_flag_from_lane0(x->c, (uint32_t)over);
	return !x->failed;
}

/* ---- lane 0 asks --------------------------------------------------------------------------------------- */

LOOM_FN int ssr_post(struct ssr_reader *x, uint32_t service, uint64_t offset, uint64_t bytes, uint64_t *id)
{
	struct loom_request r = {0};
	r.service = service;
	r.buffer = x->c->device; /* of the tenant's grants, one for each device */
	r.offset = offset;
	r.bytes = bytes;
	int rc = LOOM_CALL(qos, request, x->c, &r, id);
	x->wants->posted += rc == 0;
	return rc;
}

/* The answer; or what was wrong, which ends the job. */
LOOM_FN int64_t ssr_answered(struct ssr_reader *x, uint32_t service, uint64_t id)
{
	int64_t got = 0;
	int rc = LOOM_CALL(qos, wait, x->c, id, 0, &got);
	if (rc || got < 0) {
		got = rc ? rc : got;
		ssr_give_up(x, service, got);
		return got;
	}
	loom_store_relaxed_sys(&x->tally->done, ++x->wants->done);
	return got;
}

LOOM_FN int64_t ssr_ask(struct ssr_reader *x, uint32_t service, uint64_t offset, uint64_t bytes)
{
	uint64_t id = 0;
	int rc = ssr_post(x, service, offset, bytes, &id);
	if (!rc)
		return ssr_answered(x, service, id);
	if (rc != LOOM_EAGAIN)
		ssr_give_up(x, service, rc);
	return rc;
}

/* Takes the frame of a page that nobody reads: 1; 0: there is none at this moment. */
LOOM_FN int ssr_take_back(struct ssr_reader *x)
{
	uint64_t pages = ssr_pages(&x->in);
	LOOM_NO_UNROLL
	for (uint64_t tries = 0; tries < 2 * pages && !ssr_is_over(x); tries++) {
		uint64_t page = loom_fetch_add_relaxed_dev(&x->team->hand, (uint64_t)1) % pages;
		uint64_t *entry = &x->table[page], e = loom_load_relaxed_dev(entry);
		/* Acquire: pairs with the release of the last one that counted itself out, before the host fills the frame
		 * anew. */
		if ((e & (SSR_STATE | SSR_PINS)) != SSR_PRESENT || !loom_cas_acq_rel_dev(entry, &e, e + 1))
			continue;
		if (ssr_ask(x, LOOM_SERVICE_EVICT, page * SSR_PAGE_BYTES, SSR_PAGE_BYTES) < 0) {
			loom_fetch_add_acq_rel_dev(entry, ~0ull); /* the ring is full */
			return 0;
		}
		loom_fetch_add_acq_rel_dev(entry, 0 - (SSR_GOING + (e & ~(uint64_t)0xffffffffu)));
		return 1;
	}
	return 0;
}

/* The right to one frame more. Who has claimed nothing that others wait for may wait for it. */
LOOM_FN int ssr_take_frame(struct ssr_reader *x, int may_wait)
{
	uint64_t left = loom_load_relaxed_dev(&x->team->free);
	while (left)
		if (loom_cas_acq_rel_dev(&x->team->free, &left, left - 1))
			return 1;
	int took = ssr_take_back(x);
	for (uint32_t looks = 0; !took && may_wait && !ssr_is_over(x); took = ssr_take_back(x))
		ssr_look_later(x, looks++);
	return took;
}

/* The page is there for all, and counted in for the lane that has claimed it. */
LOOM_FN void ssr_settle(struct ssr_reader *x, struct ssr_want *w)
{
	if (w->page == SSR_NONE)
		return;
	uint64_t *entry = &x->table[w->page];
	int64_t got = ssr_answered(x, LOOM_SERVICE_FAULT, w->id);
	if (got < 0) {
		loom_fetch_add_acq_rel_dev(entry, ~0ull);
	} else {
		w->frame = x->in.device ? (uint32_t)((uint64_t)got / SSR_PAGE_BYTES) : w->page;
		/* Release, after the answer: pairs with the acquire of all who look. */
		loom_fetch_add_acq_rel_dev(entry, (uint64_t)(SSR_PRESENT - SSR_COMING) + SSR_IN_FRAME(w->frame) + (x->pins ? SSR_PIN : 0));
	}
	w->page = SSR_NONE;
}

/* Asks for all that the lanes of this worker have claimed, and waits for the answers. What finds no frame without a wait is
 * claimed no longer: its lane looks again. For nobody waits for a frame while it has others' pages. */
LOOM_FN void ssr_ask_all(struct ssr_reader *x)
{
	uint32_t done = 0, asked = 0;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < x->c->lanes; i++) {
		struct ssr_want *w = &x->want[i];
		int rc = LOOM_EAGAIN;
		if (w->page == SSR_NONE)
			continue;
		int has_frame = !ssr_is_over(x) && (!x->pins || ssr_take_frame(x, !asked));
		if (has_frame)
			while ((rc = ssr_post(x, LOOM_SERVICE_FAULT, w->page * SSR_PAGE_BYTES, SSR_PAGE_BYTES, &w->id)) == LOOM_EAGAIN &&
			       done < i)
				ssr_settle(x, &x->want[done++]);
		if (!rc) {
			asked++;
			continue;
		}
		if (rc != LOOM_EAGAIN)
			ssr_give_up(x, LOOM_SERVICE_FAULT, rc);
		if (has_frame && x->pins)
			loom_fetch_add_relaxed_dev(&x->team->free, (uint64_t)1);
		loom_fetch_add_acq_rel_dev(&x->table[w->page], ~0ull);
		w->page = SSR_NONE;
	}
	while (done < x->c->lanes)
		ssr_settle(x, &x->want[done++]);
}

/* ---- reading -------------------------------------------------------------------------------------------- */

LOOM_FN uint64_t ssr_load(const struct ssr_reader *x, uint64_t frame, uint64_t at, uint32_t bytes)
{
	char *word = x->data + frame * SSR_PAGE_BYTES + at % SSR_PAGE_BYTES;
	return bytes == sizeof(uint32_t) ? loom_load_relaxed_dev((uint32_t *)(void *)word) :
					   loom_load_relaxed_dev((uint64_t *)(void *)word);
}

/* 1: the page is there, and this is what it holds. */
LOOM_FN int ssr_look(struct ssr_reader *x, uint64_t at, uint32_t bytes, uint64_t *value)
{
	uint64_t *entry = &x->table[at / SSR_PAGE_BYTES];
	/* Acquire: pairs with the release in ssr_settle(). */
	uint64_t e = loom_load_acquire_dev(entry);
	if ((e & SSR_STATE) != SSR_PRESENT)
		return 0;
	if (x->pins) {
		e = loom_fetch_add_acq_rel_dev(entry, SSR_PIN);
		if ((e & SSR_STATE) != SSR_PRESENT) {
			loom_fetch_add_relaxed_dev(entry, 0 - SSR_PIN);
			return 0;
		}
	}
	*value = ssr_load(x, e >> 32, at, bytes);
	if (x->pins)
		loom_fetch_add_release_dev(entry, 0 - SSR_PIN);
	return 1;
}

/* 1: this lane has claimed the page, and lane 0 will ask for it. */
LOOM_FN int ssr_claim(struct ssr_reader *x, uint64_t page)
{
	uint64_t e = loom_load_relaxed_dev(&x->table[page]);
	while ((e & SSR_STATE) == SSR_ABSENT)
		if (loom_cas_acq_rel_dev(&x->table[page], &e, e + SSR_COMING)) {
			struct ssr_want *w = &x->want[x->c->lane];
			w->page = (uint32_t)page;
			w->frame = SSR_NONE;
			loom_fetch_add_relaxed_dev(&x->wants->claims, 1u);
			return 1;
		}
	return 0;
}

/* Lane 0: 1: the job is over. */
LOOM_FN uint64_t ssr_serve(struct loom_ctx *c, uint32_t looks)
{
	struct ssr_reader x = ssr_reader(c);
	if (loom_load_relaxed_dev(&x.wants->claims)) {
		loom_store_relaxed_dev(&x.wants->claims, 0u);
		ssr_ask_all(&x);
	} else {
		ssr_look_later(&x, looks); /* others have claimed it */
	}
	return (uint64_t)ssr_is_over(&x);
}

/* Collective: each lane that wants to gets the word of 4 or 8 bytes at byte `at` of the input; 0 when the job is over. */
LOOM_FN uint64_t ssr_read(struct ssr_reader *x, int want, uint64_t at, uint32_t bytes)
{
	uint64_t value = 0;
	want = want && !x->failed;
	LOOM_NO_UNROLL
	for (uint32_t looks = 0;; looks++) {
		int mine = 0;
		want = want && !ssr_look(x, at, bytes, &value);
		if (want)
			mine = ssr_claim(x, at / SSR_PAGE_BYTES);
		if (!ssr_any(x, want))
			return value;
		uint32_t over = x->c->lane ? 0 : (uint32_t)LOOM_OUTLINED_COLLECTIVE(ssr_serve, x->c, looks);
		x->failed |= loom_flag_from_lane0(x->c, over);
		if (mine && x->want[x->c->lane].frame != SSR_NONE) {
			value = ssr_load(x, x->want[x->c->lane].frame, at, bytes);
			if (x->pins)
				loom_fetch_add_release_dev(&x->table[at / SSR_PAGE_BYTES], 0 - SSR_PIN);
			want = 0;
		}
		want = want && !x->failed;
	}
}

LOOM_FN uint32_t ssr_u32(struct ssr_reader *x, int want, uint64_t array, uint64_t i)
{
	return (uint32_t)ssr_read(x, want, array + i * sizeof(uint32_t), sizeof(uint32_t));
}

LOOM_FN uint64_t ssr_u64(struct ssr_reader *x, int want, uint64_t array, uint64_t i)
{
	return ssr_read(x, want, array + i * sizeof(uint64_t), sizeof(uint64_t));
}

/* ---- a job, again and again ------------------------------------------------------------------------------ */

/* Mixes one number into another; the host does the same. The answer is the sum of all, whoever adds them up. */
LOOM_FN uint64_t ssr_mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3ull + 0x9e3779b9ull;
}

/* The queries of the two look-up jobs: the same on both sides. */
LOOM_FN uint64_t ssr_query(uint64_t i)
{
	uint64_t x = i + 1;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

LOOM_FN uint64_t ssr_evict_all(struct loom_ctx *c)
{
	struct ssr_reader x = ssr_reader(c);
	loom_store_relaxed_dev(&x.team->free, x.in.frames);
	return (uint64_t)ssr_ask(&x, LOOM_SERVICE_EVICT, 0, x.in.bytes);
}

/* The first worker's lanes, before a round: all pages become absent. In a quiet round they stay, so that the work is the same
 * and the requests are not. */
LOOM_FN void ssr_empty(struct ssr_reader *x)
{
	if (x->c->lane == 0)
		LOOM_OUTLINED_COLLECTIVE(ssr_evict_all, x->c);
	for (uint64_t page = x->c->lane; page < ssr_pages(&x->in); page += x->c->lanes)
		loom_store_relaxed_dev(&x->table[page], (uint64_t)0);
}

/* 0: there is no further round. The host's words are read by one lane of the device. */
LOOM_FN int ssr_begin_round(struct ssr_reader *x)
{
	struct ssr_control *k = ssr_control(x->c);
	int endless = ssr_plan(x->c)->endless != 0, leave = 0, empty = 0;
	if (x->c->worker == x->c->first) {
		if (x->c->lane == 0) {
			leave = x->rounds && (!endless || loom_load_relaxed_sys(&k->quit));
			/* First of all, too: a device that maps the memory into a process of its own has touched every page. */
			empty = !leave && (!x->rounds || !loom_load_relaxed_sys(&k->quiet));
			loom_store_relaxed_dev(&x->team->leave, (uint32_t)leave);
			loom_store_relaxed_dev(&x->team->sum, (uint64_t)0);
			loom_store_relaxed_dev(&x->team->changed, 0u);
		}
		if (loom_flag_from_lane0(x->c, (uint32_t)empty))
			ssr_empty(x);
	}
	if (!ssr_meet(x))
		return 0;
	leave = x->c->lane == 0 && loom_load_relaxed_dev(&x->team->leave);
	return !loom_flag_from_lane0(x->c, (uint32_t)leave);
}

/* 0: the job is over. */
LOOM_FN int ssr_end_round(struct ssr_reader *x, uint64_t sum)
{
	if (sum)
		loom_fetch_add_relaxed_dev(&x->team->sum, sum);
	if (!ssr_meet(x))
		return 0;
	if (x->c->worker == x->c->first && x->c->lane == 0) {
		sum = loom_load_relaxed_dev(&x->team->sum);
		if (x->rounds && sum != x->last)
			ssr_count_wrong(x->tally, LOOM_SERVICES, (int64_t)sum);
		x->last = sum;
		x->rounds++;
	}
	return 1;
}

/* Collective: the kernel of every application. `job` gives the lane's part of a round's answer. */
LOOM_FN void ssr_app_run(struct loom_ctx *c, uint64_t (*job)(struct ssr_reader *x))
{
	struct ssr_reader x = ssr_reader(c);
	uint64_t cpu = ssr_own_clock();
	x.want[c->lane].page = SSR_NONE;
	if (c->lane == 0)
		ssr_begin(x.tally);
	while (ssr_begin_round(&x) && ssr_end_round(&x, job(&x)))
		;
	if (c->lane)
		return;
	x.tally->posted = x.wants->posted;
	x.tally->sum = x.last;
	x.tally->rounds = x.rounds;
	x.tally->cpu_ns = ssr_own_clock() - cpu;
}

#endif
