/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins as named on the command line. */
#ifndef LOOM_CLI_NAMED_H
#define LOOM_CLI_NAMED_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* Returns a kind by its name or section, or LOOM_KIND_NONE after an error message that begins with `command`. */
enum loom_kind loom__take_kind(const struct loom__cli *cli, const char *command, const char *word);
/* Returns 1 for a file such as "./sched_mine.so" rather than a name. */
int loom__is_plugin_file(const char *name);
/* Finds "mgws" if unique, "sched_mgws", "scheduler.mgws" or "sched.mgws" in the plug-in folders, first in plugin_path
 * unless NULL. The caller frees *path. */
int loom__plugin_named(const char *name, const char *plugin_path, char **path, struct loom_error *err);

#endif
