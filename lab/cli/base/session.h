/* SPDX-License-Identifier: Apache-2.0 */
/* For commands that measure: how they stop, and messages of plug-ins. */
#ifndef LOOM_CLI_SESSION_H
#define LOOM_CLI_SESSION_H

#include "cli/cli.h"

/* Makes SIGINT, SIGTERM and SIGHUP call the function that loom__on_stop() has set. A third signal ends the process. The
 * signals of a crash report the worker and the plug-in, before they end the process as usual. */
void loom__catch_signals(void);
void loom__session_end(void); /* before main() returns: from here on a call of exit() is no error */
/* Sets the function that a signal handler calls with `arg`; NULL: none. `text` is printed at the first signal. It is
 * one line with its newline, or NULL. */
void loom__on_stop(void (*stop)(void *arg), void *arg, const char *text);
int loom__stop_asked(void); /* returns the number of signals so far */
/* Declares that the first execution has begun, so that there are samples to keep. Before this call, a signal ends the
 * process after a second at the latest, because the set-up of a large job may take minutes without checking for a
 * stop. */
void loom__measured(void);

/* Writes a result to `path`, or to standard output if it is "-". If `path` cannot be written, the result goes to
 * standard output, so that a full disk loses no samples. *there is 1 if the result went to standard output. Returns an
 * exit code. */
int loom__put_result(const struct loom__cli *cli, const char *path, const char *json, int *there);

/* Checks standard output for a command that writes its result to `file` (NULL or "": none) and, unless `quiet` is set,
 * a table to standard output. If standard output is closed, the table is dropped. If standard output is closed and
 * there is no file, the command is rejected. Returns an exit code. */
int loom__check_stdout(struct loom__cli *cli, const char *file, int quiet);

/* Callback of struct loom_stack_params: prints one line on stderr. */
void loom__log_line(void *arg, int level, const char *who, const char *text);

#endif
