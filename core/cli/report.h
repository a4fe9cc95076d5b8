/* SPDX-License-Identifier: Apache-2.0 */
/* Result documents as one report, in a file or on standard output. */
#ifndef LOOM_CLI_REPORT_H
#define LOOM_CLI_REPORT_H

#include "cli/options.h"
#include "report/report.h"

struct loom__report_args {
	struct loom__words file;
	const char *output, *format, *metric, *pareto, *plot; /* NULL: as the document says, or usual */
};

/* The view of documents, and what of it is wished; says mistakes and returns an exit code. Free the view on 0. */
int loom__report_view(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		      size_t docs, struct loom__view *view, struct loom__report_wish *wish);
/* Writes it where `a` says. An exit code. */
int loom__report_write(const struct loom__cli *cli, const struct loom__report_args *a,
		       const struct loom__view *view, const struct loom__report_wish *wish);

#endif
