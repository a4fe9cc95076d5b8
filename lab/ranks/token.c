/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that the ranks of a job share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks/boot.h"

#define DIGITS 32u
#define MAKE                                                                                                           \
	"make one with `(umask 077; od -An -N16 -tx1 /dev/urandom | tr -d ' \\n' >job.token)`, and set "               \
	"GPULOOM_TOKEN_FILE "                                                                                          \
	"to a copy of that file for each rank"

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static int read_digits(const char *from, const char *text, unsigned char token[16], struct loom_error *err)
{
	size_t length = strlen(text);
	int good = length == DIGITS;
	for (size_t i = 0; good && i < DIGITS; i++)
		good = digit(text[i]) >= 0;
	if (!good)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s: a token is 32 hexadecimal digits, and nothing else: " MAKE,
				  from);
	for (size_t i = 0; i < DIGITS / 2; i++)
		token[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return 0;
}

static int read_file(const char *path, unsigned char token[16], struct loom_error *err)
{
	char text[DIGITS + 16] = "";
	struct stat file;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = -1;
	int rc = 0;
	if (fd < 0 || fstat(fd, &file))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "GPULOOM_TOKEN_FILE=%s: %s: " MAKE, path, strerror(errno));
	else if (!S_ISREG(file.st_mode) || file.st_uid != geteuid() || file.st_mode & 077)
		rc = LOOM__FAIL(err, LOOM_EINVAL,
				"GPULOOM_TOKEN_FILE=%s: other users could read it: it must be a regular file of this "
				"user with mode 0600 "
				"(chmod 600)",
				path);
	else if ((n = read(fd, text, sizeof(text) - 1)) < 0)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "GPULOOM_TOKEN_FILE=%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		text[--n] = 0;
	return rc ? rc : read_digits("GPULOOM_TOKEN_FILE", text, token, err);
}

int loom__token_read(unsigned char token[16], struct loom_error *err)
{
	const char *path = getenv("GPULOOM_TOKEN_FILE"), *text = getenv("GPULOOM_TOKEN");
	if (path && *path)
		return read_file(path, token, err);
	if (text && *text)
		return read_digits("GPULOOM_TOKEN", text, token, err);
	return LOOM__FAIL(
	    err, LOOM_EINVAL,
	    "ranks that connect to GPULOOM_ROOT need a token, so that no other process joins the job: " MAKE);
}

int loom__token_is(const unsigned char a[16], const unsigned char b[16])
{
	volatile unsigned char differ = 0; /* so that the compiler does not end the loop at the first difference */
	for (int i = 0; i < 16; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}
