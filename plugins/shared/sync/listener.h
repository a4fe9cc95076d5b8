/* SPDX-License-Identifier: Apache-2.0 */
/* The host's listener for what GPUs publish and release. A GPU changes words in the host's memory (gpu_wait.dev.h),
 * and makes no system call; the listener polls the words, and wakes the CPU threads that sleep on them.
 *
 * With notify = interrupt it sleeps until GPUs have changed more words than it has seen change, according to the
 * counter in the GPU's memory (interrupt.h). CPUs change words, too: they count each change before they store it, and
 * their number is subtracted. So it never waits for more changes than follow; it may wait for fewer, and then a poll
 * finds nothing. No wake-up is lost: tests/models/listener.pml. */
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
	/* Called when the `full` word of a slot has changed; may be called without a reason. */
	void (*published)(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word);
	struct loom_interrupt *interrupt; /* NULL: it polls */
	uint32_t *seen;                   /* last values: of each channel its `full` words, then its `released` words */
	uint64_t taken;                   /* changes of words that were seen since listener_start() */
	uint64_t posted, raised_by_cpus;  /* the counters at that time */
	uint32_t event, waiting;          /* the eventcount of the polling thread */
	uint32_t quit, open, over;
	int polling, awaiting; /* these threads run */
	pthread_mutex_t lock;  /* held during a poll */
	pthread_t poll_thread, await_thread;
};

/* Ops of a plug-in whose `self` is a struct sync with such a listener. They do nothing if there is no GPU. The
 * listener is zero but for s, notify and published. */
int listener_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   const struct loom_segments *segments, struct loom_error *err);
void listener_stop(void *self);
/* At the end of a sample: polls once more. */
int listener_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     struct loom_report *report, struct loom_error *err);
/* Before and after init() changes the words. The first polls once more, and no poll runs in between. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
/* From interrupt(): wakes all waiters until they have seen the stop word. */
void listener_stop_waits(struct listener *l);
/* An option. */
extern const char *const listener_choices[];
#define LISTENER_HELP                                                                                                  \
	"With a GPU: how the host is notified of what the GPU has published, to wake CPUs. poll: a thread polls. "     \
	"interrupt: a thread sleeps until the GPU interrupts it."

#endif
