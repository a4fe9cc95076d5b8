/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of devices. A host thread sleeps until workers raise a word in device memory. It can also copy to and from
 * that memory. */
#ifndef GPULOOM_INTERRUPT_H
#define GPULOOM_INTERRUPT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device makes this. Only one thread at a time uses it, except for wake(). */
struct loom_interrupt {
	size_t size;
	/* Sleeps until the word is `least` or more, and returns 0. What a worker wrote to other words before it raised
	 * this word may become visible only after wait() has returned. Returns LOOM_EINTR after wake(), and LOOM_EDIED
	 * if the device has failed. */
	int (*wait)(struct loom_interrupt *interrupt, uint64_t least, struct loom_error *err);
	/* Any thread may call this, while no worker runs. It raises the word, which ends the wait() in progress and all
	 * later ones. */
	void (*wake)(struct loom_interrupt *interrupt);
	void (*close)(struct loom_interrupt *interrupt); /* `interrupt` may be NULL */
	/* Starts a copy to or from the device memory `offset` bytes after the word. To copy to the device, set `from`;
	 * to copy from it, set `to`; the other pointer is NULL. The host memory must not change until flush() has
	 * waited for all copies. Threads that are notified after flush() see the copied data. */
	int (*copy)(struct loom_interrupt *interrupt, uint64_t offset, void *to, const void *from, uint64_t bytes, struct loom_error *err);
	int (*flush)(struct loom_interrupt *interrupt, struct loom_error *err);
};

/* The core puts this into struct loom_layout, for policies. */
struct loom_interrupts {
	size_t size;
	void *stack; /* private to the core */
	/* Called between start() and stop(). Makes an interrupt for the uint64_t at `offset` in the block for `device`
	 * of the policy of `kind`. The block must be LOOM_PLACE_DEVICE. The word must stay below 2^62. Returns
	 * LOOM_ENOTSUP with the reason if that is impossible. */
	int (*open)(const struct loom_interrupts *interrupts, uint32_t device, uint32_t kind, uint64_t offset,
		    struct loom_interrupt **interrupt, struct loom_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
