/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPULOOM_THREAD_H
#define GPULOOM_THREAD_H

#include <errno.h>
#include <pthread.h>

/* Creates a thread as pthread_create() does, but returns ENOMEM if memory ran out. EAGAIN then means only that a limit
 * on threads was reached. */
static inline int thread_create(pthread_t *thread, void *(*main)(void *), void *arg)
{
	errno = 0;
	int code = pthread_create(thread, NULL, main, arg);
	return code == EAGAIN && errno == ENOMEM ? ENOMEM : code;
}

#endif
