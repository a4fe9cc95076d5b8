/* SPDX-License-Identifier: Apache-2.0 */
#include "poster.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

const char *const net_orders[] = {"post-first", "fire-first", "random", NULL};

struct net_poster {
	const struct loom_host *host;
	struct loom_trigger trigger;
	struct net_turn *turn;
	uint32_t order, room, posts, workers;
	uint32_t stop;
	int running, status;
	pthread_t thread;
	struct loom_error err;
	struct loom_trigger_post post[];
};

struct net_poster *net_poster_new(const struct loom_host *host, const struct loom_trigger *trigger,
				  uint32_t order, uint32_t posts, uint32_t workers, struct loom_error *err)
{
	struct net_poster *p = host->alloc(host, sizeof(*p) + posts * sizeof(p->post[0]));
	if (!p) {
		LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
		return NULL;
	}
	p->host = host;
	p->trigger = *trigger;
	p->order = order;
	p->room = posts;
	p->workers = workers;
	return p;
}

int net_poster_add(struct net_poster *p, const struct loom_trigger_post *post, struct loom_error *err)
{
	struct loom_trigger_post one = *post;
	if (p->order == NET_POST_FIRST)
		return net_post(&p->trigger, &one, err);
	if (p->posts == p->room)
		return LOOM_FAIL(p->host, err, LOOM_EINVAL, "more posts than were announced");
	p->post[p->posts++] = one;
	return 0;
}

static int stopped(const struct net_poster *p)
{
	return (int)__atomic_load_n(&p->stop, __ATOMIC_RELAXED);
}

static void *run(void *arg)
{
	struct net_poster *p = arg;
	pthread_setname_np(pthread_self(), "loom-poster");
	for (uint32_t i = 0; i < p->posts && !p->status && !stopped(p); i++) {
		struct net_turn *t = &p->turn[i % p->workers];
		/* Relaxed: the word only says when. What the worker wrote goes with its fire. */
		while (p->order == NET_FIRE_FIRST && !stopped(p) &&
		       __atomic_load_n(&t->fired, __ATOMIC_RELAXED) <= i / p->workers)
			sched_yield();
		uint64_t pause = p->order == NET_RANDOM ? (i * 0x9e3779b97f4a7c15ull) >> 60 : 0;
		while (pause-- > 0)
			sched_yield();
		/* Full: places come back as operations end. */
		while (!stopped(p) && (p->status = net_post(&p->trigger, &p->post[i], &p->err)) == LOOM_EFULL)
			sched_yield();
	}
	for (uint32_t w = 0; w < p->workers && p->status; w++)
		__atomic_store_n(&p->turn[w].failed, (uint64_t)(int64_t)p->status, __ATOMIC_RELAXED);
	return NULL;
}

int net_poster_start(struct net_poster *p, struct net_turn *turn, struct loom_error *err)
{
	p->turn = turn;
	if (p->order == NET_POST_FIRST)
		return 0;
	sigset_t all, old;
	sigfillset(&all); /* signals are the host's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM_FAIL(p->host, err, LOOM_EUNAVAIL, "cannot start a thread that posts: %s",
				 strerror(failed));
	p->running = 1;
	return 0;
}

int net_poster_end(struct net_poster *p, struct loom_error *err)
{
	if (!p)
		return 0;
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED); /* join orders */
	if (p->running)
		pthread_join(p->thread, NULL);
	int rc = p->status;
	if (rc && rc != LOOM_EFULL && err)
		*err = p->err;
	p->host->free(p->host, p);
	return rc;
}
