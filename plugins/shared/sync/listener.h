/* SPDX-License-Identifier: Apache-2.0 */
/* The host's listener for words that GPUs publish and release. A GPU changes words in the host's memory
 * (gpu_wait.dev.h) and makes no system call. The listener polls the words and wakes the CPU threads that sleep on them.
 *
 * With notify = interrupt the listener sleeps until GPUs have changed more words than it has seen change, according to
 * the counter in the GPU's memory (interrupt.h). CPUs change words, too: they count each change before they store it,
 * and the listener subtracts their number. So it never waits for more changes than follow. It may wait for fewer; then
 * a poll finds nothing. No wake-up is lost: tests/models/listener.pml. */
#ifndef SYNC_LISTENER_H
#define SYNC_LISTENER_H

#include <gpuloom/interrupt.h>
#include <pthread.h>

#include "channels.h"

enum { LISTENER_POLL, LISTENER_INTERRUPT };

struct listener {
	struct sync *s;
	uint32_t notify; /* LISTENER_POLL, LISTENER_INTERRUPT */
	struct sync_head *head;
	/* Called when the `full` word of a slot has changed, sometimes without a reason. */
	void (*published)(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word);
	struct loom_interrupt *interrupt; /* NULL: the listener polls */
	uint32_t *seen;                   /* last values: for each channel its `full`, then its `released` words */
	uint64_t taken;                   /* number of changes that the listener has seen since listener_start() */
	uint64_t posted, raised_by_cpus;  /* the counters at listener_start() */
	uint32_t event, waiting;          /* the eventcount of the polling thread */
	uint32_t quit, open, over;
	int polling, awaiting; /* 1: the polling thread runs; 1: the thread that awaits interrupts runs */
	pthread_mutex_t lock;  /* held during a poll */
	pthread_t poll_thread, await_thread;
};

/* Ops of a plug-in whose `self` is a struct sync with a listener. They do nothing if there is no GPU. All members of
 * the listener are zero but s, notify and published. */
int listener_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   const struct loom_segments *segments, struct loom_error *err);
void listener_stop(void *self);
/* Called at the end of a sample: polls once more. */
int listener_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     struct loom_report *report, struct loom_error *err);
/* Called before and after init() changes the words. The first call polls once more. No poll runs in between. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
/* Called by interrupt(): wakes all waiters until they have seen the stop word. */
void listener_stop_waits(struct listener *l);
/* The choices and the help text of the option `notify`. */
extern const char *const listener_choices[];
#define LISTENER_HELP                                                                                                  \
	"With a GPU: how the host learns what the GPU has published, so that it can wake CPUs. poll: a thread polls. " \
	"interrupt: a thread sleeps until the GPU interrupts it."

#endif
