/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a program text with a compiler of this machine, and loads the result. The program includes the headers with
 * which the plug-in was built (compose_headers()). */
#ifndef GPULOOM_HOSTCC_H
#define GPULOOM_HOSTCC_H

#include <gpuloom/plugin.h>

struct compose_layer;

struct hostcc_want {
	const char *label; /* name of the device in messages, such as "cpu:0" */
	const char *what;  /* what the program contains, as a plural noun for messages: "task functions" */
	int cpp;           /* 1: GNU C++20, compiled by $CXX or c++; 0: GNU C11, compiled by $CC or cc */
	/* C++ only. 1: plain accesses call the functions of ThreadSanitizer, which the program defines. addr2line can read
	 * the program by the name that dladdr() returns. */
	int traced;
	const char *text;
	const struct compose_layer *layer; /* device layer of a composed program; NULL: that of CPUs */
};

/* Compiles and loads the program. *so is a handle of dlopen(), which is never closed. */
int hostcc_load(const struct loom_host *host, const struct hostcc_want *want, void **so, struct loom_error *err);

#endif
