/* SPDX-License-Identifier: Apache-2.0 */
/* Examines the code of a plug-in in a child process. */
#ifndef LOOM_PROBE_H
#define LOOM_PROBE_H

#include "plugin/registry.h"

enum { LOOM__PROBE_MS = 5000 }; /* default time limit */

/* Reads the note of one file. Returns 0, or LOOM_EPLUGIN with the reason. */
int loom__manifest_read(const char *path, struct loom_manifest *out, struct loom_error *err);

/* A usable plug-in, as its code describes itself. */
struct loom__probed {
	struct loom_manifest identity; /* strings are cleaned */
	char noise[200];               /* the first line that the plug-in printed when loaded, or "" */
};
/* Loads the plug-in in a child (the executable `self` with the hidden command "probe"). If a constructor aborts,
 * takes longer than limit_ms or writes to stdout, the result is an error message. `out` receives the findings, and may
 * be NULL. */
int loom__plugin_examine(const char *self, const char *path, unsigned limit_ms,
			 struct loom__probed *out, struct loom_error *err);

/* Receives the rows of a doctor op, with cleaned strings. */
typedef void loom__doctor_fn(void *arg, const char *topic, const char *state, const char *found,
			     const char *fix);
/* Runs `probe QUESTION FD PATH` in a child of `self`, which answers with rows. The question "doctor" calls the op
 * doctor() of the plug-in at `path`; a plug-in without this op gives no rows. Rows that were written before a crash or
 * a hang are delivered. */
int loom__ask_rows(const char *self, const char *question, const char *path, unsigned limit_ms,
		   loom__doctor_fn *row, void *arg, struct loom_error *err);
/* Writes one row, in the child. */
void loom__answer_row(int fd, const char *topic, const char *state, const char *found,
		      const char *fix);

/* Answers `probe QUESTION FD PATH` in the child, for any executable that is `self`, and exits. Returns on wrong
 * usage. */
void loom__probe_command(int argc, char **argv);

#endif
