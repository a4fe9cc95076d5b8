/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. Each command has a file and a row in main.c. */
#ifndef LOOM_CLI_H
#define LOOM_CLI_H

#include <stdio.h>

#include "base/base.h"

/* Exit codes. They are stable and documented in the man page. */
enum loom__exit {
	LOOM_EXIT_OK = 0,
	LOOM_EXIT_FAILURE = 1,      /* an execution failed */
	LOOM_EXIT_USAGE = 2,        /* wrong usage or configuration */
	LOOM_EXIT_WRONG = 3,        /* a result was wrong */
	LOOM_EXIT_UNAVAILABLE = 4,  /* something is not available on this machine */
	LOOM_EXIT_GATE = 5,         /* a regression gate failed */
	LOOM_EXIT_INCONCLUSIVE = 6, /* a verdict is inconclusive, and --strict was given */
	LOOM_EXIT_TIMEOUT = 124,
	LOOM_EXIT_INTERRUPTED = 130,
};
enum loom__exit loom__exit_of(int error_code);

/* What main() passes to a command. Descriptor 1 refers to stderr, so that output of plug-ins cannot mix with data.
 * Commands write data to `out`. */
struct loom__cli {
	/* The real standard output. If standard output was closed when gpuloom started, writing to `out` fails; if the
	 * result goes to a file, this failure is ignored. */
	FILE *out;
	int out_is_tty, err_is_tty; /* 1: a terminal on which lines can be redrawn */
	enum loom__out { LOOM__OUT_OPEN, LOOM__OUT_CLOSED, LOOM__OUT_SPARE } out_state;
	/* colour: 1 if messages on stderr may have colours; out_colour: 1 if tables on `out` may have colours */
	int colour, out_colour;
	const char *self; /* path of this executable */
	int argc;         /* arguments of the running command */
	char **argv;
	const struct loom__usage *const *commands; /* visible commands, in order; ended by NULL */
	struct loom__files *files;                 /* what the running command reads and writes: files.h */
};

/* The function of a hidden command, which gpuloom itself or a completion script runs. argv[0] is the name of the
 * command. Returns an exit code. */
typedef int loom__command_fn(struct loom__cli *cli, int argc, char **argv);
loom__command_fn loom__cmd_probe, loom__cmd_validate_test, loom__cmd_complete;

/* The commands, as options.h defines them. */
extern const struct loom__usage loom__run_usage, loom__rerun_usage, loom__list_usage, loom__describe_usage,
    loom__config_usage, loom__doctor_usage, loom__report_usage, loom__sweep_usage, loom__compare_usage,
    loom__papers_usage, loom__validate_usage, loom__explore_usage, loom__new_plugin_usage, loom__completion_usage;

/* Prints a document as JSON on standard output, and deletes it. */
struct cJSON;
void loom__print_json(const struct loom__cli *cli, struct cJSON *document);
/* Prints a table on standard output. On a terminal, wraps lines and colours verdicts. */
void loom__put_table(const struct loom__cli *cli, const struct loom__text *table);
/* Returns 1 if standard output is a pipe or socket whose reader has closed its end. Commands do not treat this as an
 * error. */
int loom__stdout_unread(const struct loom__cli *cli);
/* Prints "gpuloom: error: ..." on stderr. */
void loom__say_error(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Prints an error like loom__say_error(), and returns `status`. */
int loom__refuse(const struct loom__cli *cli, enum loom__exit status, const char *fmt, ...) LOOM_PRINTF(3, 4);
void loom__say_warning(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Prints "gpuloom: ..." on stderr. */
void loom__say_note(const struct loom__cli *cli, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Prints formatted text. Each %s becomes one printable line, so that names cannot send control sequences to a
 * terminal. */
void loom__print(FILE *to, const char *fmt, ...) LOOM_PRINTF(2, 3);

/* Fills `text` with a bar that shows `done` of `all`: "[#####....]". */
#define LOOM__BAR 27
void loom__bar(char text[LOOM__BAR], size_t done, size_t all);
/* Prints on stderr how long the rest will take, if that is a minute or more, so that the user may choose a --budget. */
void loom__say_estimate(const struct loom__cli *cli, double seconds, const char *what);

#endif
