/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the table of options of a plug-in before its first use. */
#include <string.h>

#include "config/inside.h"

#define REFUSE(...) LOOM__FAIL(err, LOOM_EPLUGIN, __VA_ARGS__)

/* Names have only lower case, digits and underscores, so that they are the same in confs, the environment and C. */
static int is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return n && !name[n] && n <= LOOM__NAME_MOST && name[0] >= 'a' && name[0] <= 'z';
}

static int check_field(const struct loom_opt *row, size_t opts_size, struct loom_error *err)
{
	size_t size = loom__value_size(row->type);
	if (!size)
		return REFUSE("option '%s' has the unknown type %u", row->name, row->type);
	if (row->size != size)
		return REFUSE("option '%s' has a field of %u bytes; its type needs %zu", row->name, row->size, size);
	if (row->offset > opts_size || opts_size - row->offset < size)
		return REFUSE("option '%s' is outside of the option struct", row->name);
	return 0;
}

static int check_default(const struct loom_opt *row, struct loom_error *err)
{
	struct loom_error cause;
	uint64_t field;
	if (row->flags & LOOM_OPT_REQUIRED)
		return row->dflt ? REFUSE("option '%s' is required and has a default", row->name) : 0;
	if (!row->dflt)
		return REFUSE("option '%s' has no default and is not required", row->name);
	if (loom__value_parse(row, row->dflt, &field, &cause))
		return REFUSE("the default of option '%s' is wrong: %s", row->name, cause.text);
	return 0;
}

static int check_row(const struct loom_opt *row, size_t opts_size, struct loom_error *err)
{
	if (!is_name(row->name))
		return REFUSE("option name '%s' is not made of a-z, 0-9 and '_'", row->name);
	if (loom__same(row->name, "include"))
		return REFUSE("option name 'include' is taken by the configuration itself");
	if (!row->help || !row->help[0])
		return REFUSE("option '%s' has no help", row->name);
	if (row->section && !row->section[0])
		return REFUSE("option '%s' has an empty section", row->name);
	int code = check_field(row, opts_size, err);
	if (code)
		return code;
	if (row->type == LOOM_OPT_ENUM && (!row->choices || !row->choices[0]))
		return REFUSE("option '%s' has no choices", row->name);
	if (row->flags & LOOM_OPT_AUTO && (row->type < LOOM_OPT_U32 || row->type > LOOM_OPT_TIME))
		return REFUSE("option '%s' has auto as a value and is no integer, size or time", row->name);
	int real = row->type == LOOM_OPT_F64 || row->type == LOOM_OPT_SHARE;
	if (real ? row->min || row->max : row->from != 0 || row->to != 0)
		return REFUSE("option '%s' has bounds of another type: min and max are for integers, sizes and times, from and to "
			      "for numbers and shares", row->name);
	if (row->min < 0 && row->type != LOOM_OPT_I64)
		return REFUSE("option '%s' has a minimum below 0, and its type has no such values", row->name);
	/* If a bound is NaN, this comparison is false, so the row is rejected. */
	if (!(row->from <= row->to) || (row->min > 0 ? (uint64_t)row->min > row->max : row->min > (int64_t)row->max))
		return REFUSE("option '%s' has a minimum above its maximum; give both", row->name);
	return check_default(row, err);
}

static int same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

int loom__rows_same(const struct loom_opt *a, const struct loom_opt *b)
{
	size_t i = 0;
	if (a == b)
		return 1;
	if (!same_text(a->dflt, b->dflt) || !same_text(a->help, b->help) || a->min != b->min || a->max != b->max ||
	    a->from != b->from || a->to != b->to || a->type != b->type || a->flags != b->flags || !a->choices != !b->choices)
		return 0;
	while (a->choices && a->choices[i] && same_text(a->choices[i], b->choices[i]))
		i++;
	return !a->choices || a->choices[i] == b->choices[i]; /* 1 if both lists end at index i */
}

int loom__rows_check(const struct loom_opt *rows, size_t opts_size, struct loom_error *err)
{
	if (opts_size > 1u << 20)
		return REFUSE("the option struct has %zu bytes, and the most is 1 MiB", opts_size);
	for (const struct loom_opt *row = rows; row && row->name; row++) {
		int code = check_row(row, opts_size, err);
		if (code)
			return code;
		for (const struct loom_opt *other = rows; other < row; other++)
			if (!strcmp(other->name, row->name))
				return REFUSE("option '%s' is twice in its table", row->name);
	}
	return 0;
}
