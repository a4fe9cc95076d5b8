/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int say(const struct loom__journal *j, const char *what, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EIO, "cannot %s '%s': %m", what, j->path);
}

/* Locks the file, and retries for 2 s, because workers of a gpuloom that was just killed may still hold the lock. Some
 * file systems have no locks, as Lustre without the mount option flock. */
static int lock(struct loom__journal *j, struct loom_error *err)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	for (int i = 0; flock(j->fd, LOCK_EX | LOCK_NB); i++) {
		j->unlocked = errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL;
		if (j->unlocked)
			break;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return say(j, "lock", err);
		if (i == 40)
			return LOOM__FAIL(err, LOOM_EBUSY, "another gpuloom is writing to '%s'", j->path);
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Reads the complete lines of the file. An incomplete last line is cut later, by loom__journal_add(). */
static int read_before(struct loom__journal *j, struct loom_error *err)
{
	char *bytes;
	size_t length;
	int rc = loom__read_file(j->path, LOOM__DOC_MOST, &bytes, &length, err);
	if (rc)
		return rc;
	const char *last = memrchr(bytes, '\n', length);
	size_t whole = last ? (size_t)(last - bytes) + 1 : 0;
	if (!whole) {
		/* If no line is complete, the file must at least start like the file of a sweep. If it does not, it is
		 * a file of another kind. */
		size_t begun = sizeof(LOOM__JOURNAL_BEGINNING) - 1;
		if (memcmp(bytes, LOOM__JOURNAL_BEGINNING, length < begun ? length : begun))
			rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not the file of a sweep, and was not changed: "
					"choose another file, or remove it", j->path);
		free(bytes);
	} else {
		bytes[whole] = 0;
		rc = loom__doc_parse(j->path, bytes, whole, &j->before, err);
		if (!rc && j->before.kind != LOOM__DOC_SWEEP) {
			loom__doc_free(&j->before);
			rc = LOOM__FAIL(err, LOOM_EINVAL,
					"'%s' is not the file of a sweep, and was not changed: choose another "
					"file, or remove it",
					j->path);
		}
	}
	j->torn = !rc && whole < length;
	j->whole = (off_t)whole;
	return rc;
}

static int take_file(struct loom__journal *j, enum loom__journal_mode mode, struct loom_error *err)
{
	struct stat st;
	/* With O_NONBLOCK, opening a terminal or a pipe neither blocks nor changes its state. */
	j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
	if (j->fd < 0 || fstat(j->fd, &st))
		return say(j, "open", err);
	if (!S_ISREG(st.st_mode))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not a regular file", j->path);
	int rc = lock(j, err);
	if (rc)
		return rc;
	j->created = !st.st_size;
	if (!st.st_size)
		return 0;
	if (mode == LOOM__JOURNAL_NEW)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "'%s' exists: --resume continues it, --restart discards it, another "
				  "name keeps it",
				  j->path);
	rc = read_before(j, err);
	if (!rc && mode == LOOM__JOURNAL_RESTART) {
		loom__doc_free(&j->before);
		j->torn = 1;
		j->whole = 0;
	}
	return rc;
}

int loom__journal_open(const char *path, FILE *stream, enum loom__journal_mode mode, struct loom__journal *j,
		       struct loom_error *err)
{
	int rc = 0;
	*j = (struct loom__journal){.fd = -1, .stream = stream, .path = path};
	if (path)
		rc = take_file(j, mode, err);
	else if ((j->fd = memfd_create("gpuloom-sweep", MFD_CLOEXEC)) < 0)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "no memory for the samples: %m");
	if (rc)
		loom__journal_close(j);
	return rc;
}

int loom__journal_read(const struct loom__journal *j, struct loom__doc *doc, struct loom_error *err)
{
	char path[40];
	char *bytes;
	size_t length;
	if (j->path)
		return loom__doc_read(j->path, doc, err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", j->fd);
	int rc = loom__read_file(path, LOOM__DOC_MOST, &bytes, &length, err);
	return rc ? rc : loom__doc_parse("this sweep", bytes, length, doc, err);
}

int loom__journal_add(struct loom__journal *j, const cJSON *line, struct loom_error *err)
{
	char *text = loom__json_print(line, 0);
	if (!text) {
		j->failed = 1;
		return LOOM__FAIL(err, LOOM_ENOMEM, "no memory for a line of the samples");
	}
	size_t length = strlen(text);
	ssize_t n = -1;
	/* The incomplete line is cut only here, because a sweep that fails before its first sample must not change the
	 * file. */
	int rc = j->torn && ftruncate(j->fd, j->whole) ? say(j, "truncate", err) : 0;
	j->torn &= rc != 0;
	text[length++] = '\n'; /* the newline replaces the NUL, so that one write() writes the whole line */
	if (!rc && j->stream && (fwrite(text, 1, length, j->stream) != length || fflush(j->stream)))
		rc = LOOM__FAIL(err, LOOM_EIO, "cannot write to standard output: %m");
	while (!rc && (n = write(j->fd, text, length)) < 0 && errno == EINTR)
		;
	if (n >= 0 && (size_t)n < length) {
		errno = ENOSPC; /* write() stores a part of a line only if the disk is full */
		j->torn = 1;
	}
	j->whole += !rc && n == (ssize_t)length ? n : 0;
	if (!rc && n != (ssize_t)length)
		rc = j->path ? say(j, "write to", err) : LOOM__FAIL(err, LOOM_ENOMEM, "no memory for the samples");
	else if (!rc && j->path && fdatasync(j->fd))
		rc = say(j, "write to", err);
	cJSON_free(text);
	j->failed |= !!rc;
	return rc;
}

void loom__journal_close(struct loom__journal *j)
{
	if (j->fd >= 0)
		close(j->fd); /* also releases the lock */
	loom__doc_free(&j->before);
	*j = (struct loom__journal){.fd = -1};
}

void loom__journal_drop(struct loom__journal *j)
{
	if (j->path && j->created)
		unlink(j->path);
	loom__journal_close(j);
}
