/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base/base.h"

enum { NEEDED = 64 << 10 };

int loom__stack_room(struct loom_error *err)
{
	pthread_attr_t attr;
	void *begin = NULL;
	size_t bytes = 0;
	if (pthread_getattr_np(pthread_self(), &attr))
		return 0;
	int unknown = pthread_attr_getstack(&attr, &begin, &bytes);
	pthread_attr_destroy(&attr);
	size_t left = (size_t)((char *)__builtin_frame_address(0) - (char *)begin);
	/* A program may have switched to a stack of its own. */
	if (unknown || left >= bytes || left >= NEEDED)
		return 0;
	return LOOM__FAIL(err, LOOM_ENOMEM,
			  "the stack of this thread has %zu KiB left, and the call may need %d: start the thread with "
			  "a larger one (pthread_attr_setstacksize)",
			  left >> 10, NEEDED >> 10);
}
