/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a world: from the first launch to the end of the last, a sample at each command. */
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

static int start_thread(struct world *w)
{
	sigset_t old;
	w->order = w->idle = w->leave = w->halt = w->failed = w->armed = w->probe_armed = 0;
	child_block_signals(&old);
	int code = thread_create(&w->thread, main_of_world, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!code)
		pthread_setname_np(w->thread, "sim");
	return code;
}

/* A probe is the affair of one crew, whatever the others have launched by then. */
int world_start(struct world *w, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed, int probe)
{
	pthread_mutex_lock(&w->lock);
	if (probe)
		w->probing = m->crew;
	m->crew->ctl = ctl;
	m->launched = 1;
	w->seed = seed;
	int code = turns_make_room(w);
	if (!code && !w->launched)
		code = start_thread(w);
	if (code) {
		m->launched = 0;
	} else {
		w->launched++;
		w->probed += probe != 0;
	}
	if (code || !probe) /* of a probe, world_end() gives it back */
		pthread_mutex_unlock(&w->lock);
	return code;
}

void world_end(struct world *w, struct sim_member *m)
{
	pthread_mutex_lock(&w->lock);
	int probe = w->probing == m->crew;
	m->launched = 0;
	if (probe && !--w->probed)
		w->probing = NULL;
	if (!probe)
		w->armed = 0;
	if (!--w->launched) {
		w->leave = 1;
		command(w);
		pthread_join(w->thread, NULL);
	}
	pthread_mutex_unlock(&w->lock);
	if (probe)
		pthread_mutex_unlock(&w->lock);
}

uint32_t world_go(struct world *w)
{
	pthread_mutex_lock(&w->lock);
	uint32_t sample = w->order + 1, *armed = w->probing ? &w->probe_armed : &w->armed;
	if (++*armed >= (w->probing ? w->probed : w->shared ? w->expected : w->launched)) {
		*armed = 0;
		command(w);
	}
	pthread_mutex_unlock(&w->lock);
	return sample;
}
