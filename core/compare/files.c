/* SPDX-License-Identifier: Apache-2.0 */
/* Results from files may come from different machines or builds. */
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/document.h"
#include "run/environment.h"

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
	loom__text_add(out, "%s: %.200s in %s, %.200s in %s", name, a.at ? a.at : "",
		       loom__compare_label(doc, 0), b.at ? b.at : "", loom__compare_label(doc, variant));
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

static int check_allowed(const char *const *allowed, size_t n, struct loom_error *err)
{
	size_t facts = 0;
	while (loom__environment_fixed[facts])
		facts++;
	for (size_t i = 0; i < n; i++) {
		if (is_in(allowed[i], loom__environment_fixed, facts))
			continue;
		const char *near = loom__nearest(allowed[i], loom__environment_fixed, facts);
		return LOOM__FAIL(err, LOOM_EINVAL, "--allow-mismatch=%s: no such fact%s%s%s", allowed[i],
				  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
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
				text.at, keys.at ? keys.at : "");
	loom__text_free(&text);
	loom__text_free(&keys);
	return rc;
}
