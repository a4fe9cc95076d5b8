/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of `gpuloom sweep`: which configurations they are, and how one is run. */
#ifndef LOOM_CLI_SWEEP_H
#define LOOM_CLI_SWEEP_H

#include "cli/conf.h"
#include "report/pool.h"
#include "run/engine.h"
#include "sweep/design.h"
#include "sweep/sweep.h"

struct loom__sweep_args {
	struct loom__conf_args conf;
	struct loom__factor *factor;
	size_t factors;
	struct loom__constraint *constraint;
	size_t constraints;
	uint32_t design; /* enum loom__design_kind */
	const char *output;
	uint32_t samples; /* 0: as the conf says */
	uint32_t log;
	uint64_t seed, budget;
	uint8_t resume, dry_run, quiet;
	struct loom__rule_text *rule; /* --skip and --only, as they were given */
	size_t rules;
};

/* sweep_args.c. -1: help was printed; 0: go on; else an exit code. Free in every case. */
int loom__sweep_parse(const struct loom__cli *cli, int argc, char **argv,
		      struct loom__sweep_args *a);
void loom__sweep_args_free(struct loom__sweep_args *a);

struct loom__sweep_session {
	const struct loom__cli *cli;
	const struct loom__sweep_args *args;
	struct loom__cells cells;
	struct loom__sweep sweep;
	struct loom__journal journal;
	struct loom__pool pool;
	struct loom__names probed; /* plug-ins that were examined and found sound */
	char *title, *workload;    /* of the first cell that has a plan */
	int told;                  /* the file has the about line of this session */
	int reason;                /* exit code for the first cell that was refused */
	uint64_t shown_ns;         /* when progress was last shown */
};

/* Resolves every cell: its id, or why it is skipped or refused. An exit code. */
int loom__sweep_resolve(struct loom__sweep_session *s);
/* How cells are run; arg is the session. */
extern const struct loom__sweep_ops loom__sweep_stack_ops;

#endif
