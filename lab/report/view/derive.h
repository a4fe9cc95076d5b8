/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics derived from other metrics: "gb_s = bytes / seconds / 1e9 [GB/s, more], b = ...". The brackets are optional,
 * and contain the unit and the better direction. Expressions have numbers, metrics, + - * / ^, parentheses, and the
 * functions abs, exp, log, log2, max, min and sqrt. */
#ifndef LOOM_DERIVE_H
#define LOOM_DERIVE_H

#include "report/view/view.h"

#define LOOM__DERIVED_MOST 16

struct loom__derived {
	size_t n;
	struct loom__derived_one {
		char name[48], unit[16], text[160];
		enum loom_better better;
	} one[LOOM__DERIVED_MOST];
};

/* Sets *value to the value of name(ARGUMENTS) in an expression. `length` is the length of the arguments. Returns
 * LOOM_ENOENT if there is no such function, or another error in *err. */
typedef int loom__call_fn(const void *from, const char *name, const char *arguments, size_t length, double *value,
			  struct loom_error *err);
/* Evaluates an expression whose operands are numbers and calls. If `call` does not know a name, the name must be one of
 * the functions with one argument that are listed above. *value is NAN if the result is not finite. */
int loom__expression(const char *text, loom__call_fn *call, const void *from, double *value, struct loom_error *err);

/* Parses a list of definitions. NULL and "" are empty lists. Returns LOOM_EINVAL for a syntax error. The names of
 * metrics are checked later, by the functions below. */
int loom__derived_read(const char *list, struct loom__derived *out, struct loom_error *err);
/* Adds the derived metrics to a sample. Returns LOOM_EINVAL, with the most similar name in *err, if the sample lacks an
 * operand. A result that is not finite, such as 0 / 0, is not added. */
int loom__derived_sample(const struct loom__derived *d, struct loom__sample *sample, struct loom_error *err);
/* Add the derived metrics to all samples of a view or document. A sample that lacks an operand gets no value. If all
 * samples lack an operand, the functions return LOOM_EINVAL. */
int loom__derived_view(const struct loom__derived *d, struct loom__view *view, struct loom_error *err);
int loom__derived_result(const struct loom__derived *d, cJSON *result, struct loom_error *err);

#endif
