/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of comma-separated values. */
#ifndef LOOM_ROWS_H
#define LOOM_ROWS_H

#include "report/report.h"

void loom__csv_field(struct loom__text *out, const char *text);
void loom__csv_number(struct loom__text *out,
		      double v); /* shortest that reads back; empty for NaN */
void loom__csv_metric(struct loom__text *out,
		      const struct loom__view_metric *m); /* with its unit */

#endif
