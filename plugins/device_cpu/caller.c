/* SPDX-License-Identifier: Apache-2.0 */
/* caller = yes: the thread that starts a sample executes worker 0 itself. The thread of worker 0 stays parked, and the
 * other workers join as in any sample whose workers may be late. While the caller is inside tasks, it can look neither
 * at the clock nor at stop requests. So a thread, the watchdog, stops samples at their deadline, and a stop request
 * stops the sample at once. */
#include <sched.h>

#include "device_cpu.h"
#include "lib/thread.h"

/* How often the watchdog checks while samples run. If no sample has begun since its last check, the watchdog sleeps until
 * the next sample. */
#define LOOK_NS 50000000ull

/* caller.state is the number of the sample, shifted, plus one of these values. The number keeps a late request from
 * stopping the next sample. */
enum { OUTSIDE, INSIDE, STOPPED, STATES = 4 };

/* Stops the sample in which the caller was when it had the given state. Signal handlers call this, too. */
static void stop_in(struct caller *k, uint32_t state)
{
	if (state % STATES != INSIDE)
		return;
	/* `stop` ends every later sample of the launch, too. So caller_work() waits for this store if it finds STOPPED.
	 * Acquire: pairs with the release in caller_enter(), for the word's address. Relaxed store: workers poll the
	 * word, and leave. */
	if (__atomic_compare_exchange_n(&k->state, &state, state - INSIDE + STOPPED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		__atomic_store_n(__atomic_load_n(&k->stop, __ATOMIC_RELAXED), 1, __ATOMIC_RELAXED);
}

void caller_stop(struct caller *k)
{
	/* Sequentially consistent: a request that came before the sample is seen by the host in loom__sample_begin(), which
	 * then calls this again. */
	stop_in(k, __atomic_load_n(&k->state, __ATOMIC_SEQ_CST));
}

void caller_enter(struct device *d)
{
	struct launch *l = d->launch;
	struct caller *k = &d->caller;
	uint32_t state = __atomic_load_n(&k->state, __ATOMIC_RELAXED) / STATES * STATES + STATES;
	caller_lock(k);
	k->due = 1;
	/* Relaxed, because the store of `state` releases both. */
	__atomic_store_n(&k->stop, &l->host_ctl->stop, __ATOMIC_RELAXED);
	__atomic_store_n(&k->until_ns, l->host_ctl->deadline_ns, __ATOMIC_RELAXED);
	/* Sequentially consistent, as the accesses in watch(): this thread sees `asleep`, or the watchdog the sample. */
	__atomic_store_n(&k->state, state + INSIDE, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&k->asleep, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&k->asleep, 0, __ATOMIC_RELAXED);
		loom_futex_wake(&k->asleep, 1, FUTEX_PRIVATE_FLAG);
	}
}

int caller_work(struct device *d)
{
	struct launch *l = d->launch;
	struct caller *k = &d->caller;
	k->due = 0;
	lane_prepare(l->lane, l->phase);
	lane_sample(l->lane, l->phase, 1);
	uint32_t state = __atomic_load_n(&k->state, __ATOMIC_RELAXED) / STATES * STATES;
	int stopped = __atomic_exchange_n(&k->state, state + OUTSIDE, __ATOMIC_RELAXED) % STATES == STOPPED;
	while (stopped && !__atomic_load_n(&l->host_ctl->stop, __ATOMIC_RELAXED))
		sched_yield();
	caller_unlock(k);
	return stopped;
}

static void *watch(void *arg)
{
	struct caller *k = arg;
	uint32_t state = 0, last;
	while (!__atomic_load_n(&k->leave, __ATOMIC_ACQUIRE)) {
		uint64_t now = gate_clock(), until = now + LOOK_NS;
		last = state;
		state = __atomic_load_n(&k->state, __ATOMIC_SEQ_CST); /* acquires until_ns */
		if (state % STATES == INSIDE) {
			uint64_t end = __atomic_load_n(&k->until_ns, __ATOMIC_RELAXED);
			if (now >= end)
				stop_in(k, state);
			else if (end < until)
				until = end;
		} else if (state == last) {
			__atomic_store_n(&k->asleep, 1, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&k->state, __ATOMIC_SEQ_CST) == state &&
			    !__atomic_load_n(&k->leave, __ATOMIC_SEQ_CST))
				loom_futex_sleep(&k->asleep, 1, 0, FUTEX_PRIVATE_FLAG);
			__atomic_store_n(&k->asleep, 0, __ATOMIC_RELAXED);
			continue;
		}
		loom_futex_sleep(&k->leave, 0, until, FUTEX_PRIVATE_FLAG);
	}
	return NULL;
}

int caller_start(struct caller *k)
{
	sigset_t old;
	k->leave = k->asleep = 0;
	child_block_signals(&old); /* as for the threads of workers */
	int code = thread_start(&k->watchdog, watch, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	k->on = !code;
	if (!code)
		pthread_setname_np(k->watchdog, "loom-watchdog");
	return code;
}

void caller_end(struct caller *k)
{
	if (!k->on)
		return;
	__atomic_store_n(&k->leave, 1, __ATOMIC_SEQ_CST); /* as the store of `state` in caller_enter() */
	__atomic_store_n(&k->asleep, 0, __ATOMIC_SEQ_CST);
	loom_futex_wake(&k->leave, 1, FUTEX_PRIVATE_FLAG);
	loom_futex_wake(&k->asleep, 1, FUTEX_PRIVATE_FLAG);
	pthread_join(k->watchdog, NULL);
	k->on = 0;
}
