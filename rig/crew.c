/* SPDX-License-Identifier: Apache-2.0 */
/* Workers on threads: one start, a deadline, and an adversary that halts them at any instruction. */
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

/* After the stop word is set, workers leave within this time. */
#define GRACE_NS 3000000000ull

struct crew;

struct member {
	pthread_t id;
	struct crew *crew;
	struct loom_ctx *c;
};

struct crew {
	struct loom__rig *rig;
	void (*body)(struct loom_ctx *c);
	struct member *member;
	uint32_t count, made, waiting, left, kicking;
	pthread_mutex_t lock;
	pthread_cond_t ended;
};

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *crew = m->crew;
	__atomic_add_fetch(&crew->waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&crew->waiting, __ATOMIC_ACQUIRE) < crew->count)
		sched_yield();
	if (m->c->lane == 0)
		m->c->counters->begin_ns = loom__rig_now();
	crew->body(m->c);
	if (m->c->lane == 0)
		m->c->counters->end_ns = loom__rig_now();
	pthread_mutex_lock(&crew->lock);
	crew->left++;
	pthread_cond_signal(&crew->ended);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

/* ---- the adversary --------------------------------------------------------------------------- */

/* Up to a millisecond, mostly less; from the clock, since a handler has no state. */
static void on_kick(int number)
{
	struct timespec now, pause = {0};
	int saved = errno;
	(void)number;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pause.tv_nsec = (long)(loom__mix64((uint64_t)now.tv_nsec) % 1000000) >> (now.tv_nsec & 3);
	nanosleep(&pause, NULL);
	errno = saved;
}

static void *kicker_main(void *arg)
{
	struct crew *crew = arg;
	uint64_t x = crew->rig->want.seed;
	while (__atomic_load_n(&crew->kicking, __ATOMIC_ACQUIRE)) {
		struct timespec pause = {.tv_nsec = (long)((x = loom__mix64(x)) % 150000)};
		nanosleep(&pause, NULL);
		if (crew->made)
			pthread_kill(crew->member[loom__mix64(x + 1) % crew->made].id, SIGUSR2);
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

/* `ns` of a fair share of the machine. */
static int await(struct crew *crew, uint64_t ns)
{
	struct loom__fair fair;
	struct timespec until;
	int all = 0;
	loom__fair_begin(&fair, 0);
	pthread_mutex_lock(&crew->lock);
	for (uint64_t had = 0; had < ns && !all; had = loom__fair_elapsed_ns(&fair)) {
		int late = 0;
		after(&until, ns - had);
		while (!(all = crew->left == crew->count) && !late)
			late = pthread_cond_timedwait(&crew->ended, &crew->lock, &until) == ETIMEDOUT;
	}
	pthread_mutex_unlock(&crew->lock);
	return all ? 0 : LOOM_ETIMEDOUT;
}

static int start(struct crew *crew)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	if (crew->rig->want.stack)
		pthread_attr_setstacksize(&attr, crew->rig->want.stack);
	for (; crew->made < crew->count; crew->made++) {
		struct member *m = &crew->member[crew->made];
		*m = (struct member){.crew = crew, .c = &crew->rig->ctx[crew->made]};
		if (pthread_create(&m->id, &attr, member_main, m))
			break;
	}
	pthread_attr_destroy(&attr);
	return crew->made == crew->count;
}

static void stuck(struct crew *crew)
{
	char text[300];
	snprintf(text, sizeof(text),
		 "%u of %u threads do not leave within %u s after the stop word was set; every loop that waits ends "
		 "when loom_stopped(c)",
		 crew->count - crew->left, crew->count, (unsigned)(GRACE_NS / 1000000000u));
	if (crew->rig->want.stuck)
		crew->rig->want.stuck(crew->rig, text);
	fprintf(stderr, "rig: %s\n", text);
	exit(99);
}

int loom__rig_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns)
{
	struct crew crew = {.rig = r,
			    .body = body,
			    .count = r->layout.workers * r->want.lanes,
			    .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_condattr_t attr;
	pthread_t kicker;
	const struct sigaction kick = {.sa_handler = on_kick, .sa_flags = SA_RESTART};
	struct sigaction was;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&crew.ended, &attr);
	crew.member = calloc(crew.count, sizeof(*crew.member));
	loom__rig_hide(r, 1);
	sigaction(SIGUSR2, &kick, &was);
	if (!crew.member || !start(&crew)) {
		fprintf(stderr, "rig: the machine gives no more memory or threads\n");
		exit(99);
	}
	crew.kicking = (uint32_t)r->want.rough;
	int kicked = crew.kicking && !pthread_create(&kicker, NULL, kicker_main, &crew);
	int code = LOOM_ETIMEDOUT;
	if (r->want.midway) {
		code = await(&crew, r->want.midway_ns);
		if (code)
			r->want.midway(r);
	}
	if (code)
		code = await(&crew, limit_ns);
	if (code) {
		__atomic_store_n(&r->ctl->stop, 1u, __ATOMIC_RELAXED);
		loom__rig_interrupt(r, LOOM_EINTR, 0);
		if (await(&crew, GRACE_NS))
			stuck(&crew);
	}
	if (kicked) {
		__atomic_store_n(&crew.kicking, 0u, __ATOMIC_RELEASE);
		pthread_join(kicker, NULL);
	}
	for (uint32_t i = 0; i < crew.count; i++)
		pthread_join(crew.member[i].id, NULL);
	sigaction(SIGUSR2, &was, NULL);
	loom__rig_hide(r, 0);
	pthread_cond_destroy(&crew.ended);
	free(crew.member);
	return code;
}
