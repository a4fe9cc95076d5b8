/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of a loaded plug-in as text, Markdown and JSON. */
#ifndef LOOM_DESCRIBE_H
#define LOOM_DESCRIBE_H

#include "plugin/registry.h"

/* Appends a description for a terminal. `by_path`: 1 if the conf must select the plug-in by its path. */
void loom__describe_text(const struct loom_plugin *p, const char *path, int by_path, struct loom__text *out);
/* Appends a Markdown section. The section depends only on the plug-in's descriptor, so that generated pages do not
 * change with the machine. */
void loom__describe_markdown(const struct loom_plugin *p, struct loom__text *out);
/* Appends a table of the options in `rows` that belong to the shared section `shared`, or to no shared section if
 * `shared` is NULL. */
void loom__describe_rows_markdown(const char *section, const struct loom_opt *rows, const char *shared,
				  struct loom__text *out);
/* Returns one option as JSON: its type, default, and range or choices. */
struct cJSON *loom__describe_row_json(const struct loom_opt *o);
/* Returns JSON of schema "gpuloom.plugin/1", which the caller frees, or NULL if memory runs out. */
char *loom__describe_json(const struct loom_plugin *p, const char *path, int by_path);

#endif
