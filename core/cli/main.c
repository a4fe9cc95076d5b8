/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom: one row per command; stdout is kept for data. */
#include <gpuloom/gpuloom.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const struct command {
	const char *name;
	loom__command_fn *run;
	const char *summary; /* NULL: hidden */
} commands[] = {
	{"run", loom__cmd_run, "run the workload of a conf file and verify its result"},
	{"compare", loom__cmd_compare, "run variants against each other, interleaved, and judge"},
	{"sweep", loom__cmd_sweep, "run many configurations, one line per sample, to be resumed"},
	{"report", loom__cmd_report, "make a page, tables or plots from results"},
	{"config", loom__cmd_config, "check or show a configuration, or the schema of all options"},
	{"list", loom__cmd_list, "list plug-ins"},
	{"describe", loom__cmd_describe, "describe a plug-in and its options"},
	{"doctor", loom__cmd_doctor, "say what this machine can run, and how to mend the rest"},
	{"new-plugin", loom__cmd_new_plugin, "begin a plug-in: a folder that builds and passes validate"},
	{"validate", loom__cmd_validate, "test a plug-in against what its kind promises"},
	{"completion", loom__cmd_completion, "print a completion script for bash or zsh"},
	{"complete", loom__cmd_complete, NULL},
	{"probe", loom__cmd_probe, NULL},
	{"validate-test", loom__cmd_validate_test, NULL},
};

const char *loom__command_name(size_t i)
{
	for (size_t k = 0; k < LOOM__COUNT(commands); k++)
		if (commands[k].summary && !i--)
			return commands[k].name;
	return NULL;
}

int loom__command_run(struct loom__cli *cli, int argc, char **argv)
{
	for (size_t k = 0; k < LOOM__COUNT(commands); k++)
		if (!strcmp(commands[k].name, argv[0]))
			return commands[k].run(cli, argc, argv);
	return LOOM_EXIT_USAGE;
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
		if (commands[i].summary)
			fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
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
	const char *names[LOOM__COUNT(commands)];
	size_t visible = 0;
	for (size_t i = 0; i < LOOM__COUNT(commands); i++) {
		if (commands[i].summary)
			names[visible++] = commands[i].name;
		if (strcmp(commands[i].name, name))
			continue;
		cli.out = guard_stdout();
		if (!cli.out) {
			loom__say_error(&cli, "standard output is closed");
			return LOOM_EXIT_FAILURE;
		}
		int status = commands[i].run(&cli, argc - 1, argv + 1);
		if (fflush(cli.out) || ferror(cli.out)) {
			loom__say_error(&cli, "cannot write to standard output");
			status = status ? status : LOOM_EXIT_FAILURE;
		}
		fclose(cli.out);
		return status;
	}
	const char *near = loom__nearest(name, names, visible);
	if (near)
		loom__say_error(&cli, "no command '%s'; did you mean '%s'?", name, near);
	else
		loom__say_error(&cli, "no command '%s': see `gpuloom --help`", name);
	return LOOM_EXIT_USAGE;
}
