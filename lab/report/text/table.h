/* SPDX-License-Identifier: Apache-2.0 */
/* Prints results as text tables, for terminals. */
#ifndef LOOM_TABLE_H
#define LOOM_TABLE_H

#include "base/base.h"

#include "base/json.h"

struct loom__view;
struct loom__compared;
struct loom__report_settings;

/* The number of columns that tables and help texts keep to where they can. */
#define LOOM__TABLE_WIDTH 80

enum {
	LOOM__SHOW_ALL = 1, /* metrics without a direction, lowest and highest values of the workers, what the plug-ins chose */
	LOOM__SHOW_WORKERS = 2, /* a row for each worker */
};
/* Appends a result document (gpuloom.result/1). `show` is a combination of LOOM__SHOW_X. */
void loom__table_result(const cJSON *document, unsigned show, struct loom__text *out);

/* Appends the verdicts of a comparison, a table per metric. */
void loom__table_compare(const struct loom__view *view, struct loom__text *out);
/* Returns the interval of an effect, or why there is none. */
#define LOOM__EFFECT_RANGE 112
char *loom__effect_range(char text[LOOM__EFFECT_RANGE], const struct loom__compared *c);
/* Appends what limits a verdict: missing blocks, the margin, notes. `between` separates them. */
void loom__verdict_remarks(const struct loom__view *view, const struct loom__compared *c, const char *between,
			   struct loom__text *out);
/* Returns what a verdict says of variant and baseline, such as "is faster than", and sets `perhaps` to what limits it, or
 * to "". Returns NULL for a verdict of another version. */
const char *loom__verdict_phrase(const struct loom__view *view, const struct loom__compared *c, char perhaps[48]);
/* Returns the outcome of a rule of --fail-on: "holds", "FAILED" or "is undecided". */
const char *loom__gate_outcome(const cJSON *rule);

/* Appends the configurations of a sweep, one per row, and its Pareto front. */
void loom__table_sweep(const struct loom__view *view, const struct loom__report_settings *settings,
		       struct loom__text *out);

/* Returns a number with its unit in four significant digits: "12.3 Mtasks/s", "481 us", "5,027". */
const char *loom__figure(char text[160], double value, const char *unit);
#define LOOM__FIGURE(value, unit) loom__figure((char[160]){0}, value, unit)
/* The same for the value of a metric. If the metric's name ends in _ns, the unit is ns, whatever the value is:
 * "1,294,000 ns". */
const char *loom__metric_figure(char text[160], double value, const char *name, const char *unit);
#define LOOM__METRIC(value, name, unit) loom__metric_figure((char[160]){0}, value, name, unit)
/* Returns a range of a metric, such as "302.1 ... 312.4 ms". A unit that both ends share appears once. */
const char *loom__metric_range(char text[340], double low, double high, const char *name, const char *unit);

/* Returns a duration in words: "12 s", "16 min", "2 h 05 min". */
const char *loom__duration(char text[32], double seconds);
#define LOOM__DURATION(seconds) loom__duration((char[32]){0}, seconds)

#endif
