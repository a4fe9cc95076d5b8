/* SPDX-License-Identifier: Apache-2.0 */
/* A sound termination detector, one counter of idle workers, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_TERM_H
#define LOOM_BROKEN_TERM_H

#ifndef DONE /* when all work is done */
#define DONE(idle, c) (idle) == (c)->workers
#endif
#ifndef BLOCK /* where done() looks */
#define BLOCK(c) b_block(c)
#endif
#ifndef BUSY /* whether busy() counts */
#define BUSY 1
#endif
#ifndef COUNTS /* which lanes count in idle() */
#define COUNTS(c) (c)->lane == 0
#endif
#ifndef INIT /* the starting state */
#define INIT(block) (block)->idle = (block)->entries = 0
#endif
#ifndef NEED /* how much memory */
#define NEED(need) (need)->global = sizeof(struct block)
#endif
#ifndef CREATE /* before an allocation is looked at */
#define CREATE(host) (void)0
#endif
#ifndef CREATED /* at the end of create() */
#define CREATED(i) (void)0
#endif
#ifndef DESTROY /* all of destroy() */
#define DESTROY(i)                                                                                 \
	do {                                                                                       \
		if (i)                                                                             \
			(i)->host->free((i)->host, (i));                                           \
	} while (0)
#endif
#ifndef MORE_ROWS /* option rows */
#define MORE_ROWS
#endif

#include <fcntl.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/plugin.h>
#include <gpuloom/term.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct block;

/* The block that need() asks for: a cache line of its own. */
struct block {
	uint64_t idle; /* workers without work */
	uint64_t entries;
	uint64_t pointer;
	uint64_t pad[5];
};

LOOM_FN struct block *b_block(const struct loom_ctx *c)
{
	return (struct block *)c->global[LOOM_TERM];
}

/* Ops are collective: all lanes of a worker come, lane 0 acts. */
LOOM_FN void b_idle(struct loom_ctx *c)
{
	if (COUNTS(c)) {
		loom_fetch_add_relaxed_sys(&b_block(c)->entries, (uint64_t)1);
		/* Release: pairs with the acquire in done(). */
		loom_fetch_add_acq_rel_sys(&b_block(c)->idle, (uint64_t)1);
	}
}

LOOM_FN void b_busy(struct loom_ctx *c)
{
	if (BUSY && c->lane == 0)
		loom_fetch_add_acq_rel_sys(&b_block(c)->idle, ~(uint64_t)0);
}

LOOM_FN int b_done(struct loom_ctx *c, uint64_t robbed)
{
	uint64_t all = 0;
	(void)robbed;
	if (c->lane == 0)
		all = (uint64_t)(DONE(loom_load_acquire_sys(&BLOCK(c)->idle), c));
	return (int)loom_from_lane0(c, all);
}

struct opts {
	uint8_t report;
	uint32_t size;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, report, LOOM_OPT_BOOL, "yes",
	     "Whether to count how often a worker ran out of work."),
    LOOM_OPT(struct opts, size, LOOM_OPT_U32, "5", "A number, for faults of options.", .min = 1,
	     .max = 1000),
    MORE_ROWS{0},
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts; /* filled by the core, valid until destroy() */
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	CREATE(host);
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	i->opts = opts;
	*self = i;
	CREATED(i);
	return 0;
}

static void destroy(void *self)
{
	struct instance *i = self;
	DESTROY(i);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	NEED(need);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	struct block *block = view->global;
	(void)self, (void)layout, (void)err;
	INIT(block);
	return 0;
}

/* After each sample. What did not hold makes the sample wrong, not slow. */
static int collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	const struct instance *i = self;
	const struct block *block = view->global;
	if (block->idle != layout->workers)
		return LOOM_FAIL(i->host, err, LOOM_EWRONG,
				 NAME ": %llu of %u workers idle at the end",
				 (unsigned long long)block->idle, layout->workers);
	if (!i->opts->report)
		return 0;
	return i->host->metric(i->host, report, NAME "_entries", "", LOOM_BETTER_LESS,
			       (double)block->entries);
}

static const struct loom_term_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .collect = collect,
};
static const struct loom_term_dev cpu = {
    .size = sizeof(cpu),
    .idle = b_idle,
    .busy = b_busy,
    .done = b_done,
};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(TERM, NAME, "0.1.0", "Apache-2.0", "one counter of idle workers", .opts = rows,
		   .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev)

#endif
