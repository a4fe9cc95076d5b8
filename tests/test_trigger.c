/* SPDX-License-Identifier: Apache-2.0 */
/* Tests trigger plug-ins over each network provider of this machine: every operation, full FIFOs, sizes that follow from
 * the workload, and error messages. `gpuloom validate` tests chains, arguments and refusals (conform/trigger.c). */
#include "../plugins/trigger_nic/trigger_proxy.dev.h"
#include "trigger_rig.h"

#include <unistd.h>

static const char *const plugins[] = {"trigger_gputn", "trigger_hdn", "trigger_gds", "trigger_proxy", "trigger_peer"};
static const char *const providers[] = {"shm", "tcp", "net", "sockets"};
#define PLUGINS (sizeof(plugins) / sizeof(*plugins))
enum { PEER = 4 }; /* indices into `plugins`; PEER uses no provider */
#define PROVIDERS (sizeof(providers) / sizeof(*providers))

static void each(const char *settings, void (*body)(struct trig *t))
{
	for (size_t i = 0; i < PLUGINS; i++) {
		struct trig t;
		int rc = trig_open(&t, plugins[i], settings);
		if (rc)
			fprintf(stderr, "%s: %s\n", plugins[i], t.err.text);
		else
			body(&t);
		CU_ASSERT_EQUAL(rc, 0);
		trig_close(&t);
	}
}

/* ---- every operation, every provider ---------------------------------------------------------------- */

static void put(struct trig *t)
{
	uint64_t *from = (uint64_t *)t->data, *to = (uint64_t *)(t->data + 65536);
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	trig_post(t, (struct loom_trigger_post){.tag = 7, .threshold = 2, .op = LOOM_NET_PUT,
						.local = trig_ref(t, from), .remote = trig_ref(t, to),
						.bytes = 40000, .slot = 3, .notify = 9});
	for (int i = 0; i < 5000; i++)
		from[i] = 0x1234567890ull * (uint64_t)(i + 1);
	trig_fire(t, 7);
	CU_ASSERT_EQUAL(trig_flush(t), 0);
	CU_ASSERT_EQUAL(to[0], 0); /* the threshold is 2, and there was only one fire */
	CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 3), 0);
	trig_fire(t, 7);
	CU_ASSERT_EQUAL(trig_flush(t), 0);
	CU_ASSERT_EQUAL(memcmp(from, to, 40000), 0);
	CU_ASSERT_EQUAL(to[5000], 0);
	CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 3), 1);
	CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 9), 1);
	CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 8), 0);
	CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 1u << 30), LOOM_EINVAL);
}

static void get_and_send(struct trig *t)
{
	uint64_t *a = (uint64_t *)t->data, *b = a + 64, *c = a + 128;
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	b[0] = 77;
	trig_post(t, (struct loom_trigger_post){.tag = 1, .threshold = 1, .op = LOOM_NET_GET,
						.local = trig_ref(t, a), .remote = trig_ref(t, b),
						.bytes = 8, .slot = 1, .chain = 2});
	/* The data of the get are sent on, to a receive that is posted without a threshold. */
	trig_post(t, (struct loom_trigger_post){.tag = 9, .op = LOOM_NET_RECV, .local = trig_ref(t, c),
						.bytes = 8, .match = 42, .slot = 2, .notify = 6});
	trig_post(t, (struct loom_trigger_post){.tag = 2, .threshold = 1, .op = LOOM_NET_SEND,
						.local = trig_ref(t, a), .bytes = 8, .match = 42, .slot = 3});
	trig_fire(t, 1);
	CU_ASSERT_EQUAL(trig_flush(t), 0);
	while (t->dev->completed(&t->ctx[0], 2) == 0)
		sched_yield();
	CU_ASSERT_EQUAL(a[0], 77);
	CU_ASSERT_EQUAL(c[0], 77);
	CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 6), 1);
	CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 1), 1);
	CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 3), 1);
}

static void add(struct trig *t)
{
	uint64_t *a = (uint64_t *)t->data, *b = a + 64;
	float *x = (float *)(a + 128), *y = (float *)(a + 192);
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	struct loom_trigger_post ints = {.tag = 1, .threshold = 1, .rearm = 1, .op = LOOM_NET_ADD,
					 .local = trig_ref(t, a), .remote = trig_ref(t, b), .bytes = 16,
					 .notify = 5, .slot = 1};
	struct loom_trigger_post floats = {.tag = 2, .threshold = 1, .op = LOOM_NET_ADD,
					   .local = trig_ref(t, x), .remote = trig_ref(t, y), .bytes = 12,
					   .type = LOOM_NET_F32};
	int rc = trig_post_fails(t, ints);
	if (rc == LOOM_ENOTSUP && strstr(t->err.text, "cannot add"))
		return; /* a provider without atomics rejects the post, which is right */
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	trig_post(t, floats);
	a[0] = 1ull << 40;
	a[1] = 3;
	b[1] = ~0ull;
	x[0] = 1.5f, x[1] = -2, x[2] = 1e10f;
	y[0] = 0.25f;
	for (int i = 0; i < 3; i++)
		trig_fire(t, 1);
	trig_fire(t, 2);
	CU_ASSERT_EQUAL(trig_flush(t), 0);
	CU_ASSERT_EQUAL(b[0], 3ull << 40);
	CU_ASSERT_EQUAL(b[1], 8);
	CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 5), 3);
	CU_ASSERT_EQUAL(y[0], 1.75f);
	CU_ASSERT_EQUAL(y[1], -2.0f);
	CU_ASSERT_EQUAL(y[2], 1e10f);
}

/* Many operations of each kind are in flight, each with its own source and destination. */
static void bursts(struct trig *t)
{
	enum { N = 8, STRIDE = 32768 };
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t g = 0; g < 4; g++) { /* the sizes are 8, 256, 4096 and 16384 bytes */
			uint64_t bytes = g == 0 ? 8 : g == 1 ? 256 : g == 2 ? 4096 : 16384;
			char *from = t->data + i * STRIDE;
			struct loom_trigger_post post = {
				.tag = 1 + g, .threshold = 1, .rearm = 1, .op = i & 1 ? LOOM_NET_GET : LOOM_NET_PUT,
				.bytes = bytes, .notify = i & 1 ? 0 : 3};
			char *to = t->data + (N + i) * STRIDE;
			post.local = trig_ref(t, i & 1 ? to : from);
			post.remote = trig_ref(t, i & 1 ? from : to);
			trig_post(t, post);
		}
	for (uint32_t round = 0; round < 40; round++)
		for (uint32_t g = 0; g < 4; g++) {
			uint64_t bytes = g == 0 ? 8 : g == 1 ? 256 : g == 2 ? 4096 : 16384;
			int wrong = 0;
			for (uint32_t i = 0; i < N; i++)
				memset(t->data + i * STRIDE, (int)(round * 31 + i * 7 + g + 1), bytes);
			trig_fire(t, 1 + g);
			CU_ASSERT_EQUAL_FATAL(trig_flush(t), 0);
			for (uint32_t i = 0; i < N; i++)
				wrong += memcmp(t->data + i * STRIDE, t->data + (N + i) * STRIDE, bytes) != 0;
			CU_ASSERT_EQUAL(wrong, 0);
		}
}

TEST(operations)
{
	for (size_t p = 0; p < PROVIDERS; p++)
		for (size_t i = 0; i < PEER; i++) {
			struct trig t;
			char text[64];
			snprintf(text, sizeof(text), "provider=%s", providers[p]);
			int rc = trig_open(&t, plugins[i], text);
			if (rc == LOOM_EUNAVAIL) {
				fprintf(stderr, "not here: %s\n", t.err.text);
			} else {
				CU_ASSERT_EQUAL(rc, 0);
				put(&t);
				get_and_send(&t);
				add(&t);
				bursts(&t);
				add(&t);
				put(&t); /* again, in a new sample */
			}
			trig_close(&t);
		}
}

/* With trigger_peer, the lane that fires executes the operation by stores. Operations that need activity at the target
 * are rejected. */
TEST(stores)
{
	struct trig t;
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_peer", ""), 0);
	put(&t);
	add(&t);
	bursts(&t);
	put(&t);
	struct loom_trigger_post post = {.tag = 1, .op = LOOM_NET_RECV, .bytes = 8, .local = trig_ref(&t, t.data)};
	REFUSED(trig_post_fails(&t, post), LOOM_ENOTSUP, t.err, "choose another trigger");
	post.op = LOOM_NET_ADD; /* the address is misaligned */
	post.remote = post.local + 4;
	CU_ASSERT_EQUAL(trig_post_fails(&t, post), LOOM_ENOTSUP);
	trig_close(&t);
}

/* Tests a paired post. Its data travel together with their notification. If they do not fit into the stage, they are
 * copied to their place directly. */
static void paired(struct trig *t, uint64_t bytes, uint64_t threshold, int alone)
{
	uint64_t *from = (uint64_t *)t->data, *to = from + 8192, words = bytes / 8;
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	trig_post(t, (struct loom_trigger_post){.tag = 7, .threshold = threshold, .rearm = threshold, .op = LOOM_NET_PUT,
						.local = trig_ref(t, from), .remote = trig_ref(t, to),
						.bytes = bytes, .slot = 3, .notify = 9, .paired = 1});
	for (uint64_t round = 1; round <= 50; round++) {
		uint64_t wrong = 0;
		for (uint64_t i = 0; i < words; i++)
			from[i] = round * 1000003 + i;
		for (uint64_t i = 1; i <= threshold; i++) {
			CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 9), (int64_t)round - 1);
			if (alone)
				trig_fire(t, 7);
			else
				CU_ASSERT_EQUAL(t->dev->fire_together(&t->ctx[0], 7), 0);
		}
		/* The message is received by arrived(), an op of one lane, or by await_together(), an op of all lanes.
		 * The latter leaves the first message to arrived(). */
		if (!alone && t->dev->await_together(&t->ctx[0], 9, round) == 0)
			CU_ASSERT(round == 1 || bytes > 4096);
		CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 9), (int64_t)round);
		for (uint64_t i = 0; i < words; i++)
			wrong += to[i] != round * 1000003 + i;
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(to[words], 0);
		CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], 3), (int64_t)round);
		to[0] = 5; /* a later poll must not overwrite this word */
		CU_ASSERT_EQUAL(t->dev->arrived(&t->ctx[0], 9), (int64_t)round);
		CU_ASSERT_EQUAL(to[0], 5);
	}
}

TEST(paired_posts)
{
	struct trig t;
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_peer", "stage=8KiB"), 0);
	for (uint64_t bytes = 8; bytes <= 40000; bytes *= 5) /* 25,000 bytes exceed the stage */
		for (uint64_t threshold = 1; threshold <= 3; threshold += 2)
			for (int alone = 0; alone < 2; alone++)
				paired(&t, bytes, threshold, alone);
	/* A post without rearm runs only once. A paired post promises to be the only post of its tag, so a second post
	 * is rejected. */
	CU_ASSERT_EQUAL(trig_reset(&t), 0);
	struct loom_trigger_post post = {.tag = 7, .threshold = 2, .op = LOOM_NET_PUT, .bytes = 8, .notify = 9,
					 .local = trig_ref(&t, t.data), .remote = trig_ref(&t, t.data + 64), .paired = 1};
	trig_post(&t, post);
	REFUSED(trig_post_fails(&t, post), LOOM_EINVAL, t.err, "promised to be its only one");
	for (int i = 0; i < 6; i++)
		trig_fire(&t, 7);
	CU_ASSERT_EQUAL(t.dev->arrived(&t.ctx[0], 9), 1);
	/* The failure of an operation also ends waits for paired messages. */
	post.tag = 8;
	post.flags = LOOM_NET_REMOTE_FROM_FIRE;
	post.threshold = 1;
	post.window = 8;
	post.notify = 10;
	trig_post(&t, post);
	CU_ASSERT_EQUAL(t.dev->fire_with(&t.ctx[0], 8, LOOM_ARGUMENT(0, 16)), 0);
	CU_ASSERT_EQUAL(t.dev->arrived(&t.ctx[0], 9), LOOM_EIO);
	CU_ASSERT_EQUAL(t.dev->await_together(&t.ctx[0], 9, 2), LOOM_EIO);
	/* The first fire may count for several messages. */
	for (uint64_t threshold = 1; threshold <= 2; threshold++) {
		uint64_t *from = (uint64_t *)t.data;
		CU_ASSERT_EQUAL(trig_reset(&t), 0);
		trig_post(&t, (struct loom_trigger_post){.tag = 7, .threshold = threshold, .rearm = threshold,
							 .op = LOOM_NET_PUT, .bytes = 16, .notify = 9, .paired = 1,
							 .local = trig_ref(&t, from), .remote = trig_ref(&t, from + 8)});
		from[0] = 3;
		from[1] = 4;
		CU_ASSERT_EQUAL(t.dev->fire(&t.ctx[0], 7, 2 * (uint32_t)threshold), 0);
		CU_ASSERT_EQUAL(t.dev->arrived(&t.ctx[0], 9), 2);
		CU_ASSERT(from[8] == 3 && from[9] == 4);
	}
	trig_close(&t);
	/* With a small stage there are more paired posts than records for them. For the further posts, the promise is
	 * ignored. */
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_peer", "stage=64"), 0);
	for (uint32_t i = 0; i < 40; i++)
		trig_post(&t, (struct loom_trigger_post){.tag = 1 + i, .threshold = 1, .op = LOOM_NET_PUT, .bytes = 8,
							 .local = trig_ref(&t, t.data + 8 * i), .paired = 1,
							 .remote = trig_ref(&t, t.data + 4096 + 8 * i), .notify = 1 + i});
	for (uint32_t i = 0; i < 40; i++) {
		((uint64_t *)t.data)[i] = i + 1;
		trig_fire(&t, 1 + i);
	}
	for (uint32_t i = 0; i < 40; i++) {
		CU_ASSERT_EQUAL(t.dev->arrived(&t.ctx[0], 1 + i), 1);
		CU_ASSERT_EQUAL(((uint64_t *)t.data)[512 + i], i + 1);
	}
	trig_close(&t);
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* A fire whose argument would misalign an addition is an error. */
TEST(additions_are_aligned_D8)
{
	struct trig t;
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_peer", ""), 0);
	uint64_t *from = (uint64_t *)t.data, *to = from + 1024;
	for (uint32_t type = LOOM_NET_U64; type <= LOOM_NET_F32; type++)
		for (uint32_t flag = LOOM_NET_LOCAL_FROM_FIRE; flag <= LOOM_NET_REMOTE_FROM_FIRE; flag *= 2) {
			uint64_t size = type == LOOM_NET_F32 ? 4 : 8;
			CU_ASSERT_EQUAL(trig_reset(&t), 0);
			trig_post(&t, (struct loom_trigger_post){.tag = 6,
								 .threshold = 1,
								 .rearm = 1,
								 .op = LOOM_NET_ADD,
								 .type = type,
								 .local = trig_ref(&t, from),
								 .remote = trig_ref(&t, to),
								 .bytes = size,
								 .slot = 1,
								 .flags = flag,
								 .window = 64});
			CU_ASSERT_EQUAL(t.dev->fire_with(&t.ctx[0], 6, LOOM_ARGUMENT(0, size)), 0);
			CU_ASSERT_EQUAL(trig_flush(&t), 0);
			CU_ASSERT_EQUAL(t.dev->fire_with(&t.ctx[0], 6, LOOM_ARGUMENT(0, size / 2)), 0);
			REFUSED(t.ops->flush(t.self, 1000000000, &t.err), LOOM_EINVAL, t.err, "not aligned");
			CU_ASSERT(t.dev->completed(&t.ctx[0], 1) < 0);
		}
	trig_close(&t);
}

/* trigger_proxy: device code finds the entry of a tag in the table where the host has put it. */
TEST(proxy_builds_on_the_device)
{
	struct trig t;
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_proxy", ""), 0);
	uint64_t word[PROXY_BUILT], missing = 0;
	for (uint64_t tag = 1; tag <= 1000; tag++) {
		uint64_t id =
		    trig_post(&t, (struct loom_trigger_post){.tag = tag, .threshold = 9, .op = LOOM_NET_COUNT});
		proxy_read_entry(&t.ctx[0], tag, word);
		missing += word[PROXY_ID] != id;
	}
	CU_ASSERT_EQUAL(missing, 0);
	trig_close(&t);
}

/* ---- limits and mistakes ------------------------------------------------------------------------------ */

/* By default, tables are as large as the workload needs. If the conf sets a smaller size, the message names the needed
 * size. */
static void post_needs(struct trig *t)
{
	struct loom_trigger_post post = {.threshold = 5, .op = LOOM_NET_PUT, .bytes = 8};
	post.local = post.remote = trig_ref(t, t->data);
	for (uint32_t i = 0; i < trig_net->posts; i++) {
		post.tag = 1 + i;
		post.slot = 1 + i % (trig_net->slots - 1);
		post.notify = 1 + i % (trig_net->arrivals - 1);
		trig_post(t, post);
	}
}
static void refuse_needs(struct trig *t)
{
	struct loom_trigger_post post = {.tag = 1, .threshold = 5, .op = LOOM_NET_PUT, .bytes = 8};
	post.local = post.remote = trig_ref(t, t->data);
	post.notify = 8;
	REFUSED(trig_post_fails(t, post), LOOM_EINVAL, t->err, "set trigger.arrivals = 1200 or more");
	post.notify = 1300; /* this number is larger than the workload's needs */
	REFUSED(trig_post_fails(t, post), LOOM_EINVAL, t->err, "set trigger.arrivals = 1301 or more");
	post.notify = 0;
	post.slot = 8;
	REFUSED(trig_post_fails(t, post), LOOM_EINVAL, t->err, "set trigger.slots = 1100 or more");
	post.slot = 0;
	for (int i = 0; i < 8; i++)
		trig_post(t, post);
	REFUSED(trig_post_fails(t, post), LOOM_EFULL, t->err, "set trigger.posts = 9000 or more");
}
TEST(sizes_follow_from_needs)
{
	static const struct loom_net_need net = {.posts = 9000, .tags = 9000, .slots = 1100, .arrivals = 1200};
	struct trig t;
	trig_net = &net;
	for (size_t i = 0; i < PLUGINS; i++) {
		CU_ASSERT_EQUAL_FATAL(trig_open(&t, plugins[i], ""), 0);
		post_needs(&t);
		trig_close(&t);
	}
	each("posts=8 slots=8 arrivals=8", refuse_needs);
	trig_net = NULL;
}

/* ---- many producers, tiny FIFO ------------------------------------------------------------------------ */

#define FIRES 20000u

struct producer {
	struct trig *t;
	uint32_t worker;
	int rc;
};

/* Runs run() for all workers at once, and checks that none fails. */
static void by_all(struct trig *t, void *(*run)(void *))
{
	struct producer p[RIG_WORKERS];
	for (uint32_t w = 0; w < RIG_WORKERS; w++)
		p[w] = (struct producer){.t = t, .worker = w};
	in_threads(run, p, sizeof(*p), RIG_WORKERS);
	for (uint32_t w = 0; w < RIG_WORKERS; w++)
		CU_ASSERT_EQUAL(p[w].rc, 0);
}

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct loom_ctx *c = &p->t->ctx[p->worker];
	for (uint32_t i = 0; i < FIRES && !p->rc; i++)
		p->rc = p->t->dev->fire(c, 1 + (i & 1), 1 + (i & 3));
	return NULL;
}

TEST(producers)
{
	static const char *const settings[] = {"fifo=2", "fifo=64", "fifo=4 wait=nap polls=1"};
	static const size_t which[] = {0, PEER};
	for (size_t s = 0; s < sizeof(settings) / sizeof(*settings); s++)
		for (size_t i = 0; i < sizeof(which) / sizeof(*which); i++) {
			struct trig t;
			CU_ASSERT_EQUAL_FATAL(trig_open(&t, plugins[which[i]], which[i] == PEER ? "" : settings[s]), 0);
			/* A worker's fires with even i add 1 or 3 to tag 1, and those with odd i add 2 or 4 to tag 2. */
			uint64_t one = (uint64_t)RIG_WORKERS * FIRES / 4 * (1 + 3);
			uint64_t two = (uint64_t)RIG_WORKERS * FIRES / 4 * (2 + 4);
			trig_post(&t, (struct loom_trigger_post){
					  .tag = 1, .threshold = one, .op = LOOM_NET_COUNT, .slot = 1});
			trig_post(&t, (struct loom_trigger_post){
					  .tag = 1, .threshold = one + 1, .op = LOOM_NET_COUNT, .slot = 2});
			trig_post(&t, (struct loom_trigger_post){
					  .tag = 2, .threshold = 6, .rearm = 6, .op = LOOM_NET_COUNT, .slot = 3});
			by_all(&t, produce);
			CU_ASSERT_EQUAL(trig_flush(&t), 0);
			CU_ASSERT_EQUAL(t.dev->completed(&t.ctx[0], 1), 1);
			CU_ASSERT_EQUAL(t.dev->completed(&t.ctx[0], 2), 0);
			CU_ASSERT_EQUAL(t.dev->completed(&t.ctx[0], 3), (int64_t)(two / 6));
			trig_close(&t);
		}
}

static uint64_t seed = 2463534242ull;
static uint64_t draw(uint64_t below)
{
	return (xorshift(&seed) >> 11) % below;
}

/* A producer at a full FIFO ends when the run is stopped. */
static void *produce_forever(void *arg)
{
	struct producer *p = arg;
	while (!p->rc)
		p->rc = p->t->dev->fire(&p->t->ctx[0], 1, 1);
	return NULL;
}
/* The CPU also adds to memory to which workers add by RMA. No addition may be lost, and all returned values must
 * differ. */
enum { ACCESSES = 300 };
struct accessor {
	struct trig *t;
	pthread_t thread;
	uint32_t worker, bad;
	unsigned char *seen; /* seen[v] is 1 if an addition returned v; shared by the threads */
};

static void *access_often(void *arg)
{
	struct accessor *a = arg;
	struct trig *t = a->t;
	char *from = t->data + 4096, *to = t->data + 65536 * (1 + a->worker);
	struct loom_rma sum = {.op = LOOM_NET_ADD, .remote = trig_ref(t, t->data), .value = 1};
	struct loom_rma posted = {.op = LOOM_NET_ADD, .remote = trig_ref(t, t->data + 64), .value = 1ull << 32};
	struct loom_rma copy = {.op = LOOM_NET_GET, .remote = trig_ref(t, from), .local = trig_ref(t, to)};
	for (uint32_t i = 0; i < ACCESSES; i++) {
		uint64_t was = 0;
		a->bad +=
		    t->dev->rma(&t->ctx[a->worker], &sum, &was) != 0 || was >= RIG_WORKERS * ACCESSES || a->seen[was]++;
		a->bad += t->dev->rma(&t->ctx[a->worker], &posted, NULL) != 0;
		copy.bytes = 64 * (1 + i % 64);
		memset(to, 0, copy.bytes);
		a->bad += t->dev->rma(&t->ctx[a->worker], &copy, NULL) != 0 || memcmp(from, to, copy.bytes);
	}
	return NULL;
}

static void access_all(struct trig *t)
{
	static unsigned char seen[RIG_WORKERS * ACCESSES];
	struct accessor a[RIG_WORKERS];
	uint64_t *sum = (uint64_t *)t->data, own = 0;
	CU_ASSERT_EQUAL(trig_reset(t), 0);
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 4096; i++)
		t->data[4096 + i] = (char)(i * 7 + (i >> 8) + 1);
	for (uint32_t w = 0; w < RIG_WORKERS; w++) {
		a[w] = (struct accessor){.t = t, .worker = w, .seen = seen};
		pthread_create(&a[w].thread, NULL, access_often, &a[w]);
	}
	for (; own < 2000; own++) {
		__atomic_fetch_add(&sum[8], 1, __ATOMIC_RELAXED); /* concurrent with the workers' additions without a result */
		if (own % 100 == 0)
			usleep(100);
	}
	for (uint32_t w = 0; w < RIG_WORKERS; w++) {
		pthread_join(a[w].thread, NULL);
		CU_ASSERT_EQUAL(a[w].bad, 0);
	}
	CU_ASSERT_EQUAL(trig_flush(t), 0);
	CU_ASSERT_EQUAL(sum[0], RIG_WORKERS * ACCESSES);
	CU_ASSERT_EQUAL(sum[8], ((uint64_t)RIG_WORKERS * ACCESSES << 32) + own);
	CU_ASSERT_EQUAL(t->ctl->failed, 0);
	/* The operations also work without the NIC's thread, because workers of its process then take its steps. */
	t->ops->stop(t->self);
	memset(seen, 0, sizeof(seen));
	sum[0] = 0;
	access_often(&a[0]);
	CU_ASSERT_EQUAL(a[0].bad, 0);
	CU_ASSERT_EQUAL(sum[0], ACCESSES);
	struct loom_rma wrong = {.op = LOOM_NET_ADD, .rank = 7, .remote = trig_ref(t, t->data)};
	CU_ASSERT_EQUAL(t->dev->rma(&t->ctx[1], &wrong, &own), LOOM_EIO);
	CU_ASSERT_EQUAL(t->ctl->failed, (uint32_t)-LOOM_EIO);
	REFUSED(t->ops->flush(t->self, 1000000000, &t->err), LOOM_EIO, t->err, "rank 7");
}

TEST(remote_memory)
{
	static const char *const ways[] = {"provider=tcp wait=nap", "provider=tcp", "provider=net wait=nap",
					   "provider=net", "provider=sockets wait=nap"};
	struct trig t;
	trig_ranks = 2;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int rc = trig_open(&t, "trigger_gputn", ways[i]);
		if (rc)
			fprintf(stderr, "%s: %s\n", ways[i], t.err.text);
		else
			access_all(&t);
		CU_ASSERT(!rc || rc == LOOM_EUNAVAIL);
		trig_close(&t);
	}
	REFUSED(trig_open(&t, "trigger_gputn", "provider=shm"), LOOM_ENOTSUP, t.err, "provider = auto or tcp");
	trig_close(&t);
	trig_ranks = 0;
}

TEST(stop_at_full)
{
	struct trig t;
	CU_ASSERT_EQUAL_FATAL(trig_open(&t, "trigger_gputn", "fifo=2"), 0);
	t.ops->stop(t.self); /* the NIC is stopped, so the FIFO is never emptied */
	t.started = 0;
	struct producer p = {.t = &t};
	pthread_t thread;
	pthread_create(&thread, NULL, produce_forever, &p);
	usleep(50000);
	__atomic_store_n(&t.ctl->stop, 1u, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(p.rc, LOOM_EINTR);
	trig_close(&t);
}

/* ---- random orders of post and fire through the whole NIC ---------------------------------------------- */

/* Each tag gets random thresholds and fires, posted and fired in random order. In the end, a post must have run if and
 * only if its tag was fired often enough. Each put must have written its own value. */
static void random_orders(struct trig *t)
{
	enum { TAGS = 16, PER = 4, ROUNDS = 60 };
	const char *more = getenv("TRIGGER_ROUNDS");
	int rounds = more ? atoi(more) : ROUNDS;
	for (int round = 0; round < rounds; round++) {
		CU_ASSERT_EQUAL_FATAL(trig_reset(t), 0);
		uint64_t threshold[TAGS][PER], fires[TAGS], *from = (uint64_t *)t->data, *to = from + 512;
		uint32_t left[TAGS], to_fire[TAGS], todo = 0;
		for (int g = 0; g < TAGS; g++) {
			fires[g] = draw(8);
			to_fire[g] = (uint32_t)fires[g];
			left[g] = PER;
			todo += PER + to_fire[g];
			for (int k = 0; k < PER; k++) {
				threshold[g][k] = draw(9);
				from[g * PER + k] = (uint64_t)round << 32 | (uint64_t)(g * PER + k + 1);
			}
		}
		while (todo) {
			uint64_t g = draw(TAGS);
			if (left[g] && (draw(2) || !to_fire[g])) {
				uint32_t k = --left[g], n = (uint32_t)(g * PER + k);
				trig_post(t, (struct loom_trigger_post){
						     .tag = 1 + g, .threshold = threshold[g][k], .op = LOOM_NET_PUT,
						     .local = trig_ref(t, from + n), .remote = trig_ref(t, to + n),
						     .bytes = 8, .slot = 1 + n});
				todo--;
			} else if (to_fire[g]) {
				CU_ASSERT_EQUAL(t->dev->fire(&t->ctx[draw(RIG_WORKERS)], 1 + g, 1), 0);
				to_fire[g]--;
				todo--;
			}
		}
		CU_ASSERT_EQUAL_FATAL(trig_flush(t), 0);
		for (int g = 0; g < TAGS; g++)
			for (int k = 0; k < PER; k++) {
				int n = g * PER + k, ran = threshold[g][k] <= fires[g];
				CU_ASSERT_EQUAL(t->dev->completed(&t->ctx[0], (uint32_t)n + 1), ran);
				CU_ASSERT_EQUAL(to[n], ran ? from[n] : 0);
			}
	}
}
TEST(random_orders)
{
	each("", random_orders);
}

int main(int argc, char **argv)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/plugins/trigger_gputn.so", test_build_dir());
	if (access(path, F_OK))
		test_skip("built without libfabric (Debian: libfabric-dev)");
	return test_main(argc, argv, "trigger", 120);
}
