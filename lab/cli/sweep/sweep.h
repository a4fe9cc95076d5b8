/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a conf with factors as a sweep, for `gpuloom sweep` and `gpuloom run`. */
#ifndef LOOM_CLI_SWEEP_H
#define LOOM_CLI_SWEEP_H

#include "cli/conf/conf.h"
#include "report/view/arena.h"
#include "run/engine.h"
#include "sweep/sweep.h"

/* Parameters that only the command line has. All others are in the conf. */
struct loom__sweep_params {
	uint8_t resume, restart, dry_run, quiet;
	uint8_t lines; /* 1: prints the samples on standard output, in place of the table */
	uint32_t log;
	/* runs configurations shard, shard + shards, shard + 2 shards and so on; shards = 0: runs all */
	uint32_t shard, shards;
	const char *output; /* the output file, in place of that in the conf; NULL: the conf decides */
	/* Called with all samples, in place of printing the table and the report. May take the document, and leave an
	 * empty one. Returns an exit code. May be NULL. */
	int (*done)(void *arg, struct loom__doc *doc);
	void *arg;
};

/* The rows of these options, for a struct S that has a struct loom__sweep_params named sweep. */
#define LOOM__OPTIONS_SWEEP(S)                                                                                         \
	{"resume", NULL,                                                                                               \
	 "continue the sweep in the output file after Ctrl-C, a crash or the end of the budget; "                      \
	 "configurations that failed are tried again, unless their result was wrong",                                  \
	 LOOM__AT(S, sweep.resume, BOOL)},                                                                             \
	    {"restart", NULL, "discard the sweep in the output file, and start again",                                 \
	     LOOM__AT(S, sweep.restart, BOOL)},                                                                        \
	{                                                                                                              \
		"dry-run", NULL, "list the configurations, and run nothing", LOOM__AT(S, sweep.dry_run, BOOL)          \
	}

/* Runs the sweep `spec`, which was read from `conf`. Returns an exit code. */
int loom__sweep_conf(const struct loom__cli *cli, const struct loom__conf_args *conf,
		     const struct loom__sweep_spec *spec, const struct loom__sweep_params *params);

/* Adds the options that concern reports to `report`. */
void loom__sweep_report(const struct loom__sweep_opts *opts, cJSON *report);

/* Plans every configuration of spec, for `gpuloom config check`. Prints errors, and returns an exit code. */
int loom__sweep_check(const struct loom__cli *cli, const struct loom__conf_args *conf,
		      const struct loom__sweep_spec *spec);

/* ---- shared by sweep_run.c, sweep_configs.c and sweep_metrics.c ------------------------------ */

struct loom__sweep_session {
	const struct loom__cli *cli;
	const struct loom__conf_args *conf;
	const struct loom__sweep_spec *spec;
	const struct loom__sweep_params *params;
	struct loom__configs configs;
	struct loom__sweep sweep;
	struct loom__journal journal;
	struct loom__arena arena;
	char *title, *workload; /* title and workload of the first configuration */
	size_t ready;	      /* number of configurations whose input files exist */
	struct loom_error missing; /* the first error about a missing input file; code 0: none */
	int about_written;               /* 1: the file has the `about` line of this session */
	size_t at;              /* index of the open configuration */
	struct loom__text said; /* reasons of failed configurations that were printed, one per line */
	struct loom__names metric;   /* names of the metrics in samples of this process and in the resumed file */
	/* looked: 1 if the check after the first sample is done; sure: 1 if the check after all configurations is done */
	int looked, sure;
	struct loom_error mistake;   /* an unknown metric, which ends the sweep; code 0: none */
	cJSON *report;		     /* the report options in the resumed file, such as {metric, pareto, plot}; owned */
	cJSON *paper;		     /* [x-paper] of the first configuration, or NULL; owned */
	uint64_t shown_ns;      /* time of the last progress output */
	int estimated;          /* 1: the estimate of the duration was printed */
};

/* Returns the path of the file of samples, or NULL. */
const char *loom__sweep_output(const struct loom__sweep_session *s);
/* Computes the id of every configuration, or the reason to skip it. Prints errors, and returns an exit code. */
int loom__sweep_resolve(struct loom__sweep_session *s);
/* The functions that run configurations. Their `arg` is the session. */
extern const struct loom__sweep_ops loom__sweep_stack_ops;

/* Records the metrics in a line of the resumed file, or in a sample. */
void loom__sweep_note_line(void *session, const cJSON *line);
void loom__sweep_note_sample(struct loom__sweep_session *s, const struct loom__sample *sample);
/* Checks the metrics that the user named. Call it after the first round, when all configurations have samples. At this
 * time an unknown metric is an error, which s->mistake receives. */
void loom__sweep_check_metrics(struct loom__sweep_session *s);

#endif
