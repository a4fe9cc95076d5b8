/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
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

/* Appends what fd has to t, up to most + 1 bytes. Returns 0 or an errno. */
static int read_to_end(int fd, size_t most, struct loom__text *t)
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

int loom__errno_code(int number)
{
	return number == ENOENT ? LOOM_ENOENT : number == ENOMEM ? LOOM_ENOMEM : LOOM_EIO;
}

int loom__read_file(const char *path, size_t most, char **bytes, size_t *length, struct loom_error *err)
{
	struct loom__text text = {0};
	struct stat st;
	int code = 0;
	/* With O_NONBLOCK, opening a pipe that has no writer does not hang. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		code = LOOM__FAIL(err, loom__errno_code(errno), "cannot read '%s': %m", path);
	} else if (S_ISDIR(st.st_mode)) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is a folder, not a file", path);
	} else if (S_ISFIFO(st.st_mode)) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is a pipe: write its content to a file first", path);
	} else if (!S_ISREG(st.st_mode)) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not a regular file", path);
	} else if ((errno = read_to_end(fd, most, &text))) {
		code = LOOM__FAIL(err, loom__errno_code(errno), "cannot read '%s': %m", path);
	} else if (text.length > most) {
		code = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is larger than the limit of %zu bytes", path, most);
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
