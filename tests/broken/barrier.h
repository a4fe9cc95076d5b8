/* SPDX-License-Identifier: Apache-2.0 */
/* A sound barrier, one counter and one round, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_BARRIER_H
#define LOOM_BROKEN_BARRIER_H

#ifndef COUNT /* how many it waits for */
#define COUNT(count) (count)
#endif
#ifndef STOPPED /* whether the run was stopped */
#define STOPPED(c) loom_stopped(c)
#endif
#ifndef DEVICE /* whether there is a barrier of a device */
#define DEVICE 1
#endif
#ifndef LANES /* lanes meet first */
#define LANES(c) loom_barrier_lanes(c)
#endif

#include <gpuloom/barrier.h>
#include <gpuloom/plugin.h>
#include <string.h>

#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>

/* One for the stack, one per device. */
struct block {
	uint32_t arrived;
	uint32_t pad0[15];
	uint32_t round;
	uint32_t pad1[15];
};

/* Lane 0. 0 or LOOM_EINTR. */
LOOM_FN int b_meet(struct loom_ctx *c, struct block *b, uint32_t count)
{
	uint32_t round = loom_load_relaxed_sys(&b->round);
	/* Releases what this worker wrote; the last one to come acquires it all ... */
	if (loom_fetch_add_acq_rel_sys(&b->arrived, 1u) + 1 == (COUNT(count))) {
		loom_store_relaxed_sys(&b->arrived, 0u);
		/* ... and passes it on to those that see the new round. */
		loom_store_release_sys(&b->round, round + 1);
		return 0;
	}
	while (loom_load_acquire_sys(&b->round) == round) {
		if (STOPPED(c))
			return LOOM_EINTR;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN int b_wait(struct loom_ctx *c, enum loom_scope scope)
{
	uint64_t code = 0;
	LANES(c);
	if (c->lane == 0 && scope == LOOM_SCOPE_STACK)
		code = (uint64_t) -
		       (int64_t)b_meet(c, (struct block *)c->global[LOOM_BARRIER], c->workers);
	else if (c->lane == 0 && scope == LOOM_SCOPE_DEVICE && DEVICE)
		code = (uint64_t) -
		       (int64_t)b_meet(c, (struct block *)c->on_device[LOOM_BARRIER], c->count);
	return -(int)loom_from_lane0(c, code);
}

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	(void)host, (void)opts, (void)err;
	*self = NULL; /* nothing to remember */
	return 0;
}

static void destroy(void *self)
{
	(void)self;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	need->global = need->device = sizeof(struct block);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	(void)self, (void)err;
	memset(view->global, 0, sizeof(struct block));
	for (uint32_t d = 0; d < layout->devices; d++)
		memset(view->device[d], 0, sizeof(struct block));
	return 0;
}

static const struct loom_barrier_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
};
static const struct loom_barrier_dev cpu = {.size = sizeof(cpu), .wait = b_wait};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(BARRIER, NAME, "0.1.0", "Apache-2.0", "a central barrier", .ops = &ops,
		   .dev = &dev)

#endif
