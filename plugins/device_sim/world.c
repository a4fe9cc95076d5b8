/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in a world, and what memory is whose. */
#include "world.h"

#include <gpuloom/dev/futex.h>
#include <limits.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct world *worlds; /* that wait for more of their devices */

/* Devices of a stack are made one after the other, with the same host table. */
int world_join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct world **world,
	       struct loom_error *err)
{
	pthread_mutex_lock(&lock);
	struct world **at = &worlds, *w;
	while (*at && ((*at)->host != host || (*at)->instances != instances))
		at = &(*at)->next;
	w = *at;
	if (!w) {
		w = host->alloc(host, sizeof(*w));
		if (w) {
			w->host = host;
			w->instances = instances;
			w->next = worlds;
			worlds = w;
			at = &worlds;
		}
	}
	if (w) {
		*world = w;
		m->index = (int32_t)w->members;
		w->member[w->members++] = m;
		if (w->members == instances)
			*at = w->next; /* complete */
	}
	pthread_mutex_unlock(&lock);
	return w ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", m->name);
}

void world_leave(struct world *w, struct sim_member *m)
{
	uint32_t left = 0;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < w->members; i++) {
		if (w->member[i] == m)
			w->member[i] = NULL;
		left += w->member[i] != NULL;
	}
	for (struct world **at = &worlds; !left && *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	if (left)
		return;
	w->host->free(w->host, w->live);
	w->host->free(w->host, w->program);
	w->host->free(w->host, w);
}

/* ---- memory ------------------------------------------------------------------------------------- */

int world_add_range(struct world *w, const void *begin, uint64_t bytes, int32_t owner)
{
	struct loom_sim_range at = {.begin = (uintptr_t)begin, .bytes = bytes, .owner = owner};
	w->sim.last = (struct loom_sim_range){0};
	for (uint32_t i = 0; i < w->ranges; i++)
		if (w->range[i].at.begin == at.begin) {
			w->range[i].uses++;
			return 0;
		}
	if (w->ranges == WORLD_RANGES)
		return LOOM_EFULL;
	w->range[w->ranges].at = at;
	w->range[w->ranges++].uses = 1;
	return 0;
}

void world_drop_range(struct world *w, const void *begin)
{
	w->sim.last = (struct loom_sim_range){0};
	for (uint32_t i = 0; i < w->ranges; i++)
		if (w->range[i].at.begin == (uintptr_t)begin) {
			if (!--w->range[i].uses)
				w->range[i] = w->range[--w->ranges];
			return;
		}
}

/* What nobody named is the host's: the page, for others of its pages may be named. */
void world_find(struct loom_sim *sim, uintptr_t address)
{
	const struct world *w = (const struct world *)sim;
	for (uint32_t i = 0; i < w->ranges; i++)
		if (address - w->range[i].at.begin < w->range[i].at.bytes) {
			sim->last = w->range[i].at;
			return;
		}
	sim->last = (struct loom_sim_range){.begin = address & ~(uintptr_t)4095, .bytes = 4096, .owner = LOOM_SIM_HOST};
}

void world_ring(struct world *w)
{
	/* Release: who hears it sees what it was rung for. */
	__atomic_fetch_add(&w->rings, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&w->rings, INT_MAX, FUTEX_PRIVATE_FLAG);
}
