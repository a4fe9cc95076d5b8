/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPULOOM_THREAD_H
#define GPULOOM_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

/* Creates a thread as pthread_create() does, but returns ENOMEM if memory ran out. EAGAIN then means only that a limit
 * on threads was reached. */
static inline int thread_create(pthread_t *thread, void *(*main)(void *), void *arg)
{
	errno = 0;
	int code = pthread_create(thread, NULL, main, arg);
	return code == EAGAIN && errno == ENOMEM ? ENOMEM : code;
}

/* Returns main(arg). A part of this thread's stack becomes the stack of signal handlers, so that the program's handler
 * can report that the rest of the stack has overflowed. A sanitizer has its own, which stays. */
static inline void *thread_on_two_stacks(void *(*main)(void *), void *arg)
{
	char room[16384]; /* enough for the registers of any processor so far, of which AMX alone has 8 KiB */
	stack_t own = {.ss_sp = room, .ss_size = sizeof(room)}, was;
	int set = !sigaltstack(NULL, &was) && was.ss_flags & SS_DISABLE && !sigaltstack(&own, NULL);
	void *result = main(arg);
	if (set)
		sigaltstack(&was, NULL);
	return result;
}

struct thread_start {
	void *(*main)(void *);
	void *arg;
	sem_t runs;
};

static inline void *thread_start_main(void *arg)
{
	struct thread_start *start = (struct thread_start *)arg, own = *start;
	sem_post(&start->runs); /* the last access, because thread_start() then returns */
	return own.main(own.arg);
}

/* Creates a thread, and returns when it runs. The start of a thread takes locks of the C library and of sanitizers. If
 * this process forked while a lock is held, the lock would stay locked in the child. So threads that the host starts
 * before it forks (isolation = process) are created by this function. */
static inline int thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	struct thread_start start = {.main = main, .arg = arg};
	sem_init(&start.runs, 0, 0);
	int code = thread_create(thread, thread_start_main, &start);
	while (!code && sem_wait(&start.runs) && errno == EINTR)
		;
	sem_destroy(&start.runs);
	return code;
}

#endif
