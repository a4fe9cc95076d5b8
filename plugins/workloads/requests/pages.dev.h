/* SPDX-License-Identifier: Apache-2.0 */
/* Input that faults in page by page through the host, as the applications of HISS read it. Device code.
 *
 * The workers of a device do one job together, each lane a part of it. They read the input through a table of its
 * pages, which is in device memory. A lane that finds a page absent claims it, and lane 0 of its worker posts
 * requests for the claimed pages. On a CPU the answer means that the page is present in its place. On a GPU the page
 * is then in a frame of device memory. If there are fewer frames than pages, a page without readers is evicted first.
 *
 * An entry of the table is one word, which only lanes of this device change. A reader increments the entry's pin
 * count, reads, and decrements the count. An evicting lane changes the entry only while the count is 0. A lane with a
 * pin never waits, so pins are short. Epochs of workers would make reading cheaper, but then an eviction would wait
 * for all workers, including those that wait for the host. If there is a frame for every page, nothing is evicted
 * while lanes read, and readers do not pin. Model: tests/models/frames.pml. */
#ifndef WORKLOAD_REQUESTS_PAGES_DEV_H
#define WORKLOAD_REQUESTS_PAGES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "requests.dev.h"
#endif

#define REQUEST_PAGE_BYTES 4096ull

/* Describes the input. It follows the plan in a device's block, and is constant. `first`, `second` and `third` are
 * byte offsets of arrays in the input, each aligned to its elements. `table`, `claims` and `scratch` are byte offsets
 * from the plan. */
struct request_input {
	uint64_t bytes; /* size of the input, in whole pages */
	uint64_t device;	/* 1: pages are in frames of this block; 0: in the stack's block */
	uint64_t data;	/* byte offset of the frames in this block, or of the pages in the stack's block */
	uint64_t frames;
	uint64_t table, claims, scratch; /* byte offsets from the plan */
	uint64_t n, m;			/* number of vertices and edges, rows and entries, leaves, or points and
					 * nuclides */
	uint64_t first, second, third;
	uint64_t lookups, levels;
	uint32_t app, pad0; /* enum request_app */
	uint64_t pad;
};

/* Words that all workers of the device share. They follow struct request_input. */
struct request_team {
	uint64_t arrived; /* number of arrivals at all barriers so far */
	uint64_t pad0[7];
	uint64_t sum; /* sum of the answer, to which each lane adds its part */
	uint64_t pad1[7];
	uint64_t free; /* number of frames that are neither used nor reserved */
	uint64_t hand; /* where the next search for a page to evict starts, modulo the number of pages */
	uint32_t changed, failed, leave, pad2;
	uint64_t pad3[4];
};

/* A lane's claim: the page that the lane has claimed and, after the answer, the page's frame. A worker has one per
 * lane. */
struct request_claim {
	uint32_t page, frame; /* `page`: REQUEST_NO_PAGE if the lane has no claim */
	uint64_t id;	      /* id of the request */
};
#define REQUEST_NO_PAGE 0xffffffffu

struct request_claims {
	uint32_t waiting; /* number of lanes with a set flag in request_any() */
	uint32_t claims;
	uint64_t posted, done; /* requests of this worker in this sample: posted; answered */
	uint64_t pad[5];
};

/* An entry of the table has the page's state, its pin count (the number of lanes that read it), and its frame.
 * Changes are additions to some of these parts, so that concurrent changes of the other parts are kept. */
enum { REQUEST_ABSENT = 0, REQUEST_FAULTING, REQUEST_PRESENT, REQUEST_EVICTING, REQUEST_STATE = 3 };
#define REQUEST_PIN 4ull
#define REQUEST_PINS 0xfffffffcull
#define REQUEST_IN_FRAME(frame) ((uint64_t)(frame) << 32)

struct request_reader {
	struct loom_ctx *c;
	struct request_input in;
	struct request_team *team;
	struct request_counters *counters;
	uint64_t *table;
	struct request_claims *own;
	struct request_claim *claim; /* [c->lanes] */
	uint32_t *scratch;
	char *data;
	uint64_t lane, lanes; /* index of this lane among all lanes of the job; their number */
	uint64_t rounds, last; /* used by worker 0: number of completed rounds; last answer */
	int pins;   /* 1: pages may be evicted while lanes read */
	int failed; /* equal on all lanes; 1: the run was stopped or a request rejected, and reads return 0 */
};

LOOM_FN uint64_t request_pages(const struct request_input *in)
{
	return in->bytes / REQUEST_PAGE_BYTES;
}

LOOM_FN struct request_reader request_reader(struct loom_ctx *c)
{
	struct request_reader x = {};
	char *block = (char *)c->on_device[LOOM_WORKLOAD];
	const struct request_plan *plan = request_plan(c);
	x.c = c;
	x.in = *(const struct request_input *)(plan + 1);
	x.team = (struct request_team *)(block + sizeof(struct request_plan) + sizeof(struct request_input));
	x.counters = request_counters(c);
	x.table = (uint64_t *)(block + x.in.table);
	x.own = (struct request_claims *)(block + x.in.claims + (c->worker - c->first) * plan->own_bytes);
	x.claim = (struct request_claim *)(x.own + 1);
	x.scratch = (uint32_t *)(block + x.in.scratch);
	x.data = (x.in.device ? block : (char *)c->global[LOOM_WORKLOAD]) + x.in.data;
	x.lane = (uint64_t)(c->worker - c->first) * c->lanes + c->lane;
	x.lanes = (uint64_t)c->count * c->lanes;
	x.pins = x.in.frames < request_pages(&x.in);
	return x;
}

/* ---- lanes and workers ---- */

/* Returns whether the job is over: the run was stopped, or a request was rejected. */
LOOM_FN int request_is_over(const struct request_reader *x)
{
	return loom_stopped(x->c) || loom_load_relaxed_dev(&x->team->failed);
}

LOOM_FN void request_fail(struct request_reader *x, uint32_t service, int64_t answer)
{
	if (answer != LOOM_EINTR)
		request_count_wrong(x->counters, service, answer);
	loom_store_relaxed_dev(&x->team->failed, 1u);
}

/* Collective. Returns whether `flag` is set on some lane of the worker. */
LOOM_FN int request_any(struct request_reader *x, int flag)
{
	uint32_t n = 0;
	if (x->c->lanes == 1)
		return flag;
	if (flag)
		loom_fetch_add_relaxed_dev(&x->own->waiting, 1u);
	loom_barrier_lanes(x->c);
	if (x->c->lane == 0) {
		n = loom_load_relaxed_dev(&x->own->waiting);
		loom_store_relaxed_dev(&x->own->waiting, 0u);
	}
	return loom_word_from_lane0(x->c, n) != 0;
}

/* Waits between two polls of a word that another worker changes. `polls` is the number of polls so far. */
LOOM_FN void request_back_off(const struct request_reader *x, uint32_t polls)
{
#ifdef GPULOOM_DEV_CPU_H
	if (polls < 1000)
		loom_pause(x->c);
	else /* as if the wait had lasted 4 us per poll */
		loom_nap((uint64_t)(polls - 999) * 4000, 0);
#else
	(void)x;
	loom_nanosleep(32u << (polls < 5 ? polls : 5));
#endif
}

/* Collective: a barrier of all workers of the device. Returns 0 if the job is over. */
LOOM_FN int request_barrier(struct request_reader *x)
{
	uint64_t *arrived = &x->team->arrived, all = x->c->count;
	int over = 0;
	loom_barrier_lanes(x->c);
	if (x->c->lane == 0) {
		/* Release: publishes the writes of all lanes. Acquire: pairs with the other workers' releases. */
		uint64_t n = loom_fetch_add_acq_rel_dev(arrived, (uint64_t)1);
		uint64_t until = (n / all + 1) * all;
		for (uint32_t polls = 0; loom_load_acquire_dev(arrived) < until && !(over = request_is_over(x));
		     polls++)
			request_back_off(x, polls);
		over |= request_is_over(x);
	}
	x->failed |= loom_flag_from_lane0(x->c, (uint32_t)over);
	return !x->failed;
}

/* ---- requests, by lane 0 ---- */

LOOM_FN int request_post(struct request_reader *x, uint32_t service, uint64_t offset, uint64_t bytes, uint64_t *id)
{
	struct loom_request r = {0};
	r.service = service;
	r.buffer = x->c->device; /* the tenant has one grant for each device */
	r.offset = offset;
	r.bytes = bytes;
	int rc = LOOM_CALL(qos, request, x->c, &r, id);
	x->own->posted += rc == 0;
	return rc;
}

/* Waits for the answer to a request. Returns the answer, or an error, which ends the job. */
LOOM_FN int64_t request_result(struct request_reader *x, uint32_t service, uint64_t id)
{
	int64_t got = 0;
	int rc = LOOM_CALL(qos, wait, x->c, id, 0, &got);
	if (rc || got < 0) {
		got = rc ? rc : got;
		request_fail(x, service, got);
		return got;
	}
	loom_store_relaxed_sys(&x->counters->done, ++x->own->done);
	return got;
}

LOOM_FN int64_t request_call(struct request_reader *x, uint32_t service, uint64_t offset, uint64_t bytes)
{
	uint64_t id = 0;
	int rc = request_post(x, service, offset, bytes, &id);
	if (!rc)
		return request_result(x, service, id);
	if (rc != LOOM_EAGAIN)
		request_fail(x, service, rc);
	return rc;
}

/* Evicts a page that no lane reads. Returns 1 if this has freed a frame. Returns 0 if all pages have readers at this
 * moment, or no request can be posted. */
LOOM_FN int request_reclaim_frame(struct request_reader *x)
{
	uint64_t pages = request_pages(&x->in);
	LOOM_NO_UNROLL
	for (uint64_t tries = 0; tries < 2 * pages && !request_is_over(x); tries++) {
		uint64_t page = loom_fetch_add_relaxed_dev(&x->team->hand, (uint64_t)1) % pages;
		uint64_t *entry = &x->table[page], e = loom_load_relaxed_dev(entry);
		/* Acquire: pairs with the release with which the last reader has removed its pin. So this reader has
		 * read before the host fills the frame again. */
		if ((e & (REQUEST_STATE | REQUEST_PINS)) != REQUEST_PRESENT || !loom_cas_acq_rel_dev(entry, &e, e + 1))
			continue;
		if (request_call(x, LOOM_SERVICE_EVICT, page * REQUEST_PAGE_BYTES, REQUEST_PAGE_BYTES) < 0) {
			loom_fetch_add_acq_rel_dev(entry, ~0ull); /* no request was posted, because the ring is full */
			return 0;
		}
		loom_fetch_add_acq_rel_dev(entry, 0 - (REQUEST_EVICTING + (e & ~(uint64_t)0xffffffffu)));
		return 1;
	}
	return 0;
}

/* Reserves a frame. Returns 1, or 0 if there is none. Waits for a frame only if `may_wait` is set. The caller sets it
 * if this worker has no request in flight, for whose page other lanes might wait. */
LOOM_FN int request_take_frame(struct request_reader *x, int may_wait)
{
	uint64_t left = loom_load_relaxed_dev(&x->team->free);
	while (left)
		if (loom_cas_acq_rel_dev(&x->team->free, &left, left - 1))
			return 1;
	int took = request_reclaim_frame(x);
	for (uint32_t polls = 0; !took && may_wait && !request_is_over(x); took = request_reclaim_frame(x))
		request_back_off(x, polls++);
	return took;
}

/* Waits for the answer to a claim. Makes its page present, with a pin for the claiming lane. Returns 1, or 0 if the
 * lane has no claim. */
LOOM_FN uint32_t request_map_page(struct request_reader *x, struct request_claim *w)
{
	if (w->page == REQUEST_NO_PAGE)
		return 0;
	uint64_t *entry = &x->table[w->page];
	int64_t got = request_result(x, LOOM_SERVICE_FAULT, w->id);
	if (got < 0) {
		loom_fetch_add_acq_rel_dev(entry, ~0ull);
	} else {
		w->frame = x->in.device ? (uint32_t)((uint64_t)got / REQUEST_PAGE_BYTES) : w->page;
		/* Release, after the answer: pairs with the acquire in request_try_load(). */
		loom_fetch_add_acq_rel_dev(entry, (uint64_t)(REQUEST_PRESENT - REQUEST_FAULTING) +
						      REQUEST_IN_FRAME(w->frame) + (x->pins ? REQUEST_PIN : 0));
	}
	w->page = REQUEST_NO_PAGE;
	return 1;
}

/* Called by lane 0. Requests all pages that the lanes of this worker have claimed, and waits for the answers. If a
 * further claim would have to wait for a frame, lane 0 gives that claim up, and the claiming lane tries again. So no
 * worker waits for a frame while other lanes wait for its pages.
 *
 * A request takes the slot of the one `window` requests before it, whose answer is then gone. So lane 0 takes the
 * oldest answers before that. A claim posts at most `posts` requests: one, and an eviction if pages may be evicted. */
LOOM_FN void request_claimed_pages(struct request_reader *x)
{
	uint32_t done = 0, pending = 0, posts = x->pins ? 2 : 1, window = request_plan(x->c)->window;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < x->c->lanes; i++) {
		struct request_claim *w = &x->claim[i];
		int rc = LOOM_EAGAIN;
		if (w->page == REQUEST_NO_PAGE)
			continue;
		while (pending && pending * posts >= window)
			pending -= request_map_page(x, &x->claim[done++]);
		int has_frame = !request_is_over(x) && (!x->pins || request_take_frame(x, !pending));
		if (has_frame)
			while ((rc = request_post(x, LOOM_SERVICE_FAULT, w->page * REQUEST_PAGE_BYTES,
						  REQUEST_PAGE_BYTES, &w->id)) == LOOM_EAGAIN &&
			       done < i)
				pending -= request_map_page(x, &x->claim[done++]);
		if (!rc) {
			pending++;
			continue;
		}
		if (rc != LOOM_EAGAIN)
			request_fail(x, LOOM_SERVICE_FAULT, rc);
		if (has_frame && x->pins)
			loom_fetch_add_relaxed_dev(&x->team->free, (uint64_t)1);
		loom_fetch_add_acq_rel_dev(&x->table[w->page], ~0ull);
		w->page = REQUEST_NO_PAGE;
	}
	while (done < x->c->lanes)
		request_map_page(x, &x->claim[done++]);
}

/* ---- reading ---- */

LOOM_FN uint64_t request_load(const struct request_reader *x, uint64_t frame, uint64_t at, uint32_t bytes)
{
	char *word = x->data + frame * REQUEST_PAGE_BYTES + at % REQUEST_PAGE_BYTES;
	return bytes == sizeof(uint32_t) ? loom_load_relaxed_dev((uint32_t *)(void *)word) :
					   loom_load_relaxed_dev((uint64_t *)(void *)word);
}

/* Reads *value if its page is present. Returns 1, or 0 if the page is not present. */
LOOM_FN int request_try_load(struct request_reader *x, uint64_t at, uint32_t bytes, uint64_t *value)
{
	uint64_t *entry = &x->table[at / REQUEST_PAGE_BYTES];
	/* Acquire: pairs with the release in request_map_page(). */
	uint64_t e = loom_load_acquire_dev(entry);
	if ((e & REQUEST_STATE) != REQUEST_PRESENT)
		return 0;
	if (x->pins) {
		e = loom_fetch_add_acq_rel_dev(entry, REQUEST_PIN);
		if ((e & REQUEST_STATE) != REQUEST_PRESENT) {
			loom_fetch_add_relaxed_dev(entry, 0 - REQUEST_PIN);
			return 0;
		}
	}
	*value = request_load(x, e >> 32, at, bytes);
	if (x->pins)
		loom_fetch_add_release_dev(entry, 0 - REQUEST_PIN);
	return 1;
}

/* Claims a page if it is absent. Returns 1 if this lane has claimed it; lane 0 then requests it. */
LOOM_FN int request_claim_page(struct request_reader *x, uint64_t page)
{
	uint64_t e = loom_load_relaxed_dev(&x->table[page]);
	while ((e & REQUEST_STATE) == REQUEST_ABSENT)
		if (loom_cas_acq_rel_dev(&x->table[page], &e, e + REQUEST_FAULTING)) {
			struct request_claim *w = &x->claim[x->c->lane];
			w->page = (uint32_t)page;
			w->frame = REQUEST_NO_PAGE;
			loom_fetch_add_relaxed_dev(&x->own->claims, 1u);
			return 1;
		}
	return 0;
}

/* Called by lane 0. Requests the claimed pages, or backs off if there are none. Returns 1 if the job is over. */
LOOM_FN uint64_t request_serve(struct loom_ctx *c, uint32_t polls)
{
	struct request_reader x = request_reader(c);
	if (loom_load_relaxed_dev(&x.own->claims)) {
		loom_store_relaxed_dev(&x.own->claims, 0u);
		request_claimed_pages(&x);
	} else {
		request_back_off(&x, polls); /* another worker has claimed the page */
	}
	return (uint64_t)request_is_over(&x);
}

/* Collective. Each lane with `want` gets the word of 4 or 8 bytes at byte `at` of the input. Returns 0 if the job is
 * over. */
LOOM_FN uint64_t request_read(struct request_reader *x, int want, uint64_t at, uint32_t bytes)
{
	uint64_t value = 0;
	want = want && !x->failed;
	LOOM_NO_UNROLL
	for (uint32_t polls = 0;; polls++) {
		int mine = 0;
		want = want && !request_try_load(x, at, bytes, &value);
		if (want)
			mine = request_claim_page(x, at / REQUEST_PAGE_BYTES);
		if (!request_any(x, want))
			return value;
		uint32_t over = x->c->lane ? 0 : (uint32_t)LOOM_OUTLINED_COLLECTIVE(request_serve, x->c, polls);
		x->failed |= loom_flag_from_lane0(x->c, over);
		if (mine && x->claim[x->c->lane].frame != REQUEST_NO_PAGE) {
			value = request_load(x, x->claim[x->c->lane].frame, at, bytes);
			if (x->pins)
				loom_fetch_add_release_dev(&x->table[at / REQUEST_PAGE_BYTES], 0 - REQUEST_PIN);
			want = 0;
		}
		want = want && !x->failed;
	}
}

LOOM_FN uint32_t request_u32(struct request_reader *x, int want, uint64_t array, uint64_t i)
{
	return (uint32_t)request_read(x, want, array + i * sizeof(uint32_t), sizeof(uint32_t));
}

LOOM_FN uint64_t request_u64(struct request_reader *x, int want, uint64_t array, uint64_t i)
{
	return request_read(x, want, array + i * sizeof(uint64_t), sizeof(uint64_t));
}

/* ---- rounds of a job ---- */

/* Returns a hash of two numbers, equal on host and device. An answer is the sum of such hashes, in any order. */
LOOM_FN uint64_t request_mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3ull + 0x9e3779b9ull;
}

/* Returns the key of look-up i of bpt or xsbench, equal on host and device. */
LOOM_FN uint64_t request_query(uint64_t i)
{
	uint64_t x = i + 1;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

LOOM_FN uint64_t request_evict_all(struct loom_ctx *c)
{
	struct request_reader x = request_reader(c);
	loom_store_relaxed_dev(&x.team->free, x.in.frames);
	return (uint64_t)request_call(&x, LOOM_SERVICE_EVICT, 0, x.in.bytes);
}

/* Called by the first worker's lanes before a round. Makes all pages absent. It is called before the first round, but
 * not before later rounds that are quiet. So a quiet round does the same work without requests. */
LOOM_FN void request_evict_input(struct request_reader *x)
{
	if (x->c->lane == 0)
		LOOM_OUTLINED_COLLECTIVE(request_evict_all, x->c);
	for (uint64_t page = x->c->lane; page < request_pages(&x->in); page += x->c->lanes)
		loom_store_relaxed_dev(&x->table[page], (uint64_t)0);
}

/* Begins a round. Returns 0 if there is no further round. Only one lane of the device reads the host's control words,
 * so that all workers decide alike. */
LOOM_FN int request_begin_round(struct request_reader *x)
{
	struct request_control *k = request_control(x->c);
	int endless = request_plan(x->c)->endless != 0, leave = 0, empty = 0;
	if (x->c->worker == x->c->first) {
		if (x->c->lane == 0) {
			leave = x->rounds && (!endless || loom_load_relaxed_sys(&k->quit));
			/* Pages are also evicted before a first quiet round, because a process that maps the memory
			 * has touched all pages. */
			empty = !leave && (!x->rounds || !loom_load_relaxed_sys(&k->quiet));
			loom_store_relaxed_dev(&x->team->leave, (uint32_t)leave);
			loom_store_relaxed_dev(&x->team->sum, (uint64_t)0);
			loom_store_relaxed_dev(&x->team->changed, 0u);
		}
		if (loom_flag_from_lane0(x->c, (uint32_t)empty))
			request_evict_input(x);
	}
	if (!request_barrier(x))
		return 0;
	leave = x->c->lane == 0 && loom_load_relaxed_dev(&x->team->leave);
	return !loom_flag_from_lane0(x->c, (uint32_t)leave);
}

/* Adds a lane's part of the answer. Returns 0 if the job is over. */
LOOM_FN int request_end_round(struct request_reader *x, uint64_t sum)
{
	if (sum)
		loom_fetch_add_relaxed_dev(&x->team->sum, sum);
	if (!request_barrier(x))
		return 0;
	if (x->c->worker == x->c->first && x->c->lane == 0) {
		sum = loom_load_relaxed_dev(&x->team->sum);
		if (x->rounds && sum != x->last)
			request_count_wrong(x->counters, LOOM_SERVICES, (int64_t)sum);
		x->last = sum;
		x->rounds++;
	}
	return 1;
}

#endif
