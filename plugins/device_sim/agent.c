/* SPDX-License-Identifier: Apache-2.0 */
/* Agents: what plug-ins do beside the workers, under the virtual clock (gpuloom/clock.h). */
#include <stdlib.h>

#include "world.h"

static struct sim_crew *crew_of(const struct loom_clock *t)
{
	return (struct sim_crew *)(uintptr_t)t;
}

static uint64_t now_ns(const struct loom_clock *t)
{
	return crew_of(t)->world->sim.now;
}

/* Locked. */
static int add(struct sim_crew *c, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns), void *arg,
	       struct loom_agent **agent)
{
	struct loom_agent *a = calloc(1, sizeof(*a));
	if (!a)
		return LOOM_ENOMEM;
	*a = (struct loom_agent){.at = {.is_agent = 1, .seat = HEAP_NO_SLOT, .crew = c},
				 .step = step,
				 .arg = arg,
				 .name = name,
				 .next = c->agents};
	c->agents = a;
	if (turns_make_room(c->world)) {
		c->agents = a->next;
		free(a);
		return LOOM_ENOMEM;
	}
	*agent = a;
	return 0;
}

static int start(const struct loom_clock *t, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns), void *arg,
		 struct loom_agent **agent)
{
	struct sim_crew *c = crew_of(t);
	pthread_mutex_lock(&c->world->lock);
	int code = add(c, name, step, arg, agent);
	pthread_mutex_unlock(&c->world->lock);
	return code;
}

static int start_between(const struct loom_clock *t, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns), void *arg,
			 uint64_t distance_ns, struct loom_agent **agent)
{
	struct world *w = crew_of(t)->world;
	pthread_mutex_lock(&w->lock);
	if (!w->between && (w->between = calloc(1, sizeof(*w->between))))
		w->between->world = w;
	int code = w->between ? add(w->between, name, step, arg, agent) : LOOM_ENOMEM;
	if (!code)
		w->distance = w->between->agents->next && w->distance < distance_ns ? w->distance : distance_ns;
	pthread_mutex_unlock(&w->lock);
	return code;
}

static void stop(const struct loom_clock *t, struct loom_agent *a)
{
	(void)t;
	if (!a)
		return;
	struct sim_crew *c = a->at.crew;
	pthread_mutex_lock(&c->world->lock);
	for (struct loom_agent **at = &c->agents; *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	for (uint32_t i = 0; i < WORLD_WATCHES; i++)
		if (c->watch[i].agent == a)
			c->watch[i].agent = NULL;
	if (c == c->world->between && !c->agents)
		c->world->distance = 0;
	pthread_mutex_unlock(&c->world->lock);
	free(a);
}

static void wake(const struct loom_clock *t, struct loom_agent *a, uint64_t at_ns)
{
	(void)t;
	turns_wake(a->at.crew->world, a, at_ns);
}

static int watch(const struct loom_clock *t, struct loom_agent *a, const void *from, uint64_t bytes, uint64_t after_ns)
{
	struct sim_crew *c = crew_of(t);
	struct sim_watch *place = NULL;
	for (uint32_t i = WORLD_WATCHES; i-- > 0;)
		if (!c->watch[i].agent || c->watch[i].agent == a)
			place = place && place->agent == a ? place : &c->watch[i];
	if (!place)
		return LOOM_EFULL;
	*place = (struct sim_watch){.agent = a, .begin = (uintptr_t)from, .bytes = bytes};
	a->after_ns = after_ns;
	c->after_ns = after_ns < c->after_ns ? after_ns : c->after_ns;
	return 0;
}

void agents_open(struct sim_crew *c)
{
	c->after_ns = LOOM_NEVER;
	c->clock = (struct loom_clock){.size = sizeof(c->clock),
				     .now_ns = now_ns,
				     .start = start,
				     .stop = stop,
				     .wake = wake,
				     .watch = watch,
				     .start_between = start_between};
}

void agents_close(struct sim_crew *c)
{
	while (c->agents)
		stop(&c->clock, c->agents);
}

void agents_clip(const struct sim_crew *c, uintptr_t address, struct loom_sim_range *range)
{
	for (uint32_t i = 0; i < WORLD_WATCHES; i++) {
		const struct sim_watch *has = &c->watch[i];
		uintptr_t end = range->begin + range->bytes;
		if (!has->agent || has->begin >= end || has->begin + has->bytes <= range->begin)
			continue;
		if (address < has->begin) {
			range->bytes = has->begin - range->begin;
		} else if (address >= has->begin + has->bytes) {
			range->begin = has->begin + has->bytes;
			range->bytes = end - range->begin;
		} else {
			range->begin = has->begin;
			range->bytes = has->bytes;
			range->watched = i + 1;
		}
	}
}

void agents_stored(struct loom_sim *sim, uint32_t watched)
{
	struct world *w = (struct world *)sim;
	struct loom_agent *a = w->running->device->crew->watch[watched - 1].agent;
	turns_wake(w, a, sim->now + a->after_ns);
}
