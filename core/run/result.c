/* SPDX-License-Identifier: Apache-2.0 */
#include "run/result.h"

#include <stdlib.h>
#include <string.h>

static const struct loom__sample *result_counted(const struct loom_result *r, size_t n)
{
	for (size_t i = 0; i < r->samples; i++)
		if (!r->sample[i].warmup && n-- == 0)
			return &r->sample[i];
	return NULL;
}

size_t loom_result_samples(const struct loom_result *r)
{
	size_t n = 0;
	for (size_t i = 0; r && i < r->samples; i++)
		n += !r->sample[i].warmup;
	return n;
}

static const struct loom__metric *find(const struct loom_report *report, const char *name)
{
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->list[i].name, name))
			return &report->list[i];
	return NULL;
}

int loom__result_metrics(const struct loom_result *r, struct loom__metric **list, size_t *n)
{
	struct loom_report all = {0};
	for (size_t i = 0; i < r->samples; i++)
		for (size_t j = 0; !r->sample[i].warmup && j < r->sample[i].report.count; j++) {
			const struct loom__metric *m = &r->sample[i].report.list[j];
			loom__report_add(&all, m->name, m->unit, m->answer ? LOOM_BETTER_SAME : m->better, m->value);
		}
	*list = all.list;
	*n = all.count;
	return all.failed ? LOOM_ENOMEM : 0;
}

int loom__result_values(const struct loom_result *r, const char *metric, double **values, size_t *n)
{
	*n = 0;
	*values = malloc((r->samples + 1) * sizeof(double));
	for (size_t i = 0; *values && i < r->samples; i++) {
		const struct loom__metric *m = find(&r->sample[i].report, metric);
		if (!r->sample[i].warmup && m)
			(*values)[(*n)++] = m->value;
	}
	return *values ? 0 : LOOM_ENOMEM;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double loom__median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int loom_result_median(const struct loom_result *r, const char *metric, double *value)
{
	double *values;
	size_t n;
	if (!r || !metric)
		return LOOM_EINVAL;
	int rc = loom__result_values(r, metric, &values, &n);
	if (!rc && n)
		*value = loom__median_of(values, n);
	free(values);
	return rc ? rc : n ? 0 : LOOM_ENOENT;
}

int loom_result_sample(const struct loom_result *r, size_t sample, const char *metric, double *value)
{
	const struct loom__sample *s = r ? result_counted(r, sample) : NULL;
	const struct loom__metric *m = s && metric ? find(&s->report, metric) : NULL;
	if (!m)
		return LOOM_ENOENT;
	*value = m->value;
	return 0;
}

void loom_result_destroy(struct loom_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->samples; i++) {
		loom__report_clear(&r->sample[i].report);
		free(r->sample[i].counters);
	}
	free(r->sample);
	free(r->rank);
	loom__about_drop(r->shared);
	free(r);
}

const char *loom__better_name(enum loom_better better)
{
	return better == LOOM_BETTER_MORE ? "more" : better == LOOM_BETTER_LESS ? "less" : "";
}
