/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes that transfer all bytes or fail. */
#ifndef LOOM_LIB_IO_H
#define LOOM_LIB_IO_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Writes all bytes. Returns 0 or an errno. */
static inline int loom__write_all(int fd, const void *from, size_t bytes)
{
	const char *at = (const char *)from;
	while (bytes) {
		ssize_t n = write(fd, at, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Reads all bytes. Returns 0 or an errno, which is also in `errno`. ECONNRESET: the file or connection ended early. */
static inline int loom__read_all(int fd, void *to, size_t bytes)
{
	char *at = (char *)to;
	while (bytes) {
		ssize_t n = read(fd, at, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : (errno = ECONNRESET);
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

#endif
