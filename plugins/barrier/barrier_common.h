/* SPDX-License-Identifier: Apache-2.0 */
/* The host half that all barrier plug-ins share. */
#ifndef BARRIER_COMMON_H
#define BARRIER_COMMON_H

#include "state.dev.h"

/* The options of all barrier plug-ins. */
struct barrier_opts {
	uint32_t wait, polls; /* wait: index into barrier_waits */
	uint32_t tag;
	uint32_t arity;   /* of barrier_tree only; 0: auto */
	uint32_t counted; /* of barrier_auto only */
	uint32_t split;   /* index into barrier_splits */
};

extern const char *const barrier_waits[], *const barrier_splits[];
#define BARRIER_ROWS                                                                                                   \
	LOOM_OPT(struct barrier_opts, wait, LOOM_OPT_ENUM, "auto",                                                     \
		 "How a worker on a CPU waits after `polls` polls without success. spin: keeps polling, and yields " \
		 "if workers outnumber cores. yield: yields its core between polls. nap: sleeps between polls, at " \
		 "most a quarter of the time that it has waited. sleep: sleeps until it is woken. auto: sleep if " \
		 "workers outnumber cores, else nap. A GPU polls.",                           \
		 .choices = barrier_waits, .section = "barrier"),                                                      \
	    LOOM_OPT(struct barrier_opts, polls, LOOM_OPT_U32, "4000",                                                 \
		     "Polls, with a pause instruction after each, before `wait` applies. With wait = auto, and if " \
		     "workers outnumber cores: none.",                                                                 \
		     .max = 1e9, .section = "barrier"),                                                                \
	    LOOM_OPT(struct barrier_opts, tag, LOOM_OPT_U32, "960",                                                    \
		     "For scope job: first of the trigger's tags and arrival words that the barrier uses, one for " \
		     "each doubling of the ranks. The workload must use others.",                                  \
		     .min = 1, .max = 1 << 30, .section = "barrier"),                                              \
	    LOOM_OPT(struct barrier_opts, split, LOOM_OPT_ENUM, "auto",                                                \
		     "If several GPUs take part: number of counters at which the workers of a GPU arrive, and of words by " \
		     "which it notifies each of the others. auto: 4 for GPUs with at least 512 workers that are warps, else 1.", \
		     .choices = barrier_splits, .section = "barrier")

/* What a plug-in needs. */
struct barrier_plan {
	/* nodes: number of words per slot in a device's block, without the release word. worker_words: number of words in a
	 * worker's block. flags: 1: a device's block also has a flag for each slot and worker. */
	uint32_t nodes, worker_words, flags;
	uint32_t single; /* 1: a single lane of a worker polls, so `split = auto` is 1 */
	/* Returns the value of barrier_state.how. oversubscribed: 1: workers outnumber cores. If this op is NULL,
	 * barrier_state.how is 1. */
	uint32_t (*how)(const struct barrier_opts *o, const struct loom_device_shape *device, int oversubscribed);
	int chooses; /* 1: how() chooses between BARRIER_RELEASED and BARRIER_COUNTED; barrier_need() reports the choice */
};
typedef void barrier_plan_fn(const struct loom_layout *layout, const struct barrier_opts *o, struct barrier_plan *plan);

struct barrier {
	const struct loom_host *host;
	const struct barrier_opts *opts;
	barrier_plan_fn *plan;
};

int barrier_create(const struct loom_host *host, const void *opts, const char *name, barrier_plan_fn *plan, void **self,
		   struct loom_error *err);
void barrier_destroy(void *self);
int barrier_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int barrier_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err);
int barrier_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err);
int barrier_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		 const struct loom_trigger *trigger, struct loom_error *err);

/* Returns the number of workers of the device with the most workers. */
static inline uint32_t barrier_most_workers(const struct loom_layout *layout)
{
	uint32_t most = 1;
	for (uint32_t d = 0; d < layout->devices; d++)
		most = layout->device[d].workers > most ? layout->device[d].workers : most;
	return most;
}

static inline uint64_t barrier_groupings(const struct loom_layout *layout)
{
	return layout->barrier_scopes ? layout->barrier_scopes->groupings : 0;
}

/* Returns the number of words in a worker's block that devices write: one word per device for each slot except the slot
 * of scope device. If there is a single device, the number is 0. */
static inline uint32_t barrier_device_words(const struct loom_layout *layout)
{
	return layout->devices > 1 ? (BARRIER_SLOTS - 1 + (uint32_t)barrier_groupings(layout)) * layout->devices : 0;
}

#ifdef BARRIER_HAS_GROUPS
#define BARRIER_MORE_CODE LOOM_CODE_FILE("counter.dev.h") /* follows NAME.dev.h and precedes rounds.dev.h */
#define BARRIER_MORE_CAPS (LOOM_CAP_BARRIER(LOOM_SCOPE_GROUP) | LOOM_CAP_BARRIER_DROP)
#else
#define BARRIER_MORE_CODE
#define BARRIER_MORE_CAPS 0
#endif

/* Fills in the plan of a barrier whose workers arrive at counters. */
static inline void barrier_counter_plan(const struct loom_layout *layout, const struct barrier_opts *o,
					struct barrier_plan *plan)
{
	(void)o;
	plan->nodes = BARRIER_SPLIT;
	plan->worker_words = barrier_device_words(layout);
}

/* Defines the plug-in NAME. The file that uses this macro includes NAME.dev.h first. PLAN: its barrier_plan_fn. ROWS:
 * its table of options. Further arguments are initialisers of the plug-in, such as .check. */
#define BARRIER_PLUGIN(NAME, SUMMARY, PLAN, ROWS, ...)                                                                 \
	static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)         \
	{                                                                                                              \
		return barrier_create(host, opts, #NAME, PLAN, self, err);                                             \
	}                                                                                                              \
	static const struct loom_barrier_ops ops = {.size = sizeof(ops),                                               \
						    .create = create,                                                  \
						    .destroy = barrier_destroy,                                        \
						    .need = barrier_need,                                              \
						    .init = barrier_init,                                              \
						    .constants = barrier_constants,                                    \
						    .wire = barrier_wire};                                             \
	static const struct loom_barrier_dev cpu = {.size = sizeof(cpu),                                               \
						    .wait = NAME##_wait,                                               \
						    .arrive = NAME##_arrive,                                           \
						    .test = NAME##_test,                                               \
						    .await = NAME##_await,                                             \
						    .missing = NAME##_missing,                                         \
						    .drop = NAME##_drop};                                              \
	LOOM_DEVICE_CODE(code, cpu, #NAME ".dev.h",                                                                    \
			 LOOM_CODE_FILE("state.dev.h") LOOM_CODE_FILE(#NAME ".dev.h")                                  \
			     BARRIER_MORE_CODE LOOM_CODE_FILE("rounds.dev.h"));                                        \
	LOOM_PLUGIN_DEFINE(BARRIER, #NAME, "0.1.0", "Apache-2.0", SUMMARY, .opts = ROWS,                               \
			   .opts_size = sizeof(struct barrier_opts),                                                   \
			   .caps = LOOM_CAP_BARRIER_DEFAULT | LOOM_CAP_BARRIER(LOOM_SCOPE_JOB) | BARRIER_MORE_CAPS,    \
			   .ops = &ops, .dev = &code, __VA_ARGS__)

#endif
