/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors for code inside other programs. If the program has closed its standard input, output or error, the next
 * descriptor that is opened gets that number. Then a print statement of the program writes into the new file, and a
 * child that redirects its standard streams replaces it. loom_fd() moves a descriptor to a safe number:
 *
 *   int event = loom_fd(eventfd(0, EFD_CLOEXEC));
 *
 * Use these functions for descriptors that stay open, or that a child inherits. */
#ifndef LOOM_LIB_FD_H
#define LOOM_LIB_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The C library hides these names under -std=c11 without feature macros. */
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

/* Moves a descriptor to a number above 2, and marks it to be closed at exec. Returns the new number, or -1 with errno.
 * If `fd` is above 2 or is -1, returns it unchanged. */
static inline int loom_fd(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, LOOM_FD_ABOVE, STDERR_FILENO + 1), code = errno;
	close(fd);
	errno = code;
	return above;
}

/* Moves both descriptors of a pipe() or socketpair() that returned `rc`. Returns 0, or -1 with errno and both
 * closed. */
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

/* Call this before a library function that opens descriptors and keeps them. It opens /dev/null on each closed standard
 * stream, so that the library cannot get these numbers. Returns a set of bits for loom_fd_release(), which closes
 * them. */
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
