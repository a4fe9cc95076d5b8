/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors for code that runs inside of other programs: a program may have closed its standard input, output or
 * error, and the next descriptor that is opened gets that number. A child that redirects its standard streams then
 * replaces it, and a print statement of the program writes into it.
 *
 *   int event = loom_fd(eventfd(0, EFD_CLOEXEC));
 *
 * For descriptors that stay open, and for those that a child inherits. */
#ifndef LOOM_LIB_FD_H
#define LOOM_LIB_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The C library hides these with -std=c11 and no feature macro. */
#ifdef F_DUPFD_CLOEXEC
#define LOOM_FD_ABOVE F_DUPFD_CLOEXEC
#define LOOM_FD_CLOEXEC O_CLOEXEC
#else
#define LOOM_FD_ABOVE 1030
#define LOOM_FD_CLOEXEC 02000000
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The same file at a number above 2, closed at exec, or -1 and errno. A number above 2, or -1, comes back as it is. */
static inline int loom_fd(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, LOOM_FD_ABOVE, STDERR_FILENO + 1), code = errno;
	close(fd);
	errno = code;
	return above;
}

/* Both of a pipe() or socketpair(), which returned `rc`: 0, or -1 and errno, and neither is open. */
static inline int loom_fd_pair(int rc, int fd[2])
{
	if (rc == 0) {
		fd[0] = loom_fd(fd[0]);
		fd[1] = loom_fd(fd[1]);
		if (fd[0] >= 0 && fd[1] >= 0)
			return 0;
		rc = errno;
		for (int i = 0; i < 2; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		errno = rc;
	}
	fd[0] = fd[1] = -1;
	return -1;
}

/* For a call into a library that opens descriptors of its own and keeps them: occupies those of the standard streams
 * that are closed, until loom_fd_release() gets what this returned. */
static inline unsigned loom_fd_hold(void)
{
	unsigned held = 0;
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (fcntl(i, F_GETFD) < 0) {
			int null = open("/dev/null", O_RDONLY | LOOM_FD_CLOEXEC);
			if (null == i)
				held |= 1u << i;
			else if (null >= 0)
				close(null);
		}
	return held;
}

static inline void loom_fd_release(unsigned held)
{
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (held & 1u << i)
			close(i);
}

#ifdef __cplusplus
}
#endif
#endif
