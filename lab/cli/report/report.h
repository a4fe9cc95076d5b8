/* SPDX-License-Identifier: Apache-2.0 */
/* Writes result documents as a report, to a file or to standard output. */
#ifndef LOOM_CLI_REPORT_H
#define LOOM_CLI_REPORT_H

#include "cli/base/options.h"
#include "sweep/spec.h"
#include "report/view/derive.h"
#include "report/report.h"

/* The row of --derive for a struct S with a field `derive`. loom__derive_option() parses its value; it prints errors
 * and returns an exit code. */
#define LOOM__OPTION_DERIVE(S)                                                                     \
	{                                                                                          \
		"derive", "'NAME = EXPRESSION [UNIT, more]'", .rows = loom__sweep_rows, LOOM__AT(S, derive, STR) \
	}
int loom__derive_option(const struct loom__cli *cli, const char *text, struct loom__derived *derived);

struct loom__report_args {
	struct loom__words file;
	/* NULL: the value of the document, or else the default. */
	const char *output, *format, *metric, *pareto, *plot, *derive, *x, *lines, *facet, *show, *axes, *base, *mean, *width;
};

/* Creates the view of the documents, and the settings of the report. Returns an exit code. If that is 0, the caller
 * frees the view. */
int loom__report_view(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		      size_t docs, struct loom__view *view, struct loom__report_settings *settings);
/* Writes the report to the destination that `a` names. Returns an exit code. */
int loom__report_write(const struct loom__cli *cli, const struct loom__report_args *a,
		       const struct loom__view *view, const struct loom__report_settings *settings);

/* Calls both functions. Returns an exit code. */
int loom__report(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		 size_t docs);

#endif
