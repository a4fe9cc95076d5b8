/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the path, and who does what:
 *
 *   split        top half (one per core): rings the bottom half      -> fills -> worker serves
 *   joined       top half: fills, rings the worker                            -> worker serves
 *   monolithic   top half: fills and serves
 *
 * Top halves are bound to their cores, as interrupt handlers are; the other two go where the scheduler
 * puts them, among the cores that steering leaves. One thread at a time reads the rings: it holds
 * `drain`. A top half that comes meanwhile goes away again, for whoever holds the lock looks once more
 * after letting go of it. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "../shared/child/thread.h"
#include "service.h"

static int stopped(const struct service *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) != 0;
}

static uint64_t all_vectors(const struct service *s)
{
	return s->vectors < 64 ? (1ull << s->vectors) - 1 : ~0ull;
}

/* ---- what the threads do -------------------------------------------------------------------------- */

/* The lock, or word for its holder that one came: its door may be shut, and who served what it was rung
 * for may have armed all doors before. */
static int enter(struct service *s)
{
	if (!pthread_mutex_trylock(&s->drain))
		return 1;
	__atomic_store_n(&s->called, 1, __ATOMIC_RELAXED);
	loom_fence_seq_cst_sys(); /* pairs with the one in leave() */
	return !pthread_mutex_trylock(&s->drain);
}

/* 1: something was left behind for us. Pairs with the fence of a worker that rang a top half which then
 * found the lock taken, and with the one in enter(). */
static int leave(struct service *s)
{
	pthread_mutex_unlock(&s->drain);
	loom_fence_seq_cst_sys();
	return (ssr_posted(s) || __atomic_load_n(&s->called, __ATOMIC_RELAXED)) && !stopped(s);
}

/* Monolithic: until nothing is posted and all doors are armed. */
static void serve_here(struct ssr_thread *t)
{
	struct service *s = t->s;
	do {
		if (!enter(s)) {
			/* Who polls would be back at once: steered here, while another core still serves. */
			if (ssr_is_watched(s))
				ssr_sleep(t, ssr_now() + 50000, 10000);
			return;
		}
		__atomic_store_n(&s->called, 0, __ATOMIC_RELAXED);
		do {
			ssr_doors_shut(s);
			ssr_serve(t, 1);
			ssr_doors_arm(s, all_vectors(s));
		} while (ssr_posted(s) && !stopped(s));
	} while (leave(s));
}

static void fill_here(struct ssr_thread *t, enum ssr_stage stage)
{
	struct service *s = t->s;
	do {
		if (pthread_mutex_trylock(&s->drain))
			return;
		ssr_fill(s);
		ssr_charge(t, stage);
		pthread_mutex_unlock(&s->drain);
		/* Pairs with the fence of a worker that rang a top half which then found the lock taken. */
		loom_fence_seq_cst_sys();
	} while (ssr_posted(s) && !stopped(s));
	ssr_bell_ring(&s->work);
	ssr_rouse_server(s); /* which sleeps elsewhere when policies admit nobody */
	ssr_charge(t, stage);
}

static void *top_half(void *arg)
{
	struct ssr_thread *t = arg;
	struct service *s = t->s;
	uint64_t own = 1ull << t->vector;
	while (ssr_door_wait(t)) {
		ssr_charge(t, SSR_TOP);
		if (s->path.halves == LOOM_QOS_MONOLITHIC) {
			serve_here(t);
			continue;
		}
		if (s->path.halves == LOOM_QOS_JOINED) {
			fill_here(t, SSR_BOTTOM);
			if (!s->path.mask)
				ssr_doors_arm(s, own);
			/* What came before the door was armed rang nobody. */
			if (!s->path.mask && ssr_posted(s))
				fill_here(t, SSR_BOTTOM);
			continue;
		}
		/* Acknowledge first: what is posted from here on interrupts again, what was posted before
		 * is found by the bottom half, which is rung after it. */
		if (!s->path.mask)
			ssr_doors_arm(s, own);
		ssr_bell_ring(&s->bottom);
		ssr_charge(t, SSR_TOP);
	}
	return NULL;
}

static void *bottom_half(void *arg)
{
	struct ssr_thread *t = arg;
	while (ssr_bell_wait(t->s, &t->s->bottom))
		fill_here(t, SSR_BOTTOM);
	return NULL;
}

static void *worker_thread(void *arg)
{
	struct ssr_thread *t = arg;
	struct service *s = t->s;
	/* Looks take CPU time, too, and of a small budget all. Who serves reads the rings anyway, once a turn. */
	int looks = s->path.mask && ssr_is_watched(s);
	while (ssr_bell_wait(s, &s->work)) {
		__atomic_store_n(&s->looks, (uint32_t)looks, __ATOMIC_RELAXED);
		ssr_serve(t, 0);
		if (looks) { /* what comes from here on is the watcher's */
			__atomic_store_n(&s->looks, 0, __ATOMIC_RELEASE);
			loom_futex_wake(&s->looks, INT_MAX, FUTEX_PRIVATE_FLAG);
		} else if (s->path.mask) {
			ssr_doors_arm(s, all_vectors(s));
			if (ssr_posted(s)) /* it rang nobody */
				fill_here(t, SSR_BOTTOM);
		}
	}
	return NULL;
}

static void *controller(void *arg)
{
	ssr_controller(arg);
	return NULL;
}

/* ---- their life ----------------------------------------------------------------------------------- */

static int set_class(uint32_t wanted, int tid)
{
	struct sched_param fifo = {.sched_priority = 10}, none = {0};
	switch (wanted) {
	case LOOM_QOS_FIFO:
		return sched_setscheduler(tid, SCHED_FIFO, &fifo) ? errno : 0;
	case LOOM_QOS_IDLE:
		return sched_setscheduler(tid, SCHED_IDLE, &none) ? errno : 0;
	case LOOM_QOS_NICE:
		return setpriority(PRIO_PROCESS, (id_t)tid, -20) ? errno : 0;
	default:
		return 0;
	}
}

static void *thread_main(void *arg)
{
	static void *(*const role[SSR_STAGES])(void *) = {top_half, bottom_half, worker_thread, controller};
	struct ssr_thread *t = arg;
	/* Release: the starter reads it, to bind this thread and to say its class. */
	__atomic_store_n(&t->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	ssr_charge(t, t->role);
	return role[t->role](t);
}

static int start_one(struct service *s, enum ssr_stage role, uint32_t vector, struct loom_error *err)
{
	static const char *const name[SSR_STAGES] = {"ssr-top", "ssr-bottom", "ssr-worker", "ssr-irq"};
	struct ssr_thread *t = &s->thread[s->threads];
	char text[16];
	*t = (struct ssr_thread){.s = s, .role = role, .vector = vector, .ahead_fd = {-1, -1}};
	int rc = thread_create(&t->id, thread_main, t);
	if (rc)
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: no thread: %s", s->name,
				 strerror(rc));
	t->started = 1;
	s->threads++;
	snprintf(text, sizeof(text), role == SSR_TOP || role == SSR_CONTROLLER ? "%s%u" : "%s", name[role], vector % 100u);
	pthread_setname_np(t->id, text);
	while (!__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE))
		loom_cpu_yield();
	rc = set_class(s->path.sched_class, t->tid);
	if (rc && s->threads == 1)
		LOOM_LOG(s->host, LOOM_LOG_WARN, s->name,
			 "the priority that the service's threads should have is refused (%s): they run "
			 "as ordinary threads",
			 strerror(rc));
	if (role == SSR_TOP) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(s->core[vector], &set);
		pthread_setaffinity_np(t->id, sizeof(set), &set);
	}
	return 0;
}

int ssr_path_start(struct service *s, struct loom_error *err)
{
	sigset_t all, old;
	int rc = 0;
	s->stop = s->dropping = 0;
	s->bottom = s->work = (struct ssr_bell){0};
	s->threads = 0;
	s->route = all_vectors(s);
	s->head->route = s->route;
	/* Held until all is in place: whoever is rung by mistake waits. */
	pthread_mutex_lock(&s->serving);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the program, not for its service */
	if (s->path.halves == LOOM_QOS_SPLIT)
		rc = start_one(s, SSR_BOTTOM, 0, err);
	if (!rc && s->path.halves != LOOM_QOS_MONOLITHIC)
		rc = start_one(s, SSR_WORKER, 0, err);
	for (uint32_t d = 0; d < s->devices && !rc; d++)
		if (s->interrupt[d].interrupt)
			rc = start_one(s, SSR_CONTROLLER, d, err);
	for (uint32_t v = 0; v < s->vectors && !rc; v++)
		rc = start_one(s, SSR_TOP, v, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		pthread_mutex_unlock(&s->serving);
		ssr_path_stop(s);
		return rc;
	}
	ssr_path_bind(s, s->route);
	s->steered_ns = 0;
	ssr_ask(&s->thread[0], ssr_now()); /* the first steering; no request comes yet */
	pthread_mutex_unlock(&s->serving);
	ssr_doors_arm(s, all_vectors(s));
	return 0;
}

void ssr_path_stop(struct service *s)
{
	/* Release: pairs with the threads' looks. */
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	ssr_awake(s, 1);
	ssr_doors_ring(s);
	ssr_alarms_wake(s);
	ssr_bell_ring(&s->bottom);
	ssr_bell_ring(&s->work);
	while (s->threads > 0) {
		struct ssr_thread *t = &s->thread[--s->threads];
		pthread_join(t->id, NULL);
		for (int i = 0; i < 2; i++)
			if (t->ahead_fd[i] >= 0)
				close(t->ahead_fd[i]);
	}
}

/* A worker whose request has not ended; s->workers: only queues have some; -1: all have ended. */
static int64_t unanswered(struct service *s)
{
	for (uint32_t w = 0; w < s->workers; w++)
		if (!__atomic_load_n(&s->source[w].broken, __ATOMIC_RELAXED) &&
		    (uint32_t)__atomic_load_n(&s->source[w].served, __ATOMIC_ACQUIRE) !=
			    __atomic_load_n(s->source[w].told, __ATOMIC_ACQUIRE))
			return w;
	/* What a ring held before it turned out to be broken is queued, too. */
	return ssr_posted(s) || ssr_waiting(s) ? (int64_t)s->workers : -1;
}

static uint64_t all_served(const struct service *s)
{
	uint64_t sum = 0;
	for (uint32_t w = 0; w < s->workers; w++)
		sum += __atomic_load_n(&s->source[w].served, __ATOMIC_ACQUIRE);
	return sum;
}

int ssr_path_quiet(struct service *s, struct loom_error *err)
{
	struct timespec nap = {.tv_nsec = 200000};
	uint64_t since = ssr_now(), served = all_served(s);
	int64_t worker;
	int rc = 0;
	__atomic_store_n(&s->dropping, 1, __ATOMIC_RELEASE);
	ssr_awake(s, 1);
	/* Whoever serves drops it; then nothing is posted, for no worker runs. */
	while ((worker = unanswered(s)) >= 0) {
		uint64_t now = all_served(s);
		since = now != served ? ssr_now() : since;
		served = now;
		if (ssr_now() - since > s->patience_ns) {
			rc = LOOM_FAIL(s->host, err, LOOM_ETIMEDOUT,
				       "%s: no request has ended for %.3g s, but one of worker %lld is under way: what serves it hangs, or "
				       "the worker ended while it asked",
				       s->name, (double)s->patience_ns / 1e9, (long long)worker);
			break;
		}
		ssr_doors_ring(s);
		nanosleep(&nap, NULL);
	}
	if (!rc) { /* whoever serves has left */
		pthread_mutex_lock(&s->drain);
		pthread_mutex_unlock(&s->drain);
	}
	__atomic_store_n(&s->dropping, 0, __ATOMIC_RELEASE);
	ssr_awake(s, 0);
	return rc;
}
