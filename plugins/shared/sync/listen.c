/* SPDX-License-Identifier: Apache-2.0 */
#include "listen.h"

#include <string.h>

#include "../child/thread.h"
#include "park.h"
#include "wave.dev.h"

#define STOP_LOOK_NS 1000000u /* between two wakings of all, until they leave */

const char *const listen_choices[] = {"poll", "interrupt", NULL};

static void ring(struct listen *l)
{
	__atomic_fetch_add(&l->bell, 1u, __ATOMIC_ACQ_REL);
	loom_futex_wake(&l->bell, 1, 0);
}

/* How far a word went since it was seen; `jumps`: for one time that it was raised. Acquire: whoever is woken sees what was
 * published. */
static uint32_t moved(struct listen *l, uint32_t *word, uint32_t *seen, int jumps)
{
	uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE) & SYNC_ROUNDS, by = (now - *seen) & SYNC_ROUNDS;
	by = jumps && by ? 1 : by;
	*seen = now;
	__atomic_store_n(&l->taken, l->taken + by, __ATOMIC_RELEASE);
	return by;
}

/* Under the door's lock. */
static void look(struct listen *l)
{
	uint32_t *seen = l->seen, all = __atomic_load_n(&l->over, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < l->s->channels; i++) {
		const struct sync_channel *k = sync_channel(l->head, i);
		int jumps = l->s->wic && !wave_is_gpu(l->head, k->to); /* over what CPUs publish: pass_on() */
		for (uint32_t t = 0; t < k->slots; t++) {
			struct sync_slot *slot = sync_slot(l->head, k, t);
			uint32_t *flag = sync_full(NULL, l->head, k, t);
			if (moved(l, flag, seen++, jumps) || all)
				l->published(l->s, k, t, flag);
			if (moved(l, &slot->released, seen++, 0) || all)
				park_wake_sleepers(&slot->released, &slot->blocked);
		}
	}
}

static void look_once(struct listen *l)
{
	pthread_mutex_lock(&l->door);
	if (__atomic_load_n(&l->open, __ATOMIC_ACQUIRE))
		look(l);
	pthread_mutex_unlock(&l->door);
}

static void *looks(void *arg)
{
	struct listen *l = arg;
	for (uint32_t turn = 0; !__atomic_load_n(&l->quit, __ATOMIC_ACQUIRE); turn++) {
		/* Before the look: a ring after it ends the sleep at once. */
		uint32_t rung = __atomic_load_n(&l->bell, __ATOMIC_ACQUIRE);
		look_once(l);
		int over = __atomic_load_n(&l->over, __ATOMIC_ACQUIRE) != 0;
		if (over || l->interrupt || !__atomic_load_n(&l->open, __ATOMIC_ACQUIRE))
			loom_futex_sleep(&l->bell, rung, over ? loom_clock_ns(NULL) + STOP_LOOK_NS : 0, 0);
		else if (turn % 64 == 0)
			loom_cpu_yield();
	}
	return NULL;
}

static void *awaits(void *arg)
{
	struct listen *l = arg;
	struct loom_error err = {0};
	int rc = 0;
	while (!rc && !__atomic_load_n(&l->quit, __ATOMIC_ACQUIRE)) {
		uint64_t taken = __atomic_load_n(&l->taken, __ATOMIC_ACQUIRE);
		/* After it: all that CPUs have raised of these are in there. */
		uint64_t cpus = __atomic_load_n(&l->head->by_cpus, __ATOMIC_ACQUIRE) - l->by_cpus;
		rc = l->interrupt->wait(l->interrupt, l->posted + (taken > cpus ? taken - cpus : 0) + 1, &err);
		look_once(l);
	}
	if (rc && rc != LOOM_EINTR)
		LOOM_LOG(l->s->host, LOOM_LOG_WARN, l->s->name, "%s", err.text);
	return NULL;
}

static int open_alarm(struct listen *l, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_error *err)
{
	const struct loom_host *host = l->s->host;
	uint32_t gpus = 0, gpu = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU) {
			gpus++;
			gpu = d;
		}
	if (gpus > 1)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: notify = interrupt is for one GPU, and there are %u: say notify = poll", l->s->name, gpus);
	if (!LOOM_HAS(layout, interrupts) || !layout->interrupts)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: no interrupts here: say notify = poll", l->s->name);
	l->posted = *(const uint64_t *)view->device[gpu];
	return layout->interrupts->open(layout->interrupts, gpu, LOOM_SYNC, 0, &l->interrupt, err);
}

static int begin(struct listen *l, pthread_t *thread, void *(*run)(void *), int *began, struct loom_error *err)
{
	int code = thread_create(thread, run, l);
	*began = !code;
	return code ? LOOM_FAIL(l->s->host, err, LOOM_ENOMEM, "%s: cannot start a thread: %s", l->s->name, strerror(code)) : 0;
}

static uint64_t bytes_seen(const struct listen *l)
{
	uint64_t words = 0;
	for (uint32_t i = 0; i < l->s->channels; i++)
		words += 2ull * l->s->channel[i].slots;
	return words * sizeof(*l->seen);
}

int listen_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 const struct loom_segments *segments, struct loom_error *err)
{
	struct listen *l = ((struct sync *)self)->listen;
	int rc = 0;
	(void)segments;
	if (!l->s->crosses || !l->s->channels)
		return 0;
	l->head = view->global;
	l->by_cpus = l->head->by_cpus;
	l->taken = 0;
	l->quit = l->open = l->over = 0;
	l->seen = l->s->host->alloc(l->s->host, bytes_seen(l));
	if (!l->seen)
		return LOOM_FAIL(l->s->host, err, LOOM_ENOMEM, "%s: out of memory", l->s->name);
	pthread_mutex_init(&l->door, NULL);
	if (l->notify == LISTEN_INTERRUPT)
		rc = open_alarm(l, layout, view, err);
	if (!rc)
		rc = begin(l, &l->looks, looks, &l->looking, err);
	if (!rc && l->interrupt)
		rc = begin(l, &l->awaits, awaits, &l->awaiting, err);
	if (rc)
		listen_stop(self);
	return rc;
}

void listen_stop(void *self)
{
	struct listen *l = ((struct sync *)self)->listen;
	if (!l->seen)
		return;
	__atomic_store_n(&l->quit, 1u, __ATOMIC_RELEASE);
	ring(l);
	if (l->awaiting) {
		l->interrupt->wake(l->interrupt);
		pthread_join(l->awaits, NULL);
	}
	if (l->looking)
		pthread_join(l->looks, NULL);
	if (l->interrupt)
		l->interrupt->close(l->interrupt);
	l->interrupt = NULL;
	l->looking = l->awaiting = 0;
	pthread_mutex_destroy(&l->door);
	l->s->host->free(l->s->host, l->seen);
	l->seen = NULL;
}

/* Takes the door's lock, and looks for the last time at this sample's words. */
static void look_last(struct listen *l)
{
	pthread_mutex_lock(&l->door);
	if (l->open)
		look(l);
	__atomic_store_n(&l->open, 0u, __ATOMIC_RELEASE);
}

void listen_shut(struct listen *l)
{
	if (!l->seen)
		return;
	look_last(l);
	__atomic_store_n(&l->over, 0u, __ATOMIC_RELEASE);
}

void listen_open(struct listen *l)
{
	if (!l->seen)
		return;
	memset(l->seen, 0, bytes_seen(l));
	__atomic_store_n(&l->open, 1u, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&l->door);
	ring(l);
}

int listen_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	struct listen *l = ((struct sync *)self)->listen;
	if (l->seen) {
		look_last(l);
		pthread_mutex_unlock(&l->door);
	}
	return sync_collect(self, layout, view, report, err);
}

void listen_over(struct listen *l)
{
	if (!l->seen)
		return;
	__atomic_store_n(&l->over, 1u, __ATOMIC_RELEASE);
	ring(l);
}
