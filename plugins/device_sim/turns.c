/* SPDX-License-Identifier: Apache-2.0 */
/* Who is live. In virtual time each crew has a heap, and the world one of crews by the first of each. What a crew does
 * reaches others after world.distance, so it is played on for as long when others are due: its memory stays in the cache, and
 * no stacks are switched. The order that anybody can see is that of virtual time all the same. In a random schedule all are in
 * one queue, in no order. */
#include "world.h"

/* How long a worker goes on alone before it looks whether the host wants something. */
#define SLICE_NS 100000u

/* ---- crews ----------------------------------------------------------------------------------------- */

static uint32_t of_crew(const struct sim_crew *c)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < c->members; i++)
		all += c->member[i] && c->member[i]->launched ? c->member[i]->workers : 0;
	for (const struct loom_agent *a = c->agents; a; a = a->next)
		all++;
	return all;
}

int turns_make_room(struct world *w)
{
	uint32_t all = w->between ? of_crew(w->between) : 0, crews = 1;
	int code = w->between ? heap_make_room(&w->between->live, all) : 0;
	for (struct sim_crew *c = w->crew; c && !code; c = c->next) {
		uint32_t own = of_crew(c);
		code = heap_make_room(&c->live, own);
		all += own;
		crews++;
	}
	uint32_t *places = realloc(w->places, crews * sizeof(*places));
	w->places = places ? places : w->places;
	return code || !places ? ENOMEM : heap_make_room(&w->live, all > crews ? all : crews);
}

static uint64_t later(uint64_t at, uint64_t ns)
{
	return at > UINT64_MAX - ns ? UINT64_MAX : at + ns;
}

/* Until others are due, who can only reach this crew so much later. What is between the ranks waits for all of them. */
static uint64_t limit_of(const struct world *w, uint64_t due)
{
	return w->playing == w->between ? due : later(due, w->distance);
}

/* When this crew can reach others, before the way to them: its agents when they are due, its workers by agents that watch. */
static uint64_t reach(const struct sim_crew *c)
{
	const struct heap_entry *first = &c->live.at[0];
	uint64_t at = ((const struct sim_turn *)first->what)->is_agent ? first->due : later(first->due, c->after_ns);
	for (const struct loom_agent *a = c->agents; a; a = a->next)
		if (a->at.seat != HEAP_NO_SLOT && c->live.at[a->at.seat].due < at)
			at = c->live.at[a->at.seat].due;
	return at;
}

/* A crew that is not played has another one who is live. */
static void follow(struct world *w, struct sim_crew *c)
{
	struct heap_entry x = {.due = w->distance ? reach(c) : c->live.at[0].due,
			       .turn = c->live.at[0].turn,
			       .what = c,
			       .slot = &w->places[c->number]};
	heap_rise(&w->live, *x.slot == HEAP_NO_SLOT ? w->live.live++ : *x.slot, x);
	if (!w->playing)
		return;
	uint64_t limit = limit_of(w, x.due);
	w->limit = limit < w->limit ? limit : w->limit;
	w->sim.horizon = limit < w->sim.horizon ? limit : w->sim.horizon;
}

static struct sim_turn *first_of(const struct world *w)
{
	const struct heap *q = &w->playing->live;
	return q->live && q->at[0].due < w->limit ? q->at[0].what : NULL;
}

/* The next crew comes from far in the memory: what it begins with is asked for early. Of the two behind it, where that is. It does
 * no harm if it is gone. */
static void expect(const struct world *w)
{
	for (uint32_t i = 1; i < 3 && i < w->live.live; i++) {
		const char *at = w->live.at[i].what;
		for (uint32_t line = 0; line < 3; line++)
			__builtin_prefetch(at + 64 * line);
	}
	const struct sim_crew *c = w->live.live ? w->live.at[0].what : NULL;
	if (!c)
		return;
	__builtin_prefetch(c->live.at);
	for (uint32_t i = 0; i < SIM_WARM; i++)
		for (uint32_t line = 0; c->warm[i] && line < 6; line++)
			__builtin_prefetch((const char *)c->warm[i] + 64 * line);
}

static void remember(const struct world *w, struct sim_crew *c)
{
	const struct sim_worker *x = w->running;
	if (!x || x->at.crew != c)
		return;
	c->warm[0] = x;
#ifdef __x86_64__
	c->warm[1] = x->fiber.at;
#endif
	c->warm[2] = c->agents ? c->agents->arg : NULL;
}

struct sim_turn *turns_next(struct world *w)
{
	struct sim_crew *c = w->playing;
	struct sim_turn *first = c ? first_of(w) : NULL;
	if (first)
		return first;
	w->playing = NULL;
	if (c && c->live.live) {
		remember(w, c);
		follow(w, c);
	}
	if (!w->live.live)
		return NULL;
	w->playing = c = heap_take(&w->live);
	w->limit = w->live.live ? limit_of(w, w->live.at[0].due) : UINT64_MAX;
	expect(w);
	return c->live.at[0].what;
}

uint64_t turns_horizon(const struct world *w)
{
	const struct heap *q = &w->playing->live;
	uint64_t due = w->sim.now + SLICE_NS;
	due = w->limit < due ? w->limit : due;
	for (uint32_t i = 1; i < 3 && i < q->live; i++) /* the second is one of these */
		due = q->at[i].due < due ? q->at[i].due : due;
	return due;
}

/* ---- workers and agents ---------------------------------------------------------------------------- */

void turns_enter(struct world *w, struct sim_turn *who, uint64_t due)
{
	struct heap_entry x = {.due = due, .turn = ++w->turn, .what = who, .slot = &who->seat};
	if (w->schedule != WORLD_TIME) {
		heap_put(&w->live, w->live.live++, x);
		return;
	}
	heap_add(&who->crew->live, x);
	if (who->crew != w->playing)
		follow(w, who->crew);
}

/* In virtual time the one that runs has the first seat: it was due first. */
void turns_quit(struct world *w, struct sim_turn *who)
{
	if (w->schedule == WORLD_TIME) {
		heap_take(&who->crew->live);
		return;
	}
	uint32_t at = who->seat;
	struct heap_entry last = w->live.at[--w->live.live];
	if (last.what != who)
		heap_put(&w->live, at, last);
	who->seat = HEAP_NO_SLOT;
}

void turns_again(struct world *w, uint64_t due)
{
	struct heap *q = &w->playing->live;
	struct heap_entry x = q->at[0];
	x.due = due;
	x.turn = ++w->turn;
	heap_sink(q, 0, x);
}

void turns_wake(struct world *w, struct loom_agent *a, uint64_t at_ns)
{
	struct sim_crew *c = a->at.crew;
	struct heap *q = w->schedule == WORLD_TIME ? &c->live : &w->live;
	uint32_t at = a->at.seat;
	if (at == HEAP_NO_SLOT) {
		turns_enter(w, &a->at, at_ns);
	} else if (at_ns < q->at[at].due) {
		q->at[at].turn = ++w->turn;
		if (w->schedule == WORLD_TIME) {
			heap_move(q, at, at_ns);
			if (c != w->playing)
				follow(w, c);
		} else {
			q->at[at].due = at_ns;
		}
	}
	/* The worker that runs must not run past it. */
	if (c == w->playing && at_ns < w->sim.horizon)
		w->sim.horizon = at_ns;
}
