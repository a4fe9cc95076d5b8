/* SPDX-License-Identifier: Apache-2.0 */
/* A conf that varies something, run as a sweep: by `gpuloom sweep`, and by `gpuloom run`. */
#ifndef LOOM_CLI_SWEEP_H
#define LOOM_CLI_SWEEP_H

#include "cli/conf.h"
#include "report/pool.h"
#include "run/engine.h"
#include "sweep/sweep.h"

/* What only the command line says of a sweep; the rest stands in the conf, or is set there by options. */
struct loom__sweep_wish {
	uint8_t resume, anew, dry_run, quiet;
	uint8_t lines; /* to standard output, in place of the table */
	uint32_t log;
	uint32_t shard, shards; /* the cells number shard, shard + shards, ...; shards 0: all */
	const char *output; /* over the conf's; NULL: as the conf says */
	int argc;           /* the command as it was given, for the file */
	char **argv;
};

/* The rows of those options for a struct S with a struct loom__sweep_wish called sweep. */
#define LOOM__OPTIONS_SWEEP(S)                                                                     \
	{"resume", NULL,                                                                           \
	 "continue the sweep in the output file after Ctrl-C, a crash or the end of the budget; "  \
	 "cells that failed are tried again, unless their result was wrong",                       \
	 LOOM__AT(S, sweep.resume, BOOL)},                                                         \
	{"anew", NULL, "discard the sweep in the output file, and begin again", LOOM__AT(S, sweep.anew, BOOL)},   \
	{"dry-run", NULL, "list what would be run, and run nothing", LOOM__AT(S, sweep.dry_run, BOOL)}

/* Runs what `spec` says, which was read from `conf`. An exit code. */
int loom__sweep_conf(const struct loom__cli *cli, const struct loom__conf_args *conf,
		     const struct loom__sweep_spec *spec, const struct loom__sweep_wish *wish);

/* Plans every cell of spec, as `gpuloom config check` does; says the mistakes. An exit code. */
int loom__sweep_check(const struct loom__cli *cli, const struct loom__conf_args *conf,
		      const struct loom__sweep_spec *spec);

/* ---- between sweep_run.c, sweep_cells.c and sweep_metrics.c -------------------------------------- */

struct loom__sweep_session {
	const struct loom__cli *cli;
	const struct loom__conf_args *conf;
	const struct loom__sweep_spec *spec;
	const struct loom__sweep_wish *wish;
	struct loom__cells cells;
	struct loom__sweep sweep;
	struct loom__journal journal;
	struct loom__pool pool;
	char *title, *workload; /* of the first cell */
	size_t ready;	      /* cells whose workload finds what it reads */
	struct loom_error missing; /* what the first of the others lacks; code 0: nothing */
	int told;               /* the file has the about line of this session */
	size_t at;              /* the cell that is open */
	struct loom__text said; /* why cells failed, a line each: once is enough */
	struct loom__names metric;   /* that there are, in this process's samples and in the file's */
	int looked, sure;	     /* at the metrics of the first sample, and of all cells */
	struct loom_error mistake;   /* in the name of a metric: code 0, or the sweep ends */
	cJSON *wishes;		     /* the file's {metric, pareto, plot}; owned */
	uint64_t shown_ns;      /* when progress was last shown */
};

/* The file of samples, or NULL. */
const char *loom__sweep_output(const struct loom__sweep_session *s);
/* Resolves every cell: its id, or why it is left out. An exit code. */
int loom__sweep_resolve(struct loom__sweep_session *s);
/* How cells are run; arg is the session. */
extern const struct loom__sweep_ops loom__sweep_stack_ops;

/* Notes which metrics there are: those of a line of the file, those of a sample. */
void loom__sweep_note_line(void *session, const cJSON *line);
void loom__sweep_note_sample(struct loom__sweep_session *s, const struct loom__sample *sample);
/* After the first round over all cells it is certain that a metric does not exist: that is s->mistake. */
void loom__sweep_look_again(struct loom__sweep_session *s);

#endif
