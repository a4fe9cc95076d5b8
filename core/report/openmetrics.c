/* SPDX-License-Identifier: Apache-2.0 */
#include "report/openmetrics.h"

#include <stdio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int loom__openmetrics_take(struct loom__openmetrics *m, const struct loom_result *r)
{
	if (!m->sum) {
		m->sum = calloc(r->workers ? r->workers : 1, sizeof(*m->sum));
		m->workers = r->workers;
		if (!m->sum)
			return LOOM_ENOMEM;
	}
	for (; m->seen < r->samples; m->seen++) {
		const struct loom__sample *s = &r->sample[m->seen];
		m->warmups += s->warmup != 0;
		m->counted += !s->warmup;
		m->seconds += s->warmup ? 0 : s->seconds;
		for (uint32_t w = 0; w < m->workers && !s->warmup; w++) {
#define ADD(name, unit, text) m->sum[w].name += s->counters[w].name;
			LOOM_COUNTER_MAP(ADD)
#undef ADD
		}
	}
	return 0;
}

static void family(struct loom__text *out, const char *name, const char *type, const char *unit,
		   const char *help)
{
	loom__text_add(out, "# TYPE %s %s\n", name, type);
	if (*unit) /* a unit is the end of the name, by the format's rule */
		loom__text_add(out, "# UNIT %s %s\n", name, unit);
	loom__text_add(out, "# HELP %s %s\n", name, help);
}

/* A label's value: quotes, backslashes and line ends escaped. */
static void quote(struct loom__text *out, const char *text)
{
	loom__text_put(out, "\"", 1);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			loom__text_put(out, "\\", 1);
		if (*text == '\n')
			loom__text_put(out, "\\n", 2);
		else
			loom__text_put(out, text, 1);
	}
	loom__text_put(out, "\"", 1);
}

static void value(struct loom__text *out, double v)
{
	loom__text_put(out, " ", 1);
	if (isfinite(v))
		loom__text_double(out, v);
	else
		loom__text_add(out, "%s", isnan(v) ? "NaN" : v < 0 ? "-Inf" : "+Inf");
	loom__text_put(out, "\n", 1);
}

/* Of each worker: what it counted in all samples. Times of day are no sums. */
static void counters(const struct loom__openmetrics *m, struct loom__text *out)
{
	static const struct {
		const char *name, *unit, *help;
		size_t offset;
	} row[] = {
#define ROW(name, unit, text) {#name, unit, text, offsetof(struct loom_counters, name)},
	    LOOM_COUNTER_MAP(ROW)
#undef ROW
	};
	for (size_t i = 0; i < LOOM__COUNT(row); i++) {
		const char *n = row[i].name;
		char name[96];
		if (!strcmp(n, "begin_ns") || !strcmp(n, "end_ns") || !strcmp(n, "last_task_ns"))
			continue;
		int nanoseconds = !strcmp(row[i].unit, "ns");
		size_t keep = nanoseconds ? strlen(n) - 3 : strlen(n);
		const char *unit = nanoseconds ? "seconds" : row[i].unit;
		snprintf(name, sizeof(name), "gpuloom_worker_%.*s%s%s", (int)keep, n,
			 *unit ? "_" : "", unit);
		family(out, name, "counter", unit, row[i].help);
		for (uint32_t w = 0; w < m->workers; w++) {
			uint64_t sum = *(const uint64_t *)(const void *)((const char *)&m->sum[w] +
									 row[i].offset);
			loom__text_add(out, "%s_total{worker=\"%u\"}", name, w);
			if (nanoseconds)
				value(out, (double)sum / 1e9);
			else
				loom__text_add(out, " %llu\n", (unsigned long long)sum);
		}
	}
}

/* The last sample's figures, those of plug-ins too, under one name. */
static void last(const struct loom_result *r, struct loom__text *out)
{
	const struct loom_report *report = r->samples ? &r->sample[r->samples - 1].report : NULL;
	family(out, "gpuloom_metric", "gauge", "",
	       "A figure of the last sample, by its name and unit.");
	for (size_t i = 0; report && i < report->count; i++) {
		loom__text_add(out, "gpuloom_metric{metric=");
		quote(out, report->list[i].name);
		loom__text_add(out, ",unit=");
		quote(out, report->list[i].unit);
		loom__text_add(out, "}");
		value(out, report->list[i].value);
	}
}

void loom__openmetrics_text(const struct loom__openmetrics *m, const struct loom_result *r,
			    const char *workload, struct loom__text *out)
{
	family(out, "gpuloom_run", "info", "", "What runs.");
	loom__text_add(out, "gpuloom_run_info{workload=");
	quote(out, workload);
	loom__text_add(out, ",workers=\"%u\"} 1\n", m->workers);
	family(out, "gpuloom_samples", "counter", "", "Samples that were measured and verified.");
	loom__text_add(out, "gpuloom_samples_total %llu\n", (unsigned long long)m->counted);
	family(out, "gpuloom_warmups", "counter", "", "Executions before the first sample.");
	loom__text_add(out, "gpuloom_warmups_total %llu\n", (unsigned long long)m->warmups);
	family(out, "gpuloom_measured_seconds", "counter", "seconds", "Time in samples.");
	loom__text_add(out, "gpuloom_measured_seconds_total");
	value(out, m->seconds);
	last(r, out);
	counters(m, out);
	loom__text_add(out, "# EOF\n");
}

void loom__openmetrics_free(struct loom__openmetrics *m)
{
	free(m->sum);
	*m = (struct loom__openmetrics){0};
}
