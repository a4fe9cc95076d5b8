/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int finish(int fd, int number)
{
	if (close(fd) && !number)
		number = errno;
	return number;
}

/* Creates a temporary file next to `path`, and sets `name`. The umask applies to this file, as to any output file;
 * mkstemp() would ignore the umask. */
static int open_new(struct loom__text *name, const char *path, mode_t mode)
{
	for (;;) {
		name->length = 0;
		loom__text_add(name, "%s.%ld.%llx.tmp", path, (long)getpid(), (unsigned long long)loom__now_ns());
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
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	return fd < 0 ? errno : finish(fd, loom__write_all(fd, bytes, length));
}

/* Replaces the file `path` in one step. Returns 0 or an errno. */
static int replace(const char *path, mode_t mode, const char *bytes, size_t length)
{
	struct loom__text name = {0};
	int number = 0, fd = open_new(&name, path, mode);
	if (fd < 0) {
		number = errno;
	} else {
		number = loom__write_all(fd, bytes, length);
		if (!number && fsync(fd))
			number = errno;
		number = finish(fd, number);
		if (!number && rename(name.at, path))
			number = errno;
		if (number)
			unlink(name.at);
		if (number == EBUSY) /* a file that is mounted over another one, as in containers, cannot be replaced */
			number = overwrite(path, bytes, length);
	}
	loom__text_free(&name);
	return number;
}

/* Returns the file that opening `path` would reach, or NULL with errno. Unlike realpath(), also follows a link to a
 * file that does not exist yet. The caller frees it. */
static char *target_of(const char *path)
{
	struct loom__text here = {0};
	loom__text_add(&here, "%s", path);
	for (int links = 0; loom__text_ok(&here) && links < 40; links++) {
		char to[PATH_MAX], *real = realpath(here.at, NULL);
		ssize_t n = real || errno != ENOENT ? 0 : readlink(here.at, to, sizeof(to) - 1);
		if (n < 0)
			return here.at;
		if (!n) {
			loom__text_free(&here);
			return real;
		}
		struct loom__text next = {0};
		to[n] = 0;
		loom__beside(&next, here.at, to);
		loom__text_free(&here);
		here = next;
	}
	errno = loom__text_ok(&here) ? ELOOP : ENOMEM;
	loom__text_free(&here);
	return NULL;
}

int loom__file_key(const char *path, struct loom__text *key)
{
	struct stat st;
	if (!stat(path, &st)) { /* also a file in memory, whose name realpath() cannot find */
		loom__text_add(key, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
		return S_ISREG(st.st_mode) && loom__text_ok(key);
	}
	char *real = target_of(path), *slash = real ? strrchr(real, '/') : NULL;
	struct loom__text folder = {0};
	loom__text_add(&folder, "%.*s", slash ? (int)(slash - real + 1) : 1, slash ? real : ".");
	int known = real && loom__text_ok(&folder) && !stat(folder.at, &st);
	if (known)
		loom__text_add(key, "%llu:%llu/%s", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			       slash ? slash + 1 : real);
	loom__text_free(&folder);
	free(real);
	return known && loom__text_ok(key);
}

static FILE *standard_output;

void loom__write_stdout(FILE *out)
{
	standard_output = out;
}

int loom__names_stdout(const char *path)
{
	static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
	char own[40], here[PATH_MAX], next[PATH_MAX];
	snprintf(own, sizeof(own), "/proc/%ld/fd/1", (long)getpid());
	snprintf(here, sizeof(here), "%s", path);
	for (int links = 0; links < 8; links++) { /* the path may be a log file that links to /dev/stdout */
		for (size_t i = 0; i < LOOM__COUNT(names); i++)
			if (!strcmp(here, names[i]))
				return 1;
		if (!strcmp(here, own))
			return 1;
		ssize_t n = readlink(here, next, sizeof(next) - 1);
		if (n <= 0 || next[0] != '/')
			return 0;
		next[n] = 0;
		memcpy(here, next, sizeof(here));
	}
	return 0;
}

static int to_stdout(const char *bytes, size_t length)
{
	FILE *out = standard_output ? standard_output : stdout;
	return fwrite(bytes, 1, length, out) != length || fflush(out) ? errno : 0;
}

int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err)
{
	struct stat st;
	char *real = NULL;
	int number = 0, exists = !stat(path, &st);
	if (loom__names_stdout(path))
		number = to_stdout(bytes, length);
	else if (exists && !S_ISREG(st.st_mode))
		number = overwrite(path, bytes, length);
	else if (!(real = target_of(path)))
		number = errno;
	else
		number = replace(real, exists ? st.st_mode & 0777 : 0666, bytes, length);
	free(real);
	if (!number)
		return 0;
	errno = number;
	return LOOM__FAIL(err, loom__errno_code(number), "cannot write '%s': %m", path);
}

int loom__write_check(const char *path, struct loom_error *err)
{
	struct stat st;
	struct loom__text name = {0};
	char *real = NULL;
	int number = 0, exists = !stat(path, &st);
	if (!*path) {
		number = ENOENT;
	} else if (loom__names_stdout(path)) {
		number = 0;
	} else if (exists && !S_ISREG(st.st_mode)) {
		number = S_ISDIR(st.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	} else if (!(real = target_of(path))) {
		number = errno;
	} else {
		int fd = open_new(&name, real, 0666);
		number = fd < 0 ? errno : finish(fd, 0);
		if (fd >= 0)
			unlink(name.at);
	}
	loom__text_free(&name);
	free(real);
	errno = number;
	return number ? LOOM__FAIL(err, loom__errno_code(number), "cannot write '%s': %m", path) : 0;
}
