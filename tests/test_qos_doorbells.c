/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that no interrupt is lost. Each worker has one request in flight, so that no other request can wake the host in
 * its place. tests/models/qos_doorbell.pml verifies the protocol; this test uses the real threads. */
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
static const char *const notify[] = {"eventfd", "poll"};
static const char *const moderation[] = {NULL, "window=20us count=2", "window=20us count=64"};

static struct qos_rig *open_path(size_t i, size_t b, size_t m, uint32_t workers)
{
	struct qos_rig *r = qos_rig_create(workers);
	char options[128];
	snprintf(options, sizeof(options), "%s%s", halves[i][1], notify[b]);
	qos_rig_stage(r, halves[i][0], options);
	if (moderation[m])
		qos_rig_stage(r, "coalesce", moderation[m]);
	qos_rig_tenant(r, 0, workers, 1, 1);
	qos_rig_must_start(r);
	return r;
}

struct requester {
	struct qos_rig *r;
	uint32_t worker, answered;
};

static void *ask(void *arg)
{
	struct requester *a = arg;
	struct loom_ctx *c = &a->r->ctx[a->worker];
	struct loom_request request = {0};
	uint64_t id;
	int64_t got;
	for (; a->answered < REQUESTS; a->answered++)
		if (c->qos->request(c, &request, &id) || c->qos->wait(c, id, 10 * SECOND, &got) || got)
			break;
	return NULL;
}

/* By default, each pair of an arrangement, a notification and a moderation is in one of the tested combinations.
 * DOORBELLS_ALL=1 tests all combinations. */
TEST(one_at_a_time)
{
	for (size_t i = 0; i < COUNT(halves) * COUNT(notify) * COUNT(moderation); i++) {
		size_t half = i % 3, how = i / 3 % 2, merged = i / 6;
		if ((half + how + merged) % 2 && !getenv("DOORBELLS_ALL"))
			continue;
		struct requester a[WORKERS];
		struct qos_rig *r = open_path(half, how, merged, WORKERS);
		for (uint32_t w = 0; w < WORKERS; w++)
			a[w] = (struct requester){.r = r, .worker = w};
		in_threads(ask, a, sizeof(*a), WORKERS);
		for (uint32_t w = 0; w < WORKERS; w++)
			CU_ASSERT_EQUAL(a[w].answered, REQUESTS);
		qos_rig_collect(r);
		CU_ASSERT_EQUAL(qos_rig_metric("qos_requests"), (double)WORKERS * REQUESTS);
		qos_rig_close(r);
	}
}

/* A worker ends after it has announced a request and before it writes the request. The host reports this instead of
 * waiting forever. */
TEST(quiet_ends_D13)
{
	struct loom_error err = {0};
	for (size_t i = 0; i < COUNT(halves); i++) {
		struct qos_rig *r = open_path(i, 1, 0, 1);
		struct service *s = ((struct qos *)r->stage[0].self)->service;
		s->quiesce_ns = 50000000;
		__atomic_fetch_add(s->ring[0].published, 1, __ATOMIC_RELEASE);
		CU_ASSERT_EQUAL(loom__rig_collect(&r->rig, LOOM__RIG_REPORT(&fake), &err), LOOM_ETIMEDOUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "one of worker 0 is in flight"));
		CU_ASSERT_EQUAL(loom__rig_init(&r->rig, &err), LOOM_ETIMEDOUT);
		__atomic_fetch_sub(s->ring[0].published, 1, __ATOMIC_RELEASE);
		s->quiesce_ns = QOS_QUIESCE_NS;
		CU_ASSERT_EQUAL(loom__rig_init(&r->rig, &err), 0);
		CU_ASSERT_EQUAL(qos_rig_do(r, 0, (struct loom_request){0}), 0); /* the path still serves requests */
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

/* Starts a tenant that floods a path with a small budget, beside a tenant with few requests. */
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
	usleep(400000); /* until the other tenant has saved CPU time of its budget */
	return r;
}

/* Ends the flood, and returns how often the path was woken for the other tenant. */
static double ebb(struct flood *f)
{
	__atomic_store_n(&f->stop, 1, __ATOMIC_RELAXED);
	pthread_join(f->id, NULL);
	qos_rig_collect(f->r);
	double woken = qos_rig_metric("qos_woken");
	qos_rig_close(f->r);
	return woken;
}

/* Waits until the path sleeps between two bursts, for 0.3 s at most. On a busy machine, the path may be awake again when the
 * other tenant posts a request. Then the test repeats the flood. */
static void until_asleep(struct qos_rig *r)
{
	const struct qos_head *h = r->view.global;
	for (int k = 0; k < 600 && __atomic_load_n(&h->server_doorbell.armed, __ATOMIC_ACQUIRE) != QOS_ARMED; k++)
		usleep(500);
}

#define WAKEUPS 10
#define FLOODS 60u

/* Repeats floods until the path was woken WAKEUPS times. During a flood, once() makes a request of the other tenant,
 * `times` times. */
static void must_wake(const char *const path[2], void (*once)(struct qos_rig *r), int times)
{
	double woken = 0;
	for (uint32_t floods = 0; woken < WAKEUPS && floods < FLOODS; floods++) {
		struct flood f;
		struct qos_rig *r = flooded(path, &f);
		for (int k = 0; k < times; k++) {
			until_asleep(r);
			once(r);
			usleep(20000);
		}
		woken += ebb(&f);
	}
	CU_ASSERT(woken >= WAKEUPS);
}

static void post_and_wait(struct qos_rig *r)
{
	CU_ASSERT_EQUAL(qos_rig_do(r, 1, (struct loom_request){0}), 0);
}

/* One tenant floods the path, which serves it in a burst every 150 ms. Another tenant posts a request now and then, far
 * below its share. These requests must wake the path between the bursts. */
TEST(wakes)
{
	static const char *const path[][2] = {
		{"monolithic", "class=other"}, {"monolithic", "class=other worker=yes"}, {"split", "class=other"}};
	for (size_t i = 0; i < COUNT(path); i++)
		must_wake(path[i], post_and_wait, 50);
}

/* Posts a request that notifies the host, but not the serving thread. qos_request() does the same in a worker that
 * checks the server doorbell just before it is armed. */
static uint64_t post_unnoticed(struct qos_rig *r, uint32_t worker)
{
	struct qos_head *h = r->view.global;
	struct qos_port *port = qos_port(&r->ctx[worker]);
	uint64_t at = port->head;
	struct qos_slot *slot = qos_slot(h, port, at);
	slot->request = (struct loom_request){0};
	slot->posted_ns = loom_clock_ns(&r->ctx[worker]);
	loom_store_release_sys(qos_published(h, port), (uint32_t)(at + 1));
	port->head = at + 1;
	loom_fence_seq_cst_sys();
	loom_fetch_or_acq_rel_sys(qos_bits(h, worker), 1ull << (worker & 63));
	loom_fence_seq_cst_sys();
	__atomic_store_n(&h->doorbell[0].armed, (uint32_t)QOS_ARMED, __ATOMIC_RELAXED);
	qos_doorbell_ring(h, &h->doorbell[0]);
	return at;
}

static void post_unnoticed_and_wait(struct qos_rig *r)
{
	int64_t got;
	uint64_t id = post_unnoticed(r, 1);
	CU_ASSERT_EQUAL(r->ctx[1].qos->wait(&r->ctx[1], id, 10 * SECOND, &got), 0);
}

/* While the serving thread sleeps, another thread of the path moves a request into the queue of a tenant in the wake
 * mask. No bit shows requests in a queue. The serving thread must wake up nevertheless. tests/models/qos_server.pml has
 * this case as the faults queue_unseen and fill_silent. */
TEST(woken_by_a_queue)
{
	static const char *const path[][2] = {{"split", "class=other"}, {"monolithic", "class=other worker=yes"}};
	for (size_t i = 0; i < COUNT(path); i++)
		must_wake(path[i], post_unnoticed_and_wait, 20);
}

/* This policy masks interrupts, and admits no tenant while `shut` is 1. `asked` counts the calls of admit(). */
struct gate {
	uint32_t shut, asked;
};

static void mask(void *self, struct loom_qos_path *path)
{
	(void)self;
	path->mask = 1;
}

static void admit_later(void *self, const struct loom_qos_load *load, struct loom_qos_round *turn)
{
	struct gate *g = self;
	__atomic_fetch_add(&g->asked, 1, __ATOMIC_ACQ_REL);
	if (!__atomic_load_n(&g->shut, __ATOMIC_ACQUIRE))
		return;
	turn->requests = 0;
	turn->retry_ns = load->now_ns + SECOND / 20;
}

/* The poller's CPU time is charged to the budget, so the poller does not poll while no tenant is served. */
TEST(poller_sleeps)
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
	/* Between two calls of the policy the path must not read the ring. A pause counts only if no call happens
	 * during the pause, which is rare on a busy machine. */
	while (n < 64 && rests < 5) {
		uint32_t asked = __atomic_load_n(&g.asked, __ATOMIC_ACQUIRE);
		const uint32_t *known = ((struct qos *)r->stage->self)->service->consumed;
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

TEST_MAIN("qos_doorbells", 240)
