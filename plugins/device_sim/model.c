/* SPDX-License-Identifier: Apache-2.0 */
/* memory = weak: the machine model (device_common/explore/race.h) performs the accesses of the composed program. */
#include <stdio.h>

#include "../device_common/explore/race.h"
#include "simulation.h"

_Static_assert((int)LOOM_SIM_ADD == RACE_ADD && (int)LOOM_SIM_OR == RACE_OR && (int)LOOM_SIM_EXCHANGE == RACE_EXCHANGE,
	       "both enums have the same order");

/* The model has one state for all simulations of the process, so their samples take turns. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static struct simulation *here;

static uint32_t running(void)
{
	return here->running->number;
}

static uint64_t load(struct race_site *at, const void *p, uint32_t size)
{
	struct sim_worker *x = here->running;
	if (p != &x->ctx.ctl->stop) /* all waits also poll this flag */
		x->site = at;
	return race_load(at, p, size);
}

static uint64_t change(struct race_site *at, void *p, uint32_t size, uint32_t op, uint64_t v)
{
	here->running->site = at;
	return race_change(at, p, size, (enum race_rmw)op, v);
}

/* Nothing else accesses the stack of a worker. */
static void plain(const void *p, size_t bytes, int is_write, const void *where)
{
	const struct fiber *f = &here->running->fiber;
	if ((uintptr_t)p - (uintptr_t)f->stack >= f->bytes)
		race_plain(p, bytes, is_write, where);
}

/* What tasks wrote is visible after done() has returned 1 (gpuloom/term.h). A task writes a mark of its worker, and
 * each worker that leaves reads the marks of all workers of its rank. Otherwise nothing on the device reads what tasks
 * wrote, and a detector without the orders would pass. */
static void ran(void)
{
	race_plain(&here->running->mark, sizeof(here->running->mark), 1, __builtin_return_address(0));
}

static void left(void)
{
	const void *where = __builtin_return_address(0);
	const struct sim_group *g = here->running->at.group;
	for (uint32_t i = 0; i < g->members; i++)
		for (uint32_t k = 0; g->member[i] && g->member[i]->launched && k < g->member[i]->workers; k++)
			race_plain(&g->member[i]->worker[k].mark, sizeof(uint32_t), 0, where);
}

const struct loom_sim_memory model_memory = {load, race_store, change, race_cas, race_fence, plain, ran, left};

void model_begin(struct simulation *s, uint64_t seed)
{
	uint8_t device[RACE_FIBERS];
	uint32_t n = 0, devices = 0;
	pthread_mutex_lock(&turn);
	here = s;
	for (struct sim_group *g = s->group; g; g = g->next)
		for (uint32_t i = 0; i < g->members; i++, devices++)
			for (uint32_t k = 0; g->member[i] && g->member[i]->launched && k < g->member[i]->workers; k++) {
				g->member[i]->worker[k].site = NULL;
				g->member[i]->worker[k].number = n;
				device[n++] = (uint8_t)devices;
			}
	race_begin(n, device, running, seed, 1);
}

int model_ends(const struct simulation *s)
{
	return here == s && race_count() > 0;
}

void model_end(struct simulation *s)
{
	const char *text;
	uint64_t races = race_end(&text);
	if (races) {
		snprintf(s->why, sizeof(s->why), "%s", text);
		s->failed = races < RACE_FULL ? LOOM_EDIED : LOOM_ENOTSUP;
	}
	here = NULL;
	pthread_mutex_unlock(&turn);
}

int model_where(const struct sim_worker *x, char *text, size_t room)
{
	const struct race_site *at = x->site;
	return at ? snprintf(text, room, "%s:%u (%s)", at->file, at->line, at->what) : 0;
}
