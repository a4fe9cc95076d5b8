/* SPDX-License-Identifier: Apache-2.0 */
/* The page and its parts. Each part appends a section, or nothing when there is nothing to say. */
#ifndef LOOM_HTML_H
#define LOOM_HTML_H

#include "report/plot.h"
#include "report/report.h"

extern const char loom__html_style[], loom__html_script[], loom__html_script_hash[];

/* A cell or a paragraph of untrusted text: "<td>" text "</td>". */
void loom__html_element(struct loom__text *out, const char *open, const char *text,
			const char *close);
void loom__html_section(struct loom__text *out, const char *id, const char *title,
			const char *lead);
void loom__html_table(struct loom__text *out, const char *style, const char *caption);
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
