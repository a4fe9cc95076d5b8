/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a program text with a compiler of this machine and loads it. The headers are those with which the plug-in
 * was built (compose_headers). */
#ifndef GPULOOM_HOSTCC_H
#define GPULOOM_HOSTCC_H

#include <gpuloom/plugin.h>

struct hostcc_want {
	const char *label; /* name in messages: "cpu:0" */
	const char *what;  /* plural noun in messages: "task functions" */
	int cpp;           /* 1: C++20 by $CXX or c++; 0: C11 by $CC or cc */
	const char *text;
};

/* Loads the program. *so is a handle of dlopen(), which is never closed. */
int hostcc_load(const struct loom_host *host, const struct hostcc_want *want, void **so, struct loom_error *err);

#endif
