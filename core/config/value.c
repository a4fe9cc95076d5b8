/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values, and writes them as text. The whole text of a value must fit the type and range of its row. */
#include <string.h>

#include "config/inside.h"

/* Units of sizes and times. If several units have the same scale, messages use the first of them. */
struct unit {
	const char *name; /* in upper or lower case (KiB, kib); NULL ends a table */
	uint64_t scale;
};

/* A single letter has base 1024, as is usual for memory sizes. */
static const struct unit size_units[] = {
    {"B", 1},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"KB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {0},
};

static const struct unit time_units[] = {
    {"ns", 1},
    {"us", UINT64_C(1000)},
    {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},
    {"min", UINT64_C(60000000000)},
    {"m", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
    {0},
};

/* Returns the description of a type for messages, such as "size, as in 64KiB". */
static const char *kind_of(const struct loom_opt *row)
{
	switch (row->type) {
#define KIND(name, type, text)                                                                                         \
	case LOOM_OPT_##name:                                                                                          \
		return text;
		LOOM_OPT_MAP(KIND)
#undef KIND
	}
	return "value";
}

/* The macros quote at most 80 bytes of a value, so that the rest of the message has room. */
#define REFUSE(...) LOOM__FAIL(err, LOOM_EINVAL, __VA_ARGS__)
#define NOT_ONE(fmt, ...)                                                                                              \
	REFUSE("'%.80s' is not a valid %s%s" fmt, text, kind_of(row),                                                  \
	       (row->flags & LOOM_OPT_AUTO) ? ", nor auto" : "" __VA_OPT__(, ) __VA_ARGS__)

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the value of a decimal or hexadecimal digit, or 16 if c is no digit. */
static unsigned digit(char c)
{
	c = (char)loom__lower(c);
	return is_digit(c) ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

int loom__value_bounds(const struct loom_opt *row, union loom__value *min, union loom__value *max)
{
	if (row->type == LOOM_OPT_F64 || row->type == LOOM_OPT_SHARE) {
		min->f64 = row->from;
		max->f64 = row->type == LOOM_OPT_SHARE && row->from == 0 && row->to == 0 ? 1 : row->to;
		return min->f64 != 0 || max->f64 != 0;
	}
	min->i64 = row->min;
	max->u64 = row->max;
	return min->i64 || max->u64;
}

static int is_below(const struct loom_opt *row, const union loom__value *a, const union loom__value *b)
{
	return row->type == LOOM_OPT_F64 || row->type == LOOM_OPT_SHARE ? a->f64 < b->f64
	       : row->type == LOOM_OPT_I64				 ? a->i64 < b->i64
									 : a->u64 < b->u64;
}

static int check_range(const struct loom_opt *row, const char *text, const union loom__value *v, struct loom_error *err)
{
	union loom__value min, max;
	if (!loom__value_bounds(row, &min, &max) || (!is_below(row, v, &min) && !is_below(row, &max, v)))
		return 0;
	struct loom__text low = {0}, high = {0};
	loom__value_amount(row, &min, &low);
	loom__value_amount(row, &max, &high);
	/* Users often write 5 for 5%. The suggestion needs a text without '%'. */
	double part = v->f64 / 100;
	int percent = row->type == LOOM_OPT_SHARE && v->f64 > max.f64 && part >= min.f64 && part <= max.f64 &&
		      !strchr(text, '%');
	int code = loom__text_ok(&low) && loom__text_ok(&high)
		       ? REFUSE("'%.80s' is out of range: from %s to %s%s%s%s", text, low.at, high.at,
				percent ? "; did you mean " : "", percent ? text : "", percent ? "%?" : "")
		       : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&low);
	loom__text_free(&high);
	return code;
}

/* ---- integers ------------------------------------------------------------------------------- */

/* Reads the whole number at `at`, in decimal or with 0x in hexadecimal. *end is the first byte after the number. `text`
 * is the whole value, for messages. */
static int read_whole(const struct loom_opt *row, const char *text, const char *at, uint64_t *value, const char **end,
		      struct loom_error *err)
{
	unsigned base = 10;
	uint64_t v = 0;
	if (*at == '-')
		return NOT_ONE(": it may not be negative");
	if (at[0] == '0' && loom__lower(at[1]) == 'x' && digit(at[2]) < 16) {
		base = 16;
		at += 2;
	} else if (!is_digit(*at)) {
		return NOT_ONE("");
	} else if (at[0] == '0' && is_digit(at[1])) {
		while (at[0] == '0' && is_digit(at[1]))
			at++;
		return NOT_ONE(": a 0 in front would mean octal elsewhere; write %.40s", at);
	}
	for (; digit(*at) < base; at++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*at), &v))
			return REFUSE("'%.80s' is too large", text);
	*value = v;
	*end = at;
	return 0;
}

static int parse_unsigned(const struct loom_opt *row, const char *text, uint64_t most, uint64_t *value,
			  struct loom_error *err)
{
	const char *end;
	int code = read_whole(row, text, text, value, &end, err);
	if (!code && *end)
		code = NOT_ONE(": '%.40s' is left over", end);
	if (!code && *value > most)
		code = REFUSE("'%.80s' is too large: the most is %llu", text, (unsigned long long)most);
	return code ? code : check_range(row, text, &(union loom__value){.u64 = *value}, err);
}

static int parse_signed(const struct loom_opt *row, const char *text, int64_t *value, struct loom_error *err)
{
	const char *end;
	int minus = *text == '-';
	uint64_t v, most = (uint64_t)INT64_MAX + (uint64_t)minus;
	if (minus && !is_digit(text[1]))
		return NOT_ONE("");
	int code = read_whole(row, text, text + minus, &v, &end, err);
	if (!code && *end)
		code = NOT_ONE(": '%.40s' is left over", end);
	if (!code && v > most)
		code = REFUSE("'%.80s' is too %s: the limit is %s%llu", text, minus ? "small" : "large",
			      minus ? "-" : "", (unsigned long long)most);
	if (code)
		return code;
	*value = (int64_t)(minus ? 0 - v : v);
	return check_range(row, text, &(union loom__value){.i64 = *value}, err);
}

/* ---- sizes and times ------------------------------------------------------------------------ */

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (loom__same(units->name, name))
			return units;
	return NULL;
}

static int unknown_unit(const struct loom_opt *row, const char *text, const char *unit, struct loom_error *err)
{
	if (row->type == LOOM_OPT_TIME)
		return NOT_ONE(": unknown unit '%.40s'; there are ns, us, ms, s, m (min), h", unit);
	return NOT_ONE(": unknown unit '%.40s'; there are B, KiB, MiB, GiB, TiB (or K, M, G, T) and "
		       "KB, MB, GB, TB of 1000",
		       unit);
}

/* Parses a number with a unit, such as 64KiB or 1.5ms. The result must be a whole number of bytes or ns. */
static int parse_scaled(const struct loom_opt *row, const char *text, uint64_t *value, struct loom_error *err)
{
	const struct unit *units = row->type == LOOM_OPT_TIME ? time_units : size_units;
	const char *at;
	uint64_t whole, part = 0, parts = 1, scale = 1;
	int code = read_whole(row, text, text, &whole, &at, err);
	if (code)
		return code;
	if (*at == '.' && is_digit(at[1]))
		/* With at most six digits, part * scale is below 2^64 for every unit. */
		for (at++; is_digit(*at) && parts < 1000000; at++, parts *= 10)
			part = part * 10 + digit(*at);
	while (loom__blank(*at))
		at++;
	if (*at) {
		const struct unit *unit = find_unit(units, at);
		if (!unit)
			return unknown_unit(row, text, at, err);
		scale = unit->scale;
	} else if (row->type == LOOM_OPT_TIME && (whole || part)) {
		return REFUSE("'%.80s' has no unit; give one, as in 10us", text);
	}
	if (part * scale % parts)
		return NOT_ONE(": it is not a whole number of %s", row->type == LOOM_OPT_TIME ? "ns" : "bytes");
	if (__builtin_mul_overflow(whole, scale, value) || __builtin_add_overflow(*value, part * scale / parts, value))
		return REFUSE("'%.80s' is too large", text);
	return check_range(row, text, &(union loom__value){.u64 = *value}, err);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int parse_real(const struct loom_opt *row, const char *text, double *value, struct loom_error *err)
{
	const char *end;
	if (loom__read_double(text, &end, value))
		return NOT_ONE("");
	if (row->type == LOOM_OPT_SHARE) {
		const char *unit = end;
		while (loom__blank(*unit))
			unit++;
		if (*unit == '%') {
			*value /= 100;
			end = unit + 1;
		}
	}
	if (*end)
		return NOT_ONE(": '%.40s' is left over", end);
	return check_range(row, text, &(union loom__value){.f64 = *value}, err);
}

static int parse_bool(const char *text, uint8_t *value, struct loom_error *err)
{
	static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
	for (size_t i = 0; i < LOOM__COUNT(words); i++) {
		if (loom__same(words[i], text)) {
			*value = i % 2;
			return 0;
		}
	}
	return REFUSE("'%.80s' is neither yes nor no (nor on, off, true, false, 1, 0)", text);
}

static int parse_enum(const struct loom_opt *row, const char *text, uint32_t *value, struct loom_error *err)
{
	struct loom__text list = {0};
	uint32_t n = 0;
	for (; row->choices[n]; n++) {
		if (loom__same(row->choices[n], text)) {
			*value = n;
			loom__text_free(&list);
			return 0;
		}
		loom__text_add(&list, "%s%s", n ? ", " : "", row->choices[n]);
	}
	const char *nearest = loom__nearest(text, row->choices, n);
	int code = loom__text_ok(&list)
		       ? REFUSE("'%.80s' is none of %s%s%s%s", text, list.at ? list.at : "", LOOM__MEANT(nearest))
		       : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&list);
	return code;
}

/* Checks a list of cores, such as 0-3,8. No core may be in the list twice, and core numbers must be below CPUS. */
static int check_cpus(const struct loom_opt *row, const char *text, struct loom_error *err)
{
	enum { CPUS = 8192 };
	uint64_t seen[CPUS / 64] = {0};
	const char *at = text;
	if (!*at)
		return 0;
	for (;;) {
		uint64_t first, last;
		int code = read_whole(row, text, at, &first, &at, err);
		last = first;
		if (!code && *at == '-')
			code = read_whole(row, text, at + 1, &last, &at, err);
		if (code)
			return code;
		if (last < first)
			return NOT_ONE(": %llu-%llu runs backwards", (unsigned long long)first,
				       (unsigned long long)last);
		if (last >= CPUS)
			return NOT_ONE(": there is no core %llu", (unsigned long long)last);
		for (; first <= last; first++) {
			if (seen[first / 64] >> first % 64 & 1)
				return NOT_ONE(": core %u appears twice", (unsigned)first);
			seen[first / 64] |= UINT64_C(1) << first % 64;
		}
		if (!*at)
			return 0;
		if (*at++ != ',')
			return NOT_ONE(": '%.40s' is left over", at - 1);
	}
}

int loom__value_parse(const struct loom_opt *row, const char *text, void *out, struct loom_error *err)
{
	union loom__value v = {.text = text};
	uint64_t large = 0;
	int code = 0;
	if (row->flags & LOOM_OPT_AUTO && loom__same(text, "auto")) {
		memset(out, row->type == LOOM_OPT_I64 ? 0xff : 0, loom__value_size(row->type));
		return 0;
	}
	switch (row->type) {
	case LOOM_OPT_BOOL:
		code = parse_bool(text, &v.u8, err);
		break;
	case LOOM_OPT_U32:
		code = parse_unsigned(row, text, UINT32_MAX, &large, err);
		v.u32 = (uint32_t)large;
		break;
	case LOOM_OPT_U64:
		code = parse_unsigned(row, text, UINT64_MAX, &v.u64, err);
		break;
	case LOOM_OPT_I64:
		code = parse_signed(row, text, &v.i64, err);
		break;
	case LOOM_OPT_SIZE:
	case LOOM_OPT_TIME:
		code = parse_scaled(row, text, &v.u64, err);
		break;
	case LOOM_OPT_F64:
	case LOOM_OPT_SHARE:
		code = parse_real(row, text, &v.f64, err);
		break;
	case LOOM_OPT_ENUM:
		code = parse_enum(row, text, &v.u32, err);
		break;
	case LOOM_OPT_CPUS:
		code = check_cpus(row, text, err);
		break;
	case LOOM_OPT_STR:
	case LOOM_OPT_PATH:
		break;
	default:
		code = LOOM__FAIL(err, LOOM_EINTERNAL, "option '%s' has no known type", row->name);
	}
	if (!code)
		memcpy(out, &v, loom__value_size(row->type));
	return code;
}

/* ---- writing --------------------------------------------------------------------------------- */

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
static void add_scaled(const struct unit *units, uint64_t v, struct loom__text *out)
{
	const struct unit *best = units;
	for (const struct unit *u = units; v && u->name; u++)
		if (v % u->scale == 0 && u->scale > best->scale)
			best = u;
	loom__text_add(out, "%llu%s", (unsigned long long)(v / best->scale), best->name);
}

void loom__value_amount(const struct loom_opt *row, const union loom__value *v, struct loom__text *out)
{
	switch (row->type) {
	case LOOM_OPT_SIZE:
		add_scaled(size_units, v->u64, out);
		break;
	case LOOM_OPT_TIME:
		add_scaled(time_units, v->u64, out);
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
