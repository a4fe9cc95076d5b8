/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a person reads it on a terminal. */
#ifndef LOOM_TABLE_H
#define LOOM_TABLE_H

#include "base/base.h"

#include <cjson/cJSON.h>

struct loom__view;
struct loom__report_wish;

/* Renders a result document (gpuloom.result/1). */
void loom__table_result(const cJSON *document, struct loom__text *out);

/* The cells of a sweep, one a row, and its front. */
void loom__table_sweep(const struct loom__view *view, const struct loom__report_wish *wish, struct loom__text *out);

/* A figure with its unit in three significant digits: "12.3 Mtasks/s", "481 us", "5,027". */
void loom__figure(double value, const char *unit, char *text, size_t size);

#endif
