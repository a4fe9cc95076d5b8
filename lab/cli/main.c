/* SPDX-License-Identifier: Apache-2.0 */
/* The command gpuloom. Finds the command in a table with one row per command, runs it, and reserves standard output for
 * data. */
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/gpuloom.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cli/base/options.h"
#include "cli/base/session.h"
#include "facts/must.h"
#include "facts/write.h"
#include "lib/fd.h"

static const struct command {
	const struct loom__usage *usage;
	const char *summary;
} commands[] = {
    {&loom__run_usage, "run the workload of a conf file and verify its result"},
    {&loom__compare_usage, "run variants interleaved, and judge their differences"},
    {&loom__sweep_usage, "run many configurations, with one line per sample"},
    {&loom__rerun_usage, "repeat the run of a result, and list what differs"},
    {&loom__report_usage, "create a page, tables or plots from results"},
    {&loom__papers_usage, "list figures of papers, run them, and judge the papers' claims"},
    {&loom__config_usage, "check or show a configuration, or the schema of all options"},
    {&loom__list_usage, "list plug-ins"},
    {&loom__describe_usage, "describe a plug-in and its options"},
    {&loom__doctor_usage, "check what this machine can run, and how to enable the rest"},
    {&loom__new_plugin_usage, "create a plug-in: a folder that builds and passes validate"},
    {&loom__validate_usage, "run the conformance tests of a plug-in"},
    {&loom__explore_usage, "run the device code of a plug-in in many schedules with weak memory"},
    {&loom__completion_usage, "print a completion script for bash"},
};

static const struct {
	const char *name;
	loom__command_fn *run;
} hidden[] = {
	{"complete", loom__cmd_complete},
	{"probe", loom__cmd_probe},
	{"validate-test", loom__cmd_validate_test},
};

static void usage(FILE *to)
{
	fputs("usage: gpuloom COMMAND ...\n\n"
	      "  gpuloom run contains                       run a job, print a table\n"
	      "  gpuloom run contains --json -              the same as JSON\n"
	      "  gpuloom list confs                         the confs shipped with gpuloom\n"
	      "  gpuloom describe mgws                      what a plug-in does and its options\n\n"
	      "commands:\n",
	      to);
	for (size_t i = 0; i < LOOM__COUNT(commands); i++)
		fprintf(to, "  %-10s %s\n", commands[i].usage->command, commands[i].summary);
	fputs("\nSee `gpuloom help COMMAND` and `man gpuloom`.\n", to);
}

/* Resets signal state that the process has inherited. If SIGCHLD were ignored, the exit status of children would be
 * lost, and blocked signals could not end this process. Signals that shells and nohup ignore on purpose stay
 * ignored. */
static void reset_signals(void)
{
	static const int kept[] = {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
	struct sigaction how;
	sigset_t none;
	for (int s = 1; s < NSIG; s++) {
		size_t i = 0;
		while (i < LOOM__COUNT(kept) && kept[i] != s)
			i++;
		if (i == LOOM__COUNT(kept) && !sigaction(s, NULL, &how) && how.sa_handler == SIG_IGN)
			signal(s, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The write function of `out` if standard output was closed at start. Writing fails, or the text is dropped if the
 * result goes to a file. */
static ssize_t to_closed(void *state, const char *bytes, size_t n)
{
	(void)bytes;
	errno = EBADF;
	return *(const enum loom__out *)state == LOOM__OUT_SPARE ? (ssize_t)n : 0;
}

/* Reserves standard output for data. Descriptor 1, to which plug-ins and vendor libraries may write, becomes stderr.
 * Returns a stream for the real standard output. */
static FILE *guard_stdout(struct loom__cli *cli)
{
	if (cli->out_state != LOOM__OUT_OPEN && dup2(2, 1) == 1)
		return fopencookie(&cli->out_state, "w", (cookie_io_functions_t){.write = to_closed});
	int data = fcntl(1, F_DUPFD_CLOEXEC, 3); /* programs that gpuloom starts do not inherit this descriptor */
	if (data < 0 || dup2(2, 1) < 0)
		return NULL;
	FILE *out = fdopen(data, "w");
	if (!out)
		close(data);
	return out;
}

/* Flushes standard output, and returns the exit code. If the reader has closed its end, the process ends as if by
 * SIGPIPE. */
static int finish_stdout(const struct loom__cli *cli, int status)
{
	if (!fflush(cli->out) && !ferror(cli->out))
		return status;
	if (loom__stdout_unread(cli)) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	loom__say_error(cli, "cannot write to standard output%s",
			cli->out_state == LOOM__OUT_OPEN ? "" : ": it is closed");
	return status ? status : LOOM_EXIT_FAILURE;
}

/* With this handler, exceeding `ulimit -f` is a write error with a message. SIG_IGN would do the same, but programs
 * that gpuloom starts would inherit it. */
static void on_file_size(int number)
{
	(void)number;
}

static int dispatch(struct loom__cli *cli, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		fprintf(cli->out, "gpuloom %s\n", loom_version());
		return LOOM_EXIT_OK;
	}
	if (!strcmp(name, "help") && argc == 3) { /* "help run" means "run --help" */
		static char help[] = "--help";
		name = argv[1] = argv[2];
		argv[2] = help;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		usage(cli->out);
		return LOOM_EXIT_OK;
	}
	if (!*name) {
		usage(stderr);
		return LOOM_EXIT_USAGE;
	}
	const struct loom__usage *command = NULL;
	loom__command_fn *run = NULL;
	for (size_t i = 0; i < LOOM__COUNT(commands) && !command; i++)
		if (!strcmp(commands[i].usage->command, name))
			command = commands[i].usage;
	for (size_t i = 0; i < LOOM__COUNT(hidden); i++)
		if (!strcmp(hidden[i].name, name))
			run = hidden[i].run;
	if (!command && !run) {
		struct loom__near near = {.word = name};
		for (size_t i = 0; i < LOOM__COUNT(commands); i++)
			loom__nearer(&near, commands[i].usage->command);
		if (near.name)
			loom__say_error(cli, "no command '%s'; did you mean '%s'?", name, near.name);
		else
			loom__say_error(cli, "no command '%s': see `gpuloom --help`", name);
		return LOOM_EXIT_USAGE;
	}
	const struct loom__usage *usages[LOOM__COUNT(commands) + 1] = {0};
	for (size_t i = 0; i < LOOM__COUNT(commands); i++)
		usages[i] = commands[i].usage;
	cli->commands = usages;
	return run ? run(cli, argc - 1, argv + 1) : loom__command_run(cli, command, argc - 1, argv + 1);
}

/* Returns 1 if descriptor `fd` is a terminal on which lines can be redrawn and coloured. */
static int is_terminal(int fd)
{
	const char *term = getenv("TERM");
	return isatty(fd) && term && *term && strcmp(term, "dumb");
}

int main(int argc, char **argv)
{
	reset_signals();
	signal(SIGXFSZ, on_file_size);
	unsigned closed = loom_fd_hold(); /* opens closed standard streams, so that no other file becomes one */
	loom__must_begin();
	static char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct loom__cli cli = {.self = n > 0 ? self : (const char *)getauxval(AT_EXECFN), /* there may be no /proc */
				.out_is_tty = is_terminal(1),
				.out_state = closed & 2 ? LOOM__OUT_CLOSED : LOOM__OUT_OPEN,
				.err_is_tty = is_terminal(2)};
	const char *no_colour = getenv("NO_COLOR");
	int colour = !(no_colour && *no_colour);
	cli.colour = cli.err_is_tty && colour;
	cli.out_colour = cli.out_is_tty && colour;
	cli.out = guard_stdout(&cli);
	if (!cli.out)
		return loom__refuse(&cli, LOOM_EXIT_FAILURE, "cannot use standard output: %m");
	loom__write_stdout(cli.out);
	int status = finish_stdout(&cli, dispatch(&cli, argc, argv));
	fclose(cli.out);
	loom__session_end();
	return status;
}
