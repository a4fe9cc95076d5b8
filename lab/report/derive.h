/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics derived from others: "gb_s = bytes / seconds / 1e9 [GB/s, more], b = ...". The optional brackets hold the
 * unit and the better direction. Operands are numbers, metrics, + - * / ^, parentheses, abs, exp, log, log2, max, min,
 * sqrt. */
#ifndef LOOM_DERIVE_H
#define LOOM_DERIVE_H

#include "report/view.h"

#define LOOM__DERIVED_MOST 16

struct loom__derived {
	size_t n;
	struct loom__derived_one {
		char name[48], unit[16], text[160];
		enum loom_better better;
	} one[LOOM__DERIVED_MOST];
};

/* The value of name(ARGUMENTS) in an expression. LOOM_ENOENT: no such function; other errors are in *err. */
typedef int loom__call_fn(const void *from, const char *name, const char *arguments, size_t length, double *value,
			  struct loom_error *err);
/* An expression whose operands are numbers and calls: of `call`, else of the functions above that take one number. *value
 * is NAN if it is not finite. */
int loom__expression(const char *text, loom__call_fn *call, const void *from, double *value, struct loom_error *err);

/* Parses a list; NULL or "" has no metrics. LOOM_EINVAL: syntax error. Names of metrics are checked later. */
int loom__derived_read(const char *list, struct loom__derived *out, struct loom_error *err);
/* Adds the derived metrics to a sample. LOOM_EINVAL, with the most similar name: the sample lacks an operand. A result
 * that is not finite, such as 0 / 0, is not added. */
int loom__derived_sample(const struct loom__derived *d, struct loom__sample *sample, struct loom_error *err);
/* Adds the derived metrics to a document. Samples without an operand get no value. LOOM_EINVAL: all samples lack it. */
int loom__derived_view(const struct loom__derived *d, struct loom__view *view, struct loom_error *err);
int loom__derived_result(const struct loom__derived *d, cJSON *result, struct loom_error *err);

#endif
