/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of pending events. With schedule = time, this is a conservative discrete-event simulation. Each group has a
 * heap of its entities by due time, and the simulation has a heap of groups.
 *
 * Lookahead: an effect of a group reaches other groups at least `lookahead` ns later. The lower bound on the time
 * stamps (LBTS) of a group is the earliest time at which other groups can still affect it. A group continues up to its
 * LBTS. So groups are switched rarely, and a group's memory stays in the cache. The order of all effects is still that
 * of virtual time.
 *
 * In a random schedule all entities are in one queue, in no order. */
#include "simulation.h"

/* Virtual time after which a worker yields even if it is alone, to poll the control words of the hosts. */
#define SLICE_NS 100000u

/* ---- groups ----------------------------------------------------------------------------------------- */

static uint32_t entities_of(const struct sim_group *g)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < g->members; i++)
		all += g->member[i] && g->member[i]->launched ? g->member[i]->workers : 0;
	for (const struct loom_agent *a = g->agents; a; a = a->next)
		all++;
	return all;
}

int queue_reserve(struct simulation *s)
{
	uint32_t all = s->between ? entities_of(s->between) : 0, groups = 1;
	int code = s->between ? heap_make_room(&s->between->live, all) : 0;
	for (struct sim_group *g = s->group; g && !code; g = g->next) {
		uint32_t own = entities_of(g);
		code = heap_make_room(&g->live, own);
		all += own;
		groups++;
	}
	uint32_t *group_slot = realloc(s->group_slot, groups * sizeof(*group_slot));
	s->group_slot = group_slot ? group_slot : s->group_slot;
	return code || !group_slot ? ENOMEM : heap_make_room(&s->live, all > groups ? all : groups);
}

static uint64_t later(uint64_t at, uint64_t ns)
{
	return at > UINT64_MAX - ns ? UINT64_MAX : at + ns;
}

/* Returns the LBTS of the active group, if `due` is the earliest time at which another group may cause an effect.
 * Agents between the ranks have no lookahead. */
static uint64_t bound_of(const struct simulation *s, uint64_t due)
{
	return s->active == s->between ? due : later(due, s->lookahead);
}

/* Returns the earliest time at which this group may cause an effect on other groups, without the lookahead. An agent
 * may do so when it is due. A worker may do so only through agents that watch memory. */
static uint64_t earliest_output(const struct sim_group *g)
{
	const struct heap_entry *first = &g->live.at[0];
	uint64_t at = ((const struct sim_entity *)first->what)->is_agent ? first->due : later(first->due, g->after_ns);
	for (const struct loom_agent *a = g->agents; a; a = a->next)
		if (a->at.slot != HEAP_NO_SLOT && g->live.at[a->at.slot].due < at)
			at = g->live.at[a->at.slot].due;
	return at;
}

/* Inserts an inactive group into the heap of groups after its first entity has changed. Moves the group if it is
 * there. */
static void queue_group(struct simulation *s, struct sim_group *g)
{
	struct heap_entry x = {.due = s->lookahead ? earliest_output(g) : g->live.at[0].due,
			       .turn = g->live.at[0].turn,
			       .what = g,
			       .slot = &s->group_slot[g->number]};
	heap_rise(&s->live, *x.slot == HEAP_NO_SLOT ? s->live.live++ : *x.slot, x);
	if (!s->active)
		return;
	uint64_t limit = bound_of(s, x.due);
	s->lbts = limit < s->lbts ? limit : s->lbts;
	s->sim.horizon = limit < s->sim.horizon ? limit : s->sim.horizon;
}

static struct sim_entity *first_of(const struct simulation *s)
{
	const struct heap *q = &s->active->live;
	return q->live && q->at[0].due < s->lbts ? q->at[0].what : NULL;
}

/* Prefetches the memory that the next group accesses first, and the structs of the two groups after it. Stale pointers
 * are harmless. */
static void prefetch_next(const struct simulation *s)
{
	for (uint32_t i = 1; i < 3 && i < s->live.live; i++) {
		const char *at = s->live.at[i].what;
		for (uint32_t line = 0; line < 3; line++)
			__builtin_prefetch(at + 64 * line);
	}
	const struct sim_group *g = s->live.live ? s->live.at[0].what : NULL;
	if (!g)
		return;
	__builtin_prefetch(g->live.at);
	for (uint32_t i = 0; i < SIM_WARM; i++)
		for (uint32_t line = 0; g->warm[i] && line < 6; line++)
			__builtin_prefetch((const char *)g->warm[i] + 64 * line);
}

static void note_warm(const struct simulation *s, struct sim_group *g)
{
	const struct sim_worker *x = s->running;
	if (!x || x->at.group != g)
		return;
	g->warm[0] = x;
#ifdef __x86_64__
	g->warm[1] = x->fiber.at;
#endif
	g->warm[2] = g->agents ? g->agents->arg : NULL;
}

struct sim_entity *queue_next(struct simulation *s)
{
	struct sim_group *g = s->active;
	struct sim_entity *first = g ? first_of(s) : NULL;
	if (first)
		return first;
	s->active = NULL;
	if (g && g->live.live) {
		note_warm(s, g);
		queue_group(s, g);
	}
	if (!s->live.live)
		return NULL;
	s->active = g = heap_take(&s->live);
	s->lbts = s->live.live ? bound_of(s, s->live.at[0].due) : UINT64_MAX;
	prefetch_next(s);
	return g->live.at[0].what;
}

uint64_t queue_horizon(const struct simulation *s)
{
	const struct heap *q = &s->active->live;
	uint64_t due = s->sim.now + SLICE_NS;
	due = s->lbts < due ? s->lbts : due;
	for (uint32_t i = 1; i < 3 && i < q->live; i++) /* the second entity by due time is one of these */
		due = q->at[i].due < due ? q->at[i].due : due;
	return due;
}

/* ---- workers and agents ---------------------------------------------------------------------------- */

void queue_insert(struct simulation *s, struct sim_entity *e, uint64_t due)
{
	struct heap_entry x = {.due = due, .turn = ++s->turn, .what = e, .slot = &e->slot};
	if (s->schedule != SCHEDULE_TIME) {
		heap_put(&s->live, s->live.live++, x);
		return;
	}
	heap_add(&e->group->live, x);
	if (e->group != s->active)
		queue_group(s, e->group);
}

/* Removes an entity. With schedule = time it must be the running entity, which is the first of its heap. */
void queue_remove(struct simulation *s, struct sim_entity *e)
{
	if (s->schedule == SCHEDULE_TIME) {
		heap_take(&e->group->live);
		return;
	}
	uint32_t at = e->slot;
	struct heap_entry last = s->live.at[--s->live.live];
	if (last.what != e)
		heap_put(&s->live, at, last);
	e->slot = HEAP_NO_SLOT;
}

void queue_reschedule(struct simulation *s, uint64_t due)
{
	struct heap *q = &s->active->live;
	struct heap_entry x = q->at[0];
	x.due = due;
	x.turn = ++s->turn;
	heap_sink(q, 0, x);
}

void queue_wake(struct simulation *s, struct loom_agent *a, uint64_t at_ns)
{
	struct sim_group *g = a->at.group;
	struct heap *q = s->schedule == SCHEDULE_TIME ? &g->live : &s->live;
	uint32_t at = a->at.slot;
	if (at == HEAP_NO_SLOT) {
		queue_insert(s, &a->at, at_ns);
	} else if (at_ns < q->at[at].due) {
		q->at[at].turn = ++s->turn;
		if (s->schedule == SCHEDULE_TIME) {
			heap_move(q, at, at_ns);
			if (g != s->active)
				queue_group(s, g);
		} else {
			q->at[at].due = at_ns;
		}
	}
	/* The running worker must not run past this time. */
	if (g == s->active && at_ns < s->sim.horizon)
		s->sim.horizon = at_ns;
}
