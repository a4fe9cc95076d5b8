/* SPDX-License-Identifier: Apache-2.0 */
/* The targets share this code. A target reads any bytes as one kind of external input. It must not crash, its output
 * must be complete and printable, and rejected files must not change. */
#ifndef LOOM_FUZZ_INPUT_H
#define LOOM_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A target is one function, which restores the state of the process for the next input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, and thus the search, with a message. */
#define FUZZ_CHECK(holds)                                                                          \
	((holds) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #holds))
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* The rest of an input that consists of several texts. A line "%%", with the line feed before it, separates two texts. */
struct fuzz_parts {
	const uint8_t *at;
	size_t left;
};
/* Returns the next part, NUL-terminated, or "" after the last part. The caller frees it. *n gets the length; n may be
 * NULL. */
char *fuzz_part(struct fuzz_parts *parts, size_t *n);
/* Calls each() for each line of a text, which it cuts at the line ends. */
void fuzz_lines(char *text, void (*each)(void *arg, char *line), void *arg);

/* Makes a regular file with these bytes, and returns the path under which the file can be opened: /proc/self/fd/90N.
 * The file has no other name. There are FUZZ_FILES such files. */
enum { FUZZ_FILES = 4 };
const char *fuzz_file(unsigned number, const void *bytes, size_t n);
/* Returns the present contents of the file. The caller frees them. */
char *fuzz_file_bytes(unsigned number, size_t *n);

/* Checks that text may go to terminals and files: it must be valid UTF-8, without control characters except line feed
 * and tab. */
void fuzz_printable(const char *what, const char *text, size_t n);
/* Checks in the same way what is printed to stderr between fuzz_stderr_begin() and fuzz_stderr_end(). */
void fuzz_stderr_begin(void);
void fuzz_stderr_end(void);

#endif
