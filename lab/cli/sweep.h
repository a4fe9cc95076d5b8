/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a conf with factors as a sweep, for `gpuloom sweep` and `gpuloom run`. */
#ifndef LOOM_CLI_SWEEP_H
#define LOOM_CLI_SWEEP_H

#include "cli/conf.h"
#include "report/pool.h"
#include "run/engine.h"
#include "sweep/sweep.h"

/* Parameters that only the command line has; the conf has all others. */
struct loom__sweep_params {
	uint8_t resume, restart, dry_run, quiet;
	uint8_t lines; /* prints samples on standard output, in place of the table */
	uint32_t log;
	uint32_t shard, shards; /* runs configurations shard, shard + shards, ...; shards 0: all */
	const char *output; /* overrides the conf; NULL: the conf's output */
	int argc;           /* the command line, which is stored in the file */
	char **argv;
	/* Called with all samples in place of the table and the report; returns an exit code. NULL: the table. */
	int (*done)(void *arg, const struct loom__doc *doc);
	void *arg;
};

/* The rows of these options, for a struct S with a struct loom__sweep_params called sweep. */
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

/* Sets in `report` what the options say about reports. */
void loom__sweep_report(const struct loom__sweep_opts *opts, cJSON *report);

/* Plans every configuration of spec, for `gpuloom config check`; prints errors. Returns an exit code. */
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
	struct loom__pool pool;
	char *title, *workload; /* from the first configuration */
	size_t ready;	      /* number of configurations that have their input files */
	struct loom_error missing; /* the first missing input file of the others; code 0: none */
	int about_written;               /* the file has the `about` line of this session */
	size_t at;              /* the open configuration */
	struct loom__text said; /* reasons of failed configurations, one per line; each is printed once */
	struct loom__names metric;   /* the metrics of samples in this process and in the file */
	int looked, sure; /* looked: names were checked after the first sample; sure: after all configurations */
	struct loom_error mistake;   /* an unknown metric, which ends the sweep; code 0: none */
	cJSON *report;		     /* {metric, pareto, plot} of the file; owned */
	cJSON *paper;		     /* [x-paper] of the first configuration, or NULL; owned */
	uint64_t shown_ns;      /* the time of the last progress output */
};

/* Returns the path of the file of samples, or NULL. */
const char *loom__sweep_output(const struct loom__sweep_session *s);
/* Computes the id of every configuration, or the reason to skip it. Returns an exit code. */
int loom__sweep_resolve(struct loom__sweep_session *s);
/* Runs configurations; arg is the session. */
extern const struct loom__sweep_ops loom__sweep_stack_ops;

/* Records the metrics of a line of the file, or of a sample. */
void loom__sweep_note_line(void *session, const cJSON *line);
void loom__sweep_note_sample(struct loom__sweep_session *s, const struct loom__sample *sample);
/* After the first round over all configurations an unknown metric is certain, and goes to s->mistake. */
void loom__sweep_check_metrics(struct loom__sweep_session *s);

#endif
