/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a word, on CPUs. If a kernel or sandbox refuses the futex call, a sleep is a short nap, so that no caller
 * hangs or spins. If the call works, only a wake ends a sleep without a deadline, so that idle machines stay asleep. */
#ifndef GPULOOM_DEV_FUTEX_H
#define GPULOOM_DEV_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <gpuloom/dev/libc.h>

/* Sleeps while *word is `seen`. The sleep ends by a wake, at `until_ns` on CLOCK_MONOTONIC (0: no deadline), or without
 * a reason. Returns 1 if until_ns has passed. `mine` is FUTEX_PRIVATE_FLAG if no other process maps the word, else
 * 0. */
static inline int loom_futex_sleep(uint32_t *word, uint32_t seen, uint64_t until_ns, int mine)
{
	struct timespec at, nap = {0, 100000};
	at.tv_sec = (time_t)(until_ns / 1000000000u);
	at.tv_nsec = (long)(until_ns % 1000000000u);
	if (!syscall(SYS_futex, word, FUTEX_WAIT_BITSET | mine, seen, until_ns ? &at : NULL, NULL,
		     FUTEX_BITSET_MATCH_ANY))
		return 0;
	if (errno == ETIMEDOUT)
		return 1;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	nanosleep(&nap, NULL);
	if (!until_ns)
		return 0;
	clock_gettime(LOOM_CLOCK, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec >= until_ns;
}

static inline void loom_futex_wake(uint32_t *word, uint32_t most, int mine)
{
	int count = most < 0x7fffffffu ? (int)most : 0x7fffffff;
	if (syscall(SYS_futex, word, FUTEX_WAKE | mine, count, NULL, NULL, 0) < 0)
		syscall(SYS_futex, word, FUTEX_WAKE | mine, count, NULL, NULL, 0);
}

#endif
