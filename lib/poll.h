/* SPDX-License-Identifier: Apache-2.0 */
/* A wait for descriptors that cannot become a busy loop. */
#ifndef GPULOOM_POLL_H
#define GPULOOM_POLL_H

#include <errno.h>
#include <poll.h>
#include <time.h>

/* Waits as ppoll() does without a signal mask. ppoll() may fail without waiting: if a sandbox refuses it, if memory
 * runs out, or if `n` exceeds RLIMIT_NOFILE. Then this function sleeps for 1 ms and returns -1 with the errno, so a
 * loop that also checks its conditions by other means goes on. After a failure all revents are 0. */
static inline int poll_or_nap(struct pollfd *on, nfds_t n, const struct timespec *most)
{
	int ready = ppoll(on, n, most, NULL), code = errno;
	if (ready >= 0)
		return ready;
	for (nfds_t i = 0; i < n; i++)
		on[i].revents = 0;
	if (code != EINTR)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	errno = code;
	return -1;
}

#endif
