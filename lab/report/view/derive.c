/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/derive.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "facts/token.h"

/* ---- parser and evaluator in one ------------------------------------------------------------- */

/* Returns the value of a metric in a sample, or NAN if the sample lacks it. Sets *known to 0 if no sample has the
 * metric. */
typedef double value_fn(const void *from, const char *name, int *known);

enum { DEEPEST = 64 }; /* limit on nested operands, because the text may come from a document */

struct reader {
	const char *at;
	int depth;
	value_fn *value;     /* NULL: only the syntax is checked */
	loom__call_fn *call; /* NULL: operands are metrics */
	const void *from;
	struct loom_error *err; /* receives the error of the function `call` */
	int code;               /* LOOM_E* that `call` has returned */
	char fault[200], unknown[48];
};

static double sum(struct reader *r);

static double fail(struct reader *r, const char *what)
{
	if (!*r->fault)
		snprintf(r->fault, sizeof(r->fault), "%s at %s%.40s%s", what, *r->at ? "'" : "",
			 *r->at ? r->at : "the end", *r->at ? "'" : "");
	return NAN;
}

static int take(struct reader *r, const char *token)
{
	return loom__take(&r->at, token);
}

static double metric(struct reader *r, const char *name)
{
	int known = 1;
	double v = r->value ? r->value(r->from, name, &known) : 1;
	if (!known && !*r->unknown)
		snprintf(r->unknown, sizeof(r->unknown), "%s", name);
	return v;
}

static double call(struct reader *r, const char *name)
{
	static const struct {
		const char *name;
		double (*one)(double), (*two)(double, double);
	} list[] = {{"abs", fabs, NULL},  {"exp", exp, NULL},  {"log", log, NULL}, {"log2", log2, NULL},
		    {"sqrt", sqrt, NULL}, {"max", NULL, fmax}, {"min", NULL, fmin}};
	size_t i = 0;
	while (i < LOOM__COUNT(list) && strcmp(list[i].name, name))
		i++;
	if (i == LOOM__COUNT(list))
		return fail(r, "no such function; choose from abs, exp, log, log2, max, min, sqrt");
	double a = sum(r), b = 0;
	if (list[i].two) {
		if (!take(r, ","))
			return fail(r, "a ',' is missing");
		b = sum(r);
	}
	if (!take(r, ")"))
		return fail(r, "a ')' is missing");
	return list[i].two ? list[i].two(a, b) : list[i].one(a);
}

/* Calls r->call with the text up to the matching parenthesis. */
static double call_out(struct reader *r, const char *name)
{
	const char *begin = r->at, *end = begin;
	double v = NAN;
	if (!loom__take_group(&end))
		return fail(r, "a ')' is missing");
	int rc = r->code ? r->code : r->call(r->from, name, begin, (size_t)(end - 1 - begin), &v, r->err);
	if (rc == LOOM_ENOENT)
		return call(r, name);
	r->code = rc;
	r->at = end;
	return v;
}

static double operand_at(struct reader *r);

static double operand(struct reader *r)
{
	if (r->depth == DEEPEST)
		return fail(r, "more than 64 nested operands");
	r->depth++;
	double v = operand_at(r);
	r->depth--;
	return v;
}

static double operand_at(struct reader *r)
{
	char name[48];
	double v;
	if (take(r, "-"))
		return -operand(r);
	if (take(r, "(")) {
		v = sum(r);
		return take(r, ")") ? v : fail(r, "a ')' is missing");
	}
	size_t n = 0;
	while (isalnum((unsigned char)r->at[n]) || strchr("_.", r->at[n] ? r->at[n] : ' '))
		n++;
	if (!n || isdigit((unsigned char)*r->at) || *r->at == '.')
		return loom__read_double(r->at, &r->at, &v) ? fail(r, "a number or a metric is missing") : v;
	if (n >= sizeof(name))
		return fail(r, "the name of the metric is too long");
	snprintf(name, sizeof(name), "%.*s", (int)n, r->at);
	r->at += n;
	if (!take(r, "("))
		return r->call ? fail(r, "a function such as at(METRIC, FACTOR=VALUE) is missing before this")
			       : metric(r, name);
	return r->call ? call_out(r, name) : call(r, name);
}

static double power(struct reader *r)
{
	double v = operand(r);
	return take(r, "^") ? pow(v, power(r)) : v;
}

static double product(struct reader *r)
{
	double v = power(r);
	while (!*r->fault)
		if (take(r, "*"))
			v *= power(r);
		else if (take(r, "/"))
			v /= power(r);
		else
			break;
	return v;
}

static double sum(struct reader *r)
{
	double v = product(r);
	while (!*r->fault)
		if (take(r, "+"))
			v += product(r);
		else if (take(r, "-"))
			v -= product(r);
		else
			break;
	return v;
}

static double compute(struct reader *r, const char *text)
{
	r->at = text;
	double v = sum(r);
	if (!loom__take_end(&r->at) && !*r->fault)
		fail(r, "an operator is missing");
	return isfinite(v) ? v : NAN;
}

int loom__expression(const char *text, loom__call_fn *of, const void *from, double *value, struct loom_error *err)
{
	struct reader r = {.call = of, .from = from, .err = err};
	*value = compute(&r, text);
	if (r.code)
		return r.code;
	return *r.fault ? LOOM__FAIL(err, LOOM_EINVAL, "'%.300s': %s", text, r.fault) : 0;
}

/* ---- definitions ----------------------------------------------------------------------------------- */

/* Returns the length of the first element of a list. An element ends at a comma that is not in brackets or
 * parentheses. */
static size_t length_of(const char *s)
{
	size_t n = 0;
	for (int depth = 0; s[n] && (s[n] != ',' || depth); n++)
		depth += s[n] == '(' || s[n] == '[' ? 1 : s[n] == ')' || s[n] == ']' ? -1 : 0;
	return n;
}

/* Parses the text in brackets, as in "GB/s, more": unit and direction. Returns 1 if it is wrong. */
static int read_meaning(const char *at, struct loom__derived_one *d)
{
	char word[sizeof(d->unit)];
	while (!loom__take(&at, "]")) {
		if (loom__take(&at, ","))
			continue;
		if (!loom__take_until(&at, ",]", word, sizeof(word)))
			return 1;
		if (loom__better_named(word))
			d->better = loom__better_named(word);
		else if (!*d->unit)
			strcpy(d->unit, word);
		else
			return 1;
	}
	return !loom__take_end(&at);
}

static int read_one(char *whole, struct loom__derived_one *d, struct loom_error *err)
{
	const char *at = whole;
	char *open = *whole && whole[strlen(whole) - 1] == ']' ? strrchr(whole, '[') : NULL;
	int named = loom__take_until(&at, "=", d->name, sizeof(d->name)) && !isdigit((unsigned char)*d->name);
	for (const char *s = d->name; *s; s++)
		named = named && (isalnum((unsigned char)*s) || *s == '_');
	if (!named || !loom__take(&at, "="))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not of the form NAME = EXPRESSION [UNIT, more]", whole);
	if (open && (open < at || read_meaning(open + 1, d)))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "%s: expected a unit and more or less in brackets, as in [GB/s, more]", d->name);
	if (open)
		*open = 0;
	if (!loom__take_until(&at, "", d->text, sizeof(d->text)) && *at)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s: the expression has more than %zu characters", d->name,
				  sizeof(d->text) - 1);
	struct reader r = {0};
	compute(&r, d->text);
	return *r.fault ? LOOM__FAIL(err, LOOM_EINVAL, "%s = %s: %s", d->name, d->text, r.fault) : 0;
}

int loom__derived_read(const char *list, struct loom__derived *out, struct loom_error *err)
{
	*out = (struct loom__derived){0};
	while (list && list[strspn(list, " \t")]) {
		size_t n = length_of(list);
		if (out->n == LOOM__DERIVED_MOST)
			return LOOM__FAIL(err, LOOM_EINVAL, "more than %d derived metrics", LOOM__DERIVED_MOST);
		char *one = loom__must(strndup(list, n));
		for (size_t end = n; end && strchr(" \t", one[end - 1]);)
			one[--end] = 0;
		int rc = read_one(one + strspn(one, " \t"), &out->one[out->n], err);
		free(one);
		if (rc)
			return rc;
		out->n++;
		list += n + (list[n] == ',');
	}
	return 0;
}

static int unknown(const struct loom__derived_one *d, const char *name, const char *const *names, size_t n,
		   struct loom_error *err)
{
	const char *near = loom__nearest(name, names, n);
	return LOOM__FAIL(err, LOOM_EINVAL, "%s = %s: no metric '%s'%s%s%s", d->name, d->text, name, LOOM__MEANT(near));
}

/* ---- a sample --------------------------------------------------------------------------------------- */

static double of_sample(const void *from, const char *name, int *known)
{
	const struct loom_report *r = from;
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->list[i].name, name))
			return r->list[i].value;
	*known = 0;
	return NAN;
}

int loom__derived_sample(const struct loom__derived *d, struct loom__sample *sample, struct loom_error *err)
{
	struct loom_report *report = &sample->report;
	for (size_t i = 0; i < d->n; i++) {
		const struct loom__derived_one *one = &d->one[i];
		struct reader r = {.value = of_sample, .from = report};
		double v = compute(&r, one->text);
		if (*r.unknown) {
			const char **names = loom__must(calloc(report->count, sizeof(*names)));
			for (size_t k = 0; names && k < report->count; k++)
				names[k] = report->list[k].name;
			int rc = unknown(one, r.unknown, names, names ? report->count : 0, err);
			free(names);
			return rc;
		}
		if (isfinite(v) && loom__report_add(report, one->name, one->unit, one->better, v) == LOOM_EPLUGIN)
			return LOOM__FAIL(err, LOOM_EINVAL, "%s: this metric exists already", one->name);
	}
	for (size_t i = d->n; i-- > 0;)
		loom__report_lead(report, d->one[i].name);
	return report->failed ? LOOM__FAIL(err, LOOM_ENOMEM, "out of memory") : 0;
}

/* ---- the document of a result ---------------------------------------------------------------- */

struct row {
	const cJSON *metrics;
	int row;
};

static double of_result(const void *from, const char *name, int *known)
{
	const struct row *r = from;
	const cJSON *m = loom__json_object(r->metrics, name);
	*known = m != NULL;
	return loom__json_double(cJSON_GetArrayItem(loom__json_list(m, "samples"), r->row));
}

int loom__derived_result(const struct loom__derived *d, cJSON *result, struct loom_error *err)
{
	cJSON *metrics = cJSON_GetObjectItemCaseSensitive(result, "metrics");
	int rows = (int)loom__json_length(loom__json_list(loom__json_object(metrics, "seconds"), "samples"));
	for (size_t i = 0; i < d->n; i++) {
		const struct loom__derived_one *one = &d->one[i];
		double *value = loom__must(calloc((size_t)rows + 1, sizeof(*value)));
		int n = 0;
		struct row row = {metrics, 0};
		struct reader r = {.value = of_result, .from = &row};
		for (; row.row < rows; row.row++) {
			double v = compute(&r, one->text);
			if (isfinite(v))
				value[n++] = v;
		}
		if (!*r.unknown && n) {
			cJSON *o = cJSON_CreateObject();
			loom__json_add_text(o, "unit", one->unit);
			loom__json_add_text(o, "better", loom__better_name(one->better));
			/* The list is added before loom__median_of() is called, which sorts the array. */
			loom__json_add(o, "samples", cJSON_CreateDoubleArray(value, n));
			loom__json_add_number(o, "median", loom__median_of(value, (size_t)n));
			cJSON_DeleteItemFromObjectCaseSensitive(metrics, one->name);
			loom__json_add(metrics, one->name, o);
		}
		free(value);
		if (*r.unknown) {
			struct loom__arena arena = {0};
			struct loom__names names = {0};
			const cJSON *m;
			cJSON_ArrayForEach(m, metrics)
			{
				loom__names_add(&arena, &names, m->string);
			}
			int rc = unknown(one, r.unknown, names.name, names.count, err);
			loom__arena_free(&arena);
			return rc;
		}
	}
	return 0;
}

/* ---- a view ------------------------------------------------------------------------------------------- */

struct cell {
	const struct loom__view *view;
	const struct loom__variant *variant;
	size_t row;
};

static double of_view(const void *from, const char *name, int *known)
{
	const struct cell *c = from;
	size_t m = loom__names_find(&c->view->metric_names, name);
	*known = m != LOOM__NO_NAME;
	return *known ? loom__view_value(c->variant, m, c->row) : NAN;
}

static int derive_view(const struct loom__derived_one *one, struct loom__view *view, struct loom_error *err)
{
	size_t before = view->metrics, m = loom__view_metric(view, one->name, NULL, NULL, NULL);
	if (m == LOOM__NO_NAME)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s: too many metrics", one->name);
	/* If the metric existed, its unit and direction are replaced, because all its values are computed again. */
	view->metric[m].unit = loom__arena_copy(&view->arena, one->unit);
	view->metric[m].better = one->better;
	for (size_t v = 0; v < view->variants; v++) {
		struct loom__variant *variant = &view->variant[v];
		struct loom__series *all = loom__arena_get(&view->arena, view->metrics, sizeof(*all));
		memcpy(all, variant->series, before * sizeof(*all));
		all[m] = (struct loom__series){0};
		variant->series = all;
		loom__view_room(view, &all[m], variant->rows);
		struct cell cell = {view, variant, 0};
		struct reader r = {.value = of_view, .from = &cell};
		for (; cell.row < all[m].rows; cell.row++)
			all[m].value[cell.row] = compute(&r, one->text);
		if (*r.unknown)
			return unknown(one, r.unknown, view->metric_names.name, before, err);
	}
	loom__view_finish(view, m);
	return view->too_large ? LOOM__FAIL(err, LOOM_EINVAL, "%s: too many samples for one report", one->name) : 0;
}

int loom__derived_view(const struct loom__derived *d, struct loom__view *view, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < d->n && !rc; i++)
		rc = derive_view(&d->one[i], view, err);
	return rc;
}
