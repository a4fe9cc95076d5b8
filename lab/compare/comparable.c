/* SPDX-License-Identifier: Apache-2.0 */
/* What can be compared: results of the same job, from the same machine and build, that have the metric. */
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/document.h"
#include "facts/environment.h"
#include "facts/must.h"

static const cJSON *fact(const cJSON *doc, size_t variant, const char *name)
{
	const cJSON *result = loom__json_object(loom__compare_variant(doc, variant), "result");
	const cJSON *e = loom__json_object(loom__json_object(result, "environment"), "before");
	return cJSON_GetObjectItemCaseSensitive(e, name);
}

/* Not known on both sides, for whatever reason, is no difference. */
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

/* Allowed in loom__compare_same_job(). */
static int is_job(const char *name)
{
	return !strcmp(name, "workload") || !strncmp(name, "workload.", 9);
}

static int check_allowed(const char *const *allowed, size_t n, struct loom_error *err)
{
	size_t facts = 0;
	while (loom__environment_fixed[facts])
		facts++;
	for (size_t i = 0; i < n; i++) {
		if (is_in(allowed[i], loom__environment_fixed, facts) || is_job(allowed[i]))
			continue;
		const char *near = loom__nearest(allowed[i], loom__environment_fixed, facts);
		return LOOM__FAIL(err, LOOM_EINVAL, "--allow-mismatch=%s: no such fact%s%s%s", allowed[i],
				  LOOM__MEANT(near));
	}
	return 0;
}

int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n,
				   struct loom_error *err)
{
	struct loom__text text = {0}, keys = {0};
	int rc = check_allowed(allowed, n, err);
	for (const char *const *name = loom__environment_fixed; *name && !rc; name++)
		for (size_t v = 1; v < loom__compare_variants(doc); v++) {
			if (same(fact(doc, 0, *name), fact(doc, v, *name)))
				continue;
			if (is_in(*name, allowed, n)) {
				struct loom__text one = {0};
				word(doc, v, *name, &one);
				loom__compare_warn(doc, "environment_differs", "%s",
						   one.at ? one.at : *name);
				loom__text_free(&one);
				continue;
			}
			loom__text_add(&text, "\n  ");
			word(doc, v, *name, &text);
			loom__text_add(&keys, "%s%s", keys.length ? " --allow-mismatch=" : "", *name);
			break;
		}
	if (!rc && text.length)
		rc = LOOM__FAIL(err, LOOM_EINVAL,
				"the results come from different environments:%.600s\nif that is what you "
				"want to compare: --allow-mismatch=%.250s",
				text.at, loom__must_text(&keys));
	loom__text_free(&text);
	loom__text_free(&keys);
	return rc;
}

/* ---- the same job ------------------------------------------------------------------------------ */

static int has(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key) != NULL;
}

static const char *option(const struct loom__job *job, const char *key)
{
	return loom__json_text(loom__json_object(loom__json_object(job->about, "config"), key), "value");
}

static int is_number(const char *text)
{
	const char *end;
	double value;
	return *text && !loom__read_double(text, &end, &value) && !*end;
}

static int differ(const struct loom__job *a, const struct loom__job *b, const char *key, const char *of_a,
		  const char *of_b, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EINVAL,
			  "these are different jobs: %s is %.100s in %.100s and %.100s in %.100s; if that is what you want to "
			  "compare: --allow-mismatch=%s",
			  key, of_a, a->label, of_b, b->label, key);
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
	cJSON_ArrayForEach(o, loom__json_object(a->about, "config"))
	{
		const char *key = o->string, *of_a = option(a, key), *of_b = option(b, key);
		if (strncmp(key, "workload.", 9) || !strcmp(of_a, of_b) || !is_number(of_a) || !is_number(of_b))
			continue;
		if (!has(b->varied, key) && !is_in(key, allowed, n) && !is_in("workload", allowed, n))
			return differ(a, b, key, of_a, of_b, err);
	}
	return 0;
}

int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err)
{
	int rc = check_allowed(allowed, n, err);
	for (size_t i = 1; i < jobs && !rc; i++)
		rc = same_job(&job[0], &job[i], allowed, n, err);
	return rc;
}

int loom__compare_known(const cJSON *const *results, size_t variants, const struct loom__compare_metric *metric,
			size_t metrics, struct loom_error *err)
{
	for (size_t m = 0; m < metrics; m++) {
		struct loom__near near = {.word = metric[m].name};
		size_t have = 0;
		const cJSON *o;
		for (size_t v = 0; v < variants; v++) {
			const cJSON *all = loom__json_object(results[v], "metrics");
			have += has(all, metric[m].name);
			cJSON_ArrayForEach(o, all)
			{
				loom__nearer(&near, o->string);
			}
		}
		if (have == variants || (have && !metric[m].gate))
			continue;
		return LOOM__FAIL(err, LOOM_EINVAL, "%s variant has a metric '%s'%s%s%s", have ? "not every" : "no",
				  metric[m].name, LOOM__MEANT(have ? NULL : near.name));
	}
	return 0;
}
