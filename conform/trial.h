/* SPDX-License-Identifier: Apache-2.0 */
/* What a test of the suite gets: the plug-in, its options, a host table that it controls, and the
 * ways to end. A test runs in a process of its own and may leave it in any state. */
#ifndef LOOM_VALIDATE_TRIAL_H
#define LOOM_VALIDATE_TRIAL_H

#include "conform/chance.h"
#include "conform/validate.h"
#include "rig/host.h"
#include "rig/rig.h"

struct loom__trial {
	const char *self, *path;
	const struct loom_plugin *plugin; /* NULL in a test that loads it itself */
	const char *with;
	const char *const *set;
	size_t sets;
	struct loom_config *cfg; /* of `with`, or NULL */
	void *opts;              /* plugin->opts_size bytes: defaults and what the user gave */
	const char *opts_text;   /* what was chosen beyond them, for sentences; "" */
	uint64_t seed;           /* of the suite */
	uint64_t fuzz_ns;
	unsigned limit_ms;
	int rough; /* level 4 and up: more threads than cores, pauses at any instruction */
	struct loom__rig_host host;
	char refusal[300]; /* why the plug-in refused options or a layout, last time ... */
	int too_large;     /* ... and whether for want of memory */
	int fd;         /* where the answer goes */
	uint32_t ended; /* atomic: 0 running, 1 being worded, 2 worded */
	char why[1000];
	char note[300]; /* what a reader should know although the test passed; "" */
};

/* The first fault is kept; always returns LOOM__FAILED. Any thread. */
int loom__fault(struct loom__trial *t, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* By a worker, of the trial that stands in a block as a number: the run is stopped as well. */
void loom__fault_stop(const struct loom_ctx *c, uint64_t trial, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Returns LOOM__SKIPPED. */
int loom__skip(struct loom__trial *t, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* LOOM__FAILED once any thread called loom__fault(). */
int loom__faulted(const struct loom__trial *t);
/* Ends the process with the fault, for signal handlers and threads that must not go on. */
void loom__fault_now(struct loom__trial *t, const char *sentence) __attribute__((noreturn));
/* Notes which case runs, for the parent: told with a fault, a crash or a time-out. */
void loom__say_case(struct loom__trial *t, uint64_t seed, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* From now on a fault at these addresses is told as the use of a raw pointer; bytes 0: no more. */
void loom__say_hidden(const void *at, uint64_t bytes);

/* 1 for the codes of enum loom_err. */
int loom__is_error(int code);
/* An error came back: is it one of ours, with a sentence? FAILED or 0. `what` as in "create()". */
int loom__judge_error(struct loom__trial *t, const char *what, int code,
		      const struct loom_error *err);

/* The suite reads or writes plain memory that the plug-in's orders must make safe: for a thread sanitizer, where one
 * was loaded before us (LD_PRELOAD), for it was not compiled into us. */
void loom__note_read(const void *at, uint64_t bytes);
void loom__note_write(void *at, uint64_t bytes);

/* One test. The flags say when it makes sense. */
typedef int loom__trial_fn(struct loom__trial *t);
enum {
	LOOM__TEST_UNLOADED = 1, /* loads the plug-in itself */
	LOOM__TEST_POLICY = 2,   /* kinds with the common ops of policies alone */
	LOOM__TEST_ROUGH = 4,
	LOOM__TEST_FUZZ = 8,
};
struct loom__test {
	const char *name;
	const char *what;
	loom__trial_fn *run;
	uint16_t kind; /* LOOM_KIND_NONE: every kind */
	uint8_t level, flags;
	unsigned limit_ms;
};
const struct loom__test *loom__suite(size_t *n);
/* The rest of loom__validate_test_command(), which knows the test by its name. */
void loom__trial_command(const char *self, const struct loom__test *test, int argc, char **argv);
/* 1: the test is for plug-ins of this kind. */
int loom__test_suits(const struct loom__test *test, enum loom_kind kind);

#define LOOM__SECOND 1000000000ull

#endif
