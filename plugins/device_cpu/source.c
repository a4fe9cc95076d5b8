/* SPDX-License-Identifier: Apache-2.0 */
/* Task functions that come as source: the machine's C compiler makes a shared object of them. The headers
 * that they include are those that this plug-in was built with. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/workload.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../compose/compose.h"
#include "device_cpu.h"

extern char **environ;

static int write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	int failed = !f || fputs(text, f) < 0;
	return f && fclose(f) == 0 && !failed ? 0 : -1;
}

/* The headers, in folder/gpuloom and folder/gpuloom/dev. */
static int write_headers(const char *folder)
{
	char path[PATH_MAX];
	size_t n;
	const struct compose_header *header = compose_headers(&n);
	snprintf(path, sizeof(path), "%s/gpuloom", folder);
	int rc = mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/gpuloom/dev", folder);
	rc = rc ? rc : mkdir(path, 0700);
	for (size_t i = 0; i < n && !rc; i++) {
		if (strncmp(header[i].name, "gpuloom/", 8))
			continue; /* the same by another name */
		snprintf(path, sizeof(path), "%s/%s", folder, header[i].name);
		rc = write_file(path, header[i].text);
	}
	return rc;
}

static int write_program(struct device *d, const char *folder, const struct loom_program *program)
{
	char path[PATH_MAX];
	struct text text = {.host = d->host};
	text_add(&text, "#include <gpuloom/dev/dev.h>\n"
			"#include <gpuloom/sched.h>\n"
			"#include <gpuloom/workload.h>\n");
	compose_sources(program, &text);
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		if (!program->task[tag].fn && !compose_is_ir(program, tag))
			text_add(&text, "loom_task_fn *const loom_task_%u = %s;\n", tag,
				 program->task[tag].name);
	snprintf(path, sizeof(path), "%s/program.c", folder);
	int rc = text.failed ? -1 : write_file(path, text.at);
	text_free(&text);
	return rc;
}

/* The exit status of the compiler, whose messages go to folder/log; 127: it cannot be run. */
static int run_compiler(const char *folder)
{
	char include[PATH_MAX + 2], in[PATH_MAX + 16], out[PATH_MAX + 16], log[PATH_MAX + 16];
	snprintf(include, sizeof(include), "-I%s", folder);
	snprintf(in, sizeof(in), "%s/program.c", folder);
	snprintf(out, sizeof(out), "%s/program.so", folder);
	snprintf(log, sizeof(log), "%s/log", folder);
	char *const arguments[] = {"sh", "-c", "exec ${CC:-cc} \"$@\"", "cc", "-std=gnu11", "-O2", "-fPIC",
				   "-shared", "-pthread", include, "-o", out, in, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = 0;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	int rc = posix_spawn(&pid, "/bin/sh", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return 127;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

static int fail_compile(struct device *d, const char *folder, int status, struct loom_error *err)
{
	char path[PATH_MAX], line[600] = "", first[600] = "";
	const char *cc = getenv("CC");
	snprintf(path, sizeof(path), "%s/log", folder);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!*first || (strstr(line, "error") && !strstr(first, "error")))
			snprintf(first, sizeof(first), "%s", line);
	}
	if (f)
		fclose(f);
	if (status == 127)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: task functions come as source, and no C compiler can be run (%s): "
				 "install one, or name it in CC",
				 d->name, cc && *cc ? cc : "cc");
	return LOOM_FAIL(d->host, err, LOOM_EPLUGIN, "%s: the task functions' source does not compile: %s",
			 d->name, first);
}

static int load(struct device *d, const char *folder, const struct loom_program *program, struct program *p,
		struct loom_error *err)
{
	char path[PATH_MAX], name[32];
	snprintf(path, sizeof(path), "%s/program.so", folder);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!so)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the compiled task functions cannot be loaded: %s", d->name, dlerror());
	for (uint32_t tag = 0; tag < program->tasks; tag++) {
		if (program->task[tag].fn || compose_is_ir(program, tag))
			continue;
		snprintf(name, sizeof(name), "loom_task_%u", tag);
		loom_task_fn *const *at = dlsym(so, name);
		if (!at)
			return LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: %s is lost", d->name, name);
		p->task[tag] = *at;
	}
	return 0;
}

static void remove_all(const char *folder)
{
	static const char *const files[] = {"program.c", "program.so", "log"};
	static const char *const folders[] = {"/gpuloom/dev", "/gpuloom", ""};
	char path[PATH_MAX];
	size_t n;
	const struct compose_header *header = compose_headers(&n);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, header[i].name);
		if (!strncmp(header[i].name, "gpuloom/", 8))
			unlink(path);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, folders[i]);
		rmdir(path);
	}
}

int source_build(struct device *d, const struct loom_program *program, struct program *p,
		 struct loom_error *err)
{
	char folder[PATH_MAX - 64];
	const char *tmp = getenv("TMPDIR");
	int rc;
	snprintf(folder, sizeof(folder), "%s/gpuloom-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return LOOM_FAIL(d->host, err, LOOM_EIO, "%s: %s: %s", d->name, folder, strerror(errno));
	if (write_headers(folder) || write_program(d, folder, program)) {
		rc = LOOM_FAIL(d->host, err, LOOM_EIO, "%s: %s cannot be written: %s", d->name, folder,
			       strerror(errno));
	} else {
		int status = run_compiler(folder);
		rc = status ? fail_compile(d, folder, status, err) : load(d, folder, program, p, err);
	}
	remove_all(folder);
	return rc;
}
