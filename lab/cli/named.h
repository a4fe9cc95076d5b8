/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins as users call them on the command line. */
#ifndef LOOM_CLI_NAMED_H
#define LOOM_CLI_NAMED_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* "./sched_mine.so": a file rather than a name. */
/* A kind by its name or its section; LOOM_KIND_NONE: the mistake was printed, `command` in front. */
enum loom_kind loom__take_kind(const struct loom__cli *cli, const char *command, const char *word);
int loom__is_plugin_file(const char *name);
/* "mgws" where only one kind has it, "sched_mgws", "scheduler.mgws" or "sched.mgws", in the plug-in folders (with
 * plugin_path, or NULL, before the others): free(*path). */
int loom__plugin_named(const char *name, const char *plugin_path, char **path, struct loom_error *err);

#endif
