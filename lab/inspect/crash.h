/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out where and how this process crashes, for signal handlers: apart from loom__crash_catch(), the functions take
 * no lock and no memory. */
#ifndef LOOM_CRASH_H
#define LOOM_CRASH_H

#include <signal.h>
#include <stdint.h>

#include "base/base.h"

struct loom__crash {
	char text[16 << 10];
	size_t length;    /* of the text */
	const char *file; /* the file whose code is probably at fault, and the offset in it; NULL: not known */
	uintptr_t offset;
	int of_cpu; /* 1: the thread is a worker of device_cpu, in the process of the command */
};

/* Calls `handler` when this process crashes, also if the stack of the main thread has overflowed. With `missing`,
 * signals that have a handler keep it, as those of a sanitizer, which tell more. */
void loom__crash_catch(void (*handler)(int number, siginfo_t *info, void *context), int missing);

/* Appends formatted text. vsnprintf() of glibc takes memory only for long numbers with a width or a precision. */
void loom__crash_put(struct loom__crash *c, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Returns to the first thread that crashes, which is to end the process. Other threads wait for that. */
void loom__crash_alone(void);
/* Appends the thread, the signal and the place: "worker 1 of cpu:0 crashed (SIGSEGV, access to a null pointer), in
 * sched_mine.so at offset 0x1139". The arguments are those of the handler. */
void loom__crash_say(struct loom__crash *c, int number, const siginfo_t *info, const void *context);

#endif
