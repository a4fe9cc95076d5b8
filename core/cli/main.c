/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom: one row per command; stdout is kept for data. */
#include <gpuloom/gpuloom.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"

static const struct command {
	const struct loom__usage *usage;
	loom__command_fn *run;
	const char *summary;
} commands[] = {
	{&loom__run_usage, loom__cmd_run, "run the workload of a conf file and verify its result"},
	{&loom__compare_usage, loom__cmd_compare, "run variants against each other, interleaved, and judge"},
	{&loom__sweep_usage, loom__cmd_sweep, "run many configurations, one line per sample, to be resumed"},
	{&loom__report_usage, loom__cmd_report, "make a page, tables or plots from results"},
	{&loom__config_usage, loom__cmd_config, "check or show a configuration, or the schema of all options"},
	{&loom__list_usage, loom__cmd_list, "list plug-ins"},
	{&loom__describe_usage, loom__cmd_describe, "describe a plug-in and its options"},
	{&loom__doctor_usage, loom__cmd_doctor, "say what this machine can run, and how to mend the rest"},
	{&loom__new_plugin_usage, loom__cmd_new_plugin,
	 "begin a plug-in: a folder that builds and passes validate"},
	{&loom__validate_usage, loom__cmd_validate, "test a plug-in against what its kind promises"},
	{&loom__completion_usage, loom__cmd_completion, "print a completion script for bash or zsh"},
};

/* What gpuloom and its completion scripts run themselves. */
static const struct {
	const char *name;
	loom__command_fn *run;
} hidden[] = {
	{"complete", loom__cmd_complete},
	{"probe", loom__cmd_probe},
	{"validate-test", loom__cmd_validate_test},
};

const char *loom__command_name(size_t i)
{
	return i < LOOM__COUNT(commands) ? commands[i].usage->command : NULL;
}

const struct loom__usage *loom__command_usage(const char *name)
{
	for (size_t i = 0; i < LOOM__COUNT(commands); i++)
		if (!strcmp(commands[i].usage->command, name))
			return commands[i].usage;
	return NULL;
}

static loom__command_fn *function_of(const char *name)
{
	for (size_t i = 0; i < LOOM__COUNT(commands); i++)
		if (!strcmp(commands[i].usage->command, name))
			return commands[i].run;
	for (size_t i = 0; i < LOOM__COUNT(hidden); i++)
		if (!strcmp(hidden[i].name, name))
			return hidden[i].run;
	return NULL;
}

static void usage(FILE *to)
{
	fputs("usage: gpuloom COMMAND ...\n\n"
	      "  gpuloom run conf/contains.ini              run a job, print a table\n"
	      "  gpuloom run conf/contains.ini --json -     the same as JSON\n"
	      "  gpuloom describe mgws                      what a plug-in does and its options\n\n"
	      "commands:\n",
	      to);
	for (size_t i = 0; i < LOOM__COUNT(commands); i++)
		fprintf(to, "  %-10s %s\n", commands[i].usage->command, commands[i].summary);
	fputs("\n`gpuloom COMMAND --help` says more; `man gpuloom` says all.\n", to);
}

void loom__say_error(const struct loom__cli *cli, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs(cli->colour ? "gpuloom: \033[1;31merror:\033[0m " : "gpuloom: error: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

void loom__say_warning(const struct loom__cli *cli, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs(cli->colour ? "gpuloom: \033[1;33mwarning:\033[0m " : "gpuloom: warning: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

enum loom__exit loom__exit_of(int code)
{
	switch (code) {
	case LOOM_OK:
		return LOOM_EXIT_OK;
	case LOOM_EINVAL:
	case LOOM_ENOENT:
	case LOOM_EABI:
	case LOOM_EPLUGIN:
		return LOOM_EXIT_USAGE;
	case LOOM_EWRONG:
		return LOOM_EXIT_WRONG;
	case LOOM_EUNAVAIL:
	case LOOM_ENOTSUP:
		return LOOM_EXIT_UNAVAILABLE;
	case LOOM_ETIMEDOUT:
		return LOOM_EXIT_TIMEOUT;
	case LOOM_EINTR:
		return LOOM_EXIT_INTERRUPTED;
	default:
		return LOOM_EXIT_FAILURE;
	}
}

/* Standard output is for data alone: fd 1 is pointed at stderr, so that whatever a plug-in or a vendor's
 * library prints cannot mix with it. */
static FILE *guard_stdout(void)
{
	int data = fcntl(1, F_DUPFD_CLOEXEC, 3); /* no program we start may write there */
	if (data < 0 || dup2(2, 1) < 0)
		return NULL;
	return fdopen(data, "w");
}

int main(int argc, char **argv)
{
	static char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct loom__cli cli = {.self = n > 0 ? self : argv[0],
				.out_is_tty = isatty(1),
				.err_is_tty = isatty(2)};
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	cli.colour = cli.err_is_tty && !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("gpuloom %s\n", loom_version());
		return LOOM_EXIT_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		usage(stdout);
		return LOOM_EXIT_OK;
	}
	if (!*name) {
		usage(stderr);
		return LOOM_EXIT_USAGE;
	}
	loom__command_fn *run = function_of(name);
	if (!run) {
		const char *names[LOOM__COUNT(commands)], *near;
		for (size_t i = 0; i < LOOM__COUNT(commands); i++)
			names[i] = loom__command_name(i);
		near = loom__nearest(name, names, LOOM__COUNT(commands));
		if (near)
			loom__say_error(&cli, "no command '%s'; did you mean '%s'?", name, near);
		else
			loom__say_error(&cli, "no command '%s': see `gpuloom --help`", name);
		return LOOM_EXIT_USAGE;
	}
	cli.out = guard_stdout();
	if (!cli.out) {
		loom__say_error(&cli, "standard output is closed");
		return LOOM_EXIT_FAILURE;
	}
	int status = run(&cli, argc - 1, argv + 1);
	if (fflush(cli.out) || ferror(cli.out)) {
		loom__say_error(&cli, "cannot write to standard output");
		status = status ? status : LOOM_EXIT_FAILURE;
	}
	fclose(cli.out);
	return status;
}
