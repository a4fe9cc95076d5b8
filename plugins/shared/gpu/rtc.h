/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's run-time compiler, loaded when it is needed. NVRTC and hipRTC have the same functions
 * under other names. Needs no GPU. */
#ifndef GPULOOM_GPU_RTC_H
#define GPULOOM_GPU_RTC_H

#include <gpuloom/plugin.h>

struct rtc_kind {
	const char *title;          /* "NVRTC" */
	const char *prefix;         /* of its functions: "nvrtc" */
	const char *code;           /* what it calls machine code: "CUBIN" */
	const char *assembly;       /* and its readable form; NULL: it gives none */
	const char *ir;             /* and code to be linked with other; NULL: it gives none */
	const char *const *name;    /* file names, the best first; NULL-terminated */
	const char *const *folder;  /* where toolkits put them, besides where the linker looks */
	const char *const *home;    /* variables that name a toolkit's folder */
	const char *lib;            /* the libraries' folder in that: "lib64" */
	const char *needed;         /* what to install: "libnvrtc 12 or later" */
	const char *option;         /* that names the file: "nvrtc = in [device.cuda]" */
	int least;                  /* major version */
};

struct rtc {
	const struct rtc_kind *kind;
	void *so;
	char path[256]; /* what was loaded */
	int major, minor;
	int (*version)(int *major, int *minor);
	const char *(*error_string)(int rc);
	int (*create)(void **program, const char *text, const char *name, int headers,
		      const char **header, const char **header_name);
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

/* `path` NULL or "": where toolkits put it. LOOM_EUNAVAIL with what to do. */
int rtc_open(const struct loom_host *host, const char *who, const struct rtc_kind *kind,
	     const char *path, struct rtc *c, struct loom_error *err);

struct compiled {
	char *code, *assembly, *log; /* of host->alloc; the log always, NUL-terminated */
	size_t bytes;
};

enum rtc_want {
	RTC_CODE,
	RTC_CODE_AND_ASSEMBLY, /* if there is any */
	RTC_IR,		       /* as `code`; the options say so as well */
	RTC_ASSEMBLY	       /* as `code` */
};

/* Compiles a composed program. A mistake in a source is LOOM_EPLUGIN with the first error's file and line. */
int rtc_run(const struct loom_host *host, const char *who, const struct rtc *c, const char *text,
	    const char *const *option, int options, enum rtc_want want, struct compiled *out,
	    struct loom_error *err);
/* One of a compiler's or linker's texts or binaries, of host->alloc; a NUL byte follows. */
char *rtc_take(const struct loom_host *host, void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *),
	       size_t *bytes);
/* The line of a compiler's log that tells the first error: it begins with file and line. */
void rtc_first_error(const char *log, char *line, size_t room);
void compiled_free(const struct loom_host *host, struct compiled *out);

#endif
