/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/must.h"
#include "lib/child.h"

#define MOST_NS 120000000000ull
#define WHERE   "or convert it on another machine: python3 -m gpuloom.foreign FILE"

extern char **environ;

/* Returns a file in memory that a child can get as a standard stream, or -1 and errno. */
static int open_memory(const char *name)
{
	int low = memfd_create(name, MFD_CLOEXEC), fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, CHILD_ANSWER + 1);
	int code = errno;
	if (low >= 0)
		close(low);
	errno = code;
	return fd;
}

static size_t size_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) || st.st_size < 0 ? 0 : (size_t)st.st_size;
}

/* Returns up to `most` bytes of the file, with a NUL behind them. The caller frees them. */
static char *bytes_of(int fd, size_t most, size_t *length)
{
	size_t n = size_of(fd), at = 0;
	n = n < most ? n : most;
	char *bytes = loom__must(malloc(n + 1));
	for (ssize_t got; at < n && (got = pread(fd, bytes + at, n - at, (off_t)at)) > 0;)
		at += (size_t)got;
	bytes[at] = 0;
	*length = at;
	return bytes;
}

/* Returns the environment without variables of gpuloom and of Python. */
static char **child_environment(void)
{
	size_t n = 0, all = 0;
	while (environ && environ[all])
		all++;
	char **env = loom__must(calloc(all + 1, sizeof(*env)));
	for (size_t i = 0; i < all; i++)
		if (strncmp(environ[i], "GPULOOM_", 8) && strncmp(environ[i], "PYTHON", 6))
			env[n++] = environ[i];
	return env;
}

/* Waits until the converter has ended. Ends it if it takes too long or writes too much, and returns the reason, or
 * NULL. */
static const char *await(const struct child *child, int out)
{
	uint64_t end = loom__now_ns() + MOST_NS;
	while (!child_ended(child, 20000000)) {
		const char *why = loom__now_ns() > end            ? "takes longer than two minutes"
				  : size_of(out) > LOOM__DOC_MOST ? "becomes too large"
								  : NULL;
		if (why) {
			child_signal_group(child, SIGKILL);
			return why;
		}
		if (child->fd < 0) /* without a pidfd child_ended() does not wait */
			usleep(10000);
	}
	return NULL;
}

/* Runs the converter. Its output goes to `out` and `say`. */
static int run(char *const *command, const char *path, int in, int out, int say, struct loom_error *err)
{
	struct child child;
	const char *step, *why;
	char **env = child_environment();
	int rc = child_start(
	    &child,
	    &(struct child_program){.argv = command, .env = env, .in = in, .out = out, .err = say, .end = SIGKILL},
	    &step);
	free(env);
	if (rc == ENOENT)
		return LOOM__FAIL(err, LOOM_ENOENT,
				  "'%s' is not a result of gpuloom, and python3, which reads files of other "
				  "benchmark programs, is not installed: install python3, " WHERE,
				  path);
	if (rc)
		return LOOM__FAIL(err, LOOM_EIO, "cannot start python3: %s: %s", step, strerror(rc));
	why = await(&child, out);
	int status = child_wait(&child, NULL);
	if (why)
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s': its conversion %s: select some of its benchmarks", path,
				  why);
	if (!status)
		return 0;
	size_t length;
	char *text = bytes_of(say, 1 << 16, &length), end[120];
	while (length && strchr("\r\n ", text[length - 1]))
		text[--length] = 0;
	const char *last = strrchr(text, '\n'); /* the last line of a traceback has the error */
	child_end_text(status, end, sizeof(end));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2 && length && !last)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "%s", text);
	else
		rc = LOOM__FAIL(err, LOOM_EIO, "'%s': the converter for files of other programs %s: %s", path, end,
				last ? last + 1 : text);
	free(text);
	return rc;
}

/* Converts the files, which are doc[at[0 .. n]], of `docs` files in all. */
static int convert(const char *converter, const char *const *path, const size_t *at, size_t n, size_t docs,
		   struct loom__doc *doc, struct loom_error *err)
{
	static char python[] = "python3", isolated[] = "-I", lean[] = "-S", variants[] = "--variants", files[] = "--";
	char **command = loom__must(calloc(n + 8, sizeof(*command))), *lines = NULL;
	size_t words = 0, length;
	if (!converter || access(converter, R_OK)) {
		free(command);
		return LOOM__FAIL(
		    err, LOOM_ENOENT,
		    "'%s' is not a result of gpuloom, and python/gpuloom/foreign.py, which reads "
		    "files of other benchmark programs, is not beside this gpuloom: install gpuloom again, " WHERE,
		    path[at[0]]);
	}
	command[words++] = python;
	command[words++] = isolated; /* no module from the current folder or the user's folders */
	command[words++] = lean;
	command[words++] = (char *)(uintptr_t)converter;
	if (docs == 1)
		command[words++] = variants;
	command[words++] = files;
	for (size_t i = 0; i < n; i++)
		command[words++] = (char *)(uintptr_t)path[at[i]];
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out = open_memory("converted"), say = open_memory("messages");
	int low = in, rc = 0;
	in = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, CHILD_ANSWER + 1);
	if (in < 0 || out < 0 || say < 0)
		rc = LOOM__FAIL(err, LOOM_EIO, "cannot open files for a child process: %m");
	rc = rc ? rc : run(command, path[at[0]], in, out, say, err);
	if (!rc)
		lines = bytes_of(out, LOOM__DOC_MOST, &length);
	const char *line = lines;
	for (size_t i = 0; i < n && !rc; i++) {
		size_t end = strcspn(line, "\n");
		rc = loom__doc_parse(path[at[i]], loom__must(strndup(line, end)), end, &doc[at[i]], err);
		line += end + (line[end] == '\n');
	}
	int opened[] = {low, in, out, say};
	for (size_t i = 0; i < LOOM__COUNT(opened); i++)
		if (opened[i] >= 0)
			close(opened[i]);
	free(lines);
	free(command);
	return rc;
}

int loom__docs_read(const char *converter, const char *const *path, size_t n, struct loom__doc *doc,
		    struct loom_error *err)
{
	size_t *strange = loom__must(calloc(n + 1, sizeof(*strange))), stranger = 0;
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		rc = loom__doc_read(path[i], &doc[i], err);
		if (rc && doc[i].strange) {
			strange[stranger++] = i;
			rc = 0;
		}
	}
	if (!rc && stranger)
		rc = convert(converter, path, strange, stranger, n, doc, err);
	free(strange);
	return rc;
}
