/* SPDX-License-Identifier: Apache-2.0 */
/* The host's ear for what GPUs publish and release: a GPU raises words in the host's memory (wave.dev.h), and makes no system
 * call. The listener sees which words have changed, and wakes who sleeps for them.
 *
 * With interrupts it sleeps until GPUs have raised more words than it has seen to change, which their counter in their own
 * memory says (interrupt.h). CPUs' words change, too: they are counted before they are raised, and taken off. So what is waited
 * for is never more than will come; it may be less, and then the listener looks in vain. No wake-up is lost, as in
 * tests/models/alarm.pml, which this follows. */
#ifndef SYNC_LISTEN_H
#define SYNC_LISTEN_H

#include <gpuloom/interrupt.h>
#include <pthread.h>

#include "channel_host.h"

enum { LISTEN_POLL, LISTEN_INTERRUPT };

struct listen {
	struct sync *s;
	uint32_t notify; /* LISTEN_POLL, LISTEN_INTERRUPT */
	struct sync_head *head;
	/* What to do when words of a channel's slot have changed. Either may be called in vain. */
	void (*published)(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word);
	struct loom_interrupt *interrupt; /* NULL: it polls */
	uint32_t *seen;		  /* of each channel its flags, then its released words */
	uint64_t taken;		  /* rounds that words were seen to rise since start() */
	uint64_t posted, by_cpus; /* what the counters were then */
	uint32_t bell, quit, open, over;
	int looking, awaiting; /* threads */
	pthread_mutex_t door; /* held while it looks */
	pthread_t looks, awaits;
};

/* Ops of a policy whose `self` is a struct sync with such a listener; nothing where no GPU is. The listener is zeroed but for s,
 * notify and published. */
int listen_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 const struct loom_segments *segments, struct loom_error *err);
void listen_stop(void *self);
/* The sample is over: nothing comes until the next. */
int listen_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err);
/* Around what init() does to the words: what was raised in the sample before is seen first. */
void listen_shut(struct listen *l);
void listen_open(struct listen *l);
/* From interrupt(): wakes all, until they have seen the stop word. */
void listen_over(struct listen *l);
/* An option. */
extern const char *const listen_choices[];
#define LISTEN_HELP                                                                                \
	"With a GPU: how the host is notified of what the GPU has published, to wake CPUs. poll: a thread polls. " \
	"interrupt: a thread sleeps until the GPU interrupts it."

#endif
