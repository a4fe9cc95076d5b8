/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the configurations of a sweep: decides on their order and the number of samples per visit, and resumes. The
 * caller opens and runs the stacks, so that tests of this file need no plug-ins.
 *
 * The sweep proceeds in rounds. A round visits each configuration that lacks samples, in a random order. So the samples
 * of a configuration are spread over time. As a result, drift (temperature, clock rates, other load) adds to the spread
 * within each configuration, and not to the differences between configurations. Each visit opens the stack and runs
 * warm-ups. To be worth this cost, a visit takes so many samples that they last about as long as the opening, or more
 * samples if the budget requires it. */
#ifndef LOOM_SWEEP_H
#define LOOM_SWEEP_H

#include "stats/stats.h"
#include "sweep/journal.h"

#define LOOM__SWEEP_SCHEMA "gpuloom.sweep/1"

struct loom__sweep_config {
	char id[33];   /* hash of the resolved configuration, in hexadecimal */
	cJSON *values; /* {section.key: value}; owned */
	char *skipped; /* the reason to leave the configuration out, or NULL; owned */
	int elsewhere; /* 1: another shard runs the configuration */
	/* loom__sweep_resume() and loom__sweep_run() set the members below. */
	uint32_t have;    /* number of samples, including those in a resumed file */
	int failed;       /* 1: the configuration could not be run to the end */
	int wrong;        /* 1: failed because the result was wrong, in this run or in the resumed file */
	/* noted: 1: the file has the `skipped` or `failed` line of the configuration; ended: 1: the file has its `done` line */
	int noted, ended;
};

struct loom__sweep_ops {
	/* Opens configuration number `config`, and runs its warm-ups. An error other than LOOM_EINTR ends this
	 * configuration only. */
	int (*open)(void *arg, size_t config, void **run, struct loom_error *err);
	/* Runs one verified sample, and adds seconds, metrics, units and better to `line`. */
	int (*sample)(void *arg, void *run, cJSON *line, struct loom_error *err);
	void (*close)(void *arg, void *run);
	void (*before)(void *arg, const cJSON *line); /* called for each line of a resumed file; may be NULL */
};

struct loom__sweep {
	struct loom__sweep_config *config;
	size_t configs;
	uint32_t samples;         /* number of samples per configuration */
	uint64_t seed, budget_ns; /* budget_ns: time limit of the sweep; 0: no limit */
	struct loom__journal *journal;
	const struct loom__sweep_ops *ops;
	void *arg;
	/* Called after each sample and each configuration; may be NULL. Returns 1 to stop the sweep. */
	int (*progress)(void *arg, const struct loom__sweep *s);
	/* The members below are results, which progress() may read. */
	size_t wanted, taken; /* number of samples that this process must take; number of samples that it has taken */
	size_t rounds;	      /* number of complete rounds */
	uint64_t began_ns;
	uint32_t at_a_time; /* number of samples per visit; 0: not decided yet */
	int out_of_budget, wrong, failures, last_error;
};

/* Takes over the lines of journal->before. Returns LOOM_EINVAL if they are of a sweep with other factors. */
int loom__sweep_resume(struct loom__sweep *s, const cJSON *header, struct loom_error *err);
/* Takes the missing samples. Returns 0 when all are taken or the budget is used up (out_of_budget). Returns LOOM_EINTR
 * if progress() stopped it, or another error if the file could not be written. */
int loom__sweep_run(struct loom__sweep *s, struct loom_error *err);
void loom__sweep_free(struct loom__sweep *s); /* frees the configurations */

/* Estimates the nanoseconds until all samples are taken or the budget is used up. Returns 0 if there is no estimate. */
uint64_t loom__sweep_left(const struct loom__sweep *s);

#endif
