/* SPDX-License-Identifier: Apache-2.0 */
/* Writes values as text. */
#include <string.h>

#include "config/inside.h"
#include "config/units.h"

size_t loom__value_size(unsigned type)
{
	switch (type) {
#define SIZE(name, ctype, text)                                                                                        \
	case LOOM_OPT_##name:                                                                                          \
		return sizeof(ctype);
		LOOM_OPT_MAP(SIZE)
#undef SIZE
	}
	return 0;
}

/* Appends v with the largest unit that gives a whole number. */
static void add_scaled(const struct loom__unit *units, uint64_t v, struct loom__text *out)
{
	const struct loom__unit *best = units;
	for (const struct loom__unit *u = units; v && u->name; u++)
		if (v % u->scale == 0 && u->scale > best->scale)
			best = u;
	loom__text_add(out, "%llu%s", (unsigned long long)(v / best->scale), best->name);
}

void loom__value_amount(const struct loom_opt *row, const union loom__value *v, struct loom__text *out)
{
	switch (row->type) {
	case LOOM_OPT_SIZE:
		add_scaled(loom__size_units, v->u64, out);
		break;
	case LOOM_OPT_TIME:
		add_scaled(loom__time_units, v->u64, out);
		break;
	case LOOM_OPT_SHARE:
		loom__text_double(out, v->f64 * 100);
		loom__text_put(out, "%", 1);
		break;
	case LOOM_OPT_F64:
		loom__text_double(out, v->f64);
		break;
	case LOOM_OPT_I64:
		loom__text_add(out, "%lld", (long long)v->i64);
		break;
	default:
		loom__text_add(out, "%llu", (unsigned long long)v->u64);
	}
}

/* Returns 1 if the field has the value that means `auto`. */
static int is_auto(const struct loom_opt *row, const void *field)
{
	union loom__value v = {0};
	if (!(row->flags & LOOM_OPT_AUTO))
		return 0;
	memcpy(&v, field, loom__value_size(row->type));
	return row->type == LOOM_OPT_I64 ? v.i64 == -1 : !v.u64; /* the bytes of v beyond a smaller field are 0 */
}

void loom__value_canonical(const struct loom_opt *row, const void *field, struct loom__text *out)
{
	union loom__value v = {0};
	if (is_auto(row, field)) {
		loom__text_add(out, "auto");
		return;
	}
	memcpy(&v, field, loom__value_size(row->type));
	switch (row->type) {
	case LOOM_OPT_BOOL:
		loom__text_add(out, "%s", v.u8 ? "yes" : "no");
		break;
	case LOOM_OPT_U32:
		loom__text_add(out, "%u", (unsigned)v.u32);
		break;
	case LOOM_OPT_U64:
	case LOOM_OPT_SIZE:
	case LOOM_OPT_TIME:
		loom__text_add(out, "%llu", (unsigned long long)v.u64);
		break;
	case LOOM_OPT_I64:
		loom__text_add(out, "%lld", (long long)v.i64);
		break;
	case LOOM_OPT_F64:
	case LOOM_OPT_SHARE:
		loom__text_double(out, v.f64);
		break;
	case LOOM_OPT_ENUM:
		loom__text_add(out, "%s", row->choices[v.u32]);
		break;
	default:
		loom__text_add(out, "%s", v.text);
	}
}
