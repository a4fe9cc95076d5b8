/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of a loaded plug-in: text, Markdown, JSON. */
#ifndef LOOM_DESCRIBE_H
#define LOOM_DESCRIBE_H

#include "plugin/registry.h"

/* For a terminal. */
void loom__describe_text(const struct loom_plugin *p, const char *path, int by_path, struct loom__text *out);
/* A Markdown section. Depends on the descriptor only, so that generated documents are stable. */
void loom__describe_markdown(const struct loom_plugin *p, struct loom__text *out);
/* A table of those of `rows` that belong to the shared section `shared`, NULL: to none. */
void loom__describe_rows_markdown(const char *section, const struct loom_opt *rows, const char *shared,
				  struct loom__text *out);
/* One option as JSON: type, default, range or choices. */
struct cJSON *loom__describe_row_json(const struct loom_opt *o);
/* JSON, schema "gpuloom.plugin/1"; free() it. NULL: out of memory. */
char *loom__describe_json(const struct loom_plugin *p, const char *path, int by_path);

#endif
