/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../compose/compose.h"

/* Newest first. 12 is the first that takes C++20, which designated initialisers need. */
static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
static const char *const folders[] = {"/usr/local/cuda/lib64/", "/opt/cuda/lib64/"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void *try_in(struct compiler *c, const char *folder)
{
	for (size_t i = 0; i < COUNT(names) && !c->so; i++) {
		int n = snprintf(c->path, sizeof(c->path), "%s%s", folder, names[i]);
		if (n > 0 && (size_t)n < sizeof(c->path))
			c->so = dlopen(c->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	return c->so;
}

static void find(struct compiler *c, const char *path)
{
	char folder[200];
	const char *home = getenv("CUDA_HOME");
	if (!home)
		home = getenv("CUDA_PATH");
	if (path && *path) {
		snprintf(c->path, sizeof(c->path), "%s", path);
		c->so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		return;
	}
	if (try_in(c, ""))
		return;
	if (home && *home) {
		snprintf(folder, sizeof(folder), "%s/lib64/", home);
		if (try_in(c, folder))
			return;
	}
	for (size_t i = 0; i < COUNT(folders) && !c->so; i++)
		try_in(c, folders[i]);
}

int compiler_open(const struct loom_host *host, const char *who, const char *path,
		  struct compiler *c, struct loom_error *err)
{
	*c = (struct compiler){0};
	find(c, path);
	if (!c->so)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: NVRTC, which compiles the device code, cannot be loaded (%s): "
				 "install the CUDA toolkit's libnvrtc 12 or later, or name the file with "
				 "nvrtc = in [device.cuda]",
				 who, path && *path ? dlerror() : "libnvrtc.so was not found");
	const struct {
		void *fn;
		const char *name;
	} symbols[] = {
		{&c->version, "nvrtcVersion"},
		{&c->error_string, "nvrtcGetErrorString"},
		{&c->create_program, "nvrtcCreateProgram"},
		{&c->destroy_program, "nvrtcDestroyProgram"},
		{&c->compile_program, "nvrtcCompileProgram"},
		{&c->log_size, "nvrtcGetProgramLogSize"},
		{&c->log, "nvrtcGetProgramLog"},
		{&c->ptx_size, "nvrtcGetPTXSize"},
		{&c->ptx, "nvrtcGetPTX"},
		{&c->cubin_size, "nvrtcGetCUBINSize"},
		{&c->cubin, "nvrtcGetCUBIN"},
	};
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *at = dlsym(c->so, symbols[i].name);
		if (!at)
			return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
					 "%s: %s lacks %s: install libnvrtc 12 or later", who, c->path,
					 symbols[i].name);
		memcpy(symbols[i].fn, &at, sizeof(at));
	}
	nvrtcResult rc = c->version(&c->major, &c->minor);
	if (rc != NVRTC_SUCCESS || c->major < 12)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: %s is version %d.%d: install libnvrtc 12 or later", who, c->path,
				 c->major, c->minor);
	return 0;
}

void compiled_free(const struct loom_host *host, struct compiled *out)
{
	host->free(host, out->cubin);
	host->free(host, out->ptx);
	host->free(host, out->log);
	*out = (struct compiled){0};
}

/* One of the compiler's texts or binaries. */
static char *take(const struct loom_host *host, nvrtcProgram program,
		  __typeof__(nvrtcGetPTXSize) *size_of, __typeof__(nvrtcGetPTX) *get, size_t *bytes)
{
	size_t n = 0;
	char *at = size_of(program, &n) == NVRTC_SUCCESS ? host->alloc(host, n + 1) : NULL;
	if (at && n && get(program, at) != NVRTC_SUCCESS) {
		host->free(host, at);
		at = NULL;
	}
	*bytes = n;
	return at;
}

/* The line of the first error: it begins with file and line. */
static void first_error(const char *log, char *line, size_t room)
{
	const char *at = strstr(log, ": error");
	if (!at)
		at = strstr(log, "error");
	if (!at)
		at = log;
	while (at > log && at[-1] != '\n')
		at--;
	snprintf(line, room, "%.*s", (int)strcspn(at, "\n"), at);
}

int compiler_run(const struct loom_host *host, const char *who, const struct compiler *c,
		 const char *text, const char *const *options, int n, int want_ptx,
		 struct compiled *out, struct loom_error *err)
{
	size_t count, bytes;
	const struct compose_header *header = compose_headers(&count);
	const char *header_text[96], *header_name[96];
	nvrtcProgram program;
	if (count > COUNT(header_text))
		return LOOM_FAIL(host, err, LOOM_EINTERNAL, "%s: too many headers", who);
	for (size_t i = 0; i < count; i++) {
		header_text[i] = header[i].text;
		header_name[i] = header[i].name;
	}
	*out = (struct compiled){0};
	nvrtcResult rc = c->create_program(&program, text, "gpuloom", (int)count, header_text,
					   header_name);
	if (rc != NVRTC_SUCCESS)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: nvrtcCreateProgram: %s", who,
				 c->error_string(rc));
	rc = c->compile_program(program, n, options);
	out->log = take(host, program, c->log_size, c->log, &bytes);
	if (rc == NVRTC_SUCCESS) {
		out->cubin = take(host, program, c->cubin_size, c->cubin, &out->cubin_bytes);
		if (want_ptx)
			out->ptx = take(host, program, c->ptx_size, c->ptx, &out->ptx_bytes);
	}
	c->destroy_program(&program);
	if (rc == NVRTC_SUCCESS && out->cubin && out->log && (out->ptx || !want_ptx))
		return 0;
	char line[600] = "";
	if (out->log)
		first_error(out->log, line, sizeof(line));
	compiled_free(host, out);
	if (rc == NVRTC_ERROR_COMPILATION)
		return LOOM_FAIL(host, err, LOOM_EPLUGIN, "%s: the device code does not compile: %s", who,
				 line);
	return LOOM_FAIL(host, err, rc == NVRTC_SUCCESS ? LOOM_ENOMEM : LOOM_EUNAVAIL,
			 "%s: NVRTC %d.%d: %s%s%s", who, c->major, c->minor, c->error_string(rc),
			 *line ? ": " : "", line);
}
