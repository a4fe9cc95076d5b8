/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that results can be compared: the results must be of the same job, machine and build, and must give metrics in
 * the same units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/view/document.h"
#include "report/view/arena.h"
#include "facts/environment.h"
#include "facts/must.h"

static const cJSON *fact(const cJSON *doc, size_t variant, const char *name)
{
	const cJSON *result = loom__json_object(loom__compare_variant(doc, variant), "result");
	const cJSON *e = loom__json_object(result, "environment");
	const cJSON *of_machine = cJSON_GetObjectItemCaseSensitive(loom__json_object(e, "before"), name);
	return of_machine ? of_machine : cJSON_GetObjectItemCaseSensitive(loom__json_object(e, "devices"), name);
}

/* Returns 1 if the job ran on a GPU. A result from before devices reported facts names the model in its choices. */
static int is_of_gpu(const cJSON *result)
{
	const cJSON *o;
	int is = loom__json_object(loom__json_object(result, "environment"), "devices") != NULL;
	cJSON_ArrayForEach(o, loom__json_object(result, "choices"))
	{
		size_t n = o->string ? strlen(o->string) : 0;
		is |= n > 6 && !strncmp(o->string, "device.", 7) && !strcmp(o->string + n - 6, ".model");
	}
	return is;
}

/* Returns 1 if two facts are equal. Two facts that are both unknown count as equal, even if the reasons differ. */
static int same(const cJSON *a, const cJSON *b)
{
	int none_a = !a || cJSON_IsNull(a) || cJSON_IsObject(a);
	int none_b = !b || cJSON_IsNull(b) || cJSON_IsObject(b);
	return none_a || none_b ? none_a == none_b : cJSON_Compare(a, b, 1);
}

static void word(const cJSON *doc, size_t variant, const char *name, struct loom__text *out)
{
	struct loom__text a = {0}, b = {0};
	loom__environment_text(fact(doc, 0, name), &a);
	loom__environment_text(fact(doc, variant, name), &b);
	loom__text_add(out, "%s: %.200s in %s, %.200s in %s", name, loom__must_text(&a),
		       loom__compare_label(doc, 0), loom__must_text(&b), loom__compare_label(doc, variant));
	loom__text_free(&a);
	loom__text_free(&b);
}

static int is_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return 1;
	return 0;
}

/* Returns 1 for the names that loom__compare_same_job() accepts in `allowed`: "workload" and the options of a
 * workload. */
static int is_job(const char *name)
{
	return !strcmp(name, "workload") || !strncmp(name, "workload.", 9);
}

/* The names of the facts that must agree: those of the machine, and those that the devices of any job report. */
struct facts {
	struct loom__arena arena;
	struct loom__names names;
	size_t of_machine; /* the number of facts of the machine, which come first */
};

static void facts_begin(struct facts *f)
{
	*f = (struct facts){0};
	for (; loom__environment_fixed[f->of_machine]; f->of_machine++)
		loom__names_add(&f->arena, &f->names, loom__environment_fixed[f->of_machine]);
}

static void facts_add(struct facts *f, const cJSON *result)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, loom__json_object(loom__json_object(result, "environment"), "devices"))
	{
		loom__names_add(&f->arena, &f->names, o->string);
	}
}

static int check_allowed(const char *const *allowed, size_t n, const struct facts *f, struct loom_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (is_in(allowed[i], f->names.name, f->names.count) || is_job(allowed[i]))
			continue;
		const char *near = loom__nearest(allowed[i], f->names.name, f->names.count);
		return LOOM__FAIL(err, LOOM_EINVAL, "--allow-mismatch=%s: no such fact%s%s%s", allowed[i],
				  LOOM__MEANT(near));
	}
	return 0;
}

static int both_of_gpu(const cJSON *doc, size_t variant)
{
	return is_of_gpu(loom__json_object(loom__compare_variant(doc, 0), "result")) &&
	       is_of_gpu(loom__json_object(loom__compare_variant(doc, variant), "result"));
}

int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n,
				   struct loom_error *err)
{
	struct loom__text text = {0}, keys = {0};
	struct facts facts;
	facts_begin(&facts);
	for (size_t v = 0; v < loom__compare_variants(doc); v++)
		facts_add(&facts, loom__json_object(loom__compare_variant(doc, v), "result"));
	int rc = check_allowed(allowed, n, &facts, err);
	for (size_t i = 0; i < facts.names.count && !rc; i++)
		for (size_t v = 1; v < loom__compare_variants(doc); v++) {
			const char *name = facts.names.name[i];
			if (same(fact(doc, 0, name), fact(doc, v, name)) || (i >= facts.of_machine && !both_of_gpu(doc, v)))
				continue;
			if (is_in(name, allowed, n)) {
				struct loom__text one = {0};
				word(doc, v, name, &one);
				loom__compare_warn(doc, "environment_differs", "%s", one.at ? one.at : name);
				loom__text_free(&one);
				continue;
			}
			loom__text_add(&text, "\n  ");
			word(doc, v, name, &text);
			loom__text_add(&keys, "%s%s", keys.length ? " --allow-mismatch=" : "", name);
			break;
		}
	if (!rc && text.length)
		rc = LOOM__FAIL(err, LOOM_EINVAL,
				"the results come from different environments:%.600s\nto compare them "
				"nevertheless: --allow-mismatch=%.250s",
				text.at, loom__must_text(&keys));
	loom__text_free(&text);
	loom__text_free(&keys);
	loom__arena_free(&facts.arena);
	return rc;
}

/* Warns that a plug-in made another choice in a variant than in the first variant. `first` and `other` are these
 * choices; "" means that the plug-in chose nothing. */
static void warn_of_choice(cJSON *doc, size_t variant, const char *name, const char *first, const char *other)
{
	loom__compare_warn(doc, "choice_differs", "%s: %.120s in %.100s, %.120s in %.100s: this may cause differences",
			   name, *first ? first : "not chosen", loom__compare_label(doc, 0),
			   *other ? other : "not chosen", loom__compare_label(doc, variant));
}

/* The members of an object. They are found by a hash, because cJSON compares a name with each member. */
struct members {
	struct loom__arena arena;
	struct loom__names names;
	const cJSON **at; /* [names.count] */
};

static struct members members_of(const cJSON *object)
{
	struct members m = {0};
	const cJSON *o;
	m.at = loom__arena_get(&m.arena, loom__json_length(object) + 1, sizeof(*m.at));
	cJSON_ArrayForEach(o, object)
	{
		size_t i = loom__names_add(&m.arena, &m.names, o->string);
		m.at[i] = m.at[i] ? m.at[i] : o; /* of two members with one name, the first counts */
	}
	return m;
}

static const cJSON *member(const struct members *m, const char *name)
{
	size_t i = loom__names_find(&m->names, name);
	return i == LOOM__NO_NAME ? NULL : m->at[i];
}

void loom__compare_choices(cJSON *doc)
{
	const cJSON *o, *a = loom__json_object(loom__json_object(loom__compare_variant(doc, 0), "result"), "choices");
	struct members of_a = members_of(a);
	for (size_t v = 1; v < loom__compare_variants(doc); v++) {
		const cJSON *b =
		    loom__json_object(loom__json_object(loom__compare_variant(doc, v), "result"), "choices");
		if (!a || !b) /* the result is from a version that did not record choices */
			continue;
		struct members of_b = members_of(b);
		cJSON_ArrayForEach(o, a)
		{
			const char *first = loom__json_string(o), *other = loom__json_string(member(&of_b, o->string));
			if (strcmp(first, other))
				warn_of_choice(doc, v, o->string, first, other);
		}
		cJSON_ArrayForEach(o, b)
		{
			if (!*loom__json_string(member(&of_a, o->string)))
				warn_of_choice(doc, v, o->string, "", loom__json_string(o));
		}
		loom__arena_free(&of_b.arena);
	}
	loom__arena_free(&of_a.arena);
}

/* ---- the same job ------------------------------------------------------------------------------ */

static int has(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key) != NULL;
}

static int differ(const struct loom__job *a, const struct loom__job *b, const char *key, const char *of_a,
		  const char *of_b, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EINVAL,
			  "these are different jobs: %s is %.100s in %.100s and %.100s in %.100s; their times cannot "
			  "be compared; to compare them "
			  "nevertheless: --allow-mismatch=%s",
			  key, of_a, a->label, of_b, b->label, key);
}

/* Returns 1 if two values of an option are equal, as text or as numbers: "64" and "64.0" are equal. */
static int same_value(const char *a, const char *b)
{
	const char *end_a, *end_b;
	double x, y;
	return !strcmp(a, b) ||
	       (!loom__read_double(a, &end_a, &x) && !*end_a && !loom__read_double(b, &end_b, &y) && !*end_b && x == y);
}

static int same_job(const struct loom__job *a, const struct loom__job *b, const char *const *allowed, size_t n,
		    struct loom_error *err)
{
	const cJSON *o;
	const char *name = loom__json_text(a->about, "workload"), *other = loom__json_text(b->about, "workload");
	if (strcmp(name, other))
		return has(b->varied, "run.workload") || is_in("workload", allowed, n) ?
			       0 :
			       differ(a, b, "workload", name, other, err);
	struct members of_b = members_of(loom__json_object(b->about, "config"));
	int rc = 0;
	cJSON_ArrayForEach(o, loom__json_object(a->about, "config"))
	{
		const cJSON *is = member(&of_b, o->string);
		const char *key = o->string, *was_value = loom__json_text(o, "value"),
			   *value = loom__json_text(is, "value");
		/* If only one of two variants has the option, the other variant is from another version of gpuloom. */
		if (rc || strncmp(key, "workload.", 9) || loom__runs_command(key) || !is ||
		    same_value(was_value, value))
			continue;
		if (!has(b->varied, key) && !is_in(key, allowed, n) && !is_in("workload", allowed, n))
			rc = differ(a, b, key, was_value, value, err);
	}
	loom__arena_free(&of_b.arena);
	return rc;
}

int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err)
{
	struct facts facts;
	facts_begin(&facts);
	for (size_t i = 0; i < jobs; i++)
		facts_add(&facts, job[i].about);
	int rc = check_allowed(allowed, n, &facts, err);
	for (size_t i = 1; i < jobs && !rc; i++)
		rc = same_job(&job[0], &job[i], allowed, n, err);
	loom__arena_free(&facts.arena);
	return rc;
}

/* ---- comparable metrics ---------------------------------------------------------------------- */

static const cJSON *metric_of(const struct loom__job *job, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(job->metrics, name);
}

/* Checks that all variants which have `metric` agree on its unit and its direction. */
static int same_unit(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric,
		     struct loom_error *err)
{
	static const char *const key[] = {"unit", "better"};
	const struct loom__job *first = NULL;
	for (size_t v = 0; v < jobs; v++) {
		const cJSON *m = metric_of(&job[v], metric->name), *was = first ? metric_of(first, metric->name) : NULL;
		if (m && !first)
			first = &job[v];
		/* A direction that the user gives applies to all variants, so directions in the results may differ. */
		for (size_t k = 0; m && was && k < (metric->better ? 1 : LOOM__COUNT(key)); k++) {
			const char *a = loom__json_text(was, key[k]), *b = loom__json_text(m, key[k]);
			if (!strcmp(a, b))
				continue;
			if (k)
				return LOOM__FAIL(err, LOOM_EINVAL,
						  "'%s' is better when it is %s in %.100s, and when it is %s in "
						  "%.100s: make them agree, "
						  "or give the direction, as in --metric %s:less",
						  metric->name, *a ? a : "(not given)", first->label,
						  *b ? b : "(not given)", job[v].label, metric->name);
			return LOOM__FAIL(err, LOOM_EINVAL,
					  "'%s' is in %s in %.100s and in %s in %.100s: values in different units "
					  "cannot be compared; "
					  "report the same unit, or convert one by --derive",
					  metric->name, *a ? a : "no unit", first->label, *b ? b : "no unit",
					  job[v].label);
		}
	}
	return 0;
}

/* Returns the value that all samples of the metric have, or NAN if they differ. */
static double constant(const cJSON *metric)
{
	const cJSON *s, *list = loom__json_list(metric, "samples");
	double value = list && list->child ? loom__json_double(list->child) : NAN;
	cJSON_ArrayForEach(s, list)
	{
		value = loom__json_double(s) == value ? value : NAN;
	}
	return value;
}

/* Returns 1 if the answers of two variants may differ, because the job or its seed is varied or different jobs are
 * allowed. */
static int may_differ(const struct loom__job *a, const struct loom__job *b, const char *const *allowed, size_t n)
{
	const cJSON *o;
	int may = strcmp(loom__json_text(a->about, "workload"), loom__json_text(b->about, "workload")) != 0;
	cJSON_ArrayForEach(o, b->varied)
	{
		may |= o->string && (!strncmp(o->string, "workload.", 9) || !strcmp(o->string, "run.workload") ||
				     !strcmp(o->string, "run.seed"));
	}
	for (size_t i = 0; i < n; i++)
		may |= is_job(allowed[i]);
	return may;
}

static int same_answers(const struct loom__job *a, const struct loom__job *b, struct loom_error *err)
{
	const cJSON *m;
	struct members of_b = members_of(b->metrics);
	int rc = 0;
	cJSON_ArrayForEach(m, a->metrics)
	{
		const cJSON *other = rc || !loom__json_true(m, "answer") ? NULL : member(&of_b, m->string);
		double x = constant(m), y = constant(other);
		if (!loom__json_true(other, "answer") || isnan(x) || isnan(y) || x == y)
			continue;
		rc = LOOM__FAIL(err, LOOM_EINVAL,
				"the verified answers differ: %s is %.15g in %.100s and %.15g in %.100s, so these "
				"are different jobs: use "
				"the same input and seed; to compare them nevertheless: --allow-mismatch=workload",
				m->string, x, a->label, y, b->label);
	}
	loom__arena_free(&of_b.arena);
	return rc;
}

/* Returns the error for a metric that `have` of the variants have. */
static int lacks(const struct loom__job *job, size_t jobs, const char *metric, size_t have, struct loom_error *err)
{
	struct loom__near near = {.word = metric};
	const cJSON *o;
	for (size_t v = 0; v < jobs && !have; v++)
		cJSON_ArrayForEach(o, job[v].metrics)
		{
			loom__nearer(&near, o->string);
		}
	return LOOM__FAIL(err, LOOM_EINVAL, "%s variant has a metric '%s'%s%s%s", have ? "not every" : "no", metric,
			  LOOM__MEANT(near.name));
}

int loom__compare_figures(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric,
			  size_t metrics, const char *const *allowed, size_t n, struct loom_error *err)
{
	int rc = 0;
	for (size_t m = 0; m < metrics && !rc; m++) {
		size_t have = 0;
		for (size_t v = 0; v < jobs; v++)
			have += has(job[v].metrics, metric[m].name);
		if (have == jobs || (have && !metric[m].gate))
			rc = same_unit(job, jobs, &metric[m], err);
		else
			rc = lacks(job, jobs, metric[m].name, have, err);
	}
	for (size_t v = 1; v < jobs && !rc; v++)
		if (!may_differ(&job[0], &job[v], allowed, n))
			rc = same_answers(&job[0], &job[v], err);
	return rc;
}
