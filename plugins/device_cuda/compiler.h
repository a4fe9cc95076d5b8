/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, loaded when it is needed. Needs no GPU. */
#ifndef GPULOOM_CUDA_COMPILER_H
#define GPULOOM_CUDA_COMPILER_H

#include <gpuloom/plugin.h>
#include <nvrtc.h>

struct compiler {
	void *so;
	char path[256]; /* what was loaded */
	int major, minor;
	__typeof__(nvrtcVersion) *version;
	__typeof__(nvrtcGetErrorString) *error_string;
	__typeof__(nvrtcCreateProgram) *create_program;
	__typeof__(nvrtcDestroyProgram) *destroy_program;
	__typeof__(nvrtcCompileProgram) *compile_program;
	__typeof__(nvrtcGetProgramLogSize) *log_size;
	__typeof__(nvrtcGetProgramLog) *log;
	__typeof__(nvrtcGetPTXSize) *ptx_size;
	__typeof__(nvrtcGetPTX) *ptx;
	__typeof__(nvrtcGetCUBINSize) *cubin_size;
	__typeof__(nvrtcGetCUBIN) *cubin;
};

/* `path` NULL or "": where toolkits put it. LOOM_EUNAVAIL with what to do. */
int compiler_open(const struct loom_host *host, const char *who, const char *path,
		  struct compiler *c, struct loom_error *err);

struct compiled {
	char *cubin, *ptx, *log; /* of host->alloc; the log always, NUL-terminated */
	size_t cubin_bytes, ptx_bytes;
};
/* Besides -arch=. Line numbers cost nothing at run time and serve profilers; the assembler's report
 * is what resources_read() reads. */
#define COMPILER_FLAGS "-std=c++20", "-lineinfo", "--ptxas-options=-v"

/* Compiles a composed program to machine code, and to PTX when `want_ptx`. A mistake in a source is
 * LOOM_EPLUGIN with the first error's file and line. */
int compiler_run(const struct loom_host *host, const char *who, const struct compiler *c,
		 const char *text, const char *const *options, int n, int want_ptx,
		 struct compiled *out, struct loom_error *err);
void compiled_free(const struct loom_host *host, struct compiled *out);

#endif
