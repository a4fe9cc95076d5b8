/* SPDX-License-Identifier: Apache-2.0 */
/* The strict layer in front of iniparser: what a conf says, where it says it, and typed values.
 *
 * A `struct loom_config` collects raw entries from files, environment and the command line, each with its origin.
 * Declaring a section sets the keys that it may have. Filling converts the entries into an option struct. Mistakes are
 * collected in a `struct loom__diag` and not printed here. */
#ifndef LOOM_CONFIG_H
#define LOOM_CONFIG_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "base/base.h"

/* Mistakes in the order found, each once, with texts in printable UTF-8. At most LOOM__DIAG_MOST are kept, the rest
 * counted; an error may replace a warning. */
#define LOOM__DIAG_MOST 20
struct loom__mistake {
	char *file;       /* NULL: no file */
	int line, column; /* from 1, columns in bytes; 0: not known */
	int warning;
	char *text; /* "unknown key 'blocsize' in [workload]; did you mean 'blocksize'?" */
};
struct loom__diag {
	struct loom__mistake *list;
	size_t count;
	size_t errors, warnings; /* the number of mistakes, also of those not kept */
	int failed;              /* out of memory: some mistakes are lost */
};
void loom__diag_add(struct loom__diag *d, int warning, const char *file, int line, int column, const char *fmt, ...)
    LOOM_PRINTF(6, 7);
void loom__diag_free(struct loom__diag *d);
/* Appends all mistakes as text, one line each: "bench.ini:12:1: error: ..." */
void loom__diag_text(const struct loom__diag *d, struct loom__text *out);
/* Copies that text, without the last newline, into err->text. Returns `code`, or LOOM_ENOMEM. */
int loom__diag_fail(const struct loom__diag *d, int code, struct loom_error *err);

enum { LOOM__NAME_MOST = 64 }; /* limit on the bytes of the name of a section or key */

/* One raw value with its origin. Sources have the precedence of `enum loom_source`. Within a source a later entry
 * overrides an earlier one, and a file overrides the files that it includes. */
struct loom__entry {
	char *section, *key, *value; /* section and key in lower case; value without quotes */
	char *spelling;              /* the key as in the conf */
	enum loom_source source;
	const char *file; /* a file, the name of a variable, or the --set text */
	int line, column, value_column;
	int untrusted; /* from an untrusted document: the value must not name what is run, loaded or written to */
	int done;      /* private to core/config */
	struct loom__entry *was;  /* the overridden entry, or NULL */
	struct loom__entry *next; /* the next entry in force */
};

/* Flags of the core's own rows, beyond LOOM_OPT_DEPRECATED: the value may be the path of a plug-in, a list of such
 * paths, or folders between colons (loom__word()). As with LOOM_OPT_PATH, paths are relative to the conf. */
enum { LOOM__OPT_FILE = 32, LOOM__OPT_FILES = 64, LOOM__OPT_FOLDERS = 128 };

/* Returns 1 when memory ran out and entries or values are lost, so that cfg is unreliable. */
int loom__config_broken(const struct loom_config *cfg);

/* Returns the entry in force, or NULL. Case does not matter. Those of the environment appear once their key is
 * declared. */
const struct loom__entry *loom__config_get(const struct loom_config *cfg, const char *section, const char *key);

/* Reads a file and its includes. Returns LOOM_EINVAL if diag got syntax mistakes. */
int loom__config_read(struct loom_config *cfg, const char *path, struct loom__diag *diag);
int loom__config_read_text(struct loom_config *cfg, const char *name, const char *text, size_t length,
			   struct loom__diag *diag);
/* Reads GPULOOM_SECTION__KEY=value, where '_' stands for dots and dashes of the section. A declaration decides which
 * section that is. loom__config_unknown() warns of the rest. */
int loom__config_read_environment(struct loom_config *cfg, char *const *environment, struct loom__diag *diag);
/* Parses "section.key=value"; the section ends at the last dot before '='. */
int loom__config_set_text(struct loom_config *cfg, const char *assignment, enum loom_source source,
			  struct loom__diag *diag);

/* Parses an assignment with the source and place of `where`: a file and line, or an option of the command. */
int loom__config_set_at(struct loom_config *cfg, const char *assignment, const struct loom__entry *where,
			struct loom__diag *diag);

/* Calls fn for the entries in force, in order of first appearance, until it returns other than 0. */
typedef int loom__entry_fn(void *arg, const struct loom__entry *e);
int loom__config_entries(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Declares that `section` has the keys of `rows`, which end with name NULL, may be NULL, and must outlive cfg. A second
 * declaration adds rows. `owner` is for messages, as `gpuloom describe` takes it: "scheduler mgws", "run"; "" or NULL:
 * none. */
int loom__config_declare(struct loom_config *cfg, const char *section, const struct loom_opt *rows, const char *owner);

/* Returns the i-th section, from 0, in order of appearance; NULL after the last. */
const char *loom__config_section(const struct loom_config *cfg, size_t i);
int loom__config_declared(const struct loom_config *cfg, const char *section);
/* Exempts the keys of `section` from loom__config_unknown(), because another message covers the section. */
void loom__config_ignore(struct loom_config *cfg, const char *section);
/* Returns the file (or NULL) and line where `section` first appears. */
const char *loom__config_section_at(const struct loom_config *cfg, const char *section, int *line);

/* Fills `opts` (opts_size bytes) from the defaults of `rows`, then from each of the sections; later ones override.
 * Strings are never NULL and point into cfg or rows. A PATH becomes absolute, from the folder of its file, else from
 * the working directory. Mistakes go to diag with the place of the value, and leave the default. Also records the
 * effective values under the last section for loom__config_each(). */
int loom__config_fill(struct loom_config *cfg, const char *const *sections, size_t n_sections,
		      const struct loom_opt *rows, void *opts, size_t opts_size, struct loom__diag *diag);
/* Returns the entry that sets a row: of the last of these sections with one, or of its shared section; NULL: none. */
const struct loom__entry *loom__config_entry(const struct loom_config *cfg, const char *const *sections,
					     size_t n_sections, const struct loom_opt *row);
/* Checks the values of a section against rows; mistakes go to diag. */
void loom__config_check(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
			struct loom__diag *diag);

/* Calls fn for each entry without a declared row, until it returns other than 0. */
int loom__config_each_unknown(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Reports every undeclared section and key, with the nearest name, and the kept warnings of the public calls.
 * Sections and keys that begin with "x-" are the user's own and exempt. */
int loom__config_unknown(struct loom_config *cfg, struct loom__diag *diag);

/* The effective values, by section in order of declaration, then by row. Keys without a row follow: the user's own, and
 * the lists of [sweep.SECTION]. `section` is the last one filled, or the shared one that sets the value. */
struct loom__effective {
	const char *section, *key;
	const struct loom_opt *row;      /* NULL for a key without one */
	const char *value;               /* canonical form: 65536 for 64KiB, 10000 for 10us (ns) */
	const char *shown;               /* as written, or the text of the default */
	const struct loom__entry *entry; /* NULL: the default */
	struct loom__effective *next;
};
typedef int loom__effective_fn(void *arg, const struct loom__effective *e);
int loom__config_each(const struct loom_config *cfg, loom__effective_fn *fn, void *arg);

/* Appends a bound of a row as a user would write it: 64KiB, 10us, 5%. */
void loom__value_amount(const struct loom_opt *row, double v, struct loom__text *out);
/* Returns 1 when both declare the same option, though the fields that they fill may differ. */
int loom__rows_same(const struct loom_opt *a, const struct loom_opt *b);
/* Checks the rows of a plug-in for the loader: names, duplicates, sizes against types, offsets inside opts_size, and
 * defaults that parse and are in range. err has the first mistake. */
int loom__rows_check(const struct loom_opt *rows, size_t opts_size, struct loom_error *err);

/* "default", "file", "environment", "command line", "api" */
const char *loom__source_name(enum loom_source source);

/* Parses the whole text as a value of a row, in its range; err has the mistake. For STR, PATH and CPUS, *out becomes
 * `text` itself. */
int loom__value_parse(const struct loom_opt *row, const char *text, void *out, struct loom_error *err);

#endif
