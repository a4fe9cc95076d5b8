/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the schedulers' host halves. */
#ifndef SCHED_HOST_H
#define SCHED_HOST_H

#include <gpuloom/plugin.h>
#include <stdio.h>

#include "queue.dev.h"

static const char *const sched_waits[] = {"spin", "yield", "sleep", NULL};
static const char *const sched_grains[] = {"worker", "lane", NULL};

#define SCHED_ROW(name, ...) LOOM_OPT(struct sched_config, name, __VA_ARGS__)

/* Returns the largest number of lanes of a worker on any device that is not a GPU. GPUs do not count, because lanes of
 * GPUs keep their state in registers and not in the private block. */
static inline uint32_t sched_max_lanes(const struct loom_layout *layout)
{
	uint32_t most = 1;
	for (uint32_t i = 0; i < layout->devices; i++)
		if (layout->device[i].kind != LOOM_ON_GPU && layout->device[i].lanes > most)
			most = layout->device[i].lanes;
	return most;
}

/* Returns the affinity of tasks that a device of this kind may not run. A device without a kind is a CPU. */
static inline uint32_t sched_other_kind(uint32_t kind)
{
	return kind == LOOM_ON_GPU ? LOOM_ON_CPU : LOOM_ON_GPU;
}

static inline int sched_has(const struct loom_layout *layout, int gpu)
{
	for (uint32_t i = 0; i < layout->devices; i++)
		if ((layout->device[i].kind == LOOM_ON_GPU) == gpu)
			return 1;
	return 0;
}

/* Writes the options in `cfg` as constants of a GPU's program, which SCHED_CFG() reads. keep_words: number of words of
 * loom_ctx.regs that the scheduler uses. */
static inline int sched_constants(const struct loom_host *host, const struct sched_config *cfg, int keep_words,
				  char *text, size_t room, struct loom_error *err)
{
	const struct {
		const char *name;
		uint64_t value;
	} each[] = {
#define SCHED_CONSTANT_CPU(name)
#define SCHED_CONSTANT_ALL(name)               {#name, (uint64_t)cfg->name},
#define SCHED_CONSTANT(where, type, name, ...) SCHED_CONSTANT_##where(name)
	    SCHED_CONFIG(SCHED_CONSTANT, SCHED_CONSTANT)};
	int at = snprintf(text, room, "#define SCHED_CONSTANTS 1\n#define LOOM_REGISTER_WORDS %d\n", keep_words);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]) && (size_t)at < room; i++)
		at += snprintf(text + at, room - (size_t)at, "#define SCHED_IS_%s %llu%s\n", each[i].name,
			       (unsigned long long)each[i].value, each[i].value >> 32 ? "ull" : "u");
	if (cfg->granularity == SCHED_LANE && (size_t)at < room)
		at += snprintf(text + at, room - (size_t)at, "#define LOOM_SINGLE_LANE 1\n");
	return (size_t)at < room ? 0 : LOOM_FAIL(host, err, LOOM_EINTERNAL, "too many constants");
}

/* Longest sleep of an idle worker, in ns. Afterwards the worker checks whether the run was stopped. */
#define SCHED_PARK_NS 50000000u
/* Longest sleep in ns if no thread wakes the worker: because a GPU may publish tasks, or because tasks arrive in a
 * mailbox. */
#define SCHED_BESIDE_GPU_NS 200000u
#define SCHED_MAILBOX_NS    50000u
/* Longest sleep in ns if a poll of another rank's memory is an RMA, because each RMA also takes time of that rank. */
#define SCHED_RMA_NS 50000u

/* Returns whether the devices are non-coherent. */
static inline int sched_noncoherent(const struct loom_layout *layout)
{
	return LOOM_HAS(layout, noncoherent) && layout->noncoherent && layout->devices > 1;
}

static inline uint32_t sched_park_ns(const struct loom_layout *layout)
{
	return sched_noncoherent(layout) ? SCHED_MAILBOX_NS
	       : sched_has(layout, 1)    ? SCHED_BESIDE_GPU_NS
					 : SCHED_PARK_NS;
}

/* Checks the size of a ring. It must be a power of two, because slots are indexed with a mask. */
static inline int sched_check_ring(const struct loom_host *host, const char *option, uint32_t slots, uint32_t min,
				   uint32_t max, struct loom_error *err)
{
	if (slots >= min && slots <= max && !(slots & (slots - 1)))
		return 0;
	return LOOM_REFUSE(host, err, option, "%s = %u: must be a power of two from %u to %u", option, slots, min, max);
}

/* Defines the tables NAME_ops and NAME_cpu of a scheduler with functions NAME_OP(). SMALL: the op `small`, or NULL.
 * `...`: additional host ops. */
#define SCHED_TABLES(NAME, SMALL, ...)                                                                                        \
	static const struct loom_sched_ops NAME##_ops = {.size = sizeof(struct loom_sched_ops),                        \
							 .create = NAME##_create,                                      \
							 .destroy = NAME##_destroy,                                    \
							 .need = NAME##_need,                                          \
							 .init = NAME##_init,                                          \
							 .collect = NAME##_collect,                                    \
							 .explain = NAME##_explain,                                    \
							 .constants = NAME##_constants,                                \
							 __VA_ARGS__};                                                 \
	static const struct loom_sched_dev NAME##_cpu = {.size = sizeof(struct loom_sched_dev),                        \
							 .run = NAME##_run,                                            \
							 .spawn = NAME##_spawn,                                        \
							 .wanted = NAME##_wanted,                                      \
							 .small = SMALL}

#endif
