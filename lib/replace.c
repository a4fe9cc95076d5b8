/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io.h"

int loom__open_beside(struct loom__text *name, const char *path, mode_t mode)
{
	for (unsigned i = 0;; i++) {
		name->length = 0;
		loom__text_add(name, "%s.%ld.%u.tmp", path, (long)getpid(), i);
		if (!loom__text_ok(name)) {
			errno = ENOMEM;
			return -1;
		}
		int fd = open(name->at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
}

/* Writes into a file or device as it is. Returns 0 or an errno. */
static int overwrite(const char *path, const char *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), number = fd < 0 ? errno : loom__write_all(fd, bytes, length);
	return fd >= 0 && close(fd) && !number ? errno : number;
}

int loom__replace(const char *path, const char *bytes, size_t length)
{
	struct stat st;
	int exists = !stat(path, &st), number = 0;
	if (exists && !S_ISREG(st.st_mode))
		return overwrite(path, bytes, length);
	struct loom__text name = {0};
	char *real = exists ? realpath(path, NULL) : NULL;
	int fd = loom__open_beside(&name, real ? real : path, exists ? st.st_mode & 0777 : 0666);
	if (fd < 0) {
		number = errno;
	} else {
		number = loom__write_all(fd, bytes, length);
		if (!number && fsync(fd))
			number = errno;
		if (close(fd) && !number)
			number = errno;
		if (!number && rename(name.at, real ? real : path))
			number = errno;
		if (number)
			unlink(name.at);
		if (number == EBUSY) /* a file that is mounted over another one, as in containers, cannot be replaced */
			number = overwrite(path, bytes, length);
	}
	loom__text_free(&name);
	free(real);
	return number;
}
