/* SPDX-License-Identifier: Apache-2.0 */
/* A program text that this machine's compiler makes a shared object of. The headers that it includes are those that
 * the plug-in was built with (compose_headers). */
#ifndef GPULOOM_HOSTCC_H
#define GPULOOM_HOSTCC_H

#include <gpuloom/plugin.h>

struct hostcc_want {
	const char *who;  /* for messages: "cpu:0" */
	const char *what; /* the same, of the program, a plural: "task functions" */
	int cpp;          /* C++20 by $CXX or c++, else C11 by $CC or cc */
	const char *text;
};

/* *so is a handle of dlopen(), which is never closed. */
int hostcc_load(const struct loom_host *host, const struct hostcc_want *want, void **so, struct loom_error *err);

#endif
