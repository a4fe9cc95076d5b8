/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <string.h>

#include "lib/thread.h"
#include "sleep.h"
#include "gpu_wait.dev.h"

#define STOP_POLL_NS 1000000u /* interval between two wake-ups of all waiters after the run was stopped */

const char *const listener_choices[] = {"poll", "interrupt", NULL};

static void notify(struct listener *l)
{
	eventcount_advance_private(&l->event, &l->waiting);
}

/* Returns by how much a word has grown since the last poll, and adds that to `taken`. jumps: 1 if one change may add
 * more than 1, so that any growth counts as one change. Acquire: a thread that is woken afterwards sees what was
 * published. */
static uint32_t advanced_by(struct listener *l, uint32_t *word, uint32_t *seen, int jumps)
{
	uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE) & SYNC_ROUNDS, by = (now - *seen) & SYNC_ROUNDS;
	by = jumps && by ? 1 : by;
	*seen = now;
	__atomic_store_n(&l->taken, l->taken + by, __ATOMIC_RELEASE);
	return by;
}

/* Polls all words, and wakes the threads that sleep on words that have changed. Called with the lock held. */
static void poll_words(struct listener *l)
{
	uint32_t *seen = l->seen, all = __atomic_load_n(&l->over, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < l->s->channels; i++) {
		const struct sync_channel *k = sync_channel(l->head, i);
		/* a CPU may publish several rounds between two polls: forward() in wic_monitor.c */
		int jumps = l->s->wic && !sync_is_gpu(l->head, k->to);
		for (uint32_t t = 0; t < k->slots; t++) {
			struct sync_slot *slot = sync_slot(l->head, k, t);
			uint32_t *flag = sync_full(NULL, l->head, k, t);
			if (advanced_by(l, flag, seen++, jumps) || all)
				l->published(l->s, k, t, flag);
			if (advanced_by(l, &slot->released, seen++, 0) || all)
				eventcount_notify(NULL, &slot->released, &slot->blocked);
		}
	}
}

static void poll_once(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	if (__atomic_load_n(&l->open, __ATOMIC_ACQUIRE))
		poll_words(l);
	pthread_mutex_unlock(&l->lock);
}

/* Returns 1 if the polling thread must sleep until it is notified. */
static int sleeps(struct listener *l)
{
	int interrupts = l->interrupt && !__atomic_load_n(&l->broken, __ATOMIC_ACQUIRE);
	return (interrupts || !__atomic_load_n(&l->open, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&l->over, __ATOMIC_ACQUIRE)) &&
	       !__atomic_load_n(&l->quit, __ATOMIC_ACQUIRE);
}

static void *poll_main(void *arg)
{
	struct listener *l = arg;
	for (uint32_t turn = 0; !__atomic_load_n(&l->quit, __ATOMIC_ACQUIRE); turn++) {
		if (!sleeps(l)) {
			poll_once(l);
			if (turn % 64 == 0)
				loom_cpu_yield();
			continue;
		}
		uint32_t seen = eventcount_enter_single(&l->event, &l->waiting);
		poll_once(l);
		if (sleeps(l)) {
			int over = __atomic_load_n(&l->over, __ATOMIC_ACQUIRE) != 0;
			eventcount_sleep_private(&l->event, seen, over ? loom_clock_ns(NULL) + STOP_POLL_NS : 0);
		}
		eventcount_leave_single(&l->waiting);
	}
	return NULL;
}

static void *await_main(void *arg)
{
	struct listener *l = arg;
	struct loom_error err = {0};
	int rc = 0;
	while (!rc && !__atomic_load_n(&l->quit, __ATOMIC_ACQUIRE)) {
		uint64_t taken = __atomic_load_n(&l->taken, __ATOMIC_ACQUIRE);
		/* Loaded after `taken`, so that the count includes all changes by CPUs that `taken` includes. */
		uint64_t cpus = __atomic_load_n(&l->head->raised_by_cpus, __ATOMIC_ACQUIRE) - l->raised_by_cpus;
		rc = l->interrupt->wait(l->interrupt, l->posted + (taken > cpus ? taken - cpus : 0) + 1, &err);
		poll_once(l);
	}
	if (!rc || rc == LOOM_EINTR)
		return NULL;
	LOOM_LOG(l->s->host, LOOM_LOG_WARN, l->s->name, "%s: a thread polls instead", err.text);
	/* Release: pairs with the acquire in sleeps(). */
	__atomic_store_n(&l->broken, 1u, __ATOMIC_RELEASE);
	notify(l);
	return NULL;
}

static int open_interrupt(struct listener *l, const struct loom_layout *layout, const struct loom_view *view,
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
				 "%s: notify = interrupt supports one GPU, and there are %u: set notify = poll",
				 l->s->name, gpus);
	if (!LOOM_HAS(layout, interrupts) || !layout->interrupts)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: interrupts are unavailable here: set notify = "
			"poll", l->s->name);
	l->posted = *(const uint64_t *)view->device[gpu];
	return layout->interrupts->open(layout->interrupts, gpu, LOOM_SYNC, 0, &l->interrupt, err);
}

static int start_thread(struct listener *l, pthread_t *thread, void *(*run)(void *), int *started,
			struct loom_error *err)
{
	int code = thread_start(thread, run, l);
	*started = !code;
	return code ? LOOM_FAIL(l->s->host, err, LOOM_ENOMEM, "%s: cannot start a thread: %s", l->s->name,
				strerror(code))
		    : 0;
}

static uint64_t bytes_seen(const struct listener *l)
{
	uint64_t words = 0;
	for (uint32_t i = 0; i < l->s->channels; i++)
		words += 2ull * l->s->channel[i].slots;
	return words * sizeof(*l->seen);
}

int listener_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   const struct loom_segments *segments, struct loom_error *err)
{
	struct listener *l = ((struct sync *)self)->listener;
	int rc = 0;
	(void)segments;
	if (!l->s->crosses_link || !l->s->channels)
		return 0;
	l->head = view->global;
	l->raised_by_cpus = l->head->raised_by_cpus;
	l->taken = 0;
	l->quit = l->open = l->over = l->broken = 0;
	l->seen = l->s->host->alloc(l->s->host, bytes_seen(l));
	if (!l->seen)
		return LOOM_FAIL(l->s->host, err, LOOM_ENOMEM, "%s: out of memory", l->s->name);
	pthread_mutex_init(&l->lock, NULL);
	if (l->notify == LISTENER_INTERRUPT)
		rc = open_interrupt(l, layout, view, err);
	if (!rc)
		rc = start_thread(l, &l->poll_thread, poll_main, &l->polling, err);
	if (!rc && l->interrupt)
		rc = start_thread(l, &l->await_thread, await_main, &l->awaiting, err);
	if (rc)
		listener_stop(self);
	return rc;
}

void listener_stop(void *self)
{
	struct listener *l = ((struct sync *)self)->listener;
	if (!l->seen)
		return;
	__atomic_store_n(&l->quit, 1u, __ATOMIC_RELEASE);
	notify(l);
	if (l->awaiting) {
		l->interrupt->wake(l->interrupt);
		pthread_join(l->await_thread, NULL);
	}
	if (l->polling)
		pthread_join(l->poll_thread, NULL);
	if (l->interrupt)
		l->interrupt->close(l->interrupt);
	l->interrupt = NULL;
	l->polling = l->awaiting = 0;
	pthread_mutex_destroy(&l->lock);
	l->s->host->free(l->s->host, l->seen);
	l->seen = NULL;
}

/* Polls the words of a sample for the last time. Returns with the lock held. */
static void poll_last(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	if (l->open)
		poll_words(l);
	__atomic_store_n(&l->open, 0u, __ATOMIC_RELEASE);
}

void listener_pause(struct listener *l)
{
	if (!l->seen)
		return;
	poll_last(l);
	__atomic_store_n(&l->over, 0u, __ATOMIC_RELEASE);
}

void listener_resume(struct listener *l)
{
	if (!l->seen)
		return;
	memset(l->seen, 0, bytes_seen(l));
	__atomic_store_n(&l->open, 1u, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&l->lock);
	notify(l);
}

int listener_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     struct loom_report *report, struct loom_error *err)
{
	struct listener *l = ((struct sync *)self)->listener;
	if (l->seen) {
		poll_last(l);
		pthread_mutex_unlock(&l->lock);
	}
	return sync_collect(self, layout, view, report, err);
}

void listener_stop_waits(struct listener *l)
{
	if (!l->seen)
		return;
	__atomic_store_n(&l->over, 1u, __ATOMIC_RELEASE);
	notify(l);
}
