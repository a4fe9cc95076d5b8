/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page and its parts. Each function for a part appends a section, or nothing if the section would be empty. */
#ifndef LOOM_HTML_H
#define LOOM_HTML_H

#include "report/text/grid.h"
#include "report/plot/plot.h"
#include "report/report.h"

extern const char loom__html_style[], loom__html_script[], loom__html_script_hash[];

void loom__html_section(struct loom__text *out, const char *id, const char *title, const char *lead);
/* Appends a section with the text `body`, or nothing if `body` is empty. Frees `body`. */
void loom__html_section_of(struct loom__text *out, const char *id, const char *title, const char *lead,
			   struct loom__text *body);
/* Tables that several formats share. loom__verdict_grid() makes a row per comparison; if `remarks` is 1, it adds a
 * column for remarks. loom__metric_grid() makes a column per variant, at most `columns`. */
void loom__verdict_grid(const struct loom__view *view, size_t rows, int remarks, struct loom__grid *g);
void loom__metric_grid(const struct loom__view *view, size_t columns, int better, struct loom__grid *g);

void loom__html_headline(struct loom__text *out, const struct loom__view *view);
void loom__html_verdicts(struct loom__text *out, const struct loom__view *view);
void loom__html_variants(struct loom__text *out, const struct loom__view *view, size_t metric);
void loom__html_metrics(struct loom__text *out, const struct loom__view *view);
void loom__html_missing(struct loom__text *out, const struct loom__view *view);
void loom__html_notices(struct loom__text *out, const struct loom__view *view);
void loom__html_environment(struct loom__text *out, const struct loom__view *view);
void loom__html_conf(struct loom__text *out, const struct loom__view *view);
void loom__html_command(struct loom__text *out, const struct loom__view *view);
void loom__html_data(struct loom__text *out, const struct loom__view *view);

#endif
