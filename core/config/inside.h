/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of core/config only. */
#ifndef LOOM_CONFIG_INSIDE_H
#define LOOM_CONFIG_INSIDE_H

#include <stddef.h>
#include <string.h>

#include "config/config.h"

/* Bounds far above any real conf, so that linear searches are cheap. */
enum {
	LOOM__LINE_MOST = 1000,   /* bytes in a line; iniparser fails at 1024 */
	LOOM__VALUE_MOST = 4096,  /* bytes in a value from outside a file */
	LOOM__ITEMS_MOST = 4096,  /* lines with content in a file; different keys in a config */
	LOOM__FILES_MOST = 64,    /* files in a config, with repeated includes */
	LOOM__DEPTH_MOST = 8,     /* nested includes */
	LOOM__ENTRY_MOST = 16384, /* entries in a config, with overridden ones */
	LOOM__FILE_MOST = 1 << 20,
};

/* Memory of a config, freed as a whole. */
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
	struct loom__slice value; /* the raw text of the line, with quotes and comment, until iniparser reads it */
};
struct loom__items {
	struct loom__item *at;
	size_t count;
	int failed;                  /* out of memory */
	struct _dictionary_ *values; /* the dictionary of iniparser, which owns the values */
};

/* Splits the text into items, leaving out those with mistakes. */
void loom__scan(const char *file, const char *text, size_t length, struct loom__items *items, struct loom__diag *diag);

/* Reads the values by iniparser. Returns 0 or LOOM_ENOMEM. */
int loom__items_read(const char *file, struct loom__items *items, struct loom__diag *diag);
void loom__items_free(struct loom__items *items);

/* Returns the mistake in a name or text, in words and with its place, or NULL. */
const char *loom__name_fault(struct loom__slice name, int dots, size_t *where);
const char *loom__text_fault(struct loom__slice text, size_t *where);
const char *loom__value_fault(struct loom__slice value);
struct loom__slice loom__strip(struct loom__slice s);
int loom__slice_is(struct loom__slice s, const char *word); /* ignores case */

static inline int loom__blank(char c)
{
	return c == ' ' || c == '\t';
}

/* ---- the config ----------------------------------------------------------------------------- */

struct loom__declared { /* a section with the rows of one plug-in or of a part of the core */
	char *section, *owner;
	const struct loom_opt *rows; /* never NULL */
	struct loom__declared *next;
};

/* All memory is in `blocks` until the config is destroyed. */
struct loom_config {
	struct loom__block *blocks;
	struct loom__entry *entries; /* the entries in force; `was` leads to the overridden ones */
	struct loom__entry
	    *headers; /* where each section first appears; done: all its keys count as known */
	/* the variables of the environment; `file` is the name; done: a declared key has taken the variable */
	struct loom__entry *variables;
	struct loom__declared *declared;
	struct loom__effective *effective;
	size_t key_count, entry_count, file_count;
	struct loom__diag notes; /* mistakes of public calls and declarations, until loom__config_unknown() */
	int failed;              /* out of memory: contents may be incomplete */
};

/* Returns zeroed memory, or NULL with cfg->failed. */
void *loom__config_alloc(struct loom_config *cfg, size_t bytes);
char *loom__config_keep(struct loom_config *cfg, const char *s, size_t n);

/* Returns the entry where the section first appears, or NULL. */
struct loom__entry *loom__config_header(const struct loom_config *cfg, const char *section);
/* Records the first place of a section. Here and below `where` is only a place, whose file name is copied. */
void loom__config_name_section(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section);
/* Adds a value in the order of precedence. Returns 0, LOOM_ENOMEM, or LOOM_EINVAL with a mistake in diag for too
 * many. */
int loom__config_add(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
		     struct loom__slice key, struct loom__slice value, struct loom__diag *diag);
/* Adds a value from outside the file being read: checks names and value, and copies the place. */
int loom__config_assign(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
			struct loom__slice key, struct loom__slice value, struct loom__diag *diag);

/* Converts variables into entries of the keys that the rows of `section` declare. */
void loom__config_bind(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
		       struct loom__diag *diag);
/* Warns of each variable that no declared key has taken. */
void loom__config_unbound(struct loom_config *cfg, struct loom__diag *diag);

/* Returns LOOM_ENOMEM, LOOM_EINVAL if diag has more errors than `before`, or 0. */
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

/* The field of an option by its type. */
union loom__value {
	uint8_t u8;
	uint32_t u32;
	uint64_t u64;
	int64_t i64;
	double f64;
	const char *text;
};

/* Appends a field's value in canonical form, without units, as in results. */
void loom__value_canonical(const struct loom_opt *row, const void *field, struct loom__text *out);
/* Returns the size of a field of that type in bytes; 0: no such type. */
size_t loom__value_size(unsigned type);
static inline int loom__value_is_text(unsigned type)
{
	return type == LOOM_OPT_STR || type == LOOM_OPT_PATH || type == LOOM_OPT_CPUS;
}

#endif
