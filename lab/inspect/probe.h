/* SPDX-License-Identifier: Apache-2.0 */
/* Examines the code of a plug-in in a child process. */
#ifndef LOOM_PROBE_H
#define LOOM_PROBE_H

#include "plugin/registry.h"

enum { LOOM__PROBE_MS = 5000 }; /* default time limit */

/* Reads the manifest from the ELF note of a file. Returns 0, or LOOM_EPLUGIN with the reason. */
int loom__manifest_read(const char *path, struct loom_manifest *out, struct loom_error *err);

/* What a plug-in that can be used says about itself. */
struct loom__probed {
	struct loom_manifest identity; /* strings have no control characters */
	char noise[200];               /* the first line that the plug-in printed when it was loaded, or "" */
};
/* Loads the plug-in in a child process: the executable `self` with the hidden command "probe". Returns an error with a
 * message if a constructor aborts, takes longer than limit_ms or writes to stdout. `out` receives what was found, and
 * may be NULL. */
int loom__plugin_examine(const char *self, const char *path, unsigned limit_ms,
			 struct loom__probed *out, struct loom_error *err);

/* Receives one row of a doctor op. The strings have no control characters. */
typedef void loom__doctor_fn(void *arg, const char *topic, const char *state, const char *found,
			     const char *fix);
/* Runs `probe QUESTION FD PATH` in a child of `self`, which answers with rows. The question "doctor" calls the op
 * doctor() of the plug-in at `path`. If the plug-in lacks this op, there are no rows. If the child crashes or hangs,
 * `row` still receives the rows that the child has written. */
int loom__ask_rows(const char *self, const char *question, const char *path, unsigned limit_ms,
		   loom__doctor_fn *row, void *arg, struct loom_error *err);
/* Writes one row. The child calls this function. */
void loom__answer_row(int fd, const char *topic, const char *state, const char *found,
		      const char *fix);

/* Answers `probe QUESTION FD PATH` in the child, and exits. Any executable that serves as `self` must call this
 * function. Returns if the usage is wrong. */
void loom__probe_command(int argc, char **argv);

#endif
