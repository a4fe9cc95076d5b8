/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes that transfer all bytes or fail. */
#ifndef LOOM_LIB_IO_H
#define LOOM_LIB_IO_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* Opens a file that a user has named, for reading. It must be a regular file: to open a FIFO without a writer would
 * take until there is one. Returns -1 after a failure. Then *why has the words to follow the name of the file, and
 * errno is 0 if they do not come from the system. */
static inline int loom__open_input(const char *path, const char **why)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		*why = strerror(errno);
	} else if (S_ISREG(st.st_mode)) {
		return fd;
	} else {
		*why = S_ISDIR(st.st_mode)    ? "is a folder, not a file"
		       : S_ISFIFO(st.st_mode) ? "is a pipe: write its content to a file first"
					      : "is not a regular file";
		errno = 0;
	}
	int number = errno;
	if (fd >= 0)
		close(fd);
	errno = number;
	return -1;
}

/* The same as a stream. Returns NULL after a failure. */
static inline FILE *loom__fopen_input(const char *path, const char **why)
{
	int fd = loom__open_input(path, why);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !f) {
		*why = strerror(errno);
		close(fd);
	}
	return f;
}

#endif
