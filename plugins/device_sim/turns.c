/* SPDX-License-Identifier: Apache-2.0 */
/* Who is live: a heap in virtual time, in no order otherwise. The keys stand in the heap itself: to look at each of
 * thousands of workers would miss the cache at each level. */
#include <errno.h>
#include <stdlib.h>

#include "world.h"

int turns_make_room(struct world *w)
{
	uint32_t all = w->agents;
	for (const struct sim_crew *c = w->crew; c; c = c->next)
		for (uint32_t i = 0; i < c->members; i++)
			all += c->member[i] && c->member[i]->launched ? c->member[i]->workers : 0;
	if (all <= w->room)
		return 0;
	all += all / 2;
	struct sim_seat *live = realloc(w->live, all * sizeof(*live));
	if (!live)
		return ENOMEM;
	w->live = live;
	w->room = all;
	return 0;
}

static int before(const struct sim_seat *a, const struct sim_seat *b)
{
	return a->due < b->due || (a->due == b->due && a->turn < b->turn);
}

static void seat(struct world *w, uint32_t at, struct sim_seat x)
{
	w->live[at] = x;
	x.who->seat = at;
}

/* x goes where it belongs, from a free seat downwards. */
void turns_sink(struct world *w, uint32_t at, struct sim_seat x)
{
	struct sim_seat *live = w->live;
	uint32_t lives = w->lives;
	for (uint32_t child; (child = 2 * at + 1) < lives; at = child) {
		child += child + 1 < lives && before(&live[child + 1], &live[child]);
		if (!before(&live[child], &x))
			break;
		seat(w, at, live[child]);
	}
	seat(w, at, x);
}

/* The same upwards. */
static void rise(struct world *w, uint32_t at, struct sim_seat x)
{
	for (; at && before(&x, &w->live[(at - 1) / 2]); at = (at - 1) / 2)
		seat(w, at, w->live[(at - 1) / 2]);
	seat(w, at, x);
}

void turns_enter(struct world *w, struct sim_turn *who, uint64_t due)
{
	struct sim_seat x = {.due = due, .turn = ++w->turn, .who = who};
	if (w->schedule == WORLD_TIME)
		rise(w, w->lives++, x);
	else
		seat(w, w->lives++, x);
}

/* In virtual time the one that runs has the first seat: it was due first. */
void turns_quit(struct world *w, struct sim_turn *who)
{
	uint32_t at = who->seat;
	struct sim_seat last = w->live[--w->lives];
	who->seat = SIM_NO_SEAT;
	if (last.who == who)
		return;
	if (w->schedule == WORLD_TIME)
		turns_sink(w, at, last);
	else
		seat(w, at, last);
}

void turns_wake(struct world *w, struct loom_agent *a, uint64_t at_ns)
{
	uint32_t at = a->at.seat;
	if (at == SIM_NO_SEAT) {
		turns_enter(w, &a->at, at_ns);
	} else if (at_ns < w->live[at].due) {
		struct sim_seat x = {.due = at_ns, .turn = ++w->turn, .who = &a->at};
		w->live[at] = x;
		if (w->schedule == WORLD_TIME)
			rise(w, at, x);
	}
	/* The worker that runs must not run past it. */
	if (at_ns < w->sim.horizon)
		w->sim.horizon = at_ns;
}
