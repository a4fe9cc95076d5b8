/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

void loom__beside(struct loom__text *path, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	if (name[0] != '/' && slash)
		loom__text_put(path, file, (size_t)(slash - file) + 1);
	loom__text_add(path, "%s", name);
}

/* Appends all that fd has, at most most + 1 bytes. 0 or errno. */
static int read_all(int fd, size_t most, struct loom__text *t)
{
	char part[16384];
	loom__text_put(t, "", 0);
	while (t->length <= most) {
		size_t want = most + 1 - t->length;
		ssize_t n = read(fd, part, want < sizeof(part) ? want : sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (!n)
			break;
		loom__text_put(t, part, (size_t)n);
		if (!loom__text_ok(t))
			return ENOMEM;
	}
	return loom__text_ok(t) ? 0 : ENOMEM;
}

static int code_of(int number)
{
	return number == ENOENT ? LOOM_ENOENT : number == ENOMEM ? LOOM_ENOMEM : LOOM_EIO;
}

int loom__read_file(const char *path, size_t most, char **bytes, size_t *length,
		    struct loom_error *err)
{
	struct loom__text text = {0};
	struct stat st;
	int code = 0;
	/* O_NONBLOCK: opening a pipe that nobody writes to must not hang. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		code = LOOM__FAIL(err, code_of(errno), "cannot read '%s': %m", path);
	} else if (S_ISDIR(st.st_mode)) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is a folder, not a file", path);
	} else if (!S_ISREG(st.st_mode)) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not a regular file", path);
	} else if ((errno = read_all(fd, most, &text))) {
		code = LOOM__FAIL(err, code_of(errno), "cannot read '%s': %m", path);
	} else if (text.length > most) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is larger than the limit of %zu bytes",
				  path, most);
	}
	if (fd >= 0)
		close(fd);
	if (code) {
		loom__text_free(&text);
		return code;
	}
	*bytes = text.at;
	*length = text.length;
	return 0;
}

/* 0 or errno. */
static int write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t n = write(fd, bytes, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

static int finish(int fd, int number)
{
	if (close(fd) && !number)
		number = errno;
	return number;
}

/* Unlike mkstemp, leaves the permissions to the umask, as for any file that a user asked for. */
static int open_new(struct loom__text *name, const char *path, mode_t mode)
{
	for (;;) {
		name->length = 0;
		loom__text_add(name, "%s.%ld.%llx.tmp", path, (long)getpid(),
			       (unsigned long long)loom__now_ns());
		if (!loom__text_ok(name)) {
			errno = ENOMEM;
			return -1;
		}
		int fd = open(name->at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
}

/* 0 or errno. */
static int replace(const char *path, mode_t mode, const char *bytes, size_t length)
{
	struct loom__text name = {0};
	int number = 0, fd = open_new(&name, path, mode);
	if (fd < 0) {
		number = errno;
	} else {
		number = write_all(fd, bytes, length);
		if (!number && fsync(fd))
			number = errno;
		number = finish(fd, number);
		if (!number && rename(name.at, path))
			number = errno;
		if (number)
			unlink(name.at);
	}
	loom__text_free(&name);
	return number;
}

int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err)
{
	struct stat st;
	char *real = NULL;
	int number = 0, exists = !stat(path, &st);
	if (exists && !S_ISREG(st.st_mode)) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		number = fd < 0 ? errno : finish(fd, write_all(fd, bytes, length));
	} else if (exists && !(real = realpath(path, NULL))) {
		number = errno;
	} else {
		number =
		    replace(real ? real : path, exists ? st.st_mode & 0777 : 0666, bytes, length);
	}
	free(real);
	if (!number)
		return 0;
	errno = number;
	return LOOM__FAIL(err, code_of(number), "cannot write '%s': %m", path);
}

int loom__write_check(const char *path, struct loom_error *err)
{
	struct stat st;
	struct loom__text name = {0};
	char *real = NULL;
	int number = 0, exists = !stat(path, &st);
	if (!*path) {
		number = ENOENT;
	} else if (exists && !S_ISREG(st.st_mode)) {
		number = S_ISDIR(st.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	} else if (exists && !(real = realpath(path, NULL))) {
		number = errno;
	} else {
		int fd = open_new(&name, real ? real : path, 0666);
		number = fd < 0 ? errno : finish(fd, 0);
		if (fd >= 0)
			unlink(name.at);
	}
	loom__text_free(&name);
	free(real);
	errno = number;
	return number ? LOOM__FAIL(err, code_of(number), "cannot write '%s': %m", path) : 0;
}
