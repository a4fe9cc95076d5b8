/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/peek.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 }; /* the smallest there is: a piece never crosses into another page */

/* The kernel answers EFAULT where the processor would raise a signal: send the bytes through a
 * pipe. The raw system call also keeps sanitizers, which know better than to read past an object,
 * out of it. */
static size_t through(const int pipe_fd[2], char *to, const char *from, size_t n)
{
	size_t done = 0;
	while (done < n) {
		size_t piece = PAGE - ((uintptr_t)(from + done) & (PAGE - 1));
		if (piece > n - done)
			piece = n - done;
		if (syscall(SYS_write, pipe_fd[1], from + done, piece) != (long)piece)
			break;
		if (read(pipe_fd[0], to + done, piece) != (ssize_t)piece)
			break;
		done += piece;
	}
	return done;
}

size_t loom__peek(void *to, const void *from, size_t n)
{
	int fd[2];
	if (!from || pipe2(fd, O_CLOEXEC | O_NONBLOCK))
		return 0;
	size_t done = through(fd, to, from, n);
	close(fd[0]);
	close(fd[1]);
	return done;
}

int loom__peek_string(char *to, size_t room, const char *from)
{
	size_t n = loom__peek(to, from, room - 1);
	to[n] = 0;
	/* Cut short by unreadable memory and no end before it: not a string. */
	return n == room - 1 || memchr(to, 0, n) ? 0 : -1;
}
