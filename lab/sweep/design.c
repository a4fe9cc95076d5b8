/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/design.h"
#include "facts/must.h"

#include <stdlib.h>

void loom__configs_free(struct loom__configs *configs)
{
	free(configs->pick);
	*configs = (struct loom__configs){0};
}

int loom__configs_make(const struct loom__factor *factor, size_t factors, struct loom__configs *out,
		       struct loom_error *err)
{
	size_t n = loom__factor_configs(factor, factors);
	*out = (struct loom__configs){.factors = factors};
	for (size_t f = 0; f < factors; f++)
		if (!factor[f].values)
			return LOOM__FAIL(err, LOOM_EINVAL, "%s has no value", factor[f].key);
	if (n > LOOM__CONFIGS_MOST)
		return LOOM__FAIL(err, LOOM_EINVAL, "there are %s%zu configurations, more than %d: vary less",
				  n == SIZE_MAX ? "more than " : "", n, LOOM__CONFIGS_MOST);
	out->count = n;
	out->pick = loom__must(calloc(n + 1, (factors + 1) * sizeof(*out->pick)));
	for (size_t i = 0; i < n; i++)
		loom__factor_pick(factor, factors, i, out->pick + i * factors);
	return 0;
}
