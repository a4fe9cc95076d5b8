/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a sweep in a conf. Options of the command line set the same keys:
 *
 *   [sweep]         options of the sweep and of its report
 *   [sweep.SECTION] KEY = VALUE, VALUE, ... gives the levels of the option KEY of [SECTION]
 *   [sweep.points]  NAME = SECTION.KEY=VALUE, SECTION.KEY=VALUE, ... gives one level, which sets several options
 *   [sweep.skip]    REASON = KEY=A|B, KEY2=C leaves out the configurations that match
 *   [sweep.only]    the same, but leaves out the configurations that do not match */
#ifndef LOOM_SWEEP_SPEC_H
#define LOOM_SWEEP_SPEC_H

#include "config/config.h"
#include "report/view/derive.h"
#include "report/report.h"
#include "sweep/design.h"

struct loom__sweep_opts {
	uint64_t budget, seed;
	const char *output, *report, *metric, *pareto, *plot, *derive, *x, *lines, *facet, *base, *mean;
	uint32_t show, axes, width; /* values of enum loom__show, LOOM__LOG_* and enum loom__width */
};
extern const struct loom_opt loom__sweep_rows[];

/* The key of the factor whose levels are the names in [sweep.points]. */
#define LOOM__SWEEP_POINT "point"

struct loom__sweep_spec {
	struct loom__sweep_opts opts;
	struct loom__factor *factor;
	size_t factors;
	struct loom__constraint *constraint;
	size_t constraints;
};

/* Returns 1 if cfg has a section of a sweep. */
int loom__sweep_spec_in(struct loom_config *cfg);
/* Declares and reads the sections of a sweep. Returns 0, or LOOM_EINVAL with an empty *spec. *spec points into cfg, so
 * cfg must outlive it. */
int loom__sweep_spec_read(struct loom_config *cfg, struct loom__sweep_spec *spec, struct loom__diag *diag);
void loom__sweep_spec_free(struct loom__sweep_spec *spec);

/* Sets the levels of the configuration `pick` in `config`, which must have been read from the same files as the
 * spec. */
void loom__sweep_spec_apply(const struct loom__sweep_spec *spec, const size_t *pick, struct loom_config *config,
			    struct loom__diag *diag);
/* Rejects factors that the command line or the environment also sets, because all levels would then be the same. Must
 * be called after the keys are declared, because only declared keys get values from the environment. Must be called
 * before loom__sweep_spec_apply(), which overwrites values of --set. */
void loom__sweep_spec_overruled(const struct loom__sweep_spec *spec, const size_t *pick,
				const struct loom_config *config, struct loom__diag *diag);

#endif
