/* SPDX-License-Identifier: Apache-2.0 */
/* The host's listener for words that GPUs change. A GPU changes words in the host's memory when it publishes or
 * releases an item (gpu_wait.dev.h), but makes no system call. The listener polls these words, and wakes the CPU
 * threads that sleep on them.
 *
 * With notify = interrupt, the listener sleeps until GPUs have made more changes than it has seen. A counter in the
 * GPU's memory has the number of changes by GPUs (interrupt.h). The listener also sees changes that CPUs make. A CPU
 * counts each change before it stores the word, and the listener subtracts this count. So it never waits for more
 * changes than will come. It may wait for fewer changes, and then a poll finds nothing. No wake-up is lost:
 * tests/models/listener.pml. */
#ifndef SYNC_LISTENER_H
#define SYNC_LISTENER_H

#include <gpuloom/interrupt.h>
#include <pthread.h>

#include "channels.h"

enum { LISTENER_POLL, LISTENER_INTERRUPT };

struct listener {
	struct sync *s;
	uint32_t notify; /* LISTENER_POLL or LISTENER_INTERRUPT */
	struct sync_head *head; /* the block for the stack */
	/* Called when the `full` word of a slot may have changed; it may be unchanged. */
	void (*published)(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word);
	struct loom_interrupt *interrupt; /* NULL: the listener polls */
	/* [words]: last value of each word. For each slot of each channel: its `full`, then its `released`. NULL: no
	 * listener runs. */
	uint32_t *seen;
	uint64_t taken;                   /* number of changes that the listener has seen since listener_start() */
	/* At listener_start(): value of the GPU's counter; value of head->raised_by_cpus. */
	uint64_t posted, raised_by_cpus;
	uint32_t event, waiting;          /* the eventcount on which the polling thread sleeps */
	/* 1: the threads must end; 1: a sample is in progress, which may be polled; 1: the run was stopped */
	uint32_t quit, open, over;
	uint32_t broken;       /* 1: the interrupt has failed, so the other thread polls */
	int polling, awaiting; /* 1: the polling thread runs; 1: the thread that awaits interrupts runs */
	pthread_mutex_t lock;  /* held during a poll */
	pthread_t poll_thread, await_thread;
};

/* Ops of a plug-in whose `self` is a struct sync with a listener. They do nothing if the stack has no GPU. The plug-in
 * sets s, notify and published; all other members of the listener are zero at first. */
int listener_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   const struct loom_segments *segments, struct loom_error *err);
void listener_stop(void *self);
/* Called at the end of a sample. Polls once more. */
int listener_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     struct loom_report *report, struct loom_error *err);
/* Called before and after init() changes the words. listener_pause() polls once more. No poll runs until
 * listener_resume(). */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
/* Called by interrupt(). From then on all waiters are woken repeatedly, so that they check the stop word. */
void listener_stop_waits(struct listener *l);
/* The choices and the help text of the option `notify`. */
extern const char *const listener_choices[];
#define LISTENER_HELP                                                                                                  \
	"With a GPU: how the host learns what the GPU has published, so that it can wake CPUs. poll: a thread polls. " \
	"interrupt: a thread sleeps until the GPU interrupts it."

#endif
