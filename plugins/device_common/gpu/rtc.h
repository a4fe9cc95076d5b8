/* SPDX-License-Identifier: Apache-2.0 */
/* A run-time compiler, which is loaded when it is needed. NVRTC and hipRTC have the same functions with different
 * prefixes. Compiling needs no GPU. */
#ifndef GPULOOM_GPU_RTC_H
#define GPULOOM_GPU_RTC_H

#include <gpuloom/plugin.h>

struct compose_layer;
struct rtc_kind {
	const struct compose_layer *layer; /* the device layer of the programs that it compiles */
	const char *title;         /* name of the compiler: "NVRTC" */
	const char *prefix;        /* prefix of its functions: "nvrtc" */
	const char *code;          /* the compiler's name for machine code: "CUBIN" */
	const char *assembly;      /* the compiler's name for assembly; NULL: unavailable */
	const char *ir;            /* the compiler's name for linkable IR; NULL: unavailable */
	const char *const *name;   /* file names of its library, best first; NULL-terminated */
	const char *const *folder; /* folders of toolkits, searched last; NULL-terminated */
	const char *const *home;   /* environment variables with the folder of a toolkit */
	const char *lib;           /* folder of the libraries in a toolkit: "lib64" */
	const char *needed;        /* what to install, for messages: "libnvrtc 12 or later" */
	const char *option;        /* the option that names the file: "nvrtc = in [device.cuda]" */
	int least;                 /* lowest major version that is supported */
};

struct rtc {
	const struct rtc_kind *kind;
	void *so;
	char path[256]; /* path of the loaded library */
	int major, minor;
	int (*version)(int *major, int *minor);
	const char *(*error_string)(int rc);
	int (*create)(void **program, const char *text, const char *name, int headers, const char **header,
		      const char **header_name);
	int (*destroy)(void **program);
	int (*compile)(void *program, int options, const char **option);
	int (*log_size)(void *program, size_t *bytes);
	int (*log)(void *program, char *to);
	int (*code_size)(void *program, size_t *bytes);
	int (*code)(void *program, char *to);
	int (*assembly_size)(void *program, size_t *bytes);
	int (*assembly)(void *program, char *to);
	int (*ir_size)(void *program, size_t *bytes);
	int (*ir)(void *program, char *to);
};

/* Loads a compiler. path: its file; NULL or "": search the usual folders. Returns 0. If the compiler is not found,
 * lacks a function or is too old, returns LOOM_EUNAVAIL, and an error that says what to install or set. */
int rtc_open(const struct loom_host *host, const char *label, const struct rtc_kind *kind, const char *path,
	     struct rtc *c, struct loom_error *err);

struct compiled {
	char *code, *assembly, *log; /* allocated by host->alloc(); log is never NULL and ends with a NUL */
	size_t bytes;
};

enum rtc_want {
	RTC_CODE,
	RTC_CODE_AND_ASSEMBLY, /* machine code, and assembly if the compiler has it */
	RTC_IR,                /* IR in `code`; the compiler options must also request IR */
	RTC_ASSEMBLY           /* assembly in `code` */
};

/* Compiles a composed program. For an error in a source, returns LOOM_EPLUGIN with file and line of the first error. */
int rtc_run(const struct loom_host *host, const char *label, const struct rtc *c, const char *text,
	    const char *const *option, int options, enum rtc_want want, struct compiled *out, struct loom_error *err);
/* Returns one output of a compiler or linker, allocated by host->alloc(), with a NUL appended. *bytes: its size without
 * that NUL. */
char *rtc_take(const struct loom_host *host, void *program, int (*size_of)(void *, size_t *),
	       int (*get)(void *, char *), size_t *bytes);
/* Copies the line of the first error in a log to `line`. That line begins with the name of the file and the line
 * number. */
void rtc_first_error(const char *log, char *line, size_t room);
void compiled_free(const struct loom_host *host, struct compiled *out);

#endif
