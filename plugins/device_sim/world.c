/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in a world, and what memory is whose. */
#include "world.h"

#include <gpuloom/dev/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct world *worlds; /* that wait for more of their devices */

static struct world *make(const void *job, uint32_t shared, uint32_t expected)
{
	struct world *w = calloc(1, sizeof(*w));
	pthread_mutexattr_t attr;
	if (!w)
		return NULL;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&w->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	w->job = job;
	w->expected = expected;
	w->shared = shared;
	w->next = worlds;
	worlds = w;
	return w;
}

static void drop_crew(struct world *w, struct sim_crew *c)
{
	for (struct sim_crew **at = &w->crew; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	agents_close(c); /* an owner that went wrong left them */
	free(c->live.at);
	free(c->range);
	free(c);
}

static void unmake(struct world *w)
{
	for (struct world **at = &worlds; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	if (w->between)
		drop_crew(w, w->between);
	pthread_mutex_destroy(&w->lock);
	free(w->live.at);
	free(w->places);
	free(w->program);
	free(w);
}

static struct sim_crew *crew_of(struct world *w, const struct loom_host *host)
{
	struct sim_crew **at = &w->crew, *c;
	while (*at && (*at)->host != host && (*at)->host->rank < host->rank)
		at = &(*at)->next;
	if (*at && (*at)->host == host)
		return *at;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->world = w;
	c->host = host;
	c->next = *at;
	*at = c;
	agents_open(c);
	return c;
}

/* Devices of a stack are made one after the other, with the same host table; those of ranks beside each other. */
static int join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct world **world)
{
	uint32_t shared = LOOM_HAS(host, job) != 0;
	const void *job = shared ? host->job : host;
	struct world *w = worlds;
	while (w && (w->job != job || w->joined == w->expected))
		w = w->next;
	if (!w)
		w = make(job, shared, instances * (shared ? host->ranks : 1));
	if (!w)
		return LOOM_ENOMEM;
	pthread_mutex_lock(&w->lock); /* a probe may be under way */
	struct sim_crew *c = crew_of(w, host);
	if (c) {
		m->crew = c;
		m->index = (int32_t)c->members;
		c->member[c->members++] = m;
		c->left++;
		w->joined++;
		*world = w;
	}
	pthread_mutex_unlock(&w->lock);
	if (!w->joined)
		unmake(w);
	return c ? 0 : LOOM_ENOMEM;
}

int world_join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct world **world,
	       struct loom_error *err)
{
	pthread_mutex_lock(&lock);
	int code = join(host, instances, m, world);
	pthread_mutex_unlock(&lock);
	return code ? LOOM_FAIL(host, err, code, "%s: out of memory", m->name) : 0;
}

void world_leave(struct world *w, struct sim_member *m)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&w->lock);
	w->looked = NULL;
	m->crew->member[m->index] = NULL;
	if (!--m->crew->left)
		drop_crew(w, m->crew);
	pthread_mutex_unlock(&w->lock);
	if (!w->crew)
		unmake(w);
	pthread_mutex_unlock(&lock);
}

/* ---- memory ------------------------------------------------------------------------------------- */

int world_add_range(struct sim_crew *c, const void *begin, uint64_t bytes, int32_t owner)
{
	struct loom_sim_range at = {.begin = (uintptr_t)begin, .bytes = bytes, .owner = owner};
	for (uint32_t i = 0; i < c->ranges; i++)
		if (c->range[i].at.begin == at.begin) {
			c->range[i].uses++;
			return 0;
		}
	if (c->ranges == c->room) {
		uint32_t room = c->room ? 2 * c->room : 16;
		struct sim_range *more = realloc(c->range, room * sizeof(*more));
		if (!more)
			return LOOM_ENOMEM;
		c->range = more;
		c->room = room;
	}
	c->range[c->ranges++] = (struct sim_range){.at = at, .uses = 1};
	return 0;
}

void world_drop_range(struct sim_crew *c, const void *begin)
{
	for (uint32_t i = 0; i < c->ranges; i++)
		if (c->range[i].at.begin == (uintptr_t)begin) {
			if (!--c->range[i].uses)
				c->range[i] = c->range[--c->ranges];
			return;
		}
}

/* What nobody named is the host's: the page, for others of its pages may be named. */
void world_find(struct loom_sim *sim, uintptr_t address)
{
	const struct world *w = (const struct world *)sim;
	const struct sim_crew *c = w->running->device->crew;
	struct loom_sim_range *r = sim->near->range;
	memmove(r + 1, r, (LOOM_SIM_RANGES - 1) * sizeof(*r));
	*r = (struct loom_sim_range){.begin = address & ~(uintptr_t)4095, .bytes = 4096, .owner = LOOM_SIM_HOST};
	for (uint32_t i = 0; i < c->ranges; i++)
		if (address - c->range[i].at.begin < c->range[i].at.bytes) {
			*r = c->range[i].at;
			break;
		}
	agents_clip(c, address, r);
}

void world_ring(struct world *w)
{
	/* Release: who hears it sees what it was rung for. */
	__atomic_fetch_add(&w->rings, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&w->rings, INT_MAX, FUTEX_PRIVATE_FLAG);
}
