/* SPDX-License-Identifier: Apache-2.0 */
/* Workers on threads, with a common start, a deadline, and an adversary that interrupts them at any instruction. */
#include "rig/rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "facts/fair.h"
#include "lib/random.h"
#include "lib/thread.h"

/* Workers must leave within this time after the stop flag is set. */
#define GRACE_NS 3000000000ull

struct team;

struct team_member {
	pthread_t id;
	struct team *team;
	struct loom_ctx *c;
};

struct team {
	struct loom__rig *rig;
	void (*body)(struct loom_ctx *c);
	struct team_member *member;
	uint32_t count, made, waiting, left, interrupting;
	pthread_mutex_t lock;
	pthread_cond_t ended;
};

static void *run_member(void *arg)
{
	struct team_member *m = arg;
	struct team *team = m->team;
	char name[16]; /* the kernel's limit. Debuggers, sanitizers and messages of a crash show it */
	snprintf(name, sizeof(name), "dev:%u.w%u", m->c->device % 10, m->c->worker % 1000);
	pthread_setname_np(m->id, name);
	__atomic_add_fetch(&team->waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&team->waiting, __ATOMIC_ACQUIRE) < team->count)
		sched_yield();
	if (m->c->lane == 0)
		m->c->counters->begin_ns = loom__rig_now();
	team->body(m->c);
	if (m->c->lane == 0)
		m->c->counters->end_ns = loom__rig_now();
	pthread_mutex_lock(&team->lock);
	team->left++;
	pthread_cond_signal(&team->ended);
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

static void *member_main(void *arg)
{
	return thread_on_two_stacks(run_member, arg);
}

/* ---- the adversary --------------------------------------------------------------------------- */

/* Sleeps for up to a millisecond, mostly less. A handler has no state, so the duration comes from the clock. */
static void on_interrupt(int number)
{
	struct timespec now, pause = {0};
	int saved = errno;
	(void)number;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pause.tv_nsec = (long)(loom__mix64((uint64_t)now.tv_nsec) % 1000000) >> (now.tv_nsec & 3);
	nanosleep(&pause, NULL);
	errno = saved;
}

static void *interrupter_main(void *arg)
{
	struct team *team = arg;
	uint64_t x = team->rig->want.seed;
	while (__atomic_load_n(&team->interrupting, __ATOMIC_ACQUIRE)) {
		struct timespec pause = {.tv_nsec = (long)((x = loom__mix(x)) % 150000)};
		nanosleep(&pause, NULL);
		if (team->made)
			pthread_kill(team->member[loom__mix(x + 1) % team->made].id, SIGUSR2);
	}
	return NULL;
}

void loom__dawdle(struct loom_ctx *c)
{
	uint64_t x = loom__mix64((uint64_t)(uintptr_t)c ^ loom__rig_now());
	if (x % 16 == 0) {
		sched_yield();
	} else if (x % 64 == 1) {
		struct timespec pause = {.tv_nsec = (long)(x >> 8) % 50000};
		nanosleep(&pause, NULL);
	}
}

void loom__rig_hide(struct loom__rig *r, int hidden)
{
	if (r->want.hidden && !r->want.one_view)
		mprotect(r->host, r->bytes, hidden ? PROT_NONE : PROT_READ | PROT_WRITE);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void after(struct timespec *t, uint64_t ns)
{
	clock_gettime(CLOCK_MONOTONIC, t);
	uint64_t at = (uint64_t)t->tv_nsec + ns;
	t->tv_sec += (time_t)(at / 1000000000ull);
	t->tv_nsec = (long)(at % 1000000000ull);
}

/* Waits for `ns` of a fair share of the machine. */
static int await(struct team *team, uint64_t ns)
{
	struct loom__fair fair;
	struct timespec until;
	int all = 0;
	loom__fair_begin(&fair, 0);
	pthread_mutex_lock(&team->lock);
	for (uint64_t had = 0; had < ns && !all; had = loom__fair_elapsed_ns(&fair)) {
		int late = 0;
		after(&until, ns - had);
		while (!(all = team->left == team->count) && !late)
			late = pthread_cond_timedwait(&team->ended, &team->lock, &until) == ETIMEDOUT;
	}
	pthread_mutex_unlock(&team->lock);
	return all ? 0 : LOOM_ETIMEDOUT;
}

static int start(struct team *team)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	if (team->rig->want.stack)
		pthread_attr_setstacksize(&attr, team->rig->want.stack);
	for (; team->made < team->count; team->made++) {
		struct team_member *m = &team->member[team->made];
		*m = (struct team_member){.team = team, .c = &team->rig->ctx[team->made]};
		if (pthread_create(&m->id, &attr, member_main, m))
			break;
	}
	pthread_attr_destroy(&attr);
	return team->made == team->count;
}

static uint64_t at_most(const struct team *team, uint64_t ns)
{
	uint64_t most = team->rig->want.most_ns;
	return most && most < ns ? most : ns;
}

static void stuck(struct team *team)
{
	char text[300];
	snprintf(
	    text, sizeof(text),
	    "%u of %u threads do not leave within %g s after the stop flag was set; every loop that waits must end "
	    "when loom_stopped(c)",
	    team->count - team->left, team->count, (double)at_most(team, GRACE_NS) / 1e9);
	if (team->rig->want.stuck)
		team->rig->want.stuck(team->rig, text);
	fprintf(stderr, "rig: %s\n", text);
	exit(99);
}

int loom__rig_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns)
{
	struct team team = {
	    .rig = r, .body = body, .count = r->layout.workers * r->want.lanes, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_condattr_t attr;
	pthread_t interrupter;
	const struct sigaction how = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	struct sigaction was;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&team.ended, &attr);
	team.member = calloc(team.count, sizeof(*team.member));
	loom__rig_hide(r, 1);
	sigaction(SIGUSR2, &how, &was);
	if (!team.member || !start(&team)) {
		fprintf(stderr, "rig: the machine gives no more memory or threads\n");
		exit(99);
	}
	team.interrupting = (uint32_t)r->want.rough;
	int interrupted = team.interrupting && !pthread_create(&interrupter, NULL, interrupter_main, &team);
	int code = LOOM_ETIMEDOUT;
	if (r->want.midway) {
		code = await(&team, r->want.midway_ns);
		if (code)
			r->want.midway(r);
	}
	if (code)
		code = await(&team, at_most(&team, limit_ns));
	if (code) {
		__atomic_store_n(&r->ctl->stop, 1u, __ATOMIC_RELAXED);
		loom__rig_interrupt(r, LOOM_EINTR, 0);
		if (await(&team, at_most(&team, GRACE_NS)))
			stuck(&team);
	}
	if (interrupted) {
		__atomic_store_n(&team.interrupting, 0u, __ATOMIC_RELEASE);
		pthread_join(interrupter, NULL);
	}
	for (uint32_t i = 0; i < team.count; i++)
		pthread_join(team.member[i].id, NULL);
	sigaction(SIGUSR2, &was, NULL);
	loom__rig_hide(r, 0);
	pthread_cond_destroy(&team.ended);
	free(team.member);
	return code;
}
