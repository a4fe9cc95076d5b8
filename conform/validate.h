/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite: tests of one plug-in, each in a process of its own. */
#ifndef LOOM_VALIDATE_H
#define LOOM_VALIDATE_H

#include <gpuloom/plugin.h>

#include "base/base.h"

enum { LOOM__LEVEL_MOST = 5 };

/* How a test ended. */
enum loom__ending {
	LOOM__PASSED = 0,
	LOOM__FAILED,  /* the plug-in broke the contract: `why` names the fault */
	LOOM__SKIPPED, /* `why` names what was missing */
	LOOM__CRASHED, /* a signal ended the process, or the plug-in did */
	LOOM__TIMEOUT,
	LOOM__ENDINGS
};
const char *loom__ending_name(enum loom__ending ending);

struct loom__outcome {
	const char *test; /* "sched.each_task_once" */
	const char *what; /* one line: what the test is about */
	int level;
	enum loom__ending ending;
	char why[1000];
	double seconds;
	uint64_t seed; /* seed of the failed case in a random test */
};

struct loom__validation {
	const char *self; /* this executable, which also runs `validate-test` */
	const char *path;
	const char *with;       /* conf with options and companions; NULL: none */
	const char *const *set; /* "option=value" of the plug-in */
	size_t sets;
	const char *const *only, *const *skip; /* names of tests, or the part before the point */
	size_t onlys, skips;
	int level;
	unsigned jobs, limit_ms; /* jobs: tests at a time; limit_ms: limit of one test; 0: as in suite.def */
	uint64_t seed, fuzz_ns;  /* fuzz_ns: time of level 5; 0: the default */
	/* Called for each outcome in the order of the suite, as soon as all earlier ones are known. */
	void (*ended)(void *arg, const struct loom__outcome *outcome);
	void *arg;
};

/* Checks `set` of a validation. Returns 0, or an error: an unknown option, or a value that its row does not allow. */
int loom__validate_set(const struct loom_plugin *p, const char *const *set, size_t n, struct loom_error *err);

/* Runs the suite for a plug-in of `kind`. The outcomes are in the order of the suite; the caller frees the list. */
int loom__validate(const struct loom__validation *v, enum loom_kind kind,
		   struct loom__outcome **list, size_t *n, struct loom_error *err);

/* Lists the tests for a kind (LOOM_KIND_NONE: all), for `--list` and completion. */
typedef void loom__test_fn(void *arg, const char *name, const char *what, int level);
void loom__validate_each(enum loom_kind kind, loom__test_fn *fn, void *arg);

/* In the child: runs `validate-test TEST FD PATH ...` and ends the process. Returns only on wrong usage. */
void loom__validate_test_command(const char *self, int argc, char **argv);

/* Verdicts as text and as JSON, with `name` and `version` of the plug-in. */
struct loom__verdicts {
	const char *path, *name, *version;
	enum loom_kind kind;
	int level;
	uint64_t seed;
	const struct loom__outcome *list;
	size_t n;
};
char *loom__validate_json(const struct loom__verdicts *v); /* returns gpuloom.validate/1, which the caller frees */
size_t loom__validate_count(const struct loom__verdicts *v, enum loom__ending ending);

#endif
