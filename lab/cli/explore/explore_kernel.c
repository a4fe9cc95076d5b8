/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom explore KERNEL.cu: compiles a CUDA source for the fibers of explore/, and runs it. */
#include "cli/explore/explore_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../explore/rewrite.h"
#include "cli/base/session.h"
#include "facts/must.h"
#include "facts/write.h"
#include "lib/child.h"
#include "lib/fd.h"

enum { ARGUMENTS = 40, NUMBERS = 8 };

struct job {
	struct loom__cli *cli;
	const char *kernel;
	const struct loom__kernel_args *args;
	char *tools;	  /* folder of the headers and of the library */
	char folder[200]; /* for what is compiled */
	char *source[2];  /* absolute paths of the kernel and of the harness */
};

int loom__is_kernel(const char *path)
{
	static const char *const suffixes[] = {".cu", ".cuh", ".cc", ".cpp", ".cxx"};
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; dot && i < LOOM__COUNT(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return 1;
	return 0;
}

/* Returns the folder beside this executable, or that of the installation. */
static char *find_tools(const struct loom__cli *cli)
{
	static const char *const places[] = {"explore", LOOM_LIBDIR_FROM_BINDIR "/gpuloom/explore"};
	char *found = NULL;
	for (size_t i = 0; i < LOOM__COUNT(places) && !found; i++) {
		struct loom__text path = {0}, library = {0};
		loom__beside(&path, cli->self, places[i]);
		loom__text_add(&library, "%s/libexplore.a", loom__must_text(&path));
		if (!access(loom__must_text(&library), R_OK))
			found = realpath(path.at, NULL);
		loom__text_free(&path);
		loom__text_free(&library);
	}
	return found;
}

/* ---- programs that it runs */

static struct child running = CHILD_NONE;

static void stop(void *arg)
{
	(void)arg;
	if (running.pid)
		child_signal_group(&running, SIGTERM);
}

/* Runs a program, whose output goes to `out`, and messages to `err`. Returns its exit status, or -1 with the reason. */
static int execute(char **argv, int out, int err, char *why, size_t room)
{
	const char *step = "open";
	struct child_program p = {.argv = argv, .end = SIGTERM, .out = out, .err = err};
	int status = -1, code;
	p.in = loom_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
	code = p.in < 0 ? errno : child_start(&running, &p, &step);
	if (p.in >= 0)
		close(p.in);
	if (code) {
		snprintf(why, room, "%s: %s: %s", argv[0], step, strerror(code));
		return -1;
	}
	child_await(&running);
	status = child_wait(&running, NULL);
	child_end_text(status, why, room);
	return status != CHILD_LOST && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *in_folder(const struct job *j, const char *name)
{
	struct loom__text path = {0};
	loom__text_add(&path, "%s/%s", j->folder, name);
	return path.at;
}

/* Prints the compiler's messages after a failure. */
static int say_compiler(const struct job *j, const char *why)
{
	char *log = in_folder(j, "log"), line[400];
	FILE *f = fopen(log, "re");
	for (int n = 0; f && n < 12 && fgets(line, sizeof(line), f); n++)
		fprintf(stderr, "%s", line);
	if (f)
		fclose(f);
	free(log);
	return loom__refuse(j->cli, LOOM_EXIT_USAGE,
			    "explore: %s does not compile: the compiler %s; docs/explore.md lists what of CUDA is known",
			    j->kernel, why);
}

/* Runs the C++ compiler. */
static int compile(const struct job *j, char **argv)
{
	char *log = in_folder(j, "log"), why[200];
	int err = loom_fd(open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	int null = loom_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	int status = execute(argv, null, err, why, sizeof(why));
	if (err >= 0)
		close(err);
	if (null >= 0)
		close(null);
	free(log);
	if (loom__stop_asked())
		return LOOM_EXIT_INTERRUPTED;
	if (status < 0)
		return loom__refuse(j->cli, LOOM_EXIT_UNAVAILABLE,
				    "explore: no C++ compiler can be run (%s): install one, or name it in CXX", why);
	return status ? say_compiler(j, why) : 0;
}

/* ---- from the source to the program */

static int write_source(const struct job *j, const char *path)
{
	struct loom__text text = {0};
	struct loom_error err;
	for (int i = 0; i < 2 && j->source[i]; i++)
		loom__text_add(&text, "#include \"%s\"\n", j->source[i]);
	int rc = loom__write_file(path, loom__must_text(&text), text.length, &err);
	loom__text_free(&text);
	return rc ? loom__refuse(j->cli, LOOM_EXIT_FAILURE, "explore: %s", err.text) : 0;
}

static int rewrite(const struct job *j, const char *from, const char *to)
{
	char why[600];
	struct loom_error err;
	size_t bytes = 0;
	char *text = NULL;
	if (loom__read_file(from, (size_t)1 << 30, &text, &bytes, &err))
		text = NULL;
	FILE *out = text ? fopen(to, "we") : NULL;
	int rc = out ? explore_rewrite(text, bytes, out, why, sizeof(why)) : -1;
	if (text && !out)
		snprintf(why, sizeof(why), "%s: %s", to, strerror(errno));
	if (out && fclose(out) && !rc)
		rc = snprintf(why, sizeof(why), "%s: %s", to, strerror(errno));
	free(text);
	return rc ? loom__refuse(j->cli, LOOM_EXIT_UNAVAILABLE, "explore: %s", text ? why : err.text) : 0;
}

/* Compiles folder/source.cu to folder/program. */
static int build(const struct job *j)
{
	const char *variable = getenv("CXX"), *define = j->args->define ? j->args->define : "EXPLORE";
	char *cxx = (char *)(uintptr_t)(variable && *variable ? variable : "c++");
	char *names[] = {"source.cu", "preprocessed.ii", "rewritten.cc", "program.o", "program"}, *path[LOOM__COUNT(names)];
	struct loom__text include = {0}, library = {0}, macro = {0};
	for (size_t i = 0; i < LOOM__COUNT(names); i++)
		path[i] = in_folder(j, names[i]);
	loom__text_add(&include, "-I%s/include", j->tools);
	loom__text_add(&library, "%s/libexplore.a", j->tools);
	loom__text_add(&macro, "-D%s", define);
	char *preprocess[] = {cxx, "-E", "-x", "c++", "-std=gnu++20", "-fno-exceptions", (char *)loom__must_text(&include), "-include", "cuda_runtime.h",
			      "-D__CUDACC__", "-D__CUDA_ARCH__=900", "-Dmain=explore_main", (char *)loom__must_text(&macro), path[0], "-o", path[1], NULL};
	char *program[] = {cxx, "-x", "c++", "-fpreprocessed", "-std=gnu++20", "-w", "-O1", "-gdwarf-4", "-fno-threadsafe-statics", "-fno-strict-aliasing",
			   "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1", "-c", path[2], "-o", path[3], NULL};
	char *link[] = {cxx, path[3], (char *)loom__must_text(&library), "-ldl", "-o", path[4], NULL};
	int status = write_source(j, path[0]);
	status = status ? status : compile(j, preprocess);
	status = status ? status : rewrite(j, path[1], path[2]);
	status = status ? status : compile(j, program);
	status = status ? status : compile(j, link);
	for (size_t i = 0; i < LOOM__COUNT(names); i++)
		free(path[i]);
	loom__text_free(&include);
	loom__text_free(&library);
	loom__text_free(&macro);
	return status;
}

static int run_program(const struct job *j, uint64_t first, uint64_t seeds)
{
	const struct loom__kernel_args *a = j->args;
	const struct {
		const char *name;
		uint64_t v;
	} all[] = {{"first", first}, {"seeds", seeds}, {"ranks", a->ranks}, {"grid", a->grid}, {"block", a->block},
		   {"resident", a->resident}, {"time", a->seconds}};
	char text[LOOM__COUNT(all)][40], *argv[LOOM__COUNT(all) + 2] = {in_folder(j, "program")}, why[200];
	int n = 1;
	for (size_t i = 0; i < LOOM__COUNT(all); i++) {
		snprintf(text[i], sizeof(text[i]), "%s=%llu", all[i].name, (unsigned long long)all[i].v);
		if (all[i].v)
			argv[n++] = text[i];
	}
	fflush(j->cli->out);
	int status = execute(argv, fileno(j->cli->out), STDERR_FILENO, why, sizeof(why));
	free(argv[0]);
	if (status < 0 && !loom__stop_asked())
		return loom__refuse(j->cli, LOOM_EXIT_FAILURE, "explore: the explored program %s", why);
	return status < 0 ? LOOM_EXIT_INTERRUPTED : status;
}

static void remove_folder(const struct job *j)
{
	static const char *const names[] = {"source.cu", "preprocessed.ii", "rewritten.cc", "program.o", "program", "log"};
	for (size_t i = 0; i < LOOM__COUNT(names); i++) {
		char *path = in_folder(j, names[i]);
		unlink(path);
		free(path);
	}
	rmdir(j->folder);
}

int loom__explore_kernel(struct loom__cli *cli, const char *path, const struct loom__kernel_args *args, uint64_t first,
			 uint64_t seeds)
{
	struct job j = {.cli = cli, .kernel = path, .args = args, .tools = find_tools(cli)};
	const char *tmp = getenv("TMPDIR");
	int status = 0;
	j.source[0] = realpath(path, NULL);
	j.source[1] = args->harness ? realpath(args->harness, NULL) : NULL;
	snprintf(j.folder, sizeof(j.folder), "%s/gpuloom-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!j.source[0] || (args->harness && !j.source[1]))
		status = loom__refuse(cli, LOOM_EXIT_USAGE, "explore: %s: %s", j.source[0] ? args->harness : path, strerror(errno));
	else if (!j.tools)
		status = loom__refuse(cli, LOOM_EXIT_UNAVAILABLE, "explore: the folder explore, with headers for kernels, is not beside %s", cli->self);
	else if (!mkdtemp(j.folder))
		status = loom__refuse(cli, LOOM_EXIT_FAILURE, "explore: %s: %s", j.folder, strerror(errno));
	if (!status) {
		loom__on_stop(stop, NULL, NULL);
		status = build(&j);
		status = status ? status : run_program(&j, first, seeds);
		loom__on_stop(NULL, NULL, NULL);
		remove_folder(&j);
	}
	free(j.tools);
	free(j.source[0]);
	free(j.source[1]);
	return status;
}
