/* SPDX-License-Identifier: Apache-2.0 */
/* All options of the core and of every plug-in, from their rows. */
#ifndef LOOM_CLI_SCHEMA_H
#define LOOM_CLI_SCHEMA_H

#include "cli/cli.h"
#include "stack/plan.h"

/* Returns the sections of the core and [sweep]: names, rows, descriptions. */
const struct loom__core_section *loom__sections(size_t *n);

/* Prints Markdown or JSON ("gpuloom.schema/1"). Returns an exit code. */
int loom__print_schema(const struct loom__cli *cli, int json);

#endif
