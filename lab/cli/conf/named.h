/* SPDX-License-Identifier: Apache-2.0 */
/* Finds plug-ins by the names that a command line uses. */
#ifndef LOOM_CLI_NAMED_H
#define LOOM_CLI_NAMED_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* Returns a kind by its name or by its section. If there is none, prints an error that begins with `command`, and
 * returns LOOM_KIND_NONE. */
enum loom_kind loom__take_kind(const struct loom__cli *cli, const char *command, const char *word);
/* Returns 1 if `name` is the name of a file, such as "./sched_mine.so". */
int loom__is_plugin_file(const char *name);
/* Finds a plug-in by the name of its file, or in plugin_path (may be NULL), then in the plug-in folders. `name` is a file, or
 * has the form "sched_mgws", "scheduler.mgws" or "sched.mgws"; the form "mgws" is allowed if only one plug-in has this name.
 * The caller frees *path. */
int loom__plugin_named(const char *name, const char *plugin_path, char **path, struct loom_error *err);

#endif
