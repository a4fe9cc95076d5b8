/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of schedulers with own.dev.h: blocks, checks and messages. */
#ifndef SCHED_OWN_H
#define SCHED_OWN_H

#include "own.dev.h"
#include "schedulers.h"

/* The row of an option that stores its value in a field of struct sched_config, although the field belongs to another
 * option of sched_mgws. So a GPU's program has the value as a constant. */
#define SCHED_ROW_AS(field, name_, type_, default_, help_, ...)                                                        \
	{                                                                                                              \
		.name = name_, .dflt = default_, .help = help_, .offset = offsetof(struct sched_config, field),        \
		.size = sizeof(((struct sched_config *)0)->field), .type = type_, __VA_ARGS__                          \
	}

#define SCHED_OWN_ROWS                                                                                                 \
	SCHED_ROW(local_queue, LOOM_OPT_U32, "32", "Tasks in a worker's queue of spawned tasks; a power of two.", .min = 2, \
		  .max = 4096),                                                                                        \
	    SCHED_ROW(in_place_depth, SCHED_IN_PLACE_ROW),                                                             \
	    SCHED_ROW(overflow_list, LOOM_OPT_U64, "65536",                                                            \
		      "Tasks in the overflow lists, for when queues are full and tasks are nested too deep; an equal part for " \
		      "each worker.",                                                                                  \
		      .max = 1 << 28),                                                                                 \
	    SCHED_ROW(wait, SCHED_WAIT_ROW), SCHED_ROW(spin, SCHED_SPIN_ROW)

/* The instance of a scheduler, or its first member. The options begin with struct sched_config. */
struct sched_own {
	const struct loom_host *host;
	const struct sched_config *o;
	const char *name; /* of the plug-in */
};

static inline int sched_own_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	return sched_check_ring(host, "local_queue", ((const struct sched_config *)opts)->local_queue, 2, 4096, err);
}

static inline int sched_own_create(const struct loom_host *host, const void *opts, size_t bytes, const char *name, void **self,
				   struct loom_error *err)
{
	struct sched_own *s = host->alloc(host, bytes);
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	*s = (struct sched_own){host, opts, name};
	*self = s;
	return 0;
}

static inline void sched_own_destroy(void *self)
{
	struct sched_own *s = self;
	if (s)
		s->host->free(s->host, s);
}

/* Returns the number of slots of each worker's overflow list. */
static inline uint64_t sched_own_slots_of(const struct sched_config *cfg, const struct loom_layout *layout)
{
	return cfg->overflow_list / layout->workers;
}

static inline struct sched_config sched_own_config(const struct sched_config *options, const struct loom_layout *layout)
{
	struct sched_config cfg = *options;
	cfg.park_ns = sched_park_ns(layout);
	cfg.overflow_list = sched_own_slots_of(options, layout);
	cfg.noncoherent = (uint32_t)sched_noncoherent(layout);
	return cfg;
}

/* overflow_list is no constant of the program, because the number of workers is not known when the program is
 * composed. */
static inline int sched_own_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				      struct loom_error *err)
{
	const struct sched_own *s = self;
	struct sched_config cfg = sched_own_config(s->o, layout);
	cfg.overflow_list = 0;
	return sched_constants(s->host, &cfg, SCHED_OWN_REGISTER_WORDS, text, room, err);
}

/* head: number of bytes of the worker's block before the slots of the list. These bytes begin with struct
 * sched_own_list. */
static inline void sched_own_need(const struct sched_config *options, const struct loom_layout *layout, uint64_t head,
				  struct loom_need *need)
{
	uint32_t lanes = sched_max_lanes(layout);
	need->worker = head + sched_own_slots_of(options, layout) * sizeof(struct loom_task);
	need->local = SCHED_LOCAL_BYTES(lanes, options->local_queue) + SCHED_OWN_EXTRA(lanes);
	need->reset_device.head = sizeof(struct sched_site);
	need->reset_worker.head = sizeof(struct sched_own_list);
}

static inline void sched_own_init(const struct sched_config *cfg, const struct loom_layout *layout,
				  const struct loom_view *view, uint64_t head)
{
	for (uint32_t d = 0; d < layout->devices; d++)
		*(struct sched_site *)view->device[d] =
		    (struct sched_site){.other = sched_other_kind(layout->device[d].kind)};
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct sched_own_list *)view->worker[w] =
		    (struct sched_own_list){.slots = cfg->overflow_list, .at = head};
}

static inline int sched_own_collect(const struct sched_own *s, const struct loom_layout *layout,
				    const struct loom_view *view, struct loom_error *err)
{
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct sched_own_list *list = view->worker[w];
		if (list->count)
			return LOOM_FAIL(s->host, err, LOOM_EWRONG, "%s: worker %u left %llu tasks on its overflow list",
					 s->name, w, (unsigned long long)list->count);
	}
	return 0;
}

static inline int sched_own_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_own *s = self;
	if (code == LOOM_ENOTSUP)
		return LOOM_FAIL(s->host, err, code,
				 "%s: worker %u has a task for another kind of device, and "
				 "tasks do not move: use the scheduler mgws",
				 s->name, worker);
	if (code != LOOM_EFULL)
		return 0;
	return LOOM_FAIL(s->host, err, code,
			 "%s: worker %u had no room for a new task: its queue (%u) is full, "
			 "tasks are nested %u deep, and its overflow list (%llu) is full; "
			 "raise overflow_list, in_place_depth or local_queue",
			 s->name, worker, s->o->local_queue, s->o->in_place_depth, (unsigned long long)info);
}

/* Defines the op create() and the tables NAME_ops and NAME_cpu of a scheduler whose instance is a TYPE. */
#define SCHED_OWN_TABLES(NAME, TYPE, DESTROY)                                                                          \
	static int NAME##_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)  \
	{                                                                                                              \
		return sched_own_create(host, opts, sizeof(TYPE), #NAME, self, err);                                   \
	}                                                                                                              \
	static const struct loom_sched_ops NAME##_ops = {.size = sizeof(struct loom_sched_ops),                        \
							 .create = NAME##_create,                                      \
							 .destroy = DESTROY,                                           \
							 .need = NAME##_need,                                          \
							 .init = NAME##_init,                                          \
							 .collect = NAME##_collect,                                    \
							 .explain = sched_own_explain,                                 \
							 .constants = sched_own_constants};                            \
	static const struct loom_sched_dev NAME##_cpu = {.size = sizeof(struct loom_sched_dev),                        \
							 .run = NAME##_run,                                            \
							 .spawn = NAME##_spawn,                                        \
							 .wanted = NAME##_wanted}

#endif
