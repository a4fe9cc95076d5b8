/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs of the plug-in under test: defaults, given options, edges and random values. */
#ifndef LOOM_VALIDATE_SETTINGS_H
#define LOOM_VALIDATE_SETTINGS_H

#include "conform/trial.h"

/* A filled option struct and, in words, how it differs from the trial's own options. */
struct loom__settings {
	void *opts;
	struct loom__text text; /* "depth = 1, victim = random" */
};

/* Copies the trial's options. Returns 0 or LOOM_ENOMEM. */
int loom__settings_create(const struct loom__trial *t, struct loom__settings *s);
void loom__settings_free(struct loom__settings *s);

/* Returns the row called `name`, or NULL. */
const struct loom_opt *loom__row(const struct loom_plugin *p, const char *name);
/* Sets a row from the text of a conf. Returns 0, or LOOM_EINVAL if the row does not allow the value. */
int loom__settings_put(const struct loom__trial *t, struct loom__settings *s,
		       const struct loom_opt *row, const char *text);
/* Sets a row by name. Returns LOOM_ENOENT when there is no such row. */
int loom__settings_name(const struct loom__trial *t, struct loom__settings *s, const char *name,
			const char *text);

/* Writes edge `n` of a row as text: its minimum, maximum, choices and so on. Returns 0 when there are no more. */
int loom__row_edge(const struct loom_opt *row, unsigned n, char *text, size_t room);
/* Writes a random value within the row's bounds. Returns 0 for a row with free text. */
int loom__row_random(const struct loom_opt *row, struct loom__chance *chance, char *text,
		     size_t room);
/* Sets some of the rows to random values. */
void loom__settings_random(const struct loom__trial *t, struct loom__settings *s,
			   struct loom__chance *chance);

/* In the child: fills the trial's options from defaults, then [kind.name] of `with`, then --set. */
int loom__settings_fill(struct loom__trial *t, struct loom_error *err);

#endif
