/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the path, and the work of each thread. To fill is to move requests from rings to queues.
 *
 *   split        a top half per core notifies the bottom half; the bottom half fills; the worker thread serves
 *   joined       a top half per core fills and notifies the worker thread; the worker thread serves
 *   monolithic   a top half per core fills and serves
 *
 * Each top half is bound to its core, as an interrupt handler is. The kernel places the bottom half and the worker thread
 * on cores that steering has selected. Only one thread at a time, the holder of `fill_lock`, reads the rings. A top half
 * that cannot take the lock returns, because the holder checks the rings again after it has released the lock. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "lib/thread.h"
#include "service.h"

static int stopped(const struct service *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) != 0;
}

static uint64_t all_vectors(const struct service *s)
{
	return s->vectors < 64 ? (1ull << s->vectors) - 1 : ~0ull;
}

/* ---- the work of the threads ---- */

/* Takes `fill_lock` and returns 1. If another thread holds it, sets fill_requested, so that the holder checks again, and
 * returns 0. If the holder did not check, this top half's doorbell might stay disarmed. */
static int enter(struct service *s)
{
	if (!pthread_mutex_trylock(&s->fill_lock))
		return 1;
	__atomic_store_n(&s->fill_requested, 1, __ATOMIC_RELAXED);
	loom_fence_seq_cst_sys(); /* pairs with the fence in leave() */
	return !pthread_mutex_trylock(&s->fill_lock);
}

/* Releases the lock. Returns 1 if this thread must check the rings again. The fence pairs with the fence in enter(), and
 * with the fence in qos_request(): a worker may have rung a top half that could not take the lock. */
static int leave(struct service *s)
{
	pthread_mutex_unlock(&s->fill_lock);
	loom_fence_seq_cst_sys();
	return (qos_posted(s) || __atomic_load_n(&s->fill_requested, __ATOMIC_RELAXED)) && !stopped(s);
}

/* For a monolithic path. Serves until all doorbells are armed and no request is posted. */
static void serve_here(struct qos_thread *t)
{
	struct service *s = t->s;
	do {
		if (!enter(s)) {
			/* If steering has just selected this poller, the previous poller may still serve. Without a
			 * sleep, this thread would try again at once, because the requests are still there. */
			if (qos_is_polled(s))
				qos_sleep(t, qos_now() + 50000, 10000);
			return;
		}
		__atomic_store_n(&s->fill_requested, 0, __ATOMIC_RELAXED);
		do {
			qos_doorbells_disarm(s);
			qos_serve(t, 1);
			qos_doorbells_arm(s, all_vectors(s));
		} while (qos_posted(s) && !stopped(s));
	} while (leave(s));
	if (qos_is_spread(s))
		qos_interrupts_arm(s);
}

static void fill_here(struct qos_thread *t, enum qos_stage stage)
{
	struct service *s = t->s;
	do {
		if (pthread_mutex_trylock(&s->fill_lock))
			return;
		qos_fill(s);
		qos_charge(t, stage);
		pthread_mutex_unlock(&s->fill_lock);
		/* Pairs with the fence in qos_request(): a worker may have rung a top half that could not take the lock. */
		loom_fence_seq_cst_sys();
	} while (qos_posted(s) && !stopped(s));
	/* Every ring leads to a fill, here or in the thread that holds the lock, and every fill arms the interrupt again. */
	if (qos_is_spread(s))
		qos_interrupts_arm(s);
	qos_event_notify(&s->work);
	qos_wake_server_for_queued(s); /* the serving thread may sleep at its doorbell because policies admit no tenant */
	qos_charge(t, stage);
}

static void *top_half(void *arg)
{
	struct qos_thread *t = arg;
	struct service *s = t->s;
	uint64_t own = 1ull << t->vector;
	while (qos_doorbell_wait(t)) {
		qos_charge(t, QOS_TOP);
		if (s->path.halves == LOOM_QOS_MONOLITHIC) {
			serve_here(t);
			continue;
		}
		if (s->path.halves == LOOM_QOS_JOINED) {
			fill_here(t, QOS_BOTTOM);
			if (!s->path.mask)
				qos_doorbells_arm(s, own);
			/* Requests that arrived before the doorbell was armed did not ring it, so checks the rings once
			 * more. */
			if (!s->path.mask && qos_posted(s))
				fill_here(t, QOS_BOTTOM);
			continue;
		}
		/* Arms the doorbell first, so that requests that are posted later ring it again. The bottom half is notified
		 * afterwards, and finds the requests that were posted before. */
		if (!s->path.mask)
			qos_doorbells_arm(s, own);
		qos_event_notify(&s->bottom);
		qos_charge(t, QOS_TOP);
	}
	return NULL;
}

static void *bottom_half(void *arg)
{
	struct qos_thread *t = arg;
	while (qos_event_wait(t->s, &t->s->bottom))
		fill_here(t, QOS_BOTTOM);
	return NULL;
}

static void *worker_thread(void *arg)
{
	struct qos_thread *t = arg;
	struct service *s = t->s;
	/* The poller pauses while this thread serves, because polls would take CPU time from a small budget. This thread reads
	 * the rings once per round anyway. */
	int polls = s->path.mask && qos_is_polled(s);
	while (qos_event_wait(s, &s->work)) {
		__atomic_store_n(&s->server_polls, (uint32_t)polls, __ATOMIC_RELAXED);
		qos_serve(t, 0);
		if (polls) { /* from here on the poller reads the rings */
			__atomic_store_n(&s->server_polls, 0, __ATOMIC_RELEASE);
			loom_futex_wake(&s->server_polls, INT_MAX, FUTEX_PRIVATE_FLAG);
		} else if (s->path.mask) {
			qos_doorbells_arm(s, all_vectors(s));
			if (qos_posted(s)) /* there are requests that were posted before the doorbells were armed */
				fill_here(t, QOS_BOTTOM);
		}
	}
	return NULL;
}

static void *controller(void *arg)
{
	qos_controller(arg);
	return NULL;
}

/* ---- start and stop ---- */

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
	static void *(*const role[QOS_STAGES])(void *) = {top_half, bottom_half, worker_thread, controller};
	struct qos_thread *t = arg;
	/* Release: pairs with the acquire in start_one(), which uses this number to set the thread's scheduling class. */
	__atomic_store_n(&t->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	qos_charge(t, t->role);
	return role[t->role](t);
}

static int start_one(struct service *s, enum qos_stage role, uint32_t vector, struct loom_error *err)
{
	static const char *const name[QOS_STAGES] = {"qos-top", "qos-bottom", "qos-worker", "qos-irq"};
	struct qos_thread *t = &s->thread[s->threads];
	char text[16];
	*t = (struct qos_thread){.s = s, .role = role, .vector = vector, .ahead_fd = {-1, -1}};
	int rc = thread_create(&t->id, thread_main, t);
	if (rc)
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: cannot start a thread: %s", s->name,
				 strerror(rc));
	t->started = 1;
	s->threads++;
	snprintf(text, sizeof(text), role == QOS_TOP || role == QOS_CONTROLLER ? "%s%u" : "%s", name[role],
		 vector % 100u);
	pthread_setname_np(t->id, text);
	while (!__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE))
		loom_cpu_yield();
	rc = set_class(s->path.sched_class, t->tid);
	if (rc && s->threads == 1)
		LOOM_LOG(s->host, LOOM_LOG_WARN, s->name,
			 "the system rejects the scheduling class of the service's threads (%s): they run "
			 "as ordinary threads",
			 strerror(rc));
	if (role == QOS_TOP) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(s->core[vector], &set);
		pthread_setaffinity_np(t->id, sizeof(set), &set);
	}
	return 0;
}

int qos_path_start(struct service *s, struct loom_error *err)
{
	sigset_t all, old;
	int rc = 0;
	s->stop = s->dropping = 0;
	s->bottom = s->work = (struct qos_event){0};
	s->threads = 0;
	s->route = all_vectors(s);
	s->head->route = s->route;
	/* Holds the lock until all threads exist, so that a thread that is notified early waits before it serves. */
	pthread_mutex_lock(&s->serve_lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the new threads inherit the mask, so they handle no signals */
	if (s->path.halves == LOOM_QOS_SPLIT)
		rc = start_one(s, QOS_BOTTOM, 0, err);
	if (!rc && s->path.halves != LOOM_QOS_MONOLITHIC)
		rc = start_one(s, QOS_WORKER, 0, err);
	for (uint32_t d = 0; d < s->devices && !rc; d++)
		if (s->interrupt[d].interrupt)
			rc = start_one(s, QOS_CONTROLLER, d, err);
	for (uint32_t v = 0; v < s->vectors && !rc; v++)
		rc = start_one(s, QOS_TOP, v, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		pthread_mutex_unlock(&s->serve_lock);
		qos_path_stop(s);
		return rc;
	}
	qos_path_bind(s, s->route);
	s->steered_ns = 0;
	qos_moderate(&s->thread[0], qos_now()); /* the first decision; no request is posted yet */
	pthread_mutex_unlock(&s->serve_lock);
	qos_doorbells_arm(s, all_vectors(s));
	qos_interrupts_arm(s);
	return 0;
}

void qos_path_stop(struct service *s)
{
	/* Release: pairs with the acquire loads of `stop` in the threads. */
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	qos_keep_awake(s, 1);
	qos_doorbells_ring_all(s);
	qos_interrupts_wake(s);
	qos_event_notify(&s->bottom);
	qos_event_notify(&s->work);
	while (s->threads > 0) {
		struct qos_thread *t = &s->thread[--s->threads];
		pthread_join(t->id, NULL);
		for (int i = 0; i < 2; i++)
			if (t->ahead_fd[i] >= 0)
				close(t->ahead_fd[i]);
	}
}

/* Returns the number of a worker with an unanswered request. Returns s->workers if only queues hold requests, and -1 if all
 * requests are answered. */
static int64_t unanswered(struct service *s)
{
	for (uint32_t w = 0; w < s->workers; w++)
		if (!__atomic_load_n(&s->ring[w].broken, __ATOMIC_RELAXED) &&
		    (uint32_t)__atomic_load_n(&s->ring[w].served, __ATOMIC_ACQUIRE) !=
			    __atomic_load_n(s->ring[w].published, __ATOMIC_ACQUIRE))
			return w;
	/* The queues may hold requests from a ring that was found broken later. */
	return qos_posted(s) || qos_waiting(s) ? (int64_t)s->workers : -1;
}

static uint64_t all_served(const struct service *s)
{
	uint64_t sum = 0;
	for (uint32_t w = 0; w < s->workers; w++)
		sum += __atomic_load_n(&s->ring[w].served, __ATOMIC_ACQUIRE);
	return sum;
}

int qos_path_quiesce(struct service *s, struct loom_error *err)
{
	struct timespec nap = {.tv_nsec = 200000};
	uint64_t since = qos_now(), served = all_served(s);
	int64_t worker;
	int rc = 0;
	__atomic_store_n(&s->dropping, 1, __ATOMIC_RELEASE);
	qos_keep_awake(s, 1);
	/* The serving thread drops the requests. No worker runs, so no further requests are posted. */
	while ((worker = unanswered(s)) >= 0) {
		uint64_t now = all_served(s);
		since = now != served ? qos_now() : since;
		served = now;
		if (qos_now() - since > s->quiesce_ns) {
			rc = LOOM_FAIL(s->host, err, LOOM_ETIMEDOUT,
				       "%s: no request has completed for %.3g s, but one of worker %lld is in flight: "
				       "its service hangs, or "
				       "the worker ended while it posted the request",
				       s->name, (double)s->quiesce_ns / 1e9, (long long)worker);
			break;
		}
		qos_doorbells_ring_all(s);
		nanosleep(&nap, NULL);
	}
	if (!rc) { /* wait until the serving thread has released the lock */
		pthread_mutex_lock(&s->fill_lock);
		pthread_mutex_unlock(&s->fill_lock);
	}
	__atomic_store_n(&s->dropping, 0, __ATOMIC_RELEASE);
	qos_keep_awake(s, 0);
	return rc;
}
