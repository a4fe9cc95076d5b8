/* SPDX-License-Identifier: Apache-2.0 */
/* A sound qos policy that narrows nothing, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_QOS_H
#define LOOM_BROKEN_QOS_H

#ifndef ADMIT /* who is served next */
#define ADMIT(load, turn) (void)0
#endif
#ifndef INTERRUPT /* when the device interrupts */
#define INTERRUPT(m) (void)(m)
#endif
#ifndef STEER /* which cores serve */
#define STEER(vectors) (void)(vectors)
#endif

#include <gpuloom/plugin.h>
#include <gpuloom/qos.h>

struct opts {
	uint32_t turn;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(
	struct opts, turn, LOOM_OPT_U32, "0",
	"How many requests may be served in one turn at most; 0: as many as the others allow."),
    {0},
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts; /* filled by the core, valid until destroy() */
	uint64_t turns, served, cpu_ns;
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	i->opts = opts;
	*self = i;
	return 0;
}

static void destroy(void *self)
{
	struct instance *i = self;
	if (i)
		i->host->free(i->host, i);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)self, (void)layout, (void)need, (void)err; /* no memory of the stack */
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	struct instance *i = self;
	(void)layout, (void)view, (void)err;
	/* The path's threads may be at work from the last sample's end: they add, we take away. */
	__atomic_store_n(&i->turns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&i->served, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&i->cpu_ns, 0, __ATOMIC_RELAXED);
	return 0;
}

/* Before each turn. A policy may only narrow what those before it left. */
static void admit(void *self, const struct loom_qos_load *load, struct loom_qos_turn *turn)
{
	const struct instance *i = self;
	(void)load;
	if (i->opts->turn && turn->requests > i->opts->turn)
		turn->requests = i->opts->turn;
	ADMIT(load, turn);
}

static void interrupt(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m)
{
	(void)self, (void)load;
	INTERRUPT(m);
}

static void steer(void *self, const struct loom_qos_load *load, uint64_t *vectors)
{
	(void)self, (void)load;
	STEER(*vectors);
}

/* After each turn. */
static void account(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
		    uint64_t cpu_ns)
{
	struct instance *i = self;
	(void)load, (void)tenant;
	__atomic_fetch_add(&i->turns, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&i->served, served, __ATOMIC_RELAXED);
	__atomic_fetch_add(&i->cpu_ns, cpu_ns, __ATOMIC_RELAXED);
}

static int collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	const struct instance *i = self;
	(void)layout, (void)view, (void)err;
	int code =
	    i->host->metric(i->host, report, NAME "_turns", "", LOOM_BETTER_NONE, (double)i->turns);
	if (!code)
		code = i->host->metric(i->host, report, NAME "_served", "requests",
				       LOOM_BETTER_NONE, (double)i->served);
	if (!code)
		code = i->host->metric(i->host, report, NAME "_cpu_ns", "ns", LOOM_BETTER_LESS,
				       (double)i->cpu_ns);
	return code;
}

static const struct loom_qos_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .collect = collect,
    .interrupt = interrupt,
    .steer = steer,
    .admit = admit,
    .account = account,
};

LOOM_PLUGIN_DEFINE(QOS, NAME, "0.1.0", "Apache-2.0", "counts what the service path serves",
		   .opts = rows, .opts_size = sizeof(struct opts), .ops = &ops)

#endif
