/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/design.h"
#include "facts/must.h"

#include <stdlib.h>
#include <string.h>

const char *const loom__design_name[3] = {"full", "one", NULL};

static int add(struct loom__configs *configs, const size_t *pick, struct loom_error *err)
{
	if (configs->count == LOOM__DESIGN_MOST)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "more than %d configurations: vary less, or use --design one",
				  LOOM__DESIGN_MOST);
	if (configs->count == configs->room) {
		size_t room = configs->room ? 2 * configs->room : 64;
		configs->pick =
		    loom__must(realloc(configs->pick, room * (configs->factors + 1) * sizeof(*configs->pick)));
		configs->room = room;
	}
	memcpy(configs->pick + configs->count++ * configs->factors, pick, configs->factors * sizeof(*pick));
	return 0;
}

void loom__configs_free(struct loom__configs *configs)
{
	free(configs->pick);
	*configs = (struct loom__configs){0};
}

static int full(const struct loom__factor *factor, size_t factors, size_t *pick,
		struct loom__configs *out, struct loom_error *err)
{
	size_t n = loom__factor_configs(factor, factors);
	int rc = 0;
	if (n > LOOM__DESIGN_MOST)
		return LOOM__FAIL(
		    err, LOOM_EINVAL,
		    "the full product has %s%zu configurations, more than %d: vary less, or use --design one",
		    n == SIZE_MAX ? "more than " : "", n, LOOM__DESIGN_MOST);
	for (size_t i = 0; i < n && !rc; i++) {
		loom__factor_pick(factor, factors, i, pick);
		rc = add(out, pick, err);
	}
	return rc;
}

static int one(const struct loom__factor *factor, size_t factors, size_t *pick,
	       struct loom__configs *out, struct loom_error *err)
{
	int rc = add(out, pick, err);
	for (size_t f = 0; f < factors; f++) {
		for (size_t v = 1; v < factor[f].values && !rc; v++) {
			pick[f] = v;
			rc = add(out, pick, err);
		}
		pick[f] = 0;
	}
	return rc;
}

int loom__configs_make(enum loom__design_kind kind, const struct loom__factor *factor, size_t factors,
		     struct loom__configs *out, struct loom_error *err)
{
	size_t *pick = loom__must(calloc(factors + 1, sizeof(*pick)));
	*out = (struct loom__configs){.factors = factors};
	int rc = 0;
	for (size_t f = 0; f < factors && !rc; f++)
		if (!factor[f].values)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "%s has no value", factor[f].key);
	if (!rc && kind == LOOM__DESIGN_ONE)
		rc = one(factor, factors, pick, out, err);
	else if (!rc)
		rc = full(factor, factors, pick, out, err);
	free(pick);
	if (rc)
		loom__configs_free(out);
	return rc;
}
