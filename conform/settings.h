/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs of the plug-in under test: defaults, given options, edges and random values. */
#ifndef LOOM_VALIDATE_SETTINGS_H
#define LOOM_VALIDATE_SETTINGS_H

#include "conform/trial.h"

/* A filled option struct and, in words, how it differs from the trial's own. */
struct loom__settings {
	void *opts;
	struct loom__text text; /* "depth = 1, victim = random" */
};

/* A copy of the trial's options. 0 or LOOM_ENOMEM. */
int loom__settings_create(const struct loom__trial *t, struct loom__settings *s);
void loom__settings_free(struct loom__settings *s);

/* The row called `name`, or NULL. */
const struct loom_opt *loom__row(const struct loom_plugin *p, const char *name);
/* Sets a row from the text of a conf; 0, or LOOM_EINVAL if the value is not allowed. */
int loom__settings_put(const struct loom__trial *t, struct loom__settings *s,
		       const struct loom_opt *row, const char *text);
/* The same by name; without such a row LOOM_ENOENT. */
int loom__settings_name(const struct loom__trial *t, struct loom__settings *s, const char *name,
			const char *text);

/* Edge `n` of a row as text: its minimum, maximum, choices, ...; 0 when there are no more. */
int loom__row_edge(const struct loom_opt *row, unsigned n, char *text, size_t room);
/* A random value within the row's bounds. 0: none (free text). */
int loom__row_random(const struct loom_opt *row, struct loom__chance *chance, char *text,
		     size_t room);
/* Some of the rows at random values. */
void loom__settings_random(const struct loom__trial *t, struct loom__settings *s,
			   struct loom__chance *chance);

/* Fills the trial's own: defaults, then [kind.name] of `with`, then --set. In the child. */
int loom__settings_fill(struct loom__trial *t, struct loom_error *err);

#endif
