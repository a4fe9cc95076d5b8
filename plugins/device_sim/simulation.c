/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a simulation, and the owners of memory. */
#include "simulation.h"

#include <gpuloom/dev/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct simulation *simulations; /* list of all simulations */

static struct simulation *make(const void *job, uint32_t shared, uint32_t expected)
{
	struct simulation *s = calloc(1, sizeof(*s));
	pthread_mutexattr_t attr;
	if (!s)
		return NULL;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	s->job = job;
	s->expected = expected;
	s->shared = shared;
	s->next = simulations;
	simulations = s;
	return s;
}

static void drop_group(struct simulation *s, struct sim_group *g)
{
	for (struct sim_group **at = &s->group; *at; at = &(*at)->next)
		if (*at == g) {
			*at = g->next;
			break;
		}
	agents_close(g); /* frees agents that a failed owner has left */
	free(g->live.at);
	free(g->range);
	free(g);
}

static void unmake(struct simulation *s)
{
	for (struct simulation **at = &simulations; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	if (s->between)
		drop_group(s, s->between);
	pthread_mutex_destroy(&s->lock);
	free(s->live.at);
	free(s->group_slot);
	free(s->program);
	free(s);
}

static struct sim_group *group_of(struct simulation *s, const struct loom_host *host)
{
	struct sim_group **at = &s->group, *g;
	while (*at && (*at)->host != host && (*at)->host->rank < host->rank)
		at = &(*at)->next;
	if (*at && (*at)->host == host)
		return *at;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->simulation = s;
	g->host = host;
	g->next = *at;
	*at = g;
	agents_open(g);
	return g;
}

/* Finds or makes the simulation of a stack or job, and adds a device. The devices of a stack have the same host table,
 * and join one after the other. Devices of different ranks join in parallel. */
static int join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct simulation **simulation)
{
	uint32_t shared = LOOM_HAS(host, job) != 0;
	const void *job = shared ? host->job : host;
	struct simulation *s = simulations;
	while (s && (s->job != job || s->joined == s->expected))
		s = s->next;
	if (!s)
		s = make(job, shared, instances * (shared ? host->ranks : 1));
	if (!s)
		return LOOM_ENOMEM;
	pthread_mutex_lock(&s->lock); /* a probe may be running */
	struct sim_group *g = group_of(s, host);
	if (g) {
		m->group = g;
		m->index = (int32_t)g->members;
		g->member[g->members++] = m;
		g->left++;
		s->joined++;
		*simulation = s;
	}
	pthread_mutex_unlock(&s->lock);
	if (!s->joined)
		unmake(s);
	return g ? 0 : LOOM_ENOMEM;
}

int simulation_join(const struct loom_host *host, uint32_t instances, struct sim_member *m,
		    struct simulation **simulation, struct loom_error *err)
{
	pthread_mutex_lock(&lock);
	int code = join(host, instances, m, simulation);
	pthread_mutex_unlock(&lock);
	return code ? LOOM_FAIL(host, err, code, "%s: out of memory", m->name) : 0;
}

void simulation_leave(struct simulation *s, struct sim_member *m)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&s->lock);
	s->polled = NULL;
	m->group->member[m->index] = NULL;
	if (!--m->group->left)
		drop_group(s, m->group);
	pthread_mutex_unlock(&s->lock);
	if (!s->group)
		unmake(s);
	pthread_mutex_unlock(&lock);
}

/* ---- memory ------------------------------------------------------------------------------------- */

int memory_add_range(struct sim_group *g, const void *begin, uint64_t bytes, int32_t owner)
{
	struct loom_sim_range at = {.begin = (uintptr_t)begin, .bytes = bytes, .owner = owner};
	for (uint32_t i = 0; i < g->ranges; i++)
		if (g->range[i].at.begin == at.begin) {
			g->range[i].uses++;
			return 0;
		}
	if (g->ranges == g->room) {
		uint32_t room = g->room ? 2 * g->room : 16;
		struct sim_range *more = realloc(g->range, room * sizeof(*more));
		if (!more)
			return LOOM_ENOMEM;
		g->range = more;
		g->room = room;
	}
	g->range[g->ranges++] = (struct sim_range){.at = at, .uses = 1};
	return 0;
}

void memory_drop_range(struct sim_group *g, const void *begin)
{
	for (uint32_t i = 0; i < g->ranges; i++)
		if (g->range[i].at.begin == (uintptr_t)begin) {
			if (!--g->range[i].uses)
				g->range[i] = g->range[--g->ranges];
			return;
		}
}

/* Memory that is not registered counts as host memory. Its range is a single page, because other pages of the mapping
 * may be registered. */
void memory_find_range(struct loom_sim *sim, uintptr_t address)
{
	const struct simulation *s = (const struct simulation *)sim;
	const struct sim_group *g = s->running->device->group;
	struct loom_sim_range *r = sim->recent->range;
	memmove(r + 1, r, (LOOM_SIM_RANGES - 1) * sizeof(*r));
	*r = (struct loom_sim_range){.begin = address & ~(uintptr_t)4095, .bytes = 4096, .owner = LOOM_SIM_HOST};
	for (uint32_t i = 0; i < g->ranges; i++)
		if (address - g->range[i].at.begin < g->range[i].at.bytes) {
			*r = g->range[i].at;
			break;
		}
	agents_clip(g, address, r);
}

void simulation_notify(struct simulation *s)
{
	/* Release: pairs with the acquire of `notifications` in await() of launch.c. */
	__atomic_fetch_add(&s->notifications, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&s->notifications, INT_MAX, FUTEX_PRIVATE_FLAG);
}
