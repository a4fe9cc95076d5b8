/* SPDX-License-Identifier: Apache-2.0 */
#include "rtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../compose/compose.h"

#define COUNT(array)      (sizeof(array) / sizeof((array)[0]))
#define ERROR_COMPILATION 6 /* code of a compilation error, the same in NVRTC and hipRTC */

static void *try_in(struct rtc *c, const char *folder)
{
	const char *slash = *folder ? "/" : "";
	for (const char *const *name = c->kind->name; *name && !c->so; name++) {
		int n = snprintf(c->path, sizeof(c->path), "%s%s%s", folder, slash, *name);
		if (n > 0 && (size_t)n < sizeof(c->path))
			c->so = dlopen(c->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	return c->so;
}

static void find(struct rtc *c, const char *path)
{
	char folder[200];
	if (path && *path) {
		snprintf(c->path, sizeof(c->path), "%s", path);
		c->so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		return;
	}
	if (try_in(c, ""))
		return;
	for (const char *const *home = c->kind->home; *home; home++) {
		const char *at = secure_getenv(*home);
		if (!at || !*at)
			continue;
		snprintf(folder, sizeof(folder), "%s/%s", at, c->kind->lib);
		if (try_in(c, folder))
			return;
	}
	for (const char *const *at = c->kind->folder; *at && !c->so; at++)
		try_in(c, *at);
}

/* Returns NULL, or the name of a missing function, which is stored in `name`. */
static const char *resolve(struct rtc *c, char *name, size_t room)
{
	const struct rtc_kind *k = c->kind;
	const struct {
		void *fn;
		const char *prefix, *stem, *suffix;
	} symbols[] = {
	    {&c->version, k->prefix, "Version", ""},
	    {&c->error_string, k->prefix, "GetErrorString", ""},
	    {&c->create, k->prefix, "CreateProgram", ""},
	    {&c->destroy, k->prefix, "DestroyProgram", ""},
	    {&c->compile, k->prefix, "CompileProgram", ""},
	    {&c->log_size, k->prefix, "GetProgramLogSize", ""},
	    {&c->log, k->prefix, "GetProgramLog", ""},
	    {&c->code_size, k->prefix, k->code, "Size"},
	    {&c->code, k->prefix, k->code, ""},
	    {&c->assembly_size, k->prefix, k->assembly, "Size"},
	    {&c->assembly, k->prefix, k->assembly, ""},
	    {&c->ir_size, k->prefix, k->ir, "Size"},
	    {&c->ir, k->prefix, k->ir, ""},
	};
	for (size_t i = 0; i < COUNT(symbols); i++) {
		if (!symbols[i].stem)
			continue;
		snprintf(name, room, "%s%s%s", symbols[i].prefix, symbols[i].stem, symbols[i].suffix);
		void *at = dlsym(c->so, name);
		if (!at)
			return name;
		memcpy(symbols[i].fn, &at, sizeof(at));
	}
	return NULL;
}

int rtc_open(const struct loom_host *host, const char *label, const struct rtc_kind *kind, const char *path,
	     struct rtc *c, struct loom_error *err)
{
	char name[64];
	*c = (struct rtc){.kind = kind};
	find(c, path);
	if (!c->so)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: %s, which compiles the device code, cannot be loaded (%s%s): install "
				 "%s, or name the file with %s",
				 label, kind->title, path && *path ? dlerror() : kind->name[0],
				 path && *path ? "" : " was not found", kind->needed, kind->option);
	const char *lacks = resolve(c, name, sizeof(name));
	if (lacks)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: %s lacks %s: install %s", label, c->path, lacks,
				 kind->needed);
	int rc = c->version(&c->major, &c->minor);
	if (rc != 0 || c->major < kind->least)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: %s is version %d.%d: install %s", label, c->path,
				 c->major, c->minor, kind->needed);
	return 0;
}

void compiled_free(const struct loom_host *host, struct compiled *out)
{
	host->free(host, out->code);
	host->free(host, out->assembly);
	host->free(host, out->log);
	*out = (struct compiled){0};
}

char *rtc_take(const struct loom_host *host, void *program, int (*size_of)(void *, size_t *),
	       int (*get)(void *, char *), size_t *bytes)
{
	size_t n = 0;
	char *at = size_of(program, &n) == 0 ? host->alloc(host, n + 1) : NULL;
	if (at && n && get(program, at) != 0) {
		host->free(host, at);
		at = NULL;
	}
	*bytes = n;
	return at;
}

void rtc_first_error(const char *log, char *line, size_t room)
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

int rtc_run(const struct loom_host *host, const char *label, const struct rtc *c, const char *text,
	    const char *const *option, int options, enum rtc_want want, struct compiled *out, struct loom_error *err)
{
	size_t count, bytes;
	const struct compose_header *header = compose_headers(&count);
	const char *header_text[96], *header_name[96];
	const char *title = c->kind->title;
	int with_assembly = want == RTC_CODE_AND_ASSEMBLY && c->assembly;
	void *program;
	if ((want == RTC_IR && !c->ir) || (want == RTC_ASSEMBLY && !c->assembly))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: %s gives no code that can be linked", label, title);
	if (count >= COUNT(header_text))
		return LOOM_FAIL(host, err, LOOM_EINTERNAL, "%s: too many headers", label);
	for (size_t i = 0; i < count; i++) {
		header_text[i] = header[i].text;
		header_name[i] = header[i].name;
	}
	header_text[count] = c->kind->layer->text;
	header_name[count++] = c->kind->layer->name;
	*out = (struct compiled){0};
	int rc = c->create(&program, text, "gpuloom", (int)count, header_text, header_name);
	if (rc != 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: %s: %s", label, title, c->error_string(rc));
	rc = c->compile(program, options, (const char **)option);
	out->log = rtc_take(host, program, c->log_size, c->log, &bytes);
	if (rc == 0) {
		out->code = want == RTC_IR         ? rtc_take(host, program, c->ir_size, c->ir, &out->bytes)
			    : want == RTC_ASSEMBLY ? rtc_take(host, program, c->assembly_size, c->assembly, &out->bytes)
						   : rtc_take(host, program, c->code_size, c->code, &out->bytes);
		if (with_assembly)
			out->assembly = rtc_take(host, program, c->assembly_size, c->assembly, &bytes);
	}
	c->destroy(&program);
	if (rc == 0 && out->code && out->log && (out->assembly || !with_assembly))
		return 0;
	char line[600] = "";
	if (out->log)
		rtc_first_error(out->log, line, sizeof(line));
	compiled_free(host, out);
	const char *lacks = compose_lacks(line);
	if (rc == ERROR_COMPILATION && lacks)
		return LOOM_FAIL(
		    host, err, LOOM_ENOENT,
		    "%s: device code calls a %s, and the conf selects none: say 'use = NAME' in [%s]; a workload's "
		    ".needs rejects such a conf at once (%s)",
		    label, lacks, lacks, line);
	if (rc == ERROR_COMPILATION)
		return LOOM_FAIL(host, err, LOOM_EPLUGIN, "%s: the device code does not compile: %s", label, line);
	return LOOM_FAIL(host, err, rc == 0 ? LOOM_ENOMEM : LOOM_EUNAVAIL, "%s: %s %d.%d: %s%s%s", label, title,
			 c->major, c->minor, c->error_string(rc), *line ? ": " : "", line);
}
