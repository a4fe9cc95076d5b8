/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a launch. Either all of them start or none. The thread that starts them also pins and joins them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "lib/child.h"
#include "lib/thread.h"
#include "device_cpu.h"

/* Pins a thread. The lanes of a worker are pinned to all cores of the device, because the device may have only one core
 * per worker. */
static int pin(const struct launch *l, uint32_t index)
{
	const struct device *d = l->device;
	if (d->options->pin == PIN_NO)
		return 0;
	struct cores_set one = {0}, *set = &l->device->cores.set;
	if (l->lane[index].core != CORE_ANY)
		cores_add(set = &one, l->lane[index].core);
	return pthread_setaffinity_np(l->lane[index].thread, sizeof(set->part), set->part);
}

static void start(struct launch *l, uint32_t word)
{
	/* Release: pairs with the acquire in await_start() of worker.c. */
	__atomic_store_n(&l->start, word, __ATOMIC_RELEASE);
	loom_futex_wake(&l->start, INT_MAX, FUTEX_PRIVATE_FLAG);
}

/* Waits until every thread runs. The start of a thread takes locks of the C library and of sanitizers. If another
 * device forked while a lock is held, the lock would stay locked in its child. A thread that runs has released the
 * locks. */
static void await_all(struct launch *l)
{
	uint32_t here;
	while ((here = __atomic_load_n(&l->here, __ATOMIC_ACQUIRE)) != l->started)
		loom_futex_sleep(&l->here, here, 0, FUTEX_PRIVATE_FLAG);
}

static void *run_lane(void *arg)
{
	lane_main(arg);
	return NULL;
}

static void *thread_main(void *arg)
{
	return thread_on_two_stacks(run_lane, arg);
}

int threads_start(struct launch *l, int *pin_errno)
{
	sigset_t old;
	int code = 0;
	*pin_errno = 0;
	child_block_signals(&old); /* threads inherit this mask, so that the host thread gets the signal of Ctrl-C */
	for (l->started = 0; l->started < l->workers * l->lanes; l->started++) {
		struct lane *lane = &l->lane[l->started];
		code = thread_create(&lane->thread, thread_main, lane);
		if (code)
			break;
		char name[16]; /* the kernel's limit is 16 bytes; top and gdb show such a name: "cpu:0.w12" */
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
		threads_join(l);
	return code;
}

void threads_join(struct launch *l)
{
	while (l->started > 0)
		pthread_join(l->lane[--l->started].thread, NULL);
}
