/* SPDX-License-Identifier: Apache-2.0 */
/* Reads confs strictly, on top of iniparser: the values of a conf, their types, and their places in files.
 *
 * A `struct loom_config` collects raw entries from files, the environment and the command line, each with its origin.
 * Declaring a section sets the keys that it may have. Filling converts the entries into an option struct. Mistakes of
 * the user are collected in a `struct loom__diag`; this code does not print them. */
#ifndef LOOM_CONFIG_H
#define LOOM_CONFIG_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "base/base.h"

/* Mistakes of the user in the order in which they were found, without repetitions, with texts in printable UTF-8. If
 * there are more than LOOM__DIAG_MOST, the others are only counted. An error may take the place of a warning. */
#define LOOM__DIAG_MOST 20
struct loom__mistake {
	char *file;       /* name of the file; NULL if the mistake is in no file */
	int line, column; /* line, and column in bytes, both counted from 1; 0 if unknown */
	int warning;
	char *text; /* such as "unknown key 'blocsize' in [workload]; did you mean 'blocksize'?" */
};
struct loom__diag {
	struct loom__mistake *list;
	size_t count;
	size_t errors, warnings; /* number of mistakes, including those beyond LOOM__DIAG_MOST, which have no text */
	int failed;              /* memory ran out: some mistakes are lost */
};
void loom__diag_add(struct loom__diag *d, int warning, const char *file, int line, int column, const char *fmt, ...)
    LOOM_PRINTF(6, 7);
void loom__diag_free(struct loom__diag *d);
/* Appends all mistakes as text, each in one line: "bench.ini:12:1: error: ..." */
void loom__diag_text(const struct loom__diag *d, struct loom__text *out);
/* Copies the text of loom__diag_text(), without the last newline, into err->text. Returns `code`, or LOOM_ENOMEM. */
int loom__diag_fail(const struct loom__diag *d, int code, struct loom_error *err);

enum { LOOM__NAME_MOST = 64 }; /* limit on the name of a section or key, in bytes */

/* A raw value with its origin. Sources have the precedence of `enum loom_source`. Within a source, a later entry
 * overrides an earlier one, and a file overrides the files that it includes. */
struct loom__entry {
	char *section, *key, *value; /* section and key in lower case; value without quotes */
	char *spelling;              /* the key as the user has written it */
	enum loom_source source;
	const char *file; /* name of a file or of a variable, or the text of --set */
	int line, column, value_column;
	int untrusted; /* 1 for a value from an untrusted document: it must not name a file to run, load or write */
	int done;      /* private to core/config; struct loom_config says what it means */
	struct loom__entry *was;  /* the entry that this one overrides, or NULL */
	struct loom__entry *next; /* the next entry in force, which belongs to another key */
};

/* Flags that only rows of the core have, beside LOOM_OPT_DEPRECATED. The value may be the path of a plug-in (FILE), a
 * list of such paths (FILES), or a list of folders with colons between them (FOLDERS); loom__word() reads both lists.
 * As with LOOM_OPT_PATH, relative paths start at the folder of the conf. */
enum { LOOM__OPT_FILE = 32, LOOM__OPT_FILES = 64, LOOM__OPT_FOLDERS = 128 };

/* Returns 1 if memory ran out and entries or values are lost. Then cfg must not be used. */
int loom__config_broken(const struct loom_config *cfg);

/* Returns the entry in force for a key, or NULL. Names may be in upper or lower case. A variable of the environment
 * becomes an entry only when its key is declared. */
const struct loom__entry *loom__config_get(const struct loom_config *cfg, const char *section, const char *key);

/* Reads a file and the files that it includes. Returns LOOM_EINVAL if this added errors to diag. */
int loom__config_read(struct loom_config *cfg, const char *path, struct loom__diag *diag);
/* Returns file i of those that were read, with included ones, or NULL after the last one. */
const char *loom__config_file(const struct loom_config *cfg, size_t i);
int loom__config_read_text(struct loom_config *cfg, const char *name, const char *text, size_t length,
			   struct loom__diag *diag);
/* Parses "section.key=value". The section ends at the last dot before '='. `where` has its source and place: a file and line, or
 * an option of the command. */
int loom__config_set_at(struct loom_config *cfg, const char *assignment, const struct loom__entry *where,
			struct loom__diag *diag);

/* Calls fn for each entry in force, in the order in which keys first appeared. Stops if fn returns other than 0. */
typedef int loom__entry_fn(void *arg, const struct loom__entry *e);
int loom__config_entries(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Declares that `section` has the keys of `rows`. The array `rows` ends with a NULL name, may be NULL, and must outlive
 * cfg. A second declaration adds rows. `owner` is for messages, as arguments of `gpuloom describe`: "scheduler mgws",
 * "run". It may be "" or NULL. */
int loom__config_declare(struct loom_config *cfg, const char *section, const struct loom_opt *rows, const char *owner);

/* Returns the name of section i, counted from 0 in order of appearance, or NULL after the last one. */
const char *loom__config_section(const struct loom_config *cfg, size_t i);
int loom__config_declared(const struct loom_config *cfg, const char *section);
/* Exempts the keys of `section` from loom__config_unknown(), because another message reports the section. */
void loom__config_ignore(struct loom_config *cfg, const char *section);
/* Returns the file where `section` first appears, or NULL, and the line there. */
const char *loom__config_section_at(const struct loom_config *cfg, const char *section, int *line);

/* Fills `opts` (opts_size bytes) from the defaults of `rows`, then from each of the sections. Later sections override
 * earlier ones. Strings are never NULL, and point into cfg or rows. Paths become absolute: they start at the folder of
 * the file that has the value, or at the working directory if no file has it. If a value has a mistake, diag gets it
 * with its place, and the default stays. Also records the effective values of the last section for
 * loom__config_each(). */
int loom__config_fill(struct loom_config *cfg, const char *const *sections, size_t n_sections,
		      const struct loom_opt *rows, void *opts, size_t opts_size, struct loom__diag *diag);
/* Returns the entry that sets a row, or NULL. The entry is in the last of `sections` that sets the row, or in the
 * section that the row shares with other plug-ins. */
const struct loom__entry *loom__config_entry(const struct loom_config *cfg, const char *const *sections,
					     size_t n_sections, const struct loom_opt *row);
/* Checks the values of a section against rows, and reports mistakes to diag. */
void loom__config_check(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
			struct loom__diag *diag);

/* Calls fn for each entry whose key no row declares. Stops if fn returns other than 0. */
int loom__config_each_unknown(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Reports every undeclared section and key, with the nearest name, and the warnings that the public calls have kept.
 * Sections and keys whose names begin with "x-" belong to the user and are not reported. */
int loom__config_unknown(struct loom_config *cfg, struct loom__diag *diag);

/* An effective value of an option. loom__config_each() lists them by section, in the order of declaration, and then by
 * row. After these values it lists keys without a row: the keys whose section or name begins with "x-", and the lists
 * of [sweep.SECTION]. `section` is the last section that was filled, or the shared section that sets the value. */
struct loom__effective {
	const char *section, *key;
	const struct loom_opt *row;      /* the row of the option; NULL: the key has no row */
	const char *value;               /* in canonical form: 65536 for 64KiB, 10000 for 10us (in ns) */
	const char *shown;               /* as the user has written it, or the text of the default */
	const struct loom__entry *entry; /* the entry that sets the value; NULL for a default */
	struct loom__effective *next;
};
typedef int loom__effective_fn(void *arg, const struct loom__effective *e);
int loom__config_each(const struct loom_config *cfg, loom__effective_fn *fn, void *arg);

/* The value of an option. The option's type says which member is valid. */
union loom__value {
	uint8_t u8;
	uint32_t u32;
	uint64_t u64;
	int64_t i64;
	double f64;
	const char *text;
};
/* Appends a value of a row in the form in which a user writes it: 64KiB, 10us, 5%. */
void loom__value_amount(const struct loom_opt *row, const union loom__value *v, struct loom__text *out);
/* Sets *min and *max to the bounds of a row. Returns 0 if only the bounds of the type apply. */
int loom__value_bounds(const struct loom_opt *row, union loom__value *min, union loom__value *max);
/* Returns 1 if both rows declare the same option. The fields that they fill may differ. */
int loom__rows_same(const struct loom_opt *a, const struct loom_opt *b);
/* Checks the rows of a plug-in: names, duplicates, sizes of fields against types, offsets inside opts_size, and
 * defaults that parse and are in range. *err gets the first mistake. */
int loom__rows_check(const struct loom_opt *rows, size_t opts_size, struct loom_error *err);

/* Returns "default", "file", "environment", "command line" or "api". */
const char *loom__source_name(enum loom_source source);

/* Parses a whole text as a value of a row, and checks its range. *err gets the mistake. For the types STR, PATH and
 * CPUS, *out becomes the pointer `text` itself. */
int loom__value_parse(const struct loom_opt *row, const char *text, void *out, struct loom_error *err);

#endif
