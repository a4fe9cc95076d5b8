/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a simulation. It runs from the first launch to the end of the last launch, and runs a sample at each
 * command. */
#include <gpuloom/dev/futex.h>

#include "lib/child.h"
#include "lib/thread.h"
#include "simulation.h"

static void *simulation_main(void *arg)
{
	struct simulation *s = arg;
	for (uint32_t seen = 0;;) {
		uint32_t command;
		/* Acquire: pairs with the release in command(). */
		while ((command = __atomic_load_n(&s->command, __ATOMIC_ACQUIRE)) == seen)
			loom_futex_sleep(&s->command, seen, 0, FUTEX_PRIVATE_FLAG);
		if (s->leave)
			return NULL;
		simulation_run(s);
		seen = command;
		/* Release: publishes the results of the sample. Pairs with the acquire in await() of launch.c. */
		__atomic_store_n(&s->completed, seen, __ATOMIC_RELEASE);
		simulation_notify(s);
	}
}

static void command(struct simulation *s)
{
	/* Release: publishes the set-up of the sample. Pairs with the acquire in simulation_main(). */
	__atomic_fetch_add(&s->command, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&s->command, 1, FUTEX_PRIVATE_FLAG);
}

static int start_thread(struct simulation *s)
{
	sigset_t old;
	s->command = s->completed = s->leave = s->halt = s->failed = s->armed = s->probe_armed = 0;
	child_block_signals(&old);
	int code = thread_create(&s->thread, simulation_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!code)
		pthread_setname_np(s->thread, "sim");
	return code;
}

/* A probe runs the devices of one group, even if other groups have launched in the meantime. */
int simulation_start(struct simulation *s, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed, int probe)
{
	pthread_mutex_lock(&s->lock);
	if (probe)
		s->probing = m->group;
	m->group->ctl = ctl;
	m->launched = 1;
	s->seed = seed;
	int code = queue_reserve(s);
	if (!code && !s->launched)
		code = start_thread(s);
	if (code) {
		m->launched = 0;
	} else {
		s->launched++;
		s->probed += probe != 0;
	}
	if (code || !probe) /* a probe keeps the lock until simulation_end() */
		pthread_mutex_unlock(&s->lock);
	return code;
}

void simulation_end(struct simulation *s, struct sim_member *m)
{
	pthread_mutex_lock(&s->lock);
	int probe = s->probing == m->group;
	m->launched = 0;
	if (probe && !--s->probed)
		s->probing = NULL;
	if (!probe)
		s->armed = 0;
	if (!--s->launched) {
		s->leave = 1;
		command(s);
		pthread_join(s->thread, NULL);
	}
	pthread_mutex_unlock(&s->lock);
	if (probe)
		pthread_mutex_unlock(&s->lock);
}

uint32_t simulation_go(struct simulation *s)
{
	pthread_mutex_lock(&s->lock);
	uint32_t sample = s->command + 1, *armed = s->probing ? &s->probe_armed : &s->armed;
	if (++*armed >= (s->probing ? s->probed : s->shared ? s->expected : s->launched)) {
		*armed = 0;
		command(s);
	}
	pthread_mutex_unlock(&s->lock);
	return sample;
}
