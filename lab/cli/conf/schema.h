/* SPDX-License-Identifier: Apache-2.0 */
/* Prints all options of the core and of every plug-in. */
#ifndef LOOM_CLI_SCHEMA_H
#define LOOM_CLI_SCHEMA_H

#include "cli/cli.h"
#include "stack/plan.h"

/* Returns the sections of the core, and [sweep]: names, options, descriptions. */
const struct loom__core_section *loom__sections(size_t *n);

/* Prints the options as Markdown, or as JSON ("gpuloom.schema/1"). Returns an exit code. */
int loom__print_schema(const struct loom__cli *cli, int json);

#endif
