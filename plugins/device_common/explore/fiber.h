/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: several stacks on one thread. */
#ifndef GPULOOM_SIM_FIBER_H
#define GPULOOM_SIM_FIBER_H

#include <stddef.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

struct fiber {
#ifdef __x86_64__
	void *at; /* stack pointer, valid while the fiber does not run */
#else
	ucontext_t at;
#endif
	char *stack; /* lowest address of the stack; NULL: the fiber uses the thread's own stack */
	size_t bytes;
	void *tsan, *asan; /* handles of the sanitizers for this fiber */
};

/* Prepares a fiber that starts with main(), which must not return. The stack has a guard page. A call for a fiber that
 * was abandoned reuses its stack. Returns 0 or errno. */
int fiber_make(struct fiber *f, size_t bytes, void (*main)(void));
void fiber_free(struct fiber *f);
/* Switches from the running fiber `from` to `to`. Returns when another fiber switches back to `from`. */
void fiber_switch(struct fiber *from, struct fiber *to);
/* Call it after each switch, in the fiber to which the switch led. me: that fiber. from: the fiber that made the
 * switch. */
void fiber_arrive(struct fiber *me, struct fiber *from);
/* Call it before a thread's first switch. It makes `f` the fiber of the thread's own stack. */
void fiber_home(struct fiber *f);

#endif
