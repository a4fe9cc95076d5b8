/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a test: the plug-in, its options, a host table under the test's control, and functions that end
 * the test. Each test runs in a process of its own and may leave it in any state. */
#ifndef LOOM_VALIDATE_TRIAL_H
#define LOOM_VALIDATE_TRIAL_H

#include "conform/chance.h"
#include "conform/validate.h"
#include "rig/host.h"
#include "rig/rig.h"

struct loom__trial {
	const char *self, *path;
	const struct loom_plugin *plugin; /* NULL in a test that loads the plug-in itself */
	const char *with;
	const char *const *set;
	size_t sets;
	struct loom_config *cfg; /* the config of `with`, or NULL */
	void *opts;              /* plugin->opts_size bytes: defaults and given options */
	const char *opts_text;   /* options that the test chose, for messages; "" if none */
	uint64_t seed;           /* the seed of the suite */
	uint64_t fuzz_ns;
	unsigned limit_ms;
	int rough; /* level 4 and up: more threads than cores, pauses at any instruction */
	struct loom__rig_host host;
	char refusal[300]; /* the reason of the last refusal of options or a layout ... */
	int too_large;     /* 1: the plug-in needed too much memory */
	int fd;         /* receives the answer */
	uint32_t ended; /* atomic: 0 running, 1 being worded, 2 worded */
	char why[1000];
	char note[300]; /* a remark on a test that passed; "" if none */
};

/* Records a fault, of which the first is kept, and returns LOOM__FAILED. Any thread. */
int loom__fault(struct loom__trial *t, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Records a fault that a worker found, and stops the run. `trial`: the address of the trial, from a block. */
void loom__fault_stop(const struct loom_ctx *c, uint64_t trial, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Records the reason of a skip, and returns LOOM__SKIPPED. */
int loom__skip(struct loom__trial *t, const char *fmt, ...) LOOM_PRINTF(2, 3);
/* Returns LOOM__FAILED once any thread has called loom__fault(). */
int loom__faulted(const struct loom__trial *t);
/* Ends the process with the fault, for signal handlers and threads that must not continue. */
void loom__fault_now(struct loom__trial *t, const char *sentence) __attribute__((noreturn));
/* Records the case in progress, which the parent reports with a fault, a crash or a time-out. */
void loom__say_case(struct loom__trial *t, uint64_t seed, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* Declares addresses at which a page fault is reported as the use of a raw pointer; bytes 0: none. */
void loom__say_hidden(const void *at, uint64_t bytes);

/* Returns 1 for the codes of enum loom_err. */
int loom__is_error(int code);
/* Returns FAILED unless the error is an enum loom_err with a sentence. `what`: the call, such as "create()". */
int loom__judge_error(struct loom__trial *t, const char *what, int code,
		      const struct loom_error *err);

/* Reports to a thread sanitizer a plain access of the suite, which the plug-in must order. LD_PRELOAD may load the
 * sanitizer, with which the suite is not compiled. */
void loom__note_read(const void *at, uint64_t bytes);
void loom__note_write(void *at, uint64_t bytes);

/* One test. The flags say which plug-ins it is for. */
typedef int loom__trial_fn(struct loom__trial *t);
enum {
	LOOM__TEST_UNLOADED = 1, /* the test loads the plug-in itself */
	LOOM__TEST_POLICY = 2,   /* only for kinds with the common ops of policies */
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
/* Continues loom__validate_test_command() once the test is found. */
void loom__trial_command(const char *self, const struct loom__test *test, int argc, char **argv);
/* Returns 1 when the test is for plug-ins of this kind. */
int loom__test_suits(const struct loom__test *test, enum loom_kind kind);

#define LOOM__SECOND 1000000000ull

#endif
