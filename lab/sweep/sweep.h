/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the configurations of a sweep: their order, the number of samples per visit, and resuming. The caller executes a
 * configuration, so that tests need no plug-ins.
 *
 * Configurations run in a random order, drawn for each round, and the samples of a configuration are spread over
 * rounds. So drift (temperature, clock rates, other load) adds to the visible spread within configurations instead of
 * to the differences between them. A visit costs the opening of the stack and its warm-ups. So it takes as many samples
 * as cost about as much, or more if the budget requires it. */
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
	/* The sweep sets these. */
	uint32_t have;    /* number of samples, with those of the file */
	int failed;       /* 1: the configuration could not be run to the end */
	int wrong;        /* 1: failed because the result was wrong, now or in the file */
	int noted, ended; /* noted: the file has its `skipped` or `failed`; ended: the file has its `done` */
};

struct loom__sweep_ops {
	/* Prepares a configuration, with warm-ups. Errors other than LOOM_EINTR concern only this configuration. */
	int (*open)(void *arg, size_t config, void **run, struct loom_error *err);
	/* Runs one verified sample, and adds seconds, metrics, units and better to `line`. */
	int (*sample)(void *arg, void *run, cJSON *line, struct loom_error *err);
	void (*close)(void *arg, void *run);
	void (*before)(void *arg, const cJSON *line); /* Called for each line of a resumed file; may be NULL. */
};

struct loom__sweep {
	struct loom__sweep_config *config;
	size_t configs;
	uint32_t samples;         /* per configuration */
	uint64_t seed, budget_ns; /* budget_ns 0: no budget */
	struct loom__journal *journal;
	const struct loom__sweep_ops *ops;
	void *arg;
	/* Called after each sample and configuration; may be NULL. Returns 1 to stop the sweep. */
	int (*progress)(void *arg, const struct loom__sweep *s);
	/* Results, also for progress(). */
	size_t wanted, taken; /* samples of this process */
	size_t rounds;	      /* number of rounds over all configurations that lacked samples */
	uint64_t began_ns;
	uint32_t at_a_time; /* samples per visit; 0: undecided */
	int out_of_budget, wrong, failures, last_error;
};

/* Applies the lines of journal->before. LOOM_EINVAL: the journal has other factors. */
int loom__sweep_resume(struct loom__sweep *s, const cJSON *header, struct loom_error *err);
/* Takes the missing samples. Returns 0 when done or when the budget is used up (out_of_budget), LOOM_EINTR when
 * stopped, or another error when the file could not be written. */
int loom__sweep_run(struct loom__sweep *s, struct loom_error *err);
void loom__sweep_free(struct loom__sweep *s); /* frees the configurations */

/* Returns the estimated nanoseconds until the samples are taken or the budget is used up; 0: unknown. */
uint64_t loom__sweep_left(const struct loom__sweep *s);

#endif
