/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes, and the error record, which is in memory of the caller. Every function that can fail returns 0 or a
 * negative code. Set-up calls also have a last argument `struct loom_error *`, which may be NULL. The function that
 * first knows the cause writes the message; its callers add nothing. Calls that must be fast return only the code. */
#ifndef GPULOOM_ERROR_H
#define GPULOOM_ERROR_H

#if defined(__GNUC__)
#define LOOM_EXPORT __attribute__((visibility("default")))
#define LOOM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LOOM_EXPORT
#define LOOM_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values are part of the ABI: append new ones, and never change a number. */
#define LOOM_ERR_MAP(X)                                                                            \
	X(EINVAL, -1, "invalid argument, option or configuration")                                 \
	X(ENOMEM, -2, "out of memory")                                                             \
	X(ENOTSUP, -3, "not supported")                                                            \
	X(EABI, -4, "plug-in and core have different ABIs")                                  \
	X(ETIMEDOUT, -5, "gave up waiting")                                                        \
	X(ENOENT, -6, "not found")                                                                 \
	X(EIO, -7, "input or output failed")                                                       \
	X(EUNAVAIL, -8, "not available on this machine")                                           \
	X(EWRONG, -9, "the result is wrong")                                                       \
	X(EDIED, -10, "a worker process died")                                                     \
	X(EFULL, -11, "every queue is full")                                                       \
	X(EINTR, -12, "interrupted")                                                               \
	X(EAGAIN, -13, "not yet")                                                                  \
	X(EBUSY, -14, "in use")                                                                    \
	X(EPLUGIN, -15, "the plug-in misbehaved")                                                  \
	X(EINTERNAL, -16, "internal error, please report")

enum loom_err {
	LOOM_OK = 0,
#define LOOM_ERR_ENUM(name, value, text) LOOM_##name = value,
	LOOM_ERR_MAP(LOOM_ERR_ENUM)
#undef LOOM_ERR_ENUM
};

/* An error, in memory of the caller. `text` is one sentence for the user. For developers, `file` and `line` are the
 * place in the source that wrote the text. */
struct loom_error {
	int code;
	int line;
	const char *file;
	const char *option; /* name of the option that check() of a plug-in refuses, else NULL */
	char text[1000];
};

#ifndef LOOM_DEVICE_COMPILE
/* Returns the constant text of a code, never NULL. Any thread may call this. */
LOOM_EXPORT const char *loom_strerror(int code);
#endif

#ifdef __cplusplus
}
#endif
#endif
