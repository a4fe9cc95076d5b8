/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a world: from the first launch to the end of the last, a sample at each command. */
#include <errno.h>
#include <gpuloom/dev/futex.h>

#include "../shared/child/child.h"
#include "../shared/child/thread.h"
#include "world.h"

static void *main_of_world(void *arg)
{
	struct world *w = arg;
	for (uint32_t seen = 0;;) {
		uint32_t order;
		/* Acquire: pairs with command(). */
		while ((order = __atomic_load_n(&w->order, __ATOMIC_ACQUIRE)) == seen)
			loom_futex_sleep(&w->order, seen, 0, FUTEX_PRIVATE_FLAG);
		if (w->leave)
			return NULL;
		world_play(w);
		seen = order;
		/* Release: the sample, for who sees that the world rests. */
		__atomic_store_n(&w->idle, seen, __ATOMIC_RELEASE);
		world_ring(w);
	}
}

static void command(struct world *w)
{
	/* Release: all that the sample finds. */
	__atomic_fetch_add(&w->order, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&w->order, 1, FUTEX_PRIVATE_FLAG);
}

/* Room for all who may be live: the world rests. */
static int make_room(struct world *w, uint32_t workers)
{
	uint32_t all = workers;
	for (uint32_t i = 0; i < w->members; i++)
		all += w->member[i] && w->member[i]->launched ? w->member[i]->workers : 0;
	if (all <= w->room)
		return 0;
	w->host->free(w->host, w->live);
	w->live = w->host->alloc(w->host, all * sizeof(struct sim_worker *));
	w->room = w->live ? all : 0;
	return w->live ? 0 : ENOMEM;
}

static int start_thread(struct world *w)
{
	sigset_t old;
	w->order = w->idle = w->leave = w->halt = w->failed = w->armed = 0;
	child_block_signals(&old);
	int code = thread_create(&w->thread, main_of_world, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!code)
		pthread_setname_np(w->thread, "sim");
	return code;
}

int world_start(struct world *w, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed)
{
	int code = make_room(w, m->workers);
	w->sim.ctl = ctl;
	w->seed = seed;
	if (!code && !w->launched)
		code = start_thread(w);
	if (code)
		return code;
	w->launched++;
	m->launched = 1;
	return 0;
}

void world_end(struct world *w, struct sim_member *m)
{
	w->armed = 0;
	m->launched = 0;
	if (--w->launched)
		return;
	w->leave = 1;
	command(w);
	pthread_join(w->thread, NULL);
}

void world_go(struct world *w)
{
	if (++w->armed < w->launched)
		return;
	w->armed = 0;
	command(w);
}
