/* SPDX-License-Identifier: Apache-2.0 */
#include "jitlink.h"

#include <dlfcn.h>
#include <gpuloom/dev/ir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Declarations from nvJitLink.h, which gives versioned names to its functions. */
enum { INPUT_PTX = 2, INPUT_LTOIR = 3 };
struct linker {
	int (*create)(void **link, uint32_t options, const char **option);
	int (*destroy)(void **link);
	int (*add)(void *link, int type, const void *data, size_t bytes, const char *name);
	int (*complete)(void *link);
	int (*cubin_size)(void *link, size_t *bytes);
	int (*cubin)(void *link, void *to);
	int (*ptx_size)(void *link, size_t *bytes);
	int (*ptx)(void *link, char *to);
	int (*error_size)(void *link, size_t *bytes);
	int (*error)(void *link, char *to);
	int (*info_size)(void *link, size_t *bytes);
	int (*info)(void *link, char *to);
};

static void *find_library(void)
{
	static const char *const names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
	static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
	static const char *const folders[] = {"/usr/local/cuda/lib64", "/opt/cuda/lib64"};
	char path[300];
	void *so = NULL;
	for (size_t i = 0; i < 3 && !so; i++)
		so = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (size_t k = 0; k < 4 && !so; k++) {
		const char *home = k < 2 ? secure_getenv(homes[k]) : folders[k - 2];
		for (size_t i = 0; i < 3 && home && !so; i++) {
			snprintf(path, sizeof(path), "%s%s/%s", home, k < 2 ? "/lib64" : "", names[i]);
			so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		}
	}
	return so;
}

static int open_linker(const struct loom_host *host, const char *label, struct linker *l, struct loom_error *err)
{
	const struct {
		void *fn;
		const char *name;
	} symbols[] = {
	    {&l->create, "nvJitLinkCreate"},
	    {&l->destroy, "nvJitLinkDestroy"},
	    {&l->add, "nvJitLinkAddData"},
	    {&l->complete, "nvJitLinkComplete"},
	    {&l->cubin_size, "nvJitLinkGetLinkedCubinSize"},
	    {&l->cubin, "nvJitLinkGetLinkedCubin"},
	    {&l->ptx_size, "nvJitLinkGetLinkedPtxSize"},
	    {&l->ptx, "nvJitLinkGetLinkedPtx"},
	    {&l->error_size, "nvJitLinkGetErrorLogSize"},
	    {&l->error, "nvJitLinkGetErrorLog"},
	    {&l->info_size, "nvJitLinkGetInfoLogSize"},
	    {&l->info, "nvJitLinkGetInfoLog"},
	};
	void *so = find_library();
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *at = so ? dlsym(so, symbols[i].name) : NULL;
		if (!at)
			return LOOM_FAIL(
			    host, err, LOOM_EUNAVAIL,
			    "%s: task functions come as IR, and nvJitLink, which links them, %s%s: install the CUDA "
			    "toolkit's libnvJitLink 12 or later, or give their source",
			    label, so ? "lacks " : "cannot be loaded", so ? symbols[i].name : "");
		memcpy(symbols[i].fn, &at, sizeof(at));
	}
	return 0;
}

/* Finds in the linker's log the name of a task function that the file lacks. Returns 1 if there is one, else 0. */
static int lacks_task(const char *log, char *name, size_t room)
{
	static const char prefix[] = LOOM_IR_PREFIX "task_";
	const char *at = log ? strstr(log, prefix) : NULL;
	if (!at || strstr(log, "ultiple definition")) /* or two files have the same task function */
		return 0;
	at += sizeof(prefix) - 1;
	snprintf(name, room, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
		 at);
	return 1;
}

static int fail(const struct loom_host *host, const char *label, const char *file, const char *log,
		struct loom_error *err)
{
	char line[600] = "", name[200];
	if (log && (strstr(log, "newer version of nvJitLink") || strstr(log, "Unsupported .version")))
		return LOOM_FAIL(host, err, LOOM_EPLUGIN,
				 "%s: %s: it was made by a newer CUDA toolkit than the nvJitLink here: make it with an "
				 "older one, or install a newer libnvJitLink",
				 label, file);
	if (lacks_task(log, name, sizeof(name)))
		return LOOM_FAIL(host, err, LOOM_EPLUGIN,
				 "%s: %s: it has no task function '%s' for this version of gpuloom (LOOM_IR_TASK)",
				 label, file, name);
	if (log && *log)
		rtc_first_error(log, line, sizeof(line));
	return LOOM_FAIL(host, err, LOOM_EPLUGIN, "%s: %s: it does not link: %s", label, file,
			 *line ? line : "no reason given");
}

int jitlink_run(const struct loom_host *host, const char *label, const char *arch,
		const struct loom_program_ir *const *ir, uint32_t irs, uint32_t registers, enum jitlink_want want,
		struct compiled *program, struct loom_error *err)
{
	struct linker l = {0};
	char option[80], most[40], *log = NULL, *code = NULL;
	const char *options[] = {option, "-lto", want == JITLINK_PTX ? "-ptx" : "-Xptxas=-v", "-lineinfo", most};
	uint32_t count = 4;
	const char *file = irs ? ir[0]->file : "the composed program";
	size_t bytes = 0, ignored;
	void *link = NULL;
	int rc = open_linker(host, label, &l, err);
	if (rc) {
		compiled_free(host, program);
		return rc;
	}
	snprintf(option, sizeof(option), "-arch=%s", arch);
	snprintf(most, sizeof(most), "-maxrregcount=%u", registers);
	for (uint32_t i = 0; i < irs; i++)
		if (compose_format(ir[i]) == COMPOSE_PTX)
			count = 5;
	rc = l.create(&link, count, options);
	if (!rc)
		rc = l.add(link, INPUT_LTOIR, program->code, program->bytes, "the composed program");
	for (uint32_t i = 0; i < irs && !rc; i++) {
		int ptx = compose_format(ir[i]) == COMPOSE_PTX;
		file = ir[i]->file;
		rc = l.add(link, ptx ? INPUT_PTX : INPUT_LTOIR, ir[i]->data, ir[i]->bytes + (uint64_t)ptx, file);
	}
	if (!rc)
		rc = l.complete(link);
	host->free(host, program->code);
	program->code = NULL;
	if (!rc)
		code = want == JITLINK_PTX
			   ? rtc_take(host, link, l.ptx_size, l.ptx, &bytes)
			   : rtc_take(host, link, l.cubin_size, (int (*)(void *, char *))l.cubin, &bytes);
	if (link && (rc || !code)) {
		/* If a file cannot be added, complete() writes the reason to the log. */
		if (rc)
			l.complete(link);
		log = rtc_take(host, link, l.error_size, l.error, &ignored);
		rc = rc || log ? fail(host, label, file, log, err)
			       : LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", label);
		host->free(host, log);
		compiled_free(host, program);
	} else if (!link) {
		rc = LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: nvJitLink does not support the architecture %s", label,
			       arch);
		compiled_free(host, program);
	} else {
		log = rtc_take(host, link, l.info_size, l.info, &ignored);
		host->free(host, program->log);
		*program = (struct compiled){.code = code, .bytes = bytes, .log = log};
	}
	if (link)
		l.destroy(&link);
	return rc;
}
