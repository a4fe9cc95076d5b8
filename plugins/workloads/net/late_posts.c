/* SPDX-License-Identifier: Apache-2.0 */
#include "late_posts.h"

#include <gpuloom/clock.h>
#include <pthread.h>
#include <signal.h>

#include "lib/thread.h"

const char *const late_orders[] = {"post-first", "fire-first", "random", NULL};

struct late_posts {
	const struct loom_host *host;
	struct loom_trigger trigger;
	struct loom_net_late *late;
	uint32_t order, room, posts, workers;
	uint32_t stop;
	int running, status;
	pthread_t thread;
	/* Under virtual time an agent replaces the thread. */
	const struct loom_clock *clock;
	struct loom_agent *agent;
	uint32_t next; /* index of the post that the agent makes next */
	int paused;    /* 1: the agent has paused before that post */
	struct loom_error err;
	struct loom_trigger_post post[];
};

int late_posts_add(void *poster, const struct loom_trigger_post *post, struct loom_error *err)
{
	struct late_posts *p = poster;
	struct loom_trigger_post one = *post;
	if (p->order == NET_POST_FIRST)
		return loom_net_post(&p->trigger, &one, err);
	if (p->posts == p->room)
		return LOOM_FAIL(p->host, err, LOOM_EINVAL, "more posts than were announced");
	one.size = sizeof(one);
	p->post[p->posts++] = one;
	/* A post that fails late can give workers only a code. So check the post now, while its error can have a
	 * message. */
	return LOOM_HAS(p->trigger.ops, check) ? p->trigger.ops->check(p->trigger.self, &one, err) : 0;
}

static int stopped(const struct late_posts *p)
{
	return (int)__atomic_load_n(&p->stop, __ATOMIC_RELAXED);
}

/* Returns the pause before post i if `order` is random: 0 to 15 yields of the thread, or steps of LATE_NS. */
static uint64_t pause_before(uint32_t i)
{
	return (i * 0x9e3779b97f4a7c15ull) >> 60;
}

static void finish(struct late_posts *p)
{
	if (p->status && p->status != LOOM_EFULL) /* workers report only the code; LOOM_EFULL means a stop */
		LOOM_LOG(p->host, LOOM_LOG_ERROR, "a late post", "%s", p->err.text);
	for (uint32_t w = 0; w < p->workers && p->status; w++)
		__atomic_store_n(&p->late[w].failed, (uint64_t)(int64_t)p->status, __ATOMIC_RELAXED);
}

static void *run(void *arg)
{
	struct late_posts *p = arg;
	pthread_setname_np(pthread_self(), "loom-late-posts");
	for (uint32_t i = 0; i < p->posts && !p->status && !stopped(p); i++) {
		struct loom_net_late *t = &p->late[i % p->workers];
		/* Relaxed, because the count only decides when to post. The fire itself orders the worker's data. */
		while (p->order == NET_FIRE_FIRST && !stopped(p) &&
		       __atomic_load_n(&t->fired, __ATOMIC_RELAXED) <= i / p->workers)
			loom_cpu_yield();
		uint64_t pause = p->order == NET_RANDOM ? pause_before(i) : 0;
		while (pause-- > 0)
			loom_cpu_yield();
		/* If the trigger's table is full, try again: each operation that ends frees a place. */
		while (!stopped(p) && (p->status = loom_net_post(&p->trigger, &p->post[i], &p->err)) == LOOM_EFULL)
			loom_cpu_yield();
	}
	finish(p);
	return NULL;
}

/* ---- under virtual time ---------------------------------------------------------------------------------- */

enum { LATE_NS = 200 /* from a fire to its post; unit of a pause */, LATE_FULL_NS = 1000 };

static uint64_t step(void *arg, uint64_t now_ns)
{
	struct late_posts *p = arg;
	for (; p->next < p->posts && !p->status; p->next++, p->paused = 0) {
		if (p->order == NET_FIRE_FIRST && p->late[p->next % p->workers].fired <= p->next / p->workers)
			return LOOM_NEVER; /* the next fire calls this function again */
		if (p->order == NET_RANDOM && !p->paused) {
			p->paused = 1;
			return now_ns + pause_before(p->next) * LATE_NS;
		}
		int rc = loom_net_post(&p->trigger, &p->post[p->next], &p->err);
		if (rc == LOOM_EFULL) /* each operation that ends frees a place */
			return now_ns + LATE_FULL_NS;
		p->status = rc;
	}
	if (p->status)
		finish(p);
	return LOOM_NEVER;
}

static int start_agent(struct late_posts *p, struct loom_error *err)
{
	int rc = p->clock->start(p->clock, "late posts", step, p, &p->agent);
	if (!rc)
		rc = p->clock->watch(p->clock, p->agent, p->late, p->workers * sizeof(*p->late), LATE_NS);
	return rc ? LOOM_FAIL(p->host, err, rc, "late posts: no room for another agent") : 0;
}

int late_posts_start(struct late_posts *p, struct loom_net_late *late, struct loom_error *err)
{
	p->late = late;
	if (p->order == NET_POST_FIRST)
		return 0;
	if (p->clock)
		return start_agent(p, err);
	sigset_t all, old;
	sigfillset(&all); /* other threads of the host handle signals */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = thread_start(&p->thread, run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM_FAIL(p->host, err, LOOM_EUNAVAIL, "cannot start a thread that posts: %s", strerror(failed));
	p->running = 1;
	return 0;
}

static int end(struct late_posts *p, struct loom_error *err)
{
	if (!p)
		return 0;
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED); /* relaxed, because pthread_join() orders the data */
	if (p->running)
		pthread_join(p->thread, NULL);
	if (p->agent)
		p->clock->stop(p->clock, p->agent);
	int rc = p->status;
	if (rc && rc != LOOM_EFULL && err)
		*err = p->err;
	p->host->free(p->host, p);
	return rc;
}

int late_workload_wire(struct late_workload *i, const struct loom_layout *layout, const struct loom_trigger *trigger,
		      uint32_t order, uint32_t posts, uint32_t workers, struct loom_error *err)
{
	const struct loom_host *host = i->workload.host;
	if (order != NET_POST_FIRST && layout->device[0].kind == LOOM_ON_GPU && !LOOM_HAS(layout, clock) &&
	    LOOM_HAS(trigger->ops, anywhere) &&
	    trigger->ops->anywhere(trigger->self))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "order = %s: a thread of the host posts late, and does not see fires in a GPU's "
				 "memory: choose order = "
				 "post-first, or a trigger with memory = host",
				 late_orders[order]);
	int rc = end(i->poster, err);
	i->poster = rc ? NULL : host->alloc(host, sizeof(*i->poster) + posts * sizeof(i->poster->post[0]));
	if (!i->poster)
		return rc ? rc : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	i->poster->host = host;
	i->poster->trigger = *trigger;
	i->poster->order = order;
	i->poster->room = posts;
	i->poster->workers = workers;
	i->poster->clock = LOOM_HAS(layout, clock) ? layout->clock : NULL;
	return 0;
}

void late_workload_stop(void *self)
{
	struct late_workload *i = self;
	end(i->poster, NULL);
	i->poster = NULL;
}

void late_workload_destroy(void *self)
{
	if (self)
		late_workload_stop(self);
	workload_destroy(self);
}
