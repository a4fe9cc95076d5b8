/* SPDX-License-Identifier: Apache-2.0 */
/* Appends fields of comma-separated values. */
#ifndef LOOM_ROWS_H
#define LOOM_ROWS_H

#include "facts/text.h"
#include "report/report.h"

void loom__csv_field(struct loom__text *out, const char *text, size_t most); /* appends text of any length as a field */
/* Works like loom__text_add(), but makes the argument of each %s a field. */
#define loom__csv_add(out, ...) loom__text_with(out, loom__csv_field, __VA_ARGS__)
void loom__csv_number(struct loom__text *out,
		      double v); /* appends the shortest text that reads back as v; appends nothing if v is NaN */
/* Appends the name of the metric with its unit, which is not a field yet. */
void loom__csv_metric(struct loom__text *name, const struct loom__view_metric *m);

#endif
