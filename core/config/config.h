/* SPDX-License-Identifier: Apache-2.0 */
/* The strict layer in front of iniparser: what a conf says, where it says it, and typed values.
 *
 * A `struct loom_config` collects raw entries from files, environment and the command line, each
 * with its origin. Declaring a section tells which keys it may have; filling turns them into a
 * struct. Mistakes are collected in a `struct loom__diag`, never printed here. */
#ifndef LOOM_CONFIG_H
#define LOOM_CONFIG_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "base/base.h"

/* Mistakes, in the order found and each once, at most LOOM__DIAG_MOST kept (the rest counted; an
 * error takes the place of a warning). Their texts are printable UTF-8. */
#define LOOM__DIAG_MOST 20
struct loom__mistake {
	char *file;       /* NULL: not from a file */
	int line, column; /* 1-based, columns in bytes; 0: not known */
	int warning;
	char *text; /* "unknown key 'blocsize' in [workload]; did you mean 'blocksize'?" */
};
struct loom__diag {
	struct loom__mistake *list;
	size_t count;
	size_t errors, warnings; /* all, also those not kept */
	int failed;              /* out of memory: some could not be kept */
};
void loom__diag_add(struct loom__diag *d, int warning, const char *file, int line, int column, const char *fmt, ...)
    LOOM_PRINTF(6, 7);
void loom__diag_free(struct loom__diag *d);
/* All as text, one line each: "bench.ini:12:1: error: ..." */
void loom__diag_text(const struct loom__diag *d, struct loom__text *out);
/* The same in err->text, without the last newline: `code`, or LOOM_ENOMEM. */
int loom__diag_fail(const struct loom__diag *d, int code, struct loom_error *err);

enum { LOOM__NAME_MOST = 64 }; /* bytes in the name of a section or key */

/* One raw value and where it came from. Precedence is the order of `enum loom_source`; within one source the later
 * entry counts, and a file counts over the files that it includes. */
struct loom__entry {
	char *section, *key, *value; /* section and key in lower case; value without quotes */
	char *spelling;              /* the key as the user wrote it */
	enum loom_source source;
	const char *file; /* file, or the name of a variable, or the --set text */
	int line, column, value_column;
	int untrusted; /* of a document that is not trusted: it must name nothing that is run, loaded or written to */
	int done;      /* inside core/config */
	struct loom__entry *was;  /* the entry that this one overrode, or NULL */
	struct loom__entry *next; /* the next one in force */
};

/* Flags of the core's own rows, behind LOOM_OPT_DEPRECATED: a value that may be the path of a plug-in,
 * words that may be such paths, folders between colons (loom__word()). Like a LOOM_OPT_PATH they are relative to the
 * conf. */
enum { LOOM__OPT_FILE = 32, LOOM__OPT_FILES = 64, LOOM__OPT_FOLDERS = 128 };

/* 1: memory ran out, entries or values got lost: nothing that cfg says can be relied on. */
int loom__config_broken(const struct loom_config *cfg);

/* The entry in force, or NULL. Section and key are matched without regard to case. A value from the
 * environment is seen once its key is declared. */
const struct loom__entry *loom__config_get(const struct loom_config *cfg, const char *section, const char *key);

/* Reads one file (with its includes). Syntax mistakes go to diag; returns LOOM_EINVAL if any. */
int loom__config_read(struct loom_config *cfg, const char *path, struct loom__diag *diag);
int loom__config_read_text(struct loom_config *cfg, const char *name, const char *text, size_t length,
			   struct loom__diag *diag);
/* GPULOOM_SECTION__KEY=value of `environ`, the dots and dashes of a section as '_'. Which section
 * that is becomes clear when it is declared; the rest become warnings in loom__config_unknown. */
int loom__config_read_environment(struct loom_config *cfg, char *const *environment, struct loom__diag *diag);
/* "section.key=value"; the section is all before the last dot left of '='. */
int loom__config_set_text(struct loom_config *cfg, const char *assignment, enum loom_source source,
			  struct loom__diag *diag);

/* The same, with the source and the place of `where`: a file and a line, or the option that said it. */
int loom__config_set_at(struct loom_config *cfg, const char *assignment, const struct loom__entry *where,
			struct loom__diag *diag);

/* The entries in force, in order of first appearance, until fn returns other than 0. */
typedef int loom__entry_fn(void *arg, const struct loom__entry *e);
int loom__config_entries(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Says that `section` exists and has the keys of `rows` (ends with name NULL; may be NULL), which
 * outlive cfg. Declaring twice adds rows. `owner` is what `gpuloom describe` takes, for messages:
 * "scheduler mgws", "run"; "" or NULL: none. */
int loom__config_declare(struct loom_config *cfg, const char *section, const struct loom_opt *rows, const char *owner);

/* The sections that were named, in order of appearance, from 0; NULL after the last. */
const char *loom__config_section(const struct loom_config *cfg, size_t i);
/* 1 when `section` was declared. */
int loom__config_declared(const struct loom_config *cfg, const char *section);
/* Keys of `section` are not reported by loom__config_unknown: its mistake was worded elsewhere. */
void loom__config_ignore(struct loom_config *cfg, const char *section);
/* File (or NULL) and line where `section` first appears. */
const char *loom__config_section_at(const struct loom_config *cfg, const char *section, int *line);

/* Fills `opts` (opts_size bytes) from the defaults of `rows` and then from each of the sections in
 * turn, later ones winning. Strings are never NULL and point into memory of cfg or of rows. A PATH
 * becomes absolute: from a file it starts at that file's folder, else at the working directory.
 * Mistakes go to diag with the place of the value and leave the default standing. Also records the
 * effective values for loom__config_each, under the last section. */
int loom__config_fill(struct loom_config *cfg, const char *const *sections, size_t n_sections,
		      const struct loom_opt *rows, void *opts, size_t opts_size, struct loom__diag *diag);
/* The entry that gives a row its value, from the first of these sections backwards and from its shared one; NULL: none.
 */
const struct loom__entry *loom__config_entry(const struct loom_config *cfg, const char *const *sections,
					     size_t n_sections, const struct loom_opt *row);
/* Checks the values that a section has: mistakes go to diag. */
void loom__config_check(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
			struct loom__diag *diag);

/* Calls fn for each entry that no row declares, until it returns other than 0. */
int loom__config_each_unknown(const struct loom_config *cfg, loom__entry_fn *fn, void *arg);

/* Every section not declared, and every undeclared key, with the nearest name. Sections and keys
 * that begin with "x-" are the user's own and never reported. Hands over, once, the warnings of the
 * public calls too. */
int loom__config_unknown(struct loom_config *cfg, struct loom__diag *diag);

/* The effective values, sorted by section in order of declaration, then by row; then keys without a row: the user's
 * own, and the lists of values of [sweep.SECTION]. The section is the last one of the fill; a shared one, unless the
 * value is of the plug-in's own. */
struct loom__effective {
	const char *section, *key;
	const struct loom_opt *row;      /* NULL for a key without one */
	const char *value;               /* canonical form: 65536 for 64KiB, 10000 for 10us (ns) */
	const char *shown;               /* as written, or the default's text */
	const struct loom__entry *entry; /* NULL: the default */
	struct loom__effective *next;
};
typedef int loom__effective_fn(void *arg, const struct loom__effective *e);
int loom__config_each(const struct loom_config *cfg, loom__effective_fn *fn, void *arg);

/* 1: they declare the same option; the fields that they fill may differ. */
int loom__rows_same(const struct loom_opt *a, const struct loom_opt *b);
/* Checks a table of rows as the loader must: names, sizes against types, offsets inside opts_size,
 * defaults that parse and are in range, duplicate names. Words the first fault in err. */
int loom__rows_check(const struct loom_opt *rows, size_t opts_size, struct loom_error *err);

/* "default", "file", "environment", "command line", "api" */
const char *loom__source_name(enum loom_source source);

/* Parses one value for a row, the whole string, with units and range; words the mistake in err. For
 * STR, PATH and CPUS, *out becomes `text` itself. */
int loom__value_parse(const struct loom_opt *row, const char *text, void *out, struct loom_error *err);

#endif
