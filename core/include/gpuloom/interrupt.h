/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of devices. A host thread sleeps until workers raise a word in device memory, or copies to and from it. */
#ifndef GPULOOM_INTERRUPT_H
#define GPULOOM_INTERRUPT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device makes this. One thread at a time uses it, except for wake(). */
struct loom_interrupt {
	size_t size;
	/* Sleeps until the word is `least` or more, and returns 0. What a worker wrote before raising the word may
	 * become visible later. Returns LOOM_EINTR after wake(), LOOM_EDIED when the device has failed. */
	int (*wait)(struct loom_interrupt *interrupt, uint64_t least, struct loom_error *err);
	/* From any thread, while no worker runs: raises the word, which ends this wait() and all later ones. */
	void (*wake)(struct loom_interrupt *interrupt);
	void (*close)(struct loom_interrupt *interrupt); /* NULL is legal */
	/* Starts a copy to the device, `offset` bytes behind the word, or from there: the other pointer is NULL. The
	 * memory must not change until flush() has awaited all copies. Threads notified afterwards see them. */
	int (*copy)(struct loom_interrupt *interrupt, uint64_t offset, void *to, const void *from, uint64_t bytes, struct loom_error *err);
	int (*flush)(struct loom_interrupt *interrupt, struct loom_error *err);
};

/* In struct loom_layout, for policies. */
struct loom_interrupts {
	size_t size;
	void *stack; /* private to the core */
	/* Between start() and stop(): makes an interrupt for the uint64_t at `offset` in the block, for `device`, of
	 * the policy of `kind`. The block must be LOOM_PLACE_DEVICE, the word below 2^62. LOOM_ENOTSUP, with the
	 * reason. */
	int (*open)(const struct loom_interrupts *interrupts, uint32_t device, uint32_t kind, uint64_t offset,
		    struct loom_interrupt **interrupt, struct loom_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
