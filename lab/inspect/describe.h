/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of a loaded plug-in as text, Markdown and JSON. */
#ifndef LOOM_DESCRIBE_H
#define LOOM_DESCRIBE_H

#include "plugin/registry.h"

/* Appends a description for a terminal. */
void loom__describe_text(const struct loom_plugin *p, const char *path, int by_path, struct loom__text *out);
/* Appends a Markdown section. It depends on the descriptor only, so that generated documents are stable. */
void loom__describe_markdown(const struct loom_plugin *p, struct loom__text *out);
/* Appends a table of those of `rows` that belong to the shared section `shared`; NULL: to none. */
void loom__describe_rows_markdown(const char *section, const struct loom_opt *rows, const char *shared,
				  struct loom__text *out);
/* Returns one option as JSON: type, default, range or choices. */
struct cJSON *loom__describe_row_json(const struct loom_opt *o);
/* Returns JSON, schema "gpuloom.plugin/1", which the caller frees. NULL: memory ran out. */
char *loom__describe_json(const struct loom_plugin *p, const char *path, int by_path);

#endif
