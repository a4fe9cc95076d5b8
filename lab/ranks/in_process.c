/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of this process, for devices with virtual time. Thousands of ranks are possible. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/boot.h"

#define STACK_BYTES (512u << 10)

struct thread_rank {
	struct loom_ranks ranks; /* the first member, so that `self` points to both structs */
	struct loom__threads *all;
	pthread_t thread;
	uint32_t turn; /* number of exchanges so far */
};

struct loom__threads {
	uint32_t ranks, started;
	loom__rank_fn *run;
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t met;
	uint32_t turn, came; /* number of completed exchanges; number of ranks that have arrived at the next one */
	uint32_t first;      /* the rank that was first to arrive */
	/* size in bytes of the contribution of rank `first`; the contributions of all other ranks must have the same
	 * size */
	size_t bytes;
	/* buffers of even and odd exchanges: while ranks read one buffer, the next exchange may fill the other */
	char *data[2];
	size_t room[2];
	/* over: 1 if a rank has ended, so that exchanges fail. code: the first error of a rank, with its text in `why`;
	 * an error other than LOOM_EDIED replaces LOOM_EDIED. */
	int over, code;
	struct loom_error why;
	struct thread_rank rank[];
};

static int end_of(const struct loom__threads *t, const struct thread_rank *me, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EDIED, "rank %u ends: %s", me->ranks.rank,
			  t->code ? t->why.text : "the job has ended");
}

/* Makes the buffer `which` large enough. Only the first rank that arrives in an exchange may have to allocate. */
static int make_room(struct loom__threads *t, uint32_t which, size_t bytes)
{
	char *data = bytes > t->room[which] ? realloc(t->data[which], bytes) : t->data[which];
	if (!data && bytes)
		return LOOM_ENOMEM;
	t->data[which] = data;
	t->room[which] = bytes > t->room[which] ? bytes : t->room[which];
	return 0;
}

static int in_step(struct loom__threads *t, const struct thread_rank *me, uint32_t turn, size_t bytes,
		   struct loom_error *err)
{
	if (!t->came) {
		t->first = me->ranks.rank;
		t->bytes = bytes;
	}
	return turn == t->turn && bytes == t->bytes
		   ? 0
		   : LOOM__FAIL(err, LOOM_EINVAL, "rank %u is not in step with rank %u: do all run the same conf?",
				me->ranks.rank, t->first);
}

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct thread_rank *me = self;
	struct loom__threads *t = me->all;
	uint32_t turn = me->turn++, which = turn & 1;
	pthread_mutex_lock(&t->lock);
	int rc = t->over ? end_of(t, me, err) : in_step(t, me, turn, bytes, err);
	if (!rc)
		rc = make_room(t, which, bytes * t->ranks);
	if (!rc) {
		memcpy(t->data[which] + me->ranks.rank * bytes, mine, bytes);
		if (++t->came == t->ranks) {
			t->came = 0;
			t->turn++;
			pthread_cond_broadcast(&t->met);
		}
		while (t->turn == turn && !t->over)
			pthread_cond_wait(&t->met, &t->lock);
		rc = t->turn == turn ? end_of(t, me, err) : 0;
	}
	pthread_mutex_unlock(&t->lock);
	if (!rc)
		memcpy(all, t->data[which], bytes * t->ranks);
	return rc == LOOM_ENOMEM ? LOOM__FAIL(err, rc, "out of memory") : rc;
}

/* Ends a rank: exchanges of the other ranks fail from here on. Records the error of the rank in t->code and t->why. The
 * text names the rank if the error belongs to one rank, which is the case for a time-out or a wrong result. */
static void leave(struct loom__threads *t, uint32_t rank, int code, const struct loom_error *err)
{
	pthread_mutex_lock(&t->lock);
	t->over = 1;
	if (code && (!t->code || (t->code == LOOM_EDIED && code != LOOM_EDIED))) {
		t->code = code;
		t->why = *err;
		if (code == LOOM_ETIMEDOUT || code == LOOM_EWRONG)
			snprintf(t->why.text, sizeof(t->why.text), "rank %u: %.980s", rank, err->text);
	}
	pthread_cond_broadcast(&t->met);
	pthread_mutex_unlock(&t->lock);
}

static void *main_of_rank(void *arg)
{
	struct thread_rank *me = arg;
	struct loom_error err = {0};
	char name[16]; /* as debuggers and messages of a crash show it */
	snprintf(name, sizeof(name), "rank %u", me->ranks.rank);
	pthread_setname_np(pthread_self(), name);
	int code = me->all->run(me->all->arg, &me->ranks, &err);
	leave(me->all, me->ranks.rank, code, &err);
	return NULL;
}

static int start(struct loom__threads *t, struct loom_error *err)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int failed = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all); /* only the thread of rank 0 receives signals */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (t->started = 1; t->started < t->ranks && !failed; t->started += !failed)
		failed = pthread_create(&t->rank[t->started].thread, &attr, main_of_rank, &t->rank[t->started]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return failed ? LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot start rank %u of %u: %s", t->started, t->ranks,
				   strerror(failed))
		      : 0;
}

int loom__threads_begin(uint32_t ranks, loom__rank_fn *run, void *arg, struct loom__threads **threads,
			struct loom_error *err)
{
	struct loom__threads *t = calloc(1, sizeof(*t) + ranks * sizeof(t->rank[0]));
	if (!t)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	t->ranks = ranks;
	t->run = run;
	t->arg = arg;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->met, NULL);
	for (uint32_t r = 0; r < ranks; r++) {
		struct thread_rank *me = &t->rank[r];
		me->all = t;
		me->ranks = (struct loom_ranks){
		    .size = sizeof(me->ranks), .rank = r, .ranks = ranks, .self = me, .allgather = allgather, .job = t};
	}
	int rc = start(t, err);
	if (rc)
		loom__threads_end(t, rc, err);
	else
		*threads = t;
	return rc;
}

const struct loom_ranks *loom__threads_first(const struct loom__threads *t)
{
	return &t->rank[0].ranks;
}

int loom__threads_end(struct loom__threads *t, int code, struct loom_error *err)
{
	leave(t, 0, code, err);
	for (uint32_t r = 1; r < t->started; r++)
		pthread_join(t->rank[r].thread, NULL);
	code = t->code;
	if (code)
		*err = t->why;
	pthread_cond_destroy(&t->met);
	pthread_mutex_destroy(&t->lock);
	free(t->data[0]);
	free(t->data[1]);
	free(t);
	return code;
}
