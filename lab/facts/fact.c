/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts/environment.h"

int loom__fact_read(const char *path, char *out, size_t room, char why[200])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	do
		n = fd < 0 ? -1 : read(fd, out, room - 1);
	while (fd >= 0 && n < 0 && errno == EINTR);
	int code = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		snprintf(why, 200, "%s: %s", path, strerror(code));
		return -1;
	}
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
		n--;
	out[n] = 0;
	return 0;
}

int loom__fact_chosen(const char *path, char *out, size_t room, char why[200])
{
	int failed = loom__fact_read(path, out, room, why);
	char *open = failed ? NULL : strchr(out, '['), *close = open ? strchr(open, ']') : NULL;
	if (close) {
		*close = 0;
		memmove(out, open + 1, (size_t)(close - open));
	}
	return failed;
}

void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...)
{
	char why[240];
	va_list args;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	cJSON *o = loom__json_add_object(facts, name);
	loom__json_add_text(o, "null_because", why);
}

void loom__fact_file(cJSON *facts, const char *name, const char *path)
{
	char text[1024], why[200];
	if (loom__fact_read(path, text, sizeof(text), why))
		loom__fact_none(facts, name, "%s", why);
	else
		loom__json_add_text(facts, name, text);
}
