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

#include "lib/replace.h"

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
	int number = 0;
	char *real = NULL;
	if (loom__names_stdout(path))
		number = to_stdout(bytes, length);
	else if (!access(path, F_OK))
		number = loom__replace(path, bytes, length);
	else if (!(real = target_of(path)))
		number = errno;
	else
		number = loom__replace(real, bytes, length);
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
		int fd = loom__open_beside(&name, real, 0666);
		number = fd < 0 || close(fd) ? errno : 0;
		if (fd >= 0)
			unlink(name.at);
	}
	loom__text_free(&name);
	free(real);
	errno = number;
	return number ? LOOM__FAIL(err, loom__errno_code(number), "cannot write '%s': %m", path) : 0;
}
