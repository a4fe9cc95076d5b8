/* SPDX-License-Identifier: Apache-2.0 */
/* term_ring: a termination detector outside of gpuloom's tree. See README.md. */
#include <gpuloom/plugin.h>
#include <gpuloom/term.h>

#include <string.h>

#include "term_ring.dev.h"

static const struct loom_host *the_host_of(void *self)
{
	return self;
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	(void)opts, (void)err;
	*self = (void *)(uintptr_t)host; /* there is no state, so this is the host */
	return 0;
}

static void destroy(void *self)
{
	(void)self;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)layout, (void)err;
	LOOM_LOG(the_host_of(self), LOOM_LOG_DEBUG, "term_ring", "%u workers in the ring",
		 layout->workers);
	need->global = sizeof(struct term_ring);
	need->worker = sizeof(struct term_ring_own);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	(void)self, (void)err;
	memset(view->global, 0, sizeof(struct term_ring));
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, sizeof(struct term_ring_own));
	return 0;
}

static const struct loom_term_ops ops = {
	.size = sizeof(ops), .create = create, .destroy = destroy, .need = need, .init = init};
static const struct loom_term_dev cpu = {
	.size = sizeof(cpu), .idle = term_ring_idle, .busy = term_ring_busy, .done = term_ring_done};
LOOM_DEVICE_CODE(dev, cpu, "term_ring.dev.h", LOOM_CODE_FILE("term_ring.dev.h"));

LOOM_PLUGIN_DEFINE(TERM, "term_ring", "1.0.0", "Apache-2.0",
		   "a token walks the ring of workers (Dijkstra 1983)", .ops = &ops, .dev = &dev)
