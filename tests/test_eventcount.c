/* SPDX-License-Identifier: Apache-2.0 */
/* Tests lib/eventcount.h under threads: no wake-up is lost, and every wait ends. A waiter that misses a wake-up sleeps
 * until the test's time limit. make SAN=thread check-concurrent runs this test under ThreadSanitizer. */
#include "support.h"

#include <pthread.h>
#include <string.h>

#include "lib/eventcount.h"

#define WAITERS 3
#define ROUNDS 3000u

static struct {
	uint32_t word, waiters, waking, pad[13];
	uint32_t tasks, stop, taken;
} e;

static void run_waiters(void *(*run)(void *), void *arg)
{
	pthread_t thread[WAITERS];
	for (int i = 0; i < WAITERS; i++)
		CU_ASSERT_FALSE_FATAL(pthread_create(&thread[i], NULL, run, arg));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (arg) { /* without tasks, the eventcount's word is itself the condition */
			__atomic_fetch_add(&e.word, 1u, __ATOMIC_RELEASE);
			eventcount_notify(NULL, &e.word, &e.waiters);
		} else {
			__atomic_fetch_add(&e.tasks, 1u, __ATOMIC_RELEASE);
			eventcount_advance_one(NULL, &e.word, &e.waiters, &e.waking);
		}
		if (i % 64 == 0)
			loom_cpu_yield();
	}
	while (!arg && __atomic_load_n(&e.taken, __ATOMIC_ACQUIRE) < ROUNDS)
		loom_cpu_yield();
	__atomic_store_n(&e.stop, 1u, __ATOMIC_RELEASE);
	eventcount_advance(NULL, &e.word, &e.waiters, EVENTCOUNT_ALL);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(thread[i], NULL);
}

static void *await_word(void *arg)
{
	for (uint32_t want = 1; want <= ROUNDS; want++) {
		(void)eventcount_enter(&e.word, &e.waiters);
		for (uint32_t now; (now = __atomic_load_n(&e.word, __ATOMIC_ACQUIRE)) < want;)
			loom_futex_sleep(&e.word, now, 0, 0);
		eventcount_leave(&e.waiters);
	}
	return arg;
}

TEST(word_is_the_condition)
{
	memset(&e, 0, sizeof(e));
	run_waiters(await_word, &e);
	CU_ASSERT_EQUAL(e.waiters, 0);
}

static int take(void)
{
	uint32_t left = __atomic_load_n(&e.tasks, __ATOMIC_ACQUIRE);
	while (left)
		if (__atomic_compare_exchange_n(&e.tasks, &left, left - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return 1;
	return 0;
}

/* Takes tasks without polling. If a wake-up were lost, tasks would remain, and run_waiters() would wait for them
 * forever. */
static void *take_tasks(void *arg)
{
	while (!__atomic_load_n(&e.stop, __ATOMIC_ACQUIRE)) {
		uint32_t seen = eventcount_enter_one(&e.word, &e.waiters, &e.waking);
		int got = take();
		if (!got && !__atomic_load_n(&e.stop, __ATOMIC_ACQUIRE))
			loom_futex_sleep(&e.word, seen, 0, 0);
		eventcount_leave_one(&e.waiters, &e.waking);
		for (got += take(); got; got = take()) {
			__atomic_fetch_add(&e.taken, (uint32_t)got, __ATOMIC_RELEASE);
			if (__atomic_load_n(&e.tasks, __ATOMIC_ACQUIRE)) /* wakes one more waiter while tasks are left */
				eventcount_advance_one(NULL, &e.word, &e.waiters, &e.waking);
		}
	}
	return arg;
}

TEST(one_wake_up_at_a_time)
{
	memset(&e, 0, sizeof(e));
	run_waiters(take_tasks, NULL);
	CU_ASSERT_EQUAL(e.taken, ROUNDS);
	CU_ASSERT_EQUAL(e.waiters, 0);
}

TEST(descriptor)
{
	int fd = eventcount_fd_open();
	struct pollfd on = {.fd = fd, .events = POLLIN};
	CU_ASSERT_TRUE_FATAL(fd > 2);
	CU_ASSERT_EQUAL(poll(&on, 1, 0), 0);
	eventcount_fd_notify(fd);
	eventcount_fd_notify(fd);
	CU_ASSERT_EQUAL(poll(&on, 1, -1), 1);
	eventcount_fd_drain(fd);
	CU_ASSERT_EQUAL(poll(&on, 1, 0), 0);
	close(fd);
}

TEST_MAIN("eventcount", 60)
