/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/view.h"

size_t loom__factor_levels(const struct loom__view *view, size_t factor, const char **level, size_t most)
{
	struct loom__arena arena = {0};
	struct loom__names own = {0}, listed = {0};
	const cJSON *value;
	for (size_t v = 0; v < view->variants; v++)
		if (view->variant[v].level && view->variant[v].level[factor])
			loom__names_add(&arena, &own, view->variant[v].level[factor]);
	/* The order is that of the sweep. */
	cJSON_ArrayForEach(value, loom__view_values(view, factor))
	{
		const char *text = loom__json_string(value);
		if (listed.count < most && *text && loom__names_find(&own, text) != LOOM__NO_NAME)
			level[loom__names_add(&arena, &listed, text)] = text;
	}
	for (size_t v = 0; v < view->variants && listed.count < most; v++)
		if (view->variant[v].level && view->variant[v].level[factor])
			level[loom__names_add(&arena, &listed, view->variant[v].level[factor])] =
			    view->variant[v].level[factor];
	size_t n = listed.count;
	loom__arena_free(&arena);
	return n;
}
