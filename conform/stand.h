/* SPDX-License-Identifier: Apache-2.0 */
/* The rig around the plug-in under test. Errors become verdicts of a trial. */
#ifndef LOOM_CONFORM_STAND_H
#define LOOM_CONFORM_STAND_H

#include "conform/settings.h"
#include "conform/trial.h"
#include "rig/rig.h"

/* Creates the plug-in and its blocks, and completes `want`. `settings` NULL: the trial's own options; else the rig owns
 * them. Returns 0, FAILED or SKIPPED. LOOM__REFUSED: the plug-in rejects options or layout with a proper error, or
 * needs more memory than the suite has, and t->refusal has the reason. For loom__stand_open() a refusal of the trial's
 * own options is a fault. */
enum { LOOM__REFUSED = 100, LOOM__STAND_MEMORY = 1 << 30 };
int loom__stand_try(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		    struct loom__settings *settings);
int loom__stand_open(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		     struct loom__settings *settings);
void loom__stand_close(struct loom__rig *r);

/* Calls loom__rig_init(), without and with ready(). Returns 0 or FAILED. */
int loom__stand_reset(struct loom__rig *r);
int loom__stand_init(struct loom__rig *r);
/* Calls init() and run(). Returns 0, or FAILED with the message `late` if not all workers end in time. */
int loom__stand_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns, const char *late);
/* After a sample: checks the guards, that no worker has failed the run, and collect(). Returns 0 or FAILED. */
int loom__stand_check(struct loom__rig *r);
/* Returns the code with which a worker has failed the run, or 0. *err gets the cause, in the words of explain(). */
int loom__stand_failure(struct loom__rig *r, struct loom_error *err);
/* Returns FAILED with this cause, unless the code is 0 or `legal`. */
int loom__stand_failed(struct loom__rig *r, int legal);
/* Checks the guards only. */
int loom__stand_guards(struct loom__rig *r);
/* Level 5: calls `one` repeatedly, with a seed and random options, which `one` owns. Ends when the time is over or
 * after `draws` calls (0: no limit). */
typedef int loom__fuzz_fn(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s);
int loom__fuzz(struct loom__trial *t, loom__fuzz_fn *one, uint64_t draws);
/* Returns FAILED with "when: what stays" unless the process is back in the state `before`. `rounds`: as for
 * loom__footprint_settles(). */
struct loom__footprint;
int loom__judge_footprint(struct loom__trial *t, const struct loom__footprint *before, size_t rounds, const char *when);
/* Returns "2 devices, 5 workers, 4 lanes, depth = 1" for messages. */
const char *loom__stand_text(const struct loom__rig *r, char *text, size_t room);

static inline struct loom__trial *loom__trial_of(const struct loom__rig *r)
{
	return r->want.user;
}
/* Returns the plug-in's instance. */
static inline void *loom__stand_self(const struct loom__rig *r)
{
	return r->part[loom__trial_of(r)->plugin->kind].self;
}

/* Returns on failure without closing anything, because each test has a process of its own. */
#define LOOM__TRY(what)                                                                                                \
	do {                                                                                                           \
		int verdict_ = (what);                                                                                 \
		if (verdict_)                                                                                          \
			return verdict_;                                                                               \
	} while (0)

#endif
