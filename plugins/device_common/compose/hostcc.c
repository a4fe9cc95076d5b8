/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child.h"
#include "compose.h"
#include "hostcc.h"
#include "lib/fd.h"

static int write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	int failed = !f || fputs(text, f) < 0;
	return f && fclose(f) == 0 && !failed ? 0 : -1;
}

/* Returns 1 if the name is that of a file to write. All other names are aliases of files to write. */
static int is_file(const struct compose_header *header)
{
	size_t n = strlen(header->name);
	return !strncmp(header->name, "gpuloom/", 8) || (n > 6 && !strcmp(header->name + n - 6, ".dev.h"));
}

/* Writes the headers to folder/gpuloom and folder/gpuloom/dev. */
static int write_headers(const char *folder, const struct compose_layer *layer)
{
	char path[PATH_MAX];
	size_t n;
	const struct compose_header *header = compose_headers(&n);
	snprintf(path, sizeof(path), "%s/gpuloom", folder);
	int rc = mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/gpuloom/dev", folder);
	rc = rc ? rc : mkdir(path, 0700);
	for (size_t i = 0; i < n && !rc; i++) {
		if (!is_file(&header[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, header[i].name);
		rc = write_file(path, header[i].text);
	}
	snprintf(path, sizeof(path), "%s/%s", folder, layer ? layer->name : "");
	return rc || !layer ? rc : write_file(path, layer->text);
}

static int write_program(const char *folder, const struct hostcc_want *want)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/program.c", folder);
	return write_file(path, want->text);
}

/* The command line for a shell, which runs the compiler and writes the compiler's exit status to a file. The embedding
 * program may reap the shell, so the status of the shell itself may be lost. If this thread dies, the shell gets
 * SIGTERM, ends the compiler, and removes the folder ($0). */
#define SCRIPT(compiler)                                                                                               \
	"trap 'trap \"\" TERM; kill 0; wait; rm -rf \"$0\"; exit 143' TERM\n" compiler " \"$@\" & wait $!\n"           \
	"echo $? >\"$0/status\""

/* Returns the exit status of the compiler, or 128 plus the number of the signal that ended it. 127: the compiler cannot
 * be run. -1: the status is unknown, and `why` has the reason. The compiler's messages go to folder/log. */
static int run_compiler(const char *folder, const struct hostcc_want *want, char *why, size_t room)
{
	char map[PATH_MAX + 32], include[PATH_MAX + 2], in[PATH_MAX + 16], out[PATH_MAX + 16], path[PATH_MAX + 16];
	snprintf(include, sizeof(include), "-I%s", folder);
	snprintf(map, sizeof(map), "-ffile-prefix-map=%s/=", folder);
	snprintf(in, sizeof(in), "%s/program.c", folder);
	snprintf(out, sizeof(out), "%s/program.so", folder);
	snprintf(path, sizeof(path), "%s/log", folder);
	char *name = (char *)(uintptr_t)folder;
	char *c[] = {"sh",    "-c",      SCRIPT("${CC:-cc}"), name,    "-std=gnu11", "-O2",
		     "-fPIC", "-shared", "-pthread",          include, "-o",         out,
		     in,      NULL};
	char *cpp[] = {"sh", "-c", SCRIPT("${CXX:-c++}"), name, "-std=gnu++20", "-O2", "-fPIC", "-fno-strict-aliasing",
		       "-fno-exceptions", "-fno-rtti", "-shared", include, "-o", out, "-w", "-w", "-w", "-w", "-x", "c++", in, NULL};
	char *traced[] = {"-fsanitize=thread", "-g1", "-nodefaultlibs", map};
	for (size_t i = 0; i < 4 && want->traced; i++)
		cpp[sizeof(cpp) / sizeof(*cpp) - 8 + i] = traced[i];
	/* A program with privileges runs the system's compiler without the user's environment, because compilers read
	 * dozens of variables. It uses no shell, because a shell would drop the privileges. */
	static char variable[] = "PATH=/usr/bin:/bin", *const plain[] = {variable, NULL};
	int secure = (int)getauxval(AT_SECURE);
	char **command = want->cpp ? cpp : c;
	const char *step = "open", *runs = secure ? want->cpp ? "/usr/bin/c++" : "/usr/bin/cc" : "/bin/sh";
	struct child child;
	if (secure)
		command[3] = (char *)(uintptr_t)runs;
	struct child_program program = {.path = runs,
					.argv = secure ? command + 3 : command,
					.env = secure ? plain : NULL,
					.end = SIGTERM,
					.in = loom_fd(open("/dev/null", O_RDONLY | O_CLOEXEC))};
	program.out = program.err = loom_fd(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	int status = -1, code = program.in < 0 || program.out < 0 ? errno : child_start(&child, &program, &step);
	if (program.in >= 0)
		close(program.in);
	if (program.out >= 0)
		close(program.out);
	if (code) {
		snprintf(why, room, "%s: %s: %s", runs, step, strerror(code));
		return -1;
	}
	int end = child_wait(&child, NULL);
	child_end_text(end, why, room);
	if (secure)
		return end == CHILD_LOST ? -1 : WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
	snprintf(path, sizeof(path), "%s/status", folder);
	FILE *f = fopen(path, "re");
	if (!f || fscanf(f, "%d", &status) != 1)
		status = -1;
	if (f)
		fclose(f);
	return status;
}

static int fail_compile(const struct loom_host *host, const struct hostcc_want *want, const char *folder, int status,
			const char *why, struct loom_error *err)
{
	char path[PATH_MAX], line[600] = "", first[600] = "";
	const char *variable = want->cpp ? "CXX" : "CC", *cc = secure_getenv(variable);
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
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: %s come as source, but no %s compiler can be run (%s): install a compiler, or "
				 "name one in %s",
				 want->label, want->what, want->cpp ? "C++" : "C",
				 cc && *cc   ? cc
				 : want->cpp ? "c++"
					     : "cc",
				 variable);
	if (status < 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: the compiler of the %s did not finish: its shell %s", want->label,
				 want->what, why);
	if (status > 128)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: the compiler of the %s was killed by signal %d (%s)",
				 want->label, want->what, status - 128, strsignal(status - 128));
	if (!*first)
		snprintf(first, sizeof(first), "the compiler ended with status %d and said nothing", status);
	return LOOM_FAIL(host, err, LOOM_EPLUGIN, "%s: the %s' source does not compile: %s", want->label, want->what,
			 first);
}

static int load(const struct loom_host *host, const struct hostcc_want *want, const char *folder, void **so,
		struct loom_error *err)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/program.so", folder);
	int kept = want->traced ? loom_fd(open(path, O_RDONLY | O_CLOEXEC)) : -1;
	if (kept >= 0) /* never closed, as the program */
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), kept);
	*so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (*so)
		return 0;
	const char *why = dlerror();
	int noexec = why && strstr(why, "failed to map segment") != NULL;
	return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: the compiled %s cannot be loaded: %s%s", want->label,
			 want->what, why ? why : "no reason given",
			 noexec ? "; that folder may be mounted noexec: name another one in TMPDIR" : "");
}

static void remove_all(const char *folder, const struct compose_layer *layer)
{
	static const char *const files[] = {"program.c", "program.so", "log", "status"};
	static const char *const folders[] = {"/gpuloom/dev", "/gpuloom", ""};
	char path[PATH_MAX];
	size_t n;
	const struct compose_header *header = compose_headers(&n);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, header[i].name);
		if (is_file(&header[i]))
			unlink(path);
	}
	snprintf(path, sizeof(path), "%s/%s", folder, layer ? layer->name : "");
	unlink(path);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, folders[i]);
		rmdir(path);
	}
}

int hostcc_load(const struct loom_host *host, const struct hostcc_want *want, void **so, struct loom_error *err)
{
	char folder[PATH_MAX - 64];
	const char *tmp = secure_getenv("TMPDIR");
	char why[160];
	sigset_t alarms, before;
	int rc, status = -1;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	/* A program with file capabilities runs under the id of its user. So the user could change the compiled file
	 * before the program loads it. */
	if (getauxval(AT_SECURE) && getuid() == geteuid())
		return LOOM_FAIL(
		    host, err, LOOM_EUNAVAIL,
		    "%s: %s come as source, and a program with file capabilities compiles nothing: give them "
		    "as functions of the program",
		    want->label, want->what);
	snprintf(folder, sizeof(folder), "%s/gpuloom-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return LOOM_FAIL(host, err, LOOM_EIO, "%s: %s: %s", want->label, folder, strerror(errno));
	rc = write_headers(folder, want->layer) || write_program(folder, want)
		 ? LOOM_FAIL(host, err, LOOM_EIO, "%s: %s cannot be written: %s", want->label, folder, strerror(errno))
		 : 0;
	if (!rc)
		status = run_compiler(folder, want, why, sizeof(why));
	/* A command that is interrupted in its set-up ends by an alarm. The compiler's shell, which would then remove the
	 * folder, has ended. */
	pthread_sigmask(SIG_BLOCK, &alarms, &before);
	if (!rc)
		rc = status ? fail_compile(host, want, folder, status, why, err) : load(host, want, folder, so, err);
	remove_all(folder, want->layer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}
