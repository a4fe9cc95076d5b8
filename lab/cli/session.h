/* SPDX-License-Identifier: Apache-2.0 */
/* For commands that measure: stopping, and messages of plug-ins. */
#ifndef LOOM_CLI_SESSION_H
#define LOOM_CLI_SESSION_H

#include "cli/cli.h"

/* Makes SIGINT, SIGTERM and SIGHUP call the function of loom__on_stop(). A third signal ends the process. */
void loom__catch_signals(void);
/* Sets the function `stop`, which runs in a signal handler; NULL: none. `text`, one line with its newline or NULL, is
 * printed at the first signal. */
void loom__on_stop(void (*stop)(void *arg), void *arg, const char *text);
int loom__stop_asked(void); /* returns the number of signals so far */
/* Called at the first execution, after which there are samples to keep. Before it, a stopped run is ended by force
 * after a second, because the set-up of a large job may take minutes without checking for a stop. */
void loom__measured(void);

/* Writes a result to `path`, or to standard output for "-". If `path` cannot be written, the result also goes to
 * standard output, so that a full disk loses no samples. *there: 1 if it went there. Returns an exit code. */
int loom__put_result(const struct loom__cli *cli, const char *path, const char *json, int *there);

/* For a command that writes its result to `file` (NULL, "": none) and, unless `quiet`, a table to standard output. If
 * standard output is closed, the table is dropped; without a file the command is rejected. Returns an exit code. */
int loom__check_stdout(struct loom__cli *cli, const char *file, int quiet);

/* Callback of struct loom_stack_params: prints one line on stderr. */
void loom__log_line(void *arg, int level, const char *who, const char *text);

#endif
