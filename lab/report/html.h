/* SPDX-License-Identifier: Apache-2.0 */
/* The page and its parts. Each part appends a section, or nothing when there is nothing to say. */
#ifndef LOOM_HTML_H
#define LOOM_HTML_H

#include "report/plot.h"
#include "report/report.h"

extern const char loom__html_style[], loom__html_script[], loom__html_script_hash[];

void loom__html_section(struct loom__text *out, const char *id, const char *title, const char *lead);
/* A whole section, or none where `body` is empty; frees the body. */
void loom__html_section_of(struct loom__text *out, const char *id, const char *title, const char *lead,
			   struct loom__text *body);
/* A table up to its first row, or, where `columns` is NULL, to the first column. Columns are separated by '|', those of
 * figures begin with '#'. */
void loom__html_table(struct loom__text *out, const char *style, const char *caption, const char *columns);
void loom__html_columns(struct loom__text *out, const char *columns);
#define LOOM__HTML_BODY "</tr></thead>\n<tbody>\n"
void loom__html_table_end(struct loom__text *out);

void loom__html_headline(struct loom__text *out, const struct loom__view *view);
void loom__html_verdicts(struct loom__text *out, const struct loom__view *view);
void loom__html_variants(struct loom__text *out, const struct loom__view *view, size_t metric);
void loom__html_metrics(struct loom__text *out, const struct loom__view *view);
void loom__html_effects(struct loom__text *out, const struct loom__view *view, size_t metric);
void loom__html_missing(struct loom__text *out, const struct loom__view *view);
void loom__html_notices(struct loom__text *out, const struct loom__view *view);
void loom__html_environment(struct loom__text *out, const struct loom__view *view);
void loom__html_conf(struct loom__text *out, const struct loom__view *view);
void loom__html_command(struct loom__text *out, const struct loom__view *view);
void loom__html_data(struct loom__text *out, const struct loom__view *view);

#endif
