/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the queues of a tenant. Each request is served once. Reads are served in SCAN order of their offsets. No
 * request is reordered across a request that is no read. */
#include "../plugins/qos/bottom_half.c"
#include "../plugins/qos/queue.c"
#include "qos_rig.h"

#include <unistd.h>

#define PAGE 4096ull
#define CALLS 1024u

static struct qos_grant buffer = {.is.kind = LOOM_GRANT_BUFFER};
static struct qos_slot slot[CALLS];
static uint64_t answer[CALLS];
static struct qos_ring source = {.slot = slot, .answer = answer, .slots = CALLS};

static void post(struct qos_queue *q, uint32_t number, uint16_t service, uint64_t place)
{
	q->call[number] = (struct qos_call){
		.ring = &source, .position = number, .grant = &buffer, .service = service, .argument = place * PAGE};
	q->number[q->head & q->mask] = number;
	q->head++;
}

static uint64_t place_of(const struct qos_call *call)
{
	return call->argument / PAGE;
}

TEST(arrival)
{
	struct qos_queue q;
	CU_ASSERT_EQUAL_FATAL(qos_queue_open(&q, CALLS, LOOM_QOS_ARRIVAL), 0);
	for (uint32_t i = 0; i < CALLS; i++)
		post(&q, i * 7 % CALLS, LOOM_SERVICE_READ, i * 13 % 100);
	for (uint32_t i = 0; i < CALLS; i++) {
		CU_ASSERT_EQUAL(qos_queue_waiting(&q), CALLS - i);
		CU_ASSERT_PTR_EQUAL(qos_queue_take(&q), &q.call[i * 7 % CALLS]);
	}
	CU_ASSERT_PTR_NULL(qos_queue_take(&q));
	qos_queue_close(&q);
}

/* One scan goes upwards from the last position and wraps around to the first. Each request is served once. */
TEST(scan)
{
	struct qos_queue q;
	uint64_t x = 88172645463325252ull, before = 0;
	uint32_t turns = 0, seen[CALLS] = {0};
	CU_ASSERT_EQUAL_FATAL(qos_queue_open(&q, CALLS, LOOM_QOS_SCAN), 0);
	for (uint32_t i = 0; i < CALLS; i++) {
		post(&q, i, LOOM_SERVICE_READ, xorshift(&x) % 10000); /* there are more requests than positions */
	}
	for (uint32_t i = 0; i < CALLS; i++) {
		const struct qos_call *call = qos_queue_take(&q);
		CU_ASSERT_PTR_NOT_NULL_FATAL(call);
		seen[call - q.call]++;
		turns += place_of(call) % QOS_PLACES < before;
		before = place_of(call) % QOS_PLACES;
	}
	CU_ASSERT(turns <= 1);
	CU_ASSERT_PTR_NULL(qos_queue_take(&q));
	CU_ASSERT_EQUAL(qos_queue_waiting(&q), 0);
	for (uint32_t i = 0; i < CALLS; i++)
		CU_ASSERT_EQUAL(seen[i], 1);
	qos_queue_close(&q);
}

/* Repeated reads at one position do not delay the other reads. */
TEST(repeated_position)
{
	struct qos_queue q;
	CU_ASSERT_EQUAL_FATAL(qos_queue_open(&q, CALLS, LOOM_QOS_SCAN), 0);
	for (uint32_t i = 0; i < CALLS / 2; i++)
		post(&q, i, LOOM_SERVICE_READ, 5);
	post(&q, CALLS - 1, LOOM_SERVICE_READ, 4); /* the scan is at position 5, just after position 4 */
	uint32_t served = 0;
	for (; served < 10 * CALLS; served++) {
		const struct qos_call *call = qos_queue_take(&q);
		CU_ASSERT_PTR_NOT_NULL_FATAL(call);
		if (place_of(call) == 4)
			break;
		post(&q, (uint32_t)(call - q.call), LOOM_SERVICE_READ, 5);
	}
	CU_ASSERT(served <= CALLS);
	qos_queue_close(&q);
}

TEST(fence)
{
	static const uint16_t what[] = {LOOM_SERVICE_READ, LOOM_SERVICE_READ, LOOM_SERVICE_WRITE, LOOM_SERVICE_READ,
					LOOM_SERVICE_READ, LOOM_SERVICE_SIGNAL, LOOM_SERVICE_SEND, LOOM_SERVICE_READ};
	static const uint32_t place[] = {9, 3, 0, 8, 1, 0, 0, 2}, order[] = {1, 0, 2, 4, 3, 5, 6, 7};
	struct qos_queue q;
	CU_ASSERT_EQUAL_FATAL(qos_queue_open(&q, CALLS, LOOM_QOS_SCAN), 0);
	for (uint32_t round = 0; round < 100; round++) {
		q.scan->at = QOS_PLACES - 1;
		for (uint32_t i = 0; i < 8; i++)
			post(&q, i, what[i], place[i]);
		for (uint32_t i = 0; i < 8; i++) {
			/* Before the scan wraps around, it takes position 8 before position 1. */
			const struct qos_call *call = qos_queue_take(&q);
			uint32_t number = (uint32_t)(call - q.call), other = i == 3 ? order[4] : order[3];
			CU_ASSERT(number == order[i] || ((i == 3 || i == 4) && number == other));
		}
	}
	qos_queue_close(&q);
}

/* Answers are given out of order, so a ring may seem to have room although a slot still has a pending request. This
 * slot must not be overwritten. */
TEST(slot_taken)
{
	static struct service s;
	static struct qos_ring from;
	uint64_t bits;
	uint32_t published, known = 0;
	for (uint32_t honest = 0; honest < 2; honest++) {
		struct qos_queue *q = &s.tenant[0].queue;
		s.host = &fake_host;
		s.workers = 1;
		s.ring = &from;
		s.bits = &bits;
		s.consumed = &known;
		from = (struct qos_ring){.published = &published, .slot = slot, .slots = 8, .shift = 3};
		CU_ASSERT_EQUAL_FATAL(qos_queue_open(q, 8, LOOM_QOS_SCAN), 0);
		published = 8;
		bits = 1;
		CU_ASSERT_EQUAL(qos_fill(&s), 8);
		q->call[honest ? 0 : 3].busy = 0; /* this request has been answered */
		published = 9;
		bits = 1;
		CU_ASSERT_EQUAL(qos_fill(&s), honest);
		CU_ASSERT_EQUAL(from.broken, !honest);
		CU_ASSERT_EQUAL(q->call[0].position, honest ? 8 : 0);
		qos_queue_close(q);
	}
}

/* Sends requests through the whole path. A read must return the last write before it, and a write must use the data of
 * the read before it. */
static void reads_and_writes(const char *options)
{
	struct loom_error err = {0};
	char path[64] = "/tmp/test_qos_queue.XXXXXX", *at;
	struct qos_rig *r = qos_rig_create(1);
	qos_rig_stage(r, "monolithic", options);
	qos_rig_tenant(r, 0, 1, 256, 1);
	int fd = mkstemp(path);
	fake_must(fd >= 0 && !ftruncate(fd, 16 * PAGE), "file", NULL);
	uint32_t room = qos_rig_buffer(r, 0, LOOM_GRANT_BUFFER, 256, NULL, &at);
	uint32_t file = qos_rig_grant(
		r, (struct loom_grant){.kind = LOOM_GRANT_FILE, .fd = fd, .access = LOOM_READ | LOOM_WRITE});
	fake_must(!qos_rig_start(r, &err), "start", &err);
	struct loom_ctx *c = r->ctx;
	char inside[16] = {0}, want[256];
	for (uint32_t round = 0; round < 200; round++) {
		uint64_t id[256];
		int64_t got;
		memset(at, 0, 256);
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t place = loom_random_below(c, 16), writes = loom_random_below(c, 8) == 0;
			struct loom_request q = {.service = writes ? LOOM_SERVICE_WRITE : LOOM_SERVICE_READ,
						 .buffer = room,
						 .handle = file,
						 .offset = i,
						 .bytes = 1,
						 .argument = place * PAGE};
			if (writes && i && round % 2) { /* this write uses the data of the previous request */
				q.offset = i - 1;
				inside[place] = want[i - 1];
				want[i] = 0;
			} else {
				if (writes)
					inside[place] = at[i] = (char)(1 + loom_random_below(c, 100));
				want[i] = inside[place];
			}
			CU_ASSERT_EQUAL(c->qos->request(c, &q, &id[i]), 0);
		}
		for (uint32_t i = 0; i < 256; i++) {
			CU_ASSERT_EQUAL(c->qos->wait(c, id[i], 30000000000ull, &got), 0);
			CU_ASSERT_EQUAL(got, 1);
		}
		CU_ASSERT_EQUAL(memcmp(at, want, 256), 0);
	}
	qos_rig_close(r);
	close(fd);
	unlink(path);
}

TEST(reads_and_writes)
{
	reads_and_writes("class=other order=scan");
	reads_and_writes("class=other order=arrival");
}

TEST_MAIN("qos_queue", 60)
