/* SPDX-License-Identifier: Apache-2.0 */
/* Each rank sends a message to the next rank in a ring. One rank kills itself by SIGKILL in the phase that the conf
 * names. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#include <signal.h>
#include <unistd.h>

enum { NEVER, IN_CREATE, IN_POST, IN_FIRE, IN_WAIT, IN_TEARDOWN };
static const char *const phases[] = {"never", "create", "post", "fire", "wait", "teardown", NULL};

struct options {
	uint32_t rank, phase;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, rank, LOOM_OPT_U32, "0", "Which rank dies.", .max = 1024),
	LOOM_OPT(struct options, phase, LOOM_OPT_ENUM, "never", "When it dies.", .choices = phases),
	{.name = NULL},
};

struct ring {
	uint64_t phase; /* the phase in which this rank dies, or NEVER */
	uint64_t from, to;
	uint64_t pad[5];
};

static void die_in(uint64_t mine, uint64_t phase)
{
	if (mine == phase)
		kill(getpid(), SIGKILL);
}

#define MINE(x) ((x)->host->rank == (x)->options->rank ? (x)->options->phase : NEVER)
#define BORN(x) die_in(MINE(x), IN_CREATE)
#define DIES(x) die_in(MINE(x), IN_TEARDOWN)
#include "instance.h"

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	n->global = sizeof(struct ring);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	const struct instance *x = self;
	(void)layout, (void)err;
	*(struct ring *)view->global = (struct ring){.phase = MINE(x), .from = 4711};
	return 0;
}

static int wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct instance *x = self;
	uint64_t id;
	struct loom_trigger_post post = {.size = sizeof(post),
					 .tag = 1,
					 .threshold = 1,
					 .op = LOOM_NET_PUT,
					 .target = (trigger->rank + 1) % trigger->ranks,
					 .local = global + offsetof(struct ring, from),
					 .remote = global + offsetof(struct ring, to),
					 .bytes = 8,
					 .notify = 1};
	(void)layout, (void)view;
	int rc = trigger->ops->post(trigger->self, &post, &id, err);
	die_in(MINE(x), IN_POST);
	return rc;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	const struct instance *x = self;
	const struct ring *r = view->global;
	(void)layout, (void)report;
	return r->to == 4711 ? 0 : LOOM_FAIL(x->host, err, LOOM_EWRONG, "nothing arrived");
}

static void kernel(struct loom_ctx *c)
{
	struct ring *r = c->global[LOOM_WORKLOAD];
	int64_t seen;
	if (c->worker || c->lane)
		return;
	c->trigger->fire(c, 1, 1);
	die_in(r->phase, IN_FIRE);
	c->trigger->deliver(c);
	while ((seen = c->trigger->arrived(c, 1)) == 0 && !loom_stopped(c)) {
		die_in(r->phase, IN_WAIT);
		loom_pause(c);
	}
	die_in(r->phase, IN_WAIT); /* also if the message was there before the loop */
	if (seen < 0)
		loom_worker_fail(c, (int)seen, 1);
}

ODD_PLUGIN("workload_dies", "One rank dies in a phase of its choice", kernel, .wire = wire)
