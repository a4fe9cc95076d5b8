/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that only the files of core/config use. */
#ifndef LOOM_CONFIG_INSIDE_H
#define LOOM_CONFIG_INSIDE_H

#include <stddef.h>
#include <string.h>

#include "config/config.h"

/* Limits far above the needs of any real conf. They keep the linear searches cheap. */
enum {
	LOOM__LINE_MOST = 1000,   /* bytes in a line; iniparser fails at 1024 bytes */
	LOOM__VALUE_MOST = 4096,  /* bytes in a value that is in no file */
	LOOM__ITEMS_MOST = 4096,  /* lines with content in a file; also a limit on the different keys of a configuration */
	LOOM__FILES_MOST = 64,    /* files in a configuration; a file counts each time that it is included */
	LOOM__DEPTH_MOST = 8,     /* depth of nested includes */
	LOOM__ENTRY_MOST = 16384, /* entries in a configuration, including those that other entries override */
	LOOM__FILE_MOST = 1 << 20,
};

/* A piece of memory that belongs to a configuration. All pieces are freed together. */
struct loom__block {
	struct loom__block *next;
	_Alignas(max_align_t) char bytes[];
};

/* ---- lines ---------------------------------------------------------------------------------- */

/* A range of bytes in the text being scanned. */
struct loom__slice {
	const char *at;
	size_t n;
};

enum { LOOM__ITEM_SECTION, LOOM__ITEM_KEY, LOOM__ITEM_INCLUDE };
struct loom__item {
	int kind;
	int line, column, value_column;
	struct loom__slice section, key;
	struct loom__slice value; /* the raw text of the line; loom__items_read() replaces it by the parsed value */
};
struct loom__items {
	struct loom__item *at;
	size_t count;
	int failed;                  /* memory ran out */
	struct _dictionary_ *values; /* the dictionary of iniparser, which has the memory of the values */
};

/* Splits the text into items. Leaves out lines with mistakes, and reports them to diag. */
void loom__scan(const char *file, const char *text, size_t length, struct loom__items *items, struct loom__diag *diag);

/* Replaces the raw values by those that iniparser reads. Returns 0 or LOOM_ENOMEM. */
int loom__items_read(const char *file, struct loom__items *items, struct loom__diag *diag);
void loom__items_free(struct loom__items *items);

/* These return the mistake in a name or text, in words, or NULL. *where is the index of the wrong byte. `dots`: 1 if
 * the name may have dots. */
const char *loom__name_fault(struct loom__slice name, int dots, size_t *where);
const char *loom__text_fault(struct loom__slice text, size_t *where);
const char *loom__value_fault(struct loom__slice value);
struct loom__slice loom__strip(struct loom__slice s);
int loom__slice_is(struct loom__slice s, const char *word); /* compares without regard to case */

static inline int loom__blank(char c)
{
	return c == ' ' || c == '\t';
}

/* ---- the config ----------------------------------------------------------------------------- */

struct loom__declared { /* a declaration: a section, and the rows of one plug-in or one part of the core */
	char *section, *owner;
	const struct loom_opt *rows; /* never NULL; ends with a NULL name */
	struct loom__declared *next;
};

/* A configuration. Its memory is in `blocks`, and stays until the configuration is destroyed. */
struct loom_config {
	struct loom__block *blocks;
	struct loom__entry *entries; /* entries in force; `was` leads from each to the entries that it overrides */
	struct loom__entry
	    *headers; /* where each section first appears; `done` is 1 if loom__config_ignore() was called for the section */
	/* Variables of the environment; `file` is the name of the variable. `done` is 1 if a declared key has taken the
	 * variable. */
	struct loom__entry *variables;
	/* Turns variables into entries, if `rows` of `section` declare their keys. If `section` is NULL, warns of each variable
	 * that no declared key has taken. NULL: the environment is not read. */
	void (*bind)(struct loom_config *cfg, const char *section, const struct loom_opt *rows, struct loom__diag *diag);
	struct loom__declared *declared;
	struct loom__effective *effective;
	const char *file[LOOM__FILES_MOST]; /* [file_count] the files that were read, as they were named */
	size_t key_count, entry_count, file_count;
	struct loom__diag notes; /* mistakes that loom__config_unknown() will report */
	int failed;              /* memory ran out: entries or values may be missing */
};

/* Returns zeroed memory, or NULL with cfg->failed set. */
void *loom__config_alloc(struct loom_config *cfg, size_t bytes);
char *loom__config_keep(struct loom_config *cfg, const char *s, size_t n);

/* Returns the header entry of the section, which has the place where the section first appears, or NULL. */
struct loom__entry *loom__config_header(const struct loom_config *cfg, const char *section);
/* Records where a section first appears. Here and in loom__config_add(), `where` has the source and place of an entry.
 * The file name in `where` is not copied, so the name must live as long as cfg. */
void loom__config_name_section(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section);
/* Adds a value in the order of precedence. Returns 0 or LOOM_ENOMEM. If there are too many values, returns LOOM_EINVAL
 * and reports that to diag. */
int loom__config_add(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
		     struct loom__slice key, struct loom__slice value, struct loom__diag *diag);
/* Adds a value that is in no file. Checks its names and text, and copies the file name of `where`. */
int loom__config_assign(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
			struct loom__slice key, struct loom__slice value, struct loom__diag *diag);

/* Returns LOOM_ENOMEM if memory ran out, LOOM_EINVAL if diag has more than `before` errors, or 0. */
int loom__config_verdict(const struct loom_config *cfg, const struct loom__diag *diag, size_t before);

static inline struct loom__slice loom__slice_of(const char *text)
{
	return (struct loom__slice){text, strlen(text)};
}

static inline int loom__is_private(const char *name)
{
	return (name[0] == 'x' || name[0] == 'X') && name[1] == '-';
}

/* ---- values --------------------------------------------------------------------------------- */

/* Appends a field's value in canonical form, which has no units. Results have this form. */
void loom__value_canonical(const struct loom_opt *row, const void *field, struct loom__text *out);
/* Returns the size in bytes of a field of that type, or 0 if there is no such type. */
size_t loom__value_size(unsigned type);
static inline int loom__value_is_text(unsigned type)
{
	return type == LOOM_OPT_STR || type == LOOM_OPT_PATH || type == LOOM_OPT_CPUS;
}

#endif
