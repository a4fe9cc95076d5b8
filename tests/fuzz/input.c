/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static FILE *real_stderr, *caught;
static char *caught_text;
static size_t caught_bytes;

_Noreturn void fuzz_fail(const char *file, int line, const char *what)
{
	if (real_stderr)
		stderr = real_stderr;
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

char *fuzz_part(struct fuzz_parts *parts, size_t *n)
{
	const uint8_t *begin = parts->at, *end = begin + parts->left, *stop = end, *next = end;
	for (const uint8_t *line = begin; line < end;) {
		const uint8_t *feed = memchr(line, '\n', (size_t)(end - line));
		if ((feed ? feed : end) - line == 2 && !memcmp(line, "%%", 2)) {
			stop = line;
			next = feed ? feed + 1 : end;
			break;
		}
		line = feed ? feed + 1 : end;
	}
	size_t length = (size_t)(stop - begin);
	if (length && stop != end)
		length--; /* omits the line feed before "%%" */
	char *text = malloc(length + 1);
	if (!text)
		abort();
	if (length)
		memcpy(text, begin, length);
	text[length] = 0;
	parts->at = next;
	parts->left = (size_t)(end - next);
	if (n)
		*n = length;
	return text;
}

void fuzz_lines(char *text, void (*each)(void *arg, char *line), void *arg)
{
	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');
		int last = !*end;
		*end = 0;
		each(arg, line);
		line = last ? end : end + 1;
	}
}

/* Returns a descriptor number that is above all other descriptors and is the same in each run. */
static int descriptor(unsigned number)
{
	return 900 + (int)number;
}

const char *fuzz_file(unsigned number, const void *bytes, size_t n)
{
	static char path[FUZZ_FILES][32];
	int fd = descriptor(number);
	if (!*path[number]) {
		int made = memfd_create("fuzz", 0);
		if (made < 0 || dup2(made, fd) != fd || fchmod(fd, 0600))
			abort();
		close(made);
		snprintf(path[number], sizeof(path[number]), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		abort();
	return path[number];
}

char *fuzz_file_bytes(unsigned number, size_t *n)
{
	struct stat st;
	if (fstat(descriptor(number), &st))
		abort();
	char *bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || pread(descriptor(number), bytes, (size_t)st.st_size, 0) != st.st_size)
		abort();
	bytes[st.st_size] = 0;
	*n = (size_t)st.st_size;
	return bytes;
}

void fuzz_printable(const char *what, const char *text, size_t n)
{
	for (size_t i = 0, length; i < n; i += length) {
		const unsigned char *u = (const unsigned char *)text + i;
		length = loom__utf8(text + i, n - i);
		if (length && (u[0] >= 0x20 || u[0] == '\n' || u[0] == '\t') && u[0] != 0x7f &&
		    !(u[0] == 0xc2 && u[1] < 0xa0))
			continue;
		if (real_stderr)
			stderr = real_stderr;
		fprintf(stderr, "%s: %s at byte %zu: %.*s<0x%02x>\n", what,
			length ? "a control character" : "not UTF-8", i, i < 200 ? (int)i : 200,
			text + (i < 200 ? 0 : i - 200), u[0]);
		abort();
	}
}

void fuzz_stderr_begin(void)
{
	fflush(stderr);
	real_stderr = stderr;
	caught = open_memstream(&caught_text, &caught_bytes);
	if (!caught)
		abort();
	stderr = caught;
}

void fuzz_stderr_end(void)
{
	stderr = real_stderr;
	fclose(caught);
	fuzz_printable("stderr", caught_text, caught_bytes);
	free(caught_text);
}
