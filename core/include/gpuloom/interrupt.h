/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of devices: a thread of the host sleeps until running workers have raised a word in the device's memory, or copies
 * to and from that memory. */
#ifndef GPULOOM_INTERRUPT_H
#define GPULOOM_INTERRUPT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Made by a device, used by one thread at a time but for wake(). */
struct loom_interrupt {
	size_t size;
	/* Sleeps until the word is `least` or more: 0; at once, if it is. What a worker wrote before it raised the word may be
	 * seen later. LOOM_EINTR after wake(); LOOM_EDIED when the device has failed. */
	int (*wait)(struct loom_interrupt *interrupt, uint64_t least, struct loom_error *err);
	/* From any thread, while no worker runs: ends the wait() in progress and all that follow, by raising the word. */
	void (*wake)(struct loom_interrupt *interrupt);
	void (*close)(struct loom_interrupt *interrupt); /* NULL is legal */
	/* Starts a copy to the device, `offset` bytes behind the word, or from there: the other pointer is NULL. The named
	 * memory must not change until flush() has waited for all copies. A thread that the caller then notifies sees them. */
	int (*copy)(struct loom_interrupt *interrupt, uint64_t offset, void *to, const void *from, uint64_t bytes, struct loom_error *err);
	int (*flush)(struct loom_interrupt *interrupt, struct loom_error *err);
};

/* What a policy finds in struct loom_layout. */
struct loom_interrupts {
	size_t size;
	void *stack; /* the core's */
	/* Between start() and stop(): an alarm for the uint64_t at `offset` in the block for `device` of the policy that the
	 * workers call for `kind`. That block must be LOOM_PLACE_DEVICE, and the word below 2^62. LOOM_ENOTSUP: this device
	 * cannot, and why. */
	int (*open)(const struct loom_interrupts *interrupts, uint32_t device, uint32_t kind, uint64_t offset,
		    struct loom_interrupt **interrupt, struct loom_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
