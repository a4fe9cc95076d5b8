/* SPDX-License-Identifier: Apache-2.0 */
/* No interrupt is lost: workers that ask for one thing at a time, so that nobody else's request can wake
 * the host for theirs. The protocol is searched in tests/models/door.pml; these are its real threads. */
#include <pthread.h>

#include "../plugins/qos/service.h"
#include "qos_rig.h"

#define WORKERS 4u
#define SECOND 1000000000ull

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(LOOM_PERTURB)
#define REQUESTS 300u
#else
#define REQUESTS 3000u
#endif

static const char *const halves[][2] = {
	{"split", "class=other notify="},
	{"monolithic", "class=other notify="},
	{"monolithic", "class=other worker=yes notify="},
};
static const char *const bell[] = {"eventfd", "futex", "poll"};
static const char *const moderation[] = {NULL, "window=20us count=2", "window=20us count=64",
					 "window=20us count=64 adaptive=yes"};

static struct qos_rig *open_path(size_t i, size_t b, size_t m, uint32_t workers)
{
	struct qos_rig *r = qos_rig_create(workers);
	char options[128];
	snprintf(options, sizeof(options), "%s%s", halves[i][1], bell[b]);
	qos_rig_stage(r, halves[i][0], options);
	if (moderation[m])
		qos_rig_stage(r, "coalesce", moderation[m]);
	qos_rig_tenant(r, 0, workers, 1, 1);
	qos_rig_must_start(r);
	return r;
}

struct asker {
	struct qos_rig *r;
	uint32_t worker, answered;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct loom_ctx *c = &a->r->ctx[a->worker];
	struct loom_request request = {0};
	uint64_t id;
	int64_t got;
	for (; a->answered < REQUESTS; a->answered++)
		if (c->qos->request(c, &request, &id) || c->qos->wait(c, id, 10 * SECOND, &got) || got)
			break;
	return NULL;
}

/* So many that any two of arrangement, bell and moderation meet; DOORS_ALL=1: all. */
TEST(one_at_a_time)
{
	for (size_t i = 0; i < COUNT(halves) * COUNT(bell) * COUNT(moderation); i++) {
		if (i % 3 != (i / 3 + i / 9) % 3 && !getenv("DOORS_ALL"))
			continue;
		struct asker a[WORKERS];
		struct qos_rig *r = open_path(i % 3, i / 3 % 3, i / 9, WORKERS);
		for (uint32_t w = 0; w < WORKERS; w++)
			a[w] = (struct asker){.r = r, .worker = w};
		in_threads(ask, a, sizeof(*a), WORKERS);
		for (uint32_t w = 0; w < WORKERS; w++)
			CU_ASSERT_EQUAL(a[w].answered, REQUESTS);
		qos_rig_collect(r);
		CU_ASSERT_EQUAL(qos_rig_metric("ssr_requests"), (double)WORKERS * REQUESTS);
		qos_rig_close(r);
	}
}

/* A request was counted after the host had begun to count anew and before it armed the door: it rang
 * nobody and was served all the same. The next one finds the door open and is not the first of its window. */
TEST(first_found_shut)
{
	for (size_t i = 0; i < COUNT(halves); i++) {
		struct qos_rig *r = open_path(i, 1, 2, 1);
		struct ssr_head *h = r->view.global;
		struct loom_ctx *c = &r->ctx[0];
		struct loom_request request = {0};
		uint64_t id;
		int64_t got;
		for (uint32_t v = 0; v < h->vectors; v++)
			__atomic_store_n(&h->door[v].pending, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&h->window_ns, 20000, __ATOMIC_RELAXED);
		__atomic_store_n(&h->count, 64, __ATOMIC_RELAXED);
		CU_ASSERT_EQUAL(c->qos->request(c, &request, &id), 0);
		CU_ASSERT_EQUAL(c->qos->wait(c, id, 5 * SECOND, &got), 0);
		qos_rig_close(r);
	}
}

/* A worker that ended between its word and its request: the host says so, and does not wait for ever. */
TEST(quiet_ends_D13)
{
	struct loom_error err = {0};
	for (size_t i = 0; i < COUNT(halves); i++) {
		struct qos_rig *r = open_path(i, 1, 0, 1);
		struct service *s = ((struct qos *)r->stage[0].self)->service;
		s->patience_ns = 50000000;
		__atomic_fetch_add(s->source[0].told, 1, __ATOMIC_RELEASE);
		CU_ASSERT_EQUAL(loom__rig_collect(&r->rig, LOOM__RIG_REPORT(&fake), &err), LOOM_ETIMEDOUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "one of worker 0 is under way"));
		CU_ASSERT_EQUAL(loom__rig_init(&r->rig, &err), LOOM_ETIMEDOUT);
		__atomic_fetch_sub(s->source[0].told, 1, __ATOMIC_RELEASE);
		s->patience_ns = SSR_PATIENCE_NS;
		CU_ASSERT_EQUAL(loom__rig_init(&r->rig, &err), 0);
		CU_ASSERT_EQUAL(qos_rig_do(r, 0, (struct loom_request){0}), 0); /* the path serves on */
		qos_rig_close(r);
	}
}

struct flood {
	struct qos_rig *r;
	uint32_t worker, stop;
	pthread_t id;
};

static void *flood(void *arg)
{
	struct flood *f = arg;
	struct loom_ctx *c = &f->r->ctx[f->worker];
	struct loom_request request = {0};
	uint64_t id;
	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		if (c->qos->request(c, &request, &id))
			sched_yield();
	return NULL;
}

/* A tenant that floods a path with little budget, beside one that asks now and then. */
static struct qos_rig *flooded(const char *const path[2], struct flood *f)
{
	struct qos_rig *r = qos_rig_create(2);
	qos_rig_stage(r, path[0], path[1]);
	qos_rig_stage(r, "budget", "limit=1% stall=3ms tick=no");
	qos_rig_tenant(r, 0, 1, 64, 1);
	qos_rig_tenant(r, 1, 1, 1, 1);
	qos_rig_must_start(r);
	*f = (struct flood){.r = r};
	fake_must(!pthread_create(&f->id, NULL, flood, f), "thread", NULL);
	usleep(400000); /* until the path has saved something */
	return r;
}

/* How often the path was roused for the other. */
static double ebb(struct flood *f)
{
	__atomic_store_n(&f->stop, 1, __ATOMIC_RELAXED);
	pthread_join(f->id, NULL);
	qos_rig_collect(f->r);
	double roused = qos_rig_metric("ssr_roused");
	qos_rig_close(f->r);
	return roused;
}

/* On a busy machine the path may be awake by chance whenever the other asks: then there are more floods. */
#define ROUSED 10
#define FLOODS 20u

/* How often a path is roused, over as many floods as that takes, when once() is called now and then beside each. */
static void must_rouse(const char *const path[2], void (*once)(struct qos_rig *r), int times)
{
	double roused = 0;
	for (uint32_t floods = 0; roused < ROUSED && floods < FLOODS; floods++) {
		struct flood f;
		struct qos_rig *r = flooded(path, &f);
		for (int k = 0; k < times; k++) {
			once(r);
			usleep(20000);
		}
		roused += ebb(&f);
	}
	CU_ASSERT(roused >= ROUSED);
}

static void ask_aloud(struct qos_rig *r)
{
	CU_ASSERT_EQUAL(qos_rig_do(r, 1, (struct loom_request){0}), 0);
}

/* One tenant always waits for a burst, which come every 150 ms. Another asks now and then, far less than its
 * share allows: the path is roused for it. */
TEST(rouses)
{
	static const char *const path[][2] = {
		{"monolithic", "class=other"}, {"monolithic", "class=other notify=futex"},
		{"monolithic", "class=other worker=yes"}, {"split", "class=other"}};
	for (size_t i = 0; i < COUNT(path); i++)
		must_rouse(path[i], ask_aloud, 50);
}

/* As ssr_request(), by a worker that has looked at the bedside just before it was armed, and through a door that
 * nobody has rung yet: the host hears of it, but who serves does not. */
static uint64_t post_unheard(struct qos_rig *r, uint32_t worker)
{
	struct ssr_head *h = r->view.global;
	struct ssr_port *port = ssr_port(&r->ctx[worker]);
	uint64_t at = port->head;
	struct ssr_slot *slot = ssr_slot(h, port, at);
	slot->request = (struct loom_request){0};
	slot->posted_ns = loom_clock_ns(&r->ctx[worker]);
	loom_store_release_sys(ssr_told(h, port), (uint32_t)(at + 1));
	port->head = at + 1;
	loom_fence_seq_cst_sys();
	loom_fetch_or_acq_rel_sys(ssr_bits(h, worker), 1ull << (worker & 63));
	loom_fence_seq_cst_sys();
	__atomic_store_n(&h->door[0].armed, (uint32_t)SSR_OPEN, __ATOMIC_RELAXED);
	ssr_raise(h, &h->door[0]);
	return at;
}

static void ask_unheard(struct qos_rig *r)
{
	int64_t got;
	uint64_t id = post_unheard(r, 1);
	CU_ASSERT_EQUAL(r->ctx[1].qos->wait(&r->ctx[1], id, 10 * SECOND, &got), 0);
}

/* While the server sleeps, another thread of the path takes a heeded tenant's request into its queue, where no bit
 * says that it waits. tests/models/bedside.pml: queue_unseen, filled_unsaid. */
TEST(roused_from_a_queue)
{
	static const char *const path[][2] = {{"split", "class=other"}, {"monolithic", "class=other worker=yes"}};
	for (size_t i = 0; i < COUNT(path); i++)
		must_rouse(path[i], ask_unheard, 20);
}

/* A policy that masks interrupts, and admits nobody while it is `shut`. */
struct gate {
	uint32_t shut, asked;
};

static void mask(void *self, struct loom_qos_path *path)
{
	(void)self;
	path->mask = 1;
}

static void admit_later(void *self, const struct loom_qos_load *load, struct loom_qos_turn *turn)
{
	struct gate *g = self;
	__atomic_fetch_add(&g->asked, 1, __ATOMIC_ACQ_REL);
	if (!__atomic_load_n(&g->shut, __ATOMIC_ACQUIRE))
		return;
	turn->requests = 0;
	turn->retry_ns = load->now_ns + SECOND / 20;
}

/* Who looks all the time does so on a small budget's account: not while nobody is served. */
TEST(rests_together)
{
	static const struct loom_qos_ops ops = {.size = sizeof(ops), .arrange = mask, .admit = admit_later};
	struct gate g = {.shut = 1};
	struct qos_rig *r = qos_rig_create(1);
	qos_rig_stage(r, "monolithic", "class=other worker=yes notify=poll");
	qos_rig_own_stage(r, &ops, &g);
	qos_rig_tenant(r, 0, 1, 64, 1);
	qos_rig_must_start(r);
	struct loom_ctx *c = &r->ctx[0];
	struct loom_request request = {0};
	uint64_t id[64];
	int64_t got;
	uint32_t n = 0, rests = 0, unread = 0;
	CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[n++]), 0);
	/* Between two questions to the policy nobody reads the ring, or by chance just before one. On a busy machine most pass
	 * unobserved. */
	while (n < 64 && rests < 5) {
		uint32_t asked = __atomic_load_n(&g.asked, __ATOMIC_ACQUIRE);
		const uint32_t *known = ((struct qos *)r->stage->self)->service->known;
		CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[n++]), 0);
		usleep(10000);
		uint32_t read = __atomic_load_n(known, __ATOMIC_ACQUIRE);
		if (!asked || __atomic_load_n(&g.asked, __ATOMIC_ACQUIRE) != asked)
			continue;
		unread += read < n;
		rests++;
	}
	CU_ASSERT(unread >= 3);
	__atomic_store_n(&g.shut, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++)
		CU_ASSERT(!c->qos->wait(c, id[i], 10 * SECOND, &got) && !got);
	qos_rig_collect(r);
	qos_rig_close(r);
}

TEST_MAIN("qos_doors", 240)
