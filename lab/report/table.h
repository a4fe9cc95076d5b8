/* SPDX-License-Identifier: Apache-2.0 */
/* Prints results as text tables, for terminals. */
#ifndef LOOM_TABLE_H
#define LOOM_TABLE_H

#include "base/base.h"

#include "base/json.h"

struct loom__view;
struct loom__report_settings;

/* Appends a result document (gpuloom.result/1). With `choices`, also appends what the plug-ins chose. */
void loom__table_result(const cJSON *document, int choices, struct loom__text *out);

/* Appends the configurations of a sweep, one per row, and its Pareto front. */
void loom__table_sweep(const struct loom__view *view, const struct loom__report_settings *settings,
		       struct loom__text *out);

/* Returns a number with its unit in four significant digits: "12.3 Mtasks/s", "481 us", "5,027". */
const char *loom__figure(char text[160], double value, const char *unit);
#define LOOM__FIGURE(value, unit) loom__figure((char[160]){0}, value, unit)

#endif
