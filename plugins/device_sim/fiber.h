/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: a stack each, on one thread. */
#ifndef GPULOOM_SIM_FIBER_H
#define GPULOOM_SIM_FIBER_H

#include <stddef.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

struct fiber {
#ifdef __x86_64__
	void *at; /* its stack pointer while another one runs */
#else
	ucontext_t at;
#endif
	char *stack; /* NULL: the thread's own */
	size_t bytes;
	void *tsan, *asan; /* what sanitizers keep for it */
};

/* Makes one that will begin with main(), which must not return. Its stack ends at a page that nobody may touch. 0 or
 * errno; again, with the same stack, for one that was left. */
int fiber_make(struct fiber *f, size_t bytes, void (*main)(void));
void fiber_free(struct fiber *f);
/* From the running one to another. Returns when somebody goes back to it. */
void fiber_switch(struct fiber *from, struct fiber *to);
/* First call of a main(), and of who comes back: `from` is where the switch was made. */
void fiber_arrive(struct fiber *me, struct fiber *from);
/* In front of the first switch of a thread: what runs there now. */
void fiber_home(struct fiber *f);

#endif
