/* SPDX-License-Identifier: Apache-2.0 */
/* What the core asks of the system: files, the clock, the stack of a thread. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

void loom__beside(struct loom__text *path, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	if (name[0] != '/' && slash)
		loom__text_put(path, file, (size_t)(slash - file) + 1);
	loom__text_add(path, "%s", name);
}

int loom__read_file(const char *path, size_t most, char **bytes, size_t *length, struct loom_error *err)
{
	struct loom__text text = {0};
	const char *why = loom__text_read(&text, path, most);
	int number = errno;
	if (!why) {
		*bytes = text.at;
		*length = text.length;
		return 0;
	}
	int large = !number && text.length > most;
	loom__text_free(&text);
	if (large)
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' %s of %zu bytes", path, why, most);
	return number ? LOOM__FAIL(err, loom__errno_code(number), "cannot read '%s': %s", path, why)
		      : LOOM__FAIL(err, LOOM_EINVAL, "'%s' %s", path, why);
}

uint64_t loom__now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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
	return LOOM__FAIL(err, LOOM_ENOMEM, "the stack of this thread has %zu KiB left, and the call may need %d: "
			"start the thread with a larger one (pthread_attr_setstacksize)", left >> 10, NEEDED >> 10);
}
