/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one file per command, one row per command in main.c. */
#ifndef LOOM_CLI_H
#define LOOM_CLI_H

#include <stdio.h>

#include "base/base.h"

/* Exit codes, stable, as in the man page. */
enum loom__exit {
	LOOM_EXIT_OK = 0,
	LOOM_EXIT_FAILURE = 1,      /* failed while running */
	LOOM_EXIT_USAGE = 2,        /* usage or configuration */
	LOOM_EXIT_WRONG = 3,        /* a result was wrong */
	LOOM_EXIT_UNAVAILABLE = 4,  /* not available on this machine */
	LOOM_EXIT_GATE = 5,         /* a regression gate failed */
	LOOM_EXIT_INCONCLUSIVE = 6, /* only with --strict */
	LOOM_EXIT_TIMEOUT = 124,
	LOOM_EXIT_INTERRUPTED = 130,
};
enum loom__exit loom__exit_of(int error_code);

/* What main hands to a command. File descriptor 1 points at stderr by then, so that nothing a plug-in
 * prints can mix with data: data goes to `out` alone. */
struct loom__cli {
	/* The real standard output. Where it was closed before this began, writing fails; or, where a command's result goes
	 * to a file, what is written is dropped. */
	FILE *out;
	int out_is_tty, err_is_tty;
	enum loom__out { LOOM__OUT_OPEN, LOOM__OUT_CLOSED, LOOM__OUT_SPARE } out_state;
	int colour, out_colour; /* on stderr, in tables: 1 allowed */
	const char *self; /* path of this executable */
	int argc;         /* of the command that runs */
	char **argv;
	const struct loom__usage *const *commands; /* that users see, in order; ends with NULL */
};

/* What gpuloom and its completion scripts run themselves. argv[0] is the command's name. Returns an exit code. */
typedef int loom__command_fn(struct loom__cli *cli, int argc, char **argv);
loom__command_fn loom__cmd_probe, loom__cmd_validate_test, loom__cmd_complete;

/* The commands (options.h). */
extern const struct loom__usage loom__run_usage, loom__rerun_usage, loom__history_usage, loom__list_usage, loom__describe_usage,
	loom__config_usage, loom__doctor_usage, loom__report_usage, loom__sweep_usage,
	loom__compare_usage, loom__validate_usage, loom__new_plugin_usage, loom__completion_usage;

/* A document as JSON on standard output; deletes it. */
struct cJSON;
void loom__print_json(const struct loom__cli *cli, struct cJSON *document);
/* A table on standard output. On a terminal its lines are as long as the terminal is wide, and verdicts have a colour. */
void loom__put_table(const struct loom__cli *cli, const struct loom__text *table);
/* 1: standard output is a pipe or socket whose reader has gone, which is no error to talk about. */
int loom__stdout_unread(const struct loom__cli *cli);
/* "gpuloom: error: ..." on stderr. */
void loom__say_error(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* The same, and `status`. */
int loom__refuse(const struct loom__cli *cli, enum loom__exit status, const char *fmt, ...) LOOM_PRINTF(3, 4);
void loom__say_warning(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* "gpuloom: ..." on stderr. */
void loom__say_note(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Each %s becomes text of one line, fit to be shown: nothing that a name holds steers a terminal. */
void loom__print(FILE *to, const char *fmt, ...) LOOM_PRINTF(2, 3);

#endif
