/* SPDX-License-Identifier: Apache-2.0 */
/* All options there are: the core's sections and every plug-in's, from their rows. */
#ifndef LOOM_CLI_SCHEMA_H
#define LOOM_CLI_SCHEMA_H

#include "cli/cli.h"
#include "stack/plan.h"

/* The core's sections and [sweep]: names, rows, what they are about. */
const struct loom__core_section *loom__sections(size_t *n);

/* Markdown, or JSON ("gpuloom.schema/1"). An exit code. */
int loom__print_schema(const struct loom__cli *cli, int json);

#endif
