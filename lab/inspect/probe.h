/* SPDX-License-Identifier: Apache-2.0 */
/* What a plug-in does when its code runs, found out in a child process. */
#ifndef LOOM_PROBE_H
#define LOOM_PROBE_H

#include "plugin/registry.h"

enum { LOOM__PROBE_MS = 5000 }; /* time limit where the caller has no better one */

/* Reads the note of one file; 0, or LOOM_EPLUGIN with the reason. */
int loom__manifest_read(const char *path, struct loom_manifest *out, struct loom_error *err);

/* A plug-in that can be used, as its own code describes it. */
struct loom__probed {
	struct loom_manifest identity; /* strings cleaned */
	char noise[200];               /* the first line that it printed when loaded, or "" */
};
/* Loads it in a child first (the executable `self` with the hidden command "probe"), so that a
 * constructor that aborts, hangs (limit_ms) or writes to stdout is a sentence and not our end. `out`: what was
 * learnt by it, or NULL. */
int loom__plugin_examine(const char *self, const char *path, unsigned limit_ms,
			 struct loom__probed *out, struct loom_error *err);

/* Receives the rows of a doctor, their strings cleaned. */
typedef void loom__doctor_fn(void *arg, const char *topic, const char *state, const char *found,
			     const char *mend);
/* Has a child of `self` answer `probe QUESTION FD PATH` in rows. "doctor" asks the plug-in at
 * `path` (one without that op gives none). What was said before a crash or a hang is handed on as
 * well. */
int loom__ask_rows(const char *self, const char *question, const char *path, unsigned limit_ms,
		   loom__doctor_fn *row, void *arg, struct loom_error *err);
/* Writes one row, in the child. */
void loom__answer_row(int fd, const char *topic, const char *state, const char *found,
		      const char *mend);

/* The child's side of `probe QUESTION FD PATH`, for every executable that serves as `self`. Ends
 * the process; returns only on wrong usage. */
void loom__probe_command(int argc, char **argv);

#endif
