/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a launch: started all or none, pinned from the outside, and joined. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "child.h"
#include "device_cpu.h"

enum { START_GO = 1, START_LEAVE = 2 };

/* Lanes of one worker share the device's set: a core for each would be a core for none. */
static int pin(const struct launch *l, uint32_t index)
{
	const struct device *d = l->device;
	if (d->options->pin == PIN_NO)
		return 0;
	hwloc_bitmap_t set = hwloc_bitmap_dup(d->cores.set);
	if (!set)
		return ENOMEM;
	if (d->options->pin == PIN_CORE && l->lanes == 1)
		hwloc_bitmap_only(set, d->cores.cpu[index % d->cores.count]);
	int failed =
	    hwloc_set_thread_cpubind(d->cores.topology, l->lane[index].thread, set, 0) != 0;
	int code = failed ? (errno ? errno : EINVAL) : 0;
	hwloc_bitmap_free(set);
	return code;
}

static void start(struct launch *l, uint32_t word)
{
	/* Release: pairs with the acquire in crew_await_start. */
	__atomic_store_n(&l->start, word, __ATOMIC_RELEASE);
	syscall(SYS_futex, &l->start, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int crew_await_start(struct launch *l)
{
	uint32_t word;
	/* Release: what the thread's start-up did, for await_all. */
	__atomic_fetch_add(&l->here, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &l->here, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while ((word = __atomic_load_n(&l->start, __ATOMIC_ACQUIRE)) == 0)
		syscall(SYS_futex, &l->start, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return word == START_GO;
}

/* Until every thread has begun, and with it let go of the locks of the C library and of sanitizers
 * that its start-up took: another device may fork right after, and its child would never get them.
 */
static void await_all(struct launch *l)
{
	uint32_t here;
	while ((here = __atomic_load_n(&l->here, __ATOMIC_ACQUIRE)) != l->started)
		syscall(SYS_futex, &l->here, FUTEX_WAIT_PRIVATE, here, NULL, NULL, 0);
}

int crew_start(struct launch *l, int *pin_errno)
{
	sigset_t old;
	int code = 0;
	*pin_errno = 0;
	child_block_signals(&old); /* threads inherit the mask: Ctrl-C is the host's thread's */
	for (l->started = 0; l->started < l->workers * l->lanes; l->started++) {
		struct lane *lane = &l->lane[l->started];
		code = pthread_create(&lane->thread, NULL, lane_main, lane);
		if (code)
			break;
		char name[16]; /* the kernel's limit: "cpu:0.w12" in top and gdb */
		snprintf(name, sizeof(name), "%.9s.w%u", l->device->name,
			 (unsigned)(lane->ctx.worker - lane->ctx.first) % 1000u);
		pthread_setname_np(lane->thread, name);
		int failed = pin(l, l->started);
		if (failed && !*pin_errno)
			*pin_errno = failed;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	await_all(l);
	start(l, code ? START_LEAVE : START_GO);
	if (code)
		crew_join(l);
	return code;
}

void crew_join(struct launch *l)
{
	while (l->started > 0)
		pthread_join(l->lane[--l->started].thread, NULL);
}
