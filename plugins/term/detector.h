/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the detectors' host halves. Detectors have no options. Their state is the host or a struct term_ranks. */
#ifndef SCHED_TERM_H
#define SCHED_TERM_H

#include <gpuloom/plugin.h>
#include <gpuloom/term.h>

static inline int term_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	(void)opts, (void)err;
	*self = (void *)host;
	return 0;
}

static inline void term_destroy(void *self)
{
	(void)self;
}

/* The state of a detector that works for several ranks. */
struct term_ranks {
	const struct loom_host *host;
	uint32_t rank, ranks;                    /* number of this rank; number of ranks that share tasks */
	const struct loom_remote_blocks *remote; /* [rank]: its blocks; NULL if ranks share no tasks */
};

static inline int term_ranks_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct term_ranks *t = host->alloc(host, sizeof(*t));
	(void)opts;
	if (!t)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory for a termination detector");
	t->host = host;
	*self = t;
	return 0;
}

static inline void term_ranks_destroy(void *self)
{
	struct term_ranks *t = self;
	if (t)
		t->host->free(t->host, t);
}

static inline int term_ranks_connect(void *self, const struct loom_layout *layout,
				     const struct loom_remote_blocks *remote, struct loom_error *err)
{
	struct term_ranks *t = self;
	(void)err;
	t->rank = layout->rank;
	t->ranks = layout->ranks;
	t->remote = remote;
	return 0;
}

/* Defines the plug-in NAME from NAME_need(), NAME_init(), NAME_collect() and the device code in NAME.dev.h. Further
 * arguments of TERM_PLUGIN_WITH are other host ops. */
#define TERM_PLUGIN(NAME, FLAGS, SUMMARY)                                                                              \
	TERM_PLUGIN_WITH(NAME, FLAGS, SUMMARY, .create = term_create, .destroy = term_destroy)
#define TERM_PLUGIN_WITH(NAME, FLAGS, SUMMARY, ...)                                                                    \
	static const struct loom_term_ops NAME##_ops = {.size = sizeof(struct loom_term_ops),                          \
							.need = NAME##_need,                                           \
							.init = NAME##_init,                                           \
							.collect = NAME##_collect,                                     \
							__VA_ARGS__};                                                  \
	static const struct loom_term_dev NAME##_cpu = {.size = sizeof(struct loom_term_dev),                          \
							.idle = NAME##_idle,                                           \
							.busy = NAME##_busy,                                           \
							.done = NAME##_done,                                           \
							.flags = FLAGS};                                               \
	LOOM_DEVICE_CODE(NAME##_code, NAME##_cpu, #NAME ".dev.h", LOOM_CODE_FILE(#NAME ".dev.h"));                     \
	LOOM_PLUGIN_DEFINE(TERM, #NAME, "0.1.0", "Apache-2.0", SUMMARY, .ops = &NAME##_ops, .dev = &NAME##_code)

#endif
