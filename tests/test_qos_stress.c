/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the service path under load. Every request is answered once and correctly, in every arrangement and under every
 * policy. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../plugins/qos/service.dev.h"
#include "qos_rig.h"

#define PAGE        4096ull
#define WORKERS     4u
#define WINDOW_MOST 1024u
static const uint32_t window[2] = {64,
				   WINDOW_MOST}; /* the slots that each of the two tenants' workers have for requests */

/* Sanitizers and perturbed schedules make each request many times as expensive. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(LOOM_PERTURB)
#define REQUESTS 20000u
#else
#define REQUESTS 250000u /* the requests of each worker; four workers make 10^6 */
#endif

struct job {
	struct qos_rig *r;
	uint32_t worker, buffer, socket, file, n;
	uint64_t sent, wrong;
};

/* Returns a random request, and its right answer in *want. About a quarter of the requests must fail. */
#define SENT 1000 /* stands for two right answers: 1, or -EAGAIN if the socket was full */
static struct loom_request random_request(struct loom_ctx *c, const struct job *j, int64_t *want)
{
	struct loom_request r = {.buffer = j->buffer, .handle = j->socket, .bytes = 1};
	switch (loom_random_below(c, 8)) {
	case 0:
		r.service = LOOM_SERVICE_NOTHING;
		*want = 0;
		break;
	case 1:
		r.service = LOOM_SERVICES + loom_random_below(c, 1000);
		*want = -ENOSYS;
		break;
	case 2:
		r.service = LOOM_SERVICE_SEND;
		r.offset = 16 * PAGE + loom_random_below(c, 1000);
		*want = -EFAULT;
		break;
	case 3: /* the file contains its own offsets modulo 251 */
		r.service = LOOM_SERVICE_READ;
		r.handle = j->file;
		r.argument = loom_random_below(c, 60 * PAGE);
		r.offset = loom_random_below(c, 1000) * 4ull;
		r.bytes = 1 + loom_random_below(c, 4);
		*want = (int64_t)r.bytes;
		break;
	default:
		r.service = LOOM_SERVICE_SEND;
		*want = SENT;
	}
	return r;
}

static void *work(void *arg)
{
	struct job *j = arg;
	struct loom_ctx *c = &j->r->ctx[j->worker];
	uint32_t most = window[j->worker / 2], posted = 0, done = 0;
	uint64_t id[WINDOW_MOST];
	int64_t want[WINDOW_MOST], got;
	while (done < j->n) {
		/* A worker has no more requests in flight than slots, otherwise it would lose the oldest answer. */
		while (posted < j->n && posted - done < most) {
			struct loom_request r = random_request(c, j, &want[posted % most]);
			j->wrong += c->qos->request(c, &r, &id[posted % most]) != 0;
			posted++;
		}
		int rc = c->qos->wait(c, id[done % most], 30000000000ull, &got);
		int sends = want[done % most] == SENT;
		j->sent += rc == 0 && sends && got == 1;
		j->wrong += rc != 0 || (sends ? got != 1 && got != -EAGAIN : got != want[done % most]);
		done++;
	}
	return NULL;
}

struct fill_lock {
	int fd;
	uint64_t bytes;
};

static void *fill_lock(void *arg)
{
	struct fill_lock *d = arg;
	char text[4096];
	ssize_t n;
	while ((n = recv(d->fd, text, sizeof(text), 0)) > 0)
		d->bytes += (uint64_t)n;
	return NULL;
}

static int make_file(void)
{
	char path[] = "/tmp/test_qos.XXXXXX";
	int fd = mkstemp(path);
	fake_must(fd >= 0, "file", NULL);
	unlink(path);
	unsigned char page[PAGE];
	for (uint64_t p = 0; p < 64; p++) {
		for (uint64_t i = 0; i < PAGE; i++)
			page[i] = (unsigned char)((p * PAGE + i) % 251);
		fake_must(write(fd, page, PAGE) == (ssize_t)PAGE, "file", NULL);
	}
	return fd;
}

static const struct {
	const char *stage[3], *options[3];
	uint32_t part; /* a worker makes REQUESTS / part requests, fewer on slow paths */
} paths[] = {
    {{"split"}, {"class=other"}, 4},
    {{"split", "coalesce", "budget"}, {"class=other", "window=20us", "limit=50%"}, 16}, /* budget masks interrupts */
    {{"monolithic"}, {"class=other"}, 1},
    {{"monolithic", "move"}, {"class=other notify=poll", NULL}, 16},
    {{"monolithic", "coalesce"}, {"class=other worker=yes", "window=50us count=16"}, 16},
    {{"monolithic", "budget"}, {"class=other notify=poll", "limit=50%"}, 16},
    {{"split", "throttle"}, {"class=other notify=poll", "limit=50% charge=path delay_most=1ms"}, 100},
};

/* Steers to another core at each call. */
static void move(void *self, const struct loom_qos_load *load, uint64_t *vectors)
{
	static uint32_t at;
	(void)self;
	*vectors = 1ull << at++ % load->vectors;
}

static void run_path(size_t i)
{
	struct qos_rig *r = qos_rig_create(WORKERS);
	struct job job[WORKERS];
	struct fill_lock d = {0};
	int pair[2], fd = make_file();
	char *at;
	pthread_t drainer;
	static const struct loom_qos_ops moves = {.size = sizeof(moves), .steer = move};
	for (uint32_t k = 0; k < COUNT(paths[i].stage) && paths[i].stage[k]; k++)
		if (paths[i].options[k])
			qos_rig_stage(r, paths[i].stage[k], paths[i].options[k]);
		else
			qos_rig_own_stage(r, &moves, NULL);
	qos_rig_tenant(r, 0, 2, window[0], 1);
	qos_rig_tenant(r, 2, 2, window[1], 2);
	fake_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socket", NULL);
	d.fd = pair[1];
	for (uint32_t t = 0; t < 2; t++) {
		struct job *j = &job[2 * t];
		*j = (struct job){.r = r, .worker = 2 * t, .n = REQUESTS / paths[i].part};
		j->buffer = qos_rig_buffer(r, t, LOOM_GRANT_BUFFER, 16 * PAGE, NULL, &at);
		j->socket =
		    qos_rig_grant(r, (struct loom_grant){.tenant = t, .kind = LOOM_GRANT_SOCKET, .fd = pair[0]});
		j->file = qos_rig_grant(
		    r, (struct loom_grant){.tenant = t, .kind = LOOM_GRANT_FILE, .fd = fd, .access = LOOM_READ});
		job[2 * t + 1] = *j;
		job[2 * t + 1].worker++;
	}
	qos_rig_must_start(r);
	fake_must(!pthread_create(&drainer, NULL, fill_lock, &d), "thread", NULL);
	uint64_t sent = 0, posted = 0;
	in_threads(work, job, sizeof(*job), WORKERS);
	for (uint32_t w = 0; w < WORKERS; w++) {
		CU_ASSERT_EQUAL(job[w].wrong, 0);
		sent += job[w].sent;
		posted += job[w].n;
	}
	qos_rig_collect(r);
	CU_ASSERT_EQUAL(qos_rig_metric("qos_requests"), (double)posted);
	shutdown(pair[0], SHUT_WR);
	pthread_join(drainer, NULL);
	CU_ASSERT_EQUAL(d.bytes, sent); /* no byte is lost or duplicated */
	qos_rig_close(r);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

TEST(random)
{
	for (size_t i = 0; i < COUNT(paths); i++)
		run_path(i);
}

/* ---- a tenant that writes invalid data ---- */

/* Worker 0 posts random requests. With wild_head it also overwrites the words that it shares with the host. Worker 1
 * must not be affected. */
static void fuzz(uint64_t seed, int wild_head)
{
	struct qos_rig *r = qos_rig_create(2);
	char *mine, *other;
	uint64_t x = seed * 0x9e3779b97f4a7c15ull | 1, id;
	int64_t got;
	int fd = make_file();
	qos_rig_stage(r, seed % 2 ? "split" : "monolithic", "class=other");
	qos_rig_tenant(r, 0, 1, 32, 1);
	qos_rig_tenant(r, 1, 1, 32, 1);
	for (uint32_t t = 0; t < 2; t++) {
		qos_rig_buffer(r, t, LOOM_GRANT_BUFFER, 4 * PAGE, NULL, t ? &other : &mine);
		qos_rig_grant(r,
			      (struct loom_grant){.tenant = t, .kind = LOOM_GRANT_FILE, .fd = fd, .access = LOOM_READ});
		char *at;
		qos_rig_buffer(r, t, LOOM_GRANT_HEAP, 8 * PAGE, NULL, &at);
		qos_rig_buffer(r, t, LOOM_GRANT_DEMAND, 8 * PAGE, NULL, &at);
	}
	qos_rig_must_start(r);
	memset(other, 'o', 4 * PAGE);
	struct loom_ctx *c = &r->ctx[0], *good = &r->ctx[1];
	struct qos_head *h = r->view.global;
	struct qos_port *port = qos_port(c);
	uint32_t *published = qos_published(h, port);
	for (int round = 0; round < 300; round++) {
		for (int k = 0; k < 20; k++) {
			struct loom_request request;
			uint64_t *word = (uint64_t *)&request;
			for (size_t i = 0; i < sizeof(request) / 8; i++)
				word[i] = xorshift(&x) >> (xorshift(&x) % 64);
			request.service = (uint32_t)(xorshift(&x) % (LOOM_SERVICES + 1));
			request.buffer = (uint32_t)(xorshift(&x) % 6);
			request.handle = (uint32_t)(xorshift(&x) % 6);
			request.reserved = xorshift(&x) % 8 == 0;
			c->qos->request(c, &request, &id);
		}
		if (wild_head && round % 50 == 49) {
			/* The tenant can overwrite its end of the ring, and the words in which the host looks for
			 * requests. */
			for (size_t i = 0; i < sizeof(*port) / 8; i++)
				((uint64_t *)port)[i] = xorshift(&x);
			port->slots = 0; /* so later calls of this worker access no slot */
			__atomic_store_n(published, (uint32_t)xorshift(&x), __ATOMIC_RELEASE);
			__atomic_fetch_or(qos_bits(h, 0), 1, __ATOMIC_ACQ_REL);
		}
		struct loom_request read = {
		    .service = LOOM_SERVICE_READ, .handle = 1, .offset = 8, .bytes = 8, .argument = (uint64_t)round};
		CU_ASSERT_EQUAL(good->qos->request(good, &read, &id), 0);
		CU_ASSERT_EQUAL(good->qos->wait(good, id, 30000000000ull, &got), 0);
		CU_ASSERT_EQUAL(got, 8);
		CU_ASSERT_EQUAL((unsigned char)other[15], (unsigned)(round + 7) % 251);
	}
	for (uint64_t i = 16; i < 4 * PAGE; i++)
		if (other[i] != 'o') {
			CU_FAIL("a tenant's request wrote to another tenant's buffer");
			break;
		}
	if (wild_head)
		CU_ASSERT(strstr(fake.log, "invalid counts") != NULL);
	*fake.log = 0;
	qos_rig_collect(r);
	qos_rig_close(r);
	close(fd);
}

TEST(fuzz)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		fuzz(seed, 0);
	for (uint64_t seed = 21; seed <= 40; seed++)
		fuzz(seed, 1);
}

/* ---- samples that end with outstanding requests ---- */

TEST(abandoned)
{
	for (int k = 0; k < 2; k++) {
		struct loom_error err = {0};
		struct qos_rig *r = qos_rig_create(2);
		qos_rig_stage(r, k ? "split" : "monolithic", "class=other");
		qos_rig_stage(r, "budget", "limit=0.1%"); /* the budget keeps these requests pending */
		qos_rig_tenant(r, 0, 1, 1024, 1);
		qos_rig_tenant(r, 1, 1, 16, 1);
		qos_rig_must_start(r);
		for (int sample = 0; sample < 20; sample++) {
			struct loom_ctx *c = &r->ctx[0];
			struct loom_request request = {0};
			uint64_t id;
			for (int i = 0; i < 1024; i++)
				CU_ASSERT_EQUAL(c->qos->request(c, &request, &id), 0);
			if (sample % 2) {
				CU_ASSERT_EQUAL(qos_rig_do(r, 1, request), 0);
			}
			qos_rig_collect(r);
			CU_ASSERT_EQUAL(qos_rig_metric("qos_requests") + qos_rig_metric("qos_dropped"),
					sample % 2 ? 1025.0 : 1024.0);
			CU_ASSERT(qos_rig_metric("qos_requests") >= sample % 2);
			for (uint32_t i = 0; i < r->stages; i++)
				CU_ASSERT_EQUAL(r->stage[i].ops->init(r->stage[i].self, &r->layout, &r->view, &err), 0);
		}
		/* Requests are also outstanding when the path is closed. */
		struct loom_request request = {0};
		uint64_t id;
		for (int i = 0; i < 1000; i++)
			CU_ASSERT_EQUAL(r->ctx[0].qos->request(&r->ctx[0], &request, &id), 0);
		qos_rig_close(r);
	}
}

TEST_MAIN("qos_stress", 120)
