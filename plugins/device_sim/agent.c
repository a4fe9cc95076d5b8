/* SPDX-License-Identifier: Apache-2.0 */
/* Agents: activities of plug-ins in virtual time, beside the workers (gpuloom/clock.h). */
#include <stdlib.h>

#include "simulation.h"

static struct sim_group *group_of(const struct loom_clock *t)
{
	return (struct sim_group *)(uintptr_t)t;
}

static uint64_t now_ns(const struct loom_clock *t)
{
	return group_of(t)->simulation->sim.now;
}

/* Called with the lock of the simulation held. */
static int add(struct sim_group *g, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns), void *arg,
	       struct loom_agent **agent)
{
	struct loom_agent *a = calloc(1, sizeof(*a));
	if (!a)
		return LOOM_ENOMEM;
	*a = (struct loom_agent){.at = {.is_agent = 1, .slot = HEAP_NO_SLOT, .group = g},
				 .step = step,
				 .arg = arg,
				 .name = name,
				 .next = g->agents};
	g->agents = a;
	if (queue_reserve(g->simulation)) {
		g->agents = a->next;
		free(a);
		return LOOM_ENOMEM;
	}
	*agent = a;
	return 0;
}

static int start(const struct loom_clock *t, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns), void *arg,
		 struct loom_agent **agent)
{
	struct sim_group *g = group_of(t);
	pthread_mutex_lock(&g->simulation->lock);
	int code = add(g, name, step, arg, agent);
	pthread_mutex_unlock(&g->simulation->lock);
	return code;
}

static int start_between(const struct loom_clock *t, const char *name, uint64_t (*step)(void *arg, uint64_t now_ns),
			 void *arg, uint64_t distance_ns, struct loom_agent **agent)
{
	struct simulation *s = group_of(t)->simulation;
	pthread_mutex_lock(&s->lock);
	if (!s->between && (s->between = calloc(1, sizeof(*s->between))))
		s->between->simulation = s;
	int code = s->between ? add(s->between, name, step, arg, agent) : LOOM_ENOMEM;
	if (!code)
		s->lookahead = s->between->agents->next && s->lookahead < distance_ns ? s->lookahead : distance_ns;
	pthread_mutex_unlock(&s->lock);
	return code;
}

static void stop(const struct loom_clock *t, struct loom_agent *a)
{
	(void)t;
	if (!a)
		return;
	struct sim_group *g = a->at.group;
	pthread_mutex_lock(&g->simulation->lock);
	for (struct loom_agent **at = &g->agents; *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	for (uint32_t i = 0; i < SIM_WATCHES; i++)
		if (g->watch[i].agent == a)
			g->watch[i].agent = NULL;
	if (g == g->simulation->between && !g->agents)
		g->simulation->lookahead = 0;
	pthread_mutex_unlock(&g->simulation->lock);
	free(a);
}

static void wake(const struct loom_clock *t, struct loom_agent *a, uint64_t at_ns)
{
	(void)t;
	queue_wake(a->at.group->simulation, a, at_ns);
}

static int watch(const struct loom_clock *t, struct loom_agent *a, const void *from, uint64_t bytes, uint64_t after_ns)
{
	struct sim_group *g = group_of(t);
	struct sim_watch *place = NULL;
	for (uint32_t i = SIM_WATCHES; i-- > 0;)
		if (!g->watch[i].agent || g->watch[i].agent == a)
			place = place && place->agent == a ? place : &g->watch[i];
	if (!place)
		return LOOM_EFULL;
	*place = (struct sim_watch){.agent = a, .begin = (uintptr_t)from, .bytes = bytes};
	a->after_ns = after_ns;
	g->after_ns = after_ns < g->after_ns ? after_ns : g->after_ns;
	return 0;
}

void agents_open(struct sim_group *g)
{
	g->after_ns = LOOM_NEVER;
	g->clock = (struct loom_clock){.size = sizeof(g->clock),
				       .now_ns = now_ns,
				       .start = start,
				       .stop = stop,
				       .wake = wake,
				       .watch = watch,
				       .start_between = start_between};
}

void agents_close(struct sim_group *g)
{
	while (g->agents)
		stop(&g->clock, g->agents);
}

void agents_clip(const struct sim_group *g, uintptr_t address, struct loom_sim_range *range)
{
	for (uint32_t i = 0; i < SIM_WATCHES; i++) {
		const struct sim_watch *has = &g->watch[i];
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
	struct simulation *s = (struct simulation *)sim;
	struct loom_agent *a = s->running->device->group->watch[watched - 1].agent;
	queue_wake(s, a, sim->now + a->after_ns);
}
