/* SPDX-License-Identifier: Apache-2.0 */
/* Qos: a policy only narrows the decisions of the policies before it, within reason. Leaders serve each request
 * once. */
#include <gpuloom/qos.h>
#include <stdlib.h>
#include <string.h>

#include "conform/instance.h"
#include "conform/stand.h"
#include "conform/tests.h"
#include "facts/fair.h"

/* ---- decisions -------------------------------------------------------------------------------- */

enum { TENANTS = 4, VECTORS = 4 };

/* A plausible load, whose time and counts grow from call to call. */
struct scene {
	struct loom_qos_load load;
	struct loom_qos_queue queue[TENANTS];
	uint32_t core[VECTORS];
	struct loom__chance chance;
	struct loom__fair fair;
};

static void set(struct scene *s, uint64_t seed)
{
	*s = (struct scene){.chance = loom__chance(seed), .core = {0, 1, 2, 3}};
	loom__fair_begin(&s->fair, 0);
	s->load = (struct loom_qos_load){.size = sizeof(s->load),
					 .now_ns = loom__now_ns(),
					 .machine = VECTORS,
					 .tenants = TENANTS,
					 .tenant = s->queue,
					 .vectors = VECTORS,
					 .core = s->core};
	for (int i = 0; i < TENANTS; i++)
		s->queue[i].weight = 1 + (uint32_t)i;
}

static void go_on(struct scene *s)
{
	uint64_t step = loom__draw_below(&s->chance, 2000000);
	s->load.now_ns += step;
	s->load.cpu_ns += loom__draw_below(&s->chance, step + 1);
	s->load.body_ns = s->load.cpu_ns / 2;
	s->load.interrupts += loom__draw_below(&s->chance, 3);
	s->load.waiting = 0;
	for (int i = 0; i < TENANTS; i++) {
		s->queue[i].waiting = loom__draw_below(&s->chance, 200);
		s->queue[i].oldest_ns =
		    s->queue[i].waiting ? s->load.now_ns - loom__draw_below(&s->chance, 5000000) : 0;
		s->load.waiting += s->queue[i].waiting;
	}
}

static const struct loom_qos_ops *ops(const struct loom__trial *t)
{
	return t->plugin->ops;
}

static int check_path(struct loom__trial *t, void *self)
{
	struct loom_qos_path path = {.size = sizeof(path), .batch = 16};
	if (!LOOM_HAS(ops(t), arrange))
		return 0;
	ops(t)->arrange(self, &path);
	if (path.size != sizeof(path) || path.halves > LOOM_QOS_MONOLITHIC || path.notify > LOOM_QOS_HYBRID ||
	    path.sched_class > LOOM_QOS_IDLE || path.mask > 1 || path.order > LOOM_QOS_SCAN || !path.batch)
		return loom__fault(t,
				   "arrange() leaves a path that does not exist: halves %u, notify %u, class %u, "
				   "mask %u, batch %u, order %u",
				   path.halves, path.notify, path.sched_class, path.mask, path.batch, path.order);
	return 0;
}

static int check_interrupt(struct loom__trial *t, void *self, struct scene *s)
{
	struct loom_qos_moderation m = {.count = 1 + (uint32_t)loom__draw_below(&s->chance, 4),
					.window_ns = loom__draw_below(&s->chance, 2) * 10000};
	const struct loom_qos_moderation was = m;
	if (!LOOM_HAS(ops(t), interrupt))
		return 0;
	ops(t)->interrupt(self, &s->load, &m);
	if (!m.count)
		return loom__fault(t, "interrupt() sets an interrupt at 0 requests");
	if (m.count < was.count && m.window_ns <= was.window_ns)
		return loom__fault(t,
				   "interrupt() makes interrupts more frequent than the policies before it: at %u "
				   "requests, where it was %u",
				   m.count, was.count);
	if (m.window_ns > 60 * LOOM__SECOND)
		return loom__fault(t, "interrupt() lets requests wait for %.0f s", (double)m.window_ns / 1e9);
	return 0;
}

static int check_steer(struct loom__trial *t, void *self, struct scene *s)
{
	const uint64_t all = (1u << VECTORS) - 1;
	uint64_t was = loom__one_in(&s->chance, 2) ? all : 1 + loom__draw_below(&s->chance, all), now = was;
	if (!LOOM_HAS(ops(t), steer))
		return 0;
	ops(t)->steer(self, &s->load, &now);
	if (now & ~was)
		return loom__fault(t, "steer() adds cores that the policies before it had taken out: %#llx of %#llx",
				   (unsigned long long)now, (unsigned long long)was);
	if (!now && was == all) /* two policies may exclude each other's choice; a single one must not */
		return loom__fault(t, "steer() leaves none of all cores to serve");
	return 0;
}

static int check_admit(struct loom__trial *t, void *self, struct scene *s, int patient)
{
	uint32_t tenant = (uint32_t)loom__draw_below(&s->chance, TENANTS);
	s->queue[tenant].waiting += !s->queue[tenant].waiting;
	struct loom_qos_round turn = {.tenant = tenant, .requests = 1 + (uint32_t)loom__draw_below(&s->chance, 64)};
	const struct loom_qos_round was = turn;
	uint64_t begin = loom__now_ns();
	if (LOOM_HAS(ops(t), admit))
		ops(t)->admit(self, &s->load, &turn);
	double took = (double)(loom__now_ns() - begin) / 1e9;
	if (took > 0.5) /* counts only time in which this process had a core */
		took *= (double)loom__fair_elapsed_ns(&s->fair) / (double)(loom__now_ns() - s->fair.ns);
	if (took > 0.5)
		return loom__fault(t, "admit() blocks for %.1f s", took);
	if (turn.requests > was.requests)
		return loom__fault(t, "admit() allows %u requests, where the policies before it left %u", turn.requests,
				   was.requests);
	if (turn.tenant >= TENANTS)
		return loom__fault(t, "admit() chooses tenant %u of %d", turn.tenant, TENANTS);
	if (!turn.requests && turn.retry_ns <= s->load.now_ns)
		return loom__fault(
		    t, "admit() serves no tenant, and sets no time in the future to retry: the path would spin");
	if (!turn.requests && !patient && turn.retry_ns - s->load.now_ns > 60 * LOOM__SECOND)
		return loom__fault(t, "admit() serves no tenant for %.0f s",
				   (double)(turn.retry_ns - s->load.now_ns) / 1e9);
	if (!turn.requests)
		s->load.now_ns = turn.retry_ns;
	if (turn.requests && LOOM_HAS(ops(t), account)) {
		uint64_t cost = loom__draw_below(&s->chance, 100000);
		s->load.served += turn.requests;
		s->load.cpu_ns += cost;
		s->queue[turn.tenant].served += turn.requests;
		ops(t)->account(self, &s->load, turn.tenant, turn.requests, cost);
	}
	return 0;
}

/* A policy may delay requests, but some must be served in the end. */
static int decide(struct loom__trial *t, const void *opts, uint64_t seed)
{
	struct loom_error err = {0};
	struct scene s;
	void *self;
	int code = loom__instance_create(t, opts, &self, &err);
	if (code)
		return opts == t->opts ? loom__skip(t, "%s", err.text) : loom__judge_error(t, "create()", code, &err);
	set(&s, seed);
	int verdict = check_path(t, self);
	for (int n = 0; n < 2000 && !verdict; n++) {
		go_on(&s);
		verdict = check_interrupt(t, self, &s);
		if (!verdict)
			verdict = check_steer(t, self, &s);
		if (!verdict)
			verdict =
			    check_admit(t, self, &s, opts != t->opts); /* random options may limit the share to 0.01% */
	}
	if (!verdict && LOOM_HAS(ops(t), admit) && LOOM_HAS(ops(t), account) && !s.load.served && opts == t->opts)
		verdict = loom__fault(t, "admit() allows no request in 2000 turns");
	loom__instance_destroy(t, self);
	return verdict;
}

int loom__test_qos_bounds(struct loom__trial *t)
{
	for (uint64_t n = 0; n < 20; n++) {
		loom__say_case(t, t->seed + n, "defaults");
		LOOM__TRY(decide(t, t->opts, t->seed + n));
	}
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	(void)chance;
	int verdict = decide(t, s->opts, seed);
	loom__settings_free(s);
	return verdict;
}

int loom__test_qos_options(struct loom__trial *t)
{
	if (!t->plugin->opts || !t->plugin->opts->name)
		return loom__skip(t, "it has no options");
	t->fuzz_ns = 60 * LOOM__SECOND;
	return loom__fuzz(t, fuzz, 60);
}

int loom__test_qos_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}

/* ---- leading ---------------------------------------------------------------------------------- */

enum { WORKERS = 3, OUTSTANDING = 4 };

struct state {
	uint64_t trial, requests, served;
};

static struct state *state_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

static void fault(const struct loom_ctx *c, const char *what, int64_t code)
{
	loom__fault_stop(c, state_of(c)->trial, "worker %u: %s gives %lld", c->worker, what, (long long)code);
}

/* Makes as many requests of NOTHING, whose result is 0, as may be outstanding, and waits for each. */
static void ask_body(struct loom_ctx *c)
{
	struct state *k = state_of(c);
	const struct loom_request nothing = {.service = LOOM_SERVICE_NOTHING};
	uint64_t id[OUTSTANDING];
	for (uint64_t done = 0; done < k->requests; done += OUTSTANDING) {
		for (int i = 0; i < OUTSTANDING; i++) {
			int code = c->qos->request(c, &nothing, &id[i]);
			if (code)
				return fault(c, "request() with free places", code);
		}
		for (int i = 0; i < OUTSTANDING; i++) {
			int64_t result = 77;
			int code = c->qos->wait(c, id[i], 5 * LOOM__SECOND, &result);
			if (code)
				return fault(c, "wait() for a request", code);
			if (result)
				return fault(c, "the service that does nothing", result);
			__atomic_add_fetch(&k->served, 1, __ATOMIC_RELAXED);
		}
	}
}

static int lead(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err)
{
	const struct loom_plugin *p = arg;
	const struct loom_qos_ops *o = p->ops;
	const struct loom_qos_stage me = {.ops = o, .self = self, .name = p->name};
	struct loom_tenant one = {.name = "test", .count = layout->workers, .outstanding = OUTSTANDING, .weight = 1};
	int code = o->lead(self, &me, 1, err);
	return code ? code : o->tenants(self, layout, &one, 1, err);
}

int loom__test_qos_serve(struct loom__trial *t)
{
	struct loom__rig r;
	struct loom__rig_want want = {.devices = 1,
				      .workers = WORKERS,
				      .lanes = 1,
				      .seed = t->seed,
				      .before_need = lead,
				      .arg = (void *)(uintptr_t)t->plugin};
	if (!LOOM_HAS(ops(t), lead))
		return loom__skip(t, "it does not lead a pipeline");
	want.bytes[LOOM_WORKLOAD] = sizeof(struct state);
	LOOM__TRY(loom__stand_open(&r, t, &want, NULL));
	for (int n = 0; n < 2; n++) {
		struct state *k = loom__rig_block(&r, LOOM_WORKLOAD);
		*k = (struct state){.trial = (uint64_t)(uintptr_t)t, .requests = t->rough ? 40 : 200};
		LOOM__TRY(loom__stand_run(&r, ask_body, 30 * LOOM__SECOND, "not all requests were served within 30 s"));
		if (k->served < WORKERS * k->requests)
			return loom__fault(t, "%llu of %llu requests were served", (unsigned long long)k->served,
					   (unsigned long long)(WORKERS * k->requests));
		LOOM__TRY(loom__stand_check(&r));
	}
	loom__stand_close(&r);
	return 0;
}
