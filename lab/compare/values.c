/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/view/document.h"
#include "facts/must.h"

size_t loom__compare_variants(const cJSON *doc)
{
	return loom__json_length(loom__json_list(doc, "variants"));
}

const cJSON *loom__compare_variant(const cJSON *doc, size_t variant)
{
	return cJSON_GetArrayItem(loom__json_list(doc, "variants"), (int)variant);
}

const char *loom__compare_label(const cJSON *doc, size_t variant)
{
	return loom__json_text(loom__compare_variant(doc, variant), "label");
}

const cJSON *loom__compare_metric_of(const cJSON *doc, size_t variant, const char *metric)
{
	const cJSON *result = loom__json_object(loom__compare_variant(doc, variant), "result");
	return loom__json_object(loom__json_object(result, "metrics"), metric);
}

size_t loom__compare_samples(const cJSON *metric, double **values)
{
	const cJSON *item, *list = loom__json_list(metric, "samples");
	size_t n = 0;
	*values = loom__must(malloc((loom__json_length(list) + 1) * sizeof(double)));
	cJSON_ArrayForEach(item, list)
	{
		(*values)[n++] = loom__json_double(item);
	}
	return n;
}

size_t loom__compare_values(const cJSON *doc, size_t variant, const char *metric, double **values)
{
	return loom__compare_samples(loom__compare_metric_of(doc, variant, metric), values);
}

/* Returns the number of counted samples. If a metric has fewer values, they cannot be assigned to blocks. */
static size_t counted(const cJSON *doc, size_t variant)
{
	const cJSON *s, *result = loom__json_object(loom__compare_variant(doc, variant), "result");
	size_t n = 0;
	cJSON_ArrayForEach(s, loom__json_list(result, "samples"))
	{
		n += !loom__json_true(s, "warmup");
	}
	return n;
}

enum loom_better loom__compare_better(const cJSON *doc, const char *metric)
{
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		const char *better = loom__json_text(loom__compare_metric_of(doc, v, metric), "better");
		if (!strcmp(better, "more"))
			return LOOM_BETTER_MORE;
		if (!strcmp(better, "less"))
			return LOOM_BETTER_LESS;
	}
	return LOOM_BETTER_NONE;
}

int loom__compare_blocks(const cJSON *doc, size_t variant, const char *metric, enum loom_better better, double **figure,
			 size_t *blocks)
{
	const cJSON *design = loom__json_object(doc, "design");
	double complete = loom__json_number(design, "complete");
	double each = loom__json_number(design, "samples_per_block");
	int best = !strcmp(loom__json_text(design, "per_block"), "best");
	double *values = NULL, *list = NULL;
	size_t have = loom__compare_values(doc, variant, metric, &values);
	int rc = 0;
	if (!(complete >= 1) || !(each >= 1))
		rc = LOOM_EINVAL;
	else if (complete * each > (double)have || have != counted(doc, variant))
		rc = LOOM_ENOENT;
	for (size_t i = 0; i < have && !rc; i++)
		rc = values[i] > 0 && isfinite(values[i]) ? 0 : LOOM_EINVAL;
	if (rc) {
		free(values);
		return rc;
	}
	/* Blocks that share an opening of the stacks are not independent, so they are merged. */
	double openings = loom__json_number(design, "openings"),
	       share = loom__json_number(design, "blocks_per_opening");
	size_t pool = openings > 1 && share >= 1 ? (size_t)fmin(share, complete) : 1;
	size_t per_block = (size_t)each * pool, n = ((size_t)complete + pool - 1) / pool;
	size_t all = (size_t)complete * (size_t)each;
	list = loom__must(malloc(n * sizeof(*list)));
	for (size_t b = 0; b < n; b++) {
		double *x = values + b * per_block;
		size_t left = all - b * per_block, m = left < per_block ? left : per_block;
		list[b] = loom__median_of(x, m); /* loom__median_of() also sorts x, which the next lines need */
		if (best && better)
			list[b] = better == LOOM_BETTER_LESS ? x[0] : x[m - 1];
	}
	free(values);
	*figure = list;
	*blocks = n;
	return 0;
}
