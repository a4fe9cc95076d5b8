/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that measure share: being stopped, and passing on what plug-ins say. */
#ifndef LOOM_CLI_SESSION_H
#define LOOM_CLI_SESSION_H

#include "cli/cli.h"

/* From now on SIGINT, SIGTERM and SIGHUP call what loom__on_stop() says; the third one ends the process. */
void loom__catch_signals(void);
/* `stop` runs in a signal handler; NULL: nobody is to be told. `text` (a line with its newline) is
 * printed the first time, NULL: nothing. */
void loom__on_stop(void (*stop)(void *arg), void *arg, const char *text);
int loom__stop_asked(void); /* how often so far */
/* The first execution is in progress or over: from now on there is something to keep. Before, a run that was told to end is
 * ended by force after a second: set-up of a large job may last for minutes, in loops that look at nothing. */
void loom__measured(void);

/* A result goes to `path`; to standard output for "-", and where `path` cannot take it: what was measured is not lost
 * with a disk that has become full. *there: 1 when standard output has it. An exit code. */
int loom__put_result(const struct loom__cli *cli, const char *path, const char *json, int *there);

/* For a command that puts its result into `file` (NULL, "": none) and a table, unless `quiet`, to standard output. Where
 * that is closed the table is dropped; without a file the command is refused before it begins. An exit code. */
int loom__check_stdout(struct loom__cli *cli, const char *file, int quiet);

/* For struct loom_stack_params: one line on stderr. */
void loom__log_line(void *arg, int level, const char *who, const char *text);

#endif
