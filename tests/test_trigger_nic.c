/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parts of the software NIC. The network is an emulation, in which the test decides when an operation ends.
 * flush() must wait for the operations of this sample, but not for receives or for operations of an earlier sample. The
 * trigger list must run due operations in the right order. */
#include "../plugins/trigger_common/nic/policy.c"

#include "../plugins/trigger_common/simnet/links.h"
#include "fake_host.h"

/* ---- the network ----------------------------------------------------------------------------------- */

#define REQUESTS 8u

static struct {
	struct fabric_context *in_flight[REQUESTS], *ended; /* in flight; the next that ends, or NULL */
	uint32_t count;
	int full; /* 1 if the network has no room for a notification */
} net;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void close_fabric(struct fabric *f)
{
}
static int share(struct fabric *f, const struct loom_segments *segments, struct loom_error *err)
{
	return 0;
}
static int check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return 0;
}
static int can_add(const struct fabric *f, uint32_t type, uint64_t bytes)
{
	return 0;
}
static int begin_operation(struct fabric_context *context)
{
	CU_ASSERT_FATAL(net.count < REQUESTS);
	net.in_flight[net.count++] = context;
	return 0;
}
static int start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	return begin_operation(context);
}
static int notify(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status)
{
	return net.full ? LOOM_EAGAIN : begin_operation(context);
}
static void cancel(struct fabric *f, struct fabric_context *context)
{
	/* nothing to do: the test ends each operation by end() */
}
static int poll_events(struct fabric *f, struct fabric_event *event, uint32_t room)
{
	if (!net.ended)
		return 0;
	*event = (struct fabric_event){.what = FABRIC_DONE, .context = net.ended};
	net.ended = NULL;
	return 1;
}
static const struct fabric_ops fake_ops = {.close = close_fabric,
					   .share = share,
					   .check = check,
					   .can_add = can_add,
					   .start = start,
					   .notify = notify,
					   .cancel = cancel,
					   .poll = poll_events};
static struct fabric fake_fabric = {.ops = &fake_ops, .host = &fake_host, .name = "fake", .fd = -1};

int nic_open_fabric(struct nic *nic, int rma, struct loom_error *err)
{
	nic->fabric = &fake_fabric;
	return 0;
}
int nic_is_simulated(const struct nic *nic)
{
	return 0;
}
const char *fabric_strerror(int status)
{
	return status ? "failed" : "fine";
}

#pragma GCC diagnostic pop

/* ---- a NIC without a thread, whose steps the test takes ---- */

static uint32_t nothing_fired(struct nic *nic)
{
	(void)nic;
	return 0;
}
static int always(struct nic *nic)
{
	(void)nic;
	return 1;
}
static const struct nic_ops ops = {.name = "trigger_test", .poll = nothing_fired, .drained = always};

struct rig {
	struct nic_opts opts;
	struct nic *nic;
	struct loom_device_shape shape;
	struct loom_layout layout;
	struct loom_view view;
	void *device[1];
	uint64_t block[2048];
	struct nic_device on_device;
	struct loom_error err;
};

static void rig_open_as(struct rig *r, const struct nic_ops *as, struct loom_device_shape shape)
{
	void *self;
	struct loom_need need = {.size = sizeof(need)};
	*r =
	    (struct rig){.opts = {.posts = 8, .tags = 16, .slots = 4, .arrivals = 4, .fifo = 2, .in_flight = REQUESTS}};
	net.count = 0;
	net.ended = NULL;
	net.full = 0;
	CU_ASSERT_EQUAL_FATAL(nic_policy_create(&fake_host, &r->opts, as, &self, &r->err), 0);
	r->nic = self;
	r->shape = shape;
	r->layout = (struct loom_layout){
	    .size = sizeof(r->layout), .devices = 1, .workers = shape.workers, .device = &r->shape};
	r->device[0] = &r->on_device;
	r->view = (struct loom_view){.size = sizeof(r->view), .global = r->block, .device = r->device};
	CU_ASSERT_EQUAL_FATAL(nic_policy_need(self, &r->layout, &need, &r->err), 0);
	CU_ASSERT_FATAL(need.global <= sizeof(r->block));
	CU_ASSERT_EQUAL_FATAL(take_blocks(r->nic, &r->layout, &r->view, &r->err), 0);
}

static void rig_open(struct rig *r)
{
	rig_open_as(r, &ops, (struct loom_device_shape){.name = "cpu:0", .workers = 1, .lanes = 1, .numa_node = -1});
}

static void sample(struct rig *r)
{
	CU_ASSERT_EQUAL(nic_policy_init(r->nic, &r->layout, &r->view, &r->err), 0);
}

static void begin(struct rig *r, uint32_t op, uint32_t notify)
{
	const struct loom_trigger_post what = {.size = sizeof(what), .tag = 1, .op = op, .bytes = 8, .notify = notify};
	CU_ASSERT_EQUAL(nic_run(r->nic, &what, LIST_NONE, 0), 0);
}

static void end(struct rig *r, uint32_t i)
{
	net.ended = net.in_flight[i];
	net.in_flight[i] = net.in_flight[--net.count];
	nic_step(r->nic);
}

static int flushed(struct rig *r)
{
	return !nic_policy_flush(r->nic, 0, &r->err);
}

/* ---- tests ----------------------------------------------------------------------------------------- */

/* Stores trigger n of a worker, for this tag, into the worker's FIFO, as the worker would. */
static void push(struct rig *r, uint32_t ring, uint64_t n, uint64_t tag)
{
	uint64_t *words = (uint64_t *)(r->nic->fifos[ring] + 1);
	__atomic_store_n(&words[n & (r->nic->fifo - 1)], nic_word(tag, 1) | nic_lap(n, r->nic->fifo), __ATOMIC_RELEASE);
}

/* The first worker's triggers always keep the network full. The NIC must still take the second worker's trigger. */
TEST(no_ring_starves_D6)
{
	static const struct nic_ops fifo = {
	    .name = "trigger_test", .has_fifo = 1, .poll = nic_poll_fifo, .drained = nic_drained_fifo};
	struct rig r;
	uint64_t id, pushed = 0;
	rig_open_as(&r, &fifo,
		    (struct loom_device_shape){
			.name = "gpu:0", .kind = LOOM_ON_GPU, .workers = 2, .lanes = 1, .numa_node = -1});
	CU_ASSERT_EQUAL_FATAL(r.nic->rings, 2);
	sample(&r);
	struct loom_trigger_post post = {
	    .size = sizeof(post), .tag = 1, .threshold = 1, .rearm = 1, .op = LOOM_NET_PUT, .bytes = 8};
	CU_ASSERT_EQUAL_FATAL(nic_policy_post(r.nic, &post, &id, &r.err), 0);
	post.tag = 2;
	CU_ASSERT_EQUAL_FATAL(nic_policy_post(r.nic, &post, &id, &r.err), 0);
	for (uint32_t i = 0; i < 100 && !r.nic->cursor[1]; i++) {
		while (pushed - r.nic->cursor[0] < r.nic->fifo)
			push(&r, 0, pushed++, 1);
		if (net.count < REQUESTS)
			nic_step(r.nic);
		else
			end(&r, 0);
		if (i == 10) /* by now the network is full */
			push(&r, 1, 0, 2);
	}
	CU_ASSERT_EQUAL(r.nic->cursor[1], 1);
	nic_policy_destroy(r.nic);
}

TEST(left_by_a_sample)
{
	struct rig r;
	rig_open(&r);
	sample(&r);
	begin(&r, LOOM_NET_PUT, 0);
	CU_ASSERT(!flushed(&r));
	sample(&r);
	CU_ASSERT(flushed(&r));
	begin(&r, LOOM_NET_PUT, 0);
	CU_ASSERT(!flushed(&r));
	end(&r, 0); /* the operation belongs to the previous sample */
	CU_ASSERT(!flushed(&r));
	end(&r, 0);
	CU_ASSERT(flushed(&r));
	nic_policy_destroy(r.nic);
}

TEST(notification_of_a_sample_before)
{
	struct rig r;
	rig_open(&r);
	sample(&r);
	begin(&r, LOOM_NET_GET, 1);
	net.full = 1;
	end(&r, 0); /* the notification waits for room */
	CU_ASSERT(!flushed(&r));
	sample(&r);
	net.full = 0;
	nic_step(r.nic);
	CU_ASSERT_EQUAL(net.count, 0); /* no notification is sent for an operation of an earlier sample */
	CU_ASSERT(flushed(&r));
	nic_policy_destroy(r.nic);
}

/* If a provider reports the end of an operation twice, or of an unknown one, this is an error message, and the NIC must
 * not write to a wrong address. */
TEST(ended_by_mistake)
{
	struct fabric_context foreign;
	struct rig r;
	rig_open(&r);
	for (int twice = 0; twice < 2; twice++) {
		sample(&r);
		begin(&r, LOOM_NET_PUT, 0);
		struct fabric_context *own = net.in_flight[0];
		end(&r, 0);
		CU_ASSERT_EQUAL(r.nic->status, 0);
		net.ended = twice ? own : &foreign;
		nic_step(r.nic);
		CU_ASSERT_EQUAL(r.nic->status, LOOM_EIO);
		CU_ASSERT_PTR_NOT_NULL(strstr(r.nic->failure, "not in flight"));
	}
	nic_policy_destroy(r.nic);
}

/* For random orders of starts, ends and samples, flush() agrees with a separate count of this sample's operations. */
TEST(any_order)
{
	struct { uint32_t sample, receive; } known[REQUESTS];
	struct rig r;
	uint32_t now = 0, state = 1;
	rig_open(&r);
	sample(&r);
	for (int step = 0; step < 20000; step++) {
		state = state * 1664525u + 1013904223u;
		uint32_t draw = state >> 16, i = draw / 16 % (net.count ? net.count : 1), open = 0;
		if (draw % 16 == 0) {
			sample(&r);
			now++;
		} else if (draw % 2 && net.count < REQUESTS) {
			known[net.count].sample = now;
			known[net.count].receive = draw % 8 == 1;
			begin(&r, draw % 8 == 1 ? LOOM_NET_RECV : LOOM_NET_PUT, 0);
		} else if (net.count) {
			known[i] = known[net.count - 1];
			end(&r, i);
		}
		for (i = 0; i < net.count; i++)
			open += known[i].sample == now && !known[i].receive;
		CU_ASSERT_EQUAL_FATAL(nic_idle(r.nic), !open);
	}
	nic_policy_destroy(r.nic);
}

/* ---- the list of triggers --------------------------------------------------------------------------- Compares the
 * list, under random posts, counts and runs, with a sequential oracle that scans every post each time. The cases
 * include posts after their fires, thresholds beyond 32 bits, and re-arming. */

#define TAGS 7u
#define POSTS 24u

struct known {
	int used, spent, in_flight;
	uint64_t id, tag, threshold, rearm, order; /* `order` is the order of posting or re-arming */
};
struct oracle {
	uint64_t value[TAGS + 1];
	struct known post[POSTS];
	uint64_t order;
	uint64_t run[1 << 16]; /* a ring of ids, in the order in which the posts must run */
	uint32_t head, tail;
};

static void oracle_queue(struct oracle *o, uint64_t tag)
{
	for (;;) {
		struct known *best = NULL;
		for (uint32_t i = 0; i < POSTS; i++) {
			struct known *k = &o->post[i];
			if (!k->used || k->spent || k->tag != tag || k->threshold > o->value[tag])
				continue;
			if (!best || k->threshold < best->threshold ||
			    (k->threshold == best->threshold && k->order < best->order))
				best = k;
		}
		if (!best)
			return;
		o->run[o->head++ & 0xffff] = best->id;
		best->in_flight++;
		if (best->rearm && best->threshold + best->rearm > best->threshold) {
			best->threshold += best->rearm;
			best->order = o->order++;
		} else {
			best->spent = 1;
		}
	}
}

static struct known *oracle_find(struct oracle *o, uint64_t id)
{
	for (uint32_t i = 0; i < POSTS; i++)
		if (o->post[i].used && o->post[i].id == id)
			return &o->post[i];
	return NULL;
}

static uint64_t seed = 88172645463325252ull;
static uint64_t draw(uint64_t below)
{
	return (xorshift(&seed) >> 11) % below;
}

static uint64_t id_of(const struct trigger_list *l, uint32_t post)
{
	return (uint64_t)l->post[post].generation << 32 | post;
}

static int random_post(struct trigger_list *l, struct oracle *o)
{
	struct loom_trigger_post what = {.size = sizeof(what), .tag = 1 + draw(TAGS)};
	uint64_t value = o->value[what.tag], id = 0;
	switch (draw(4)) {
	case 0:
		what.threshold = draw(value + 2); /* in most cases the threshold is already reached */
		break;
	case 1:
		what.threshold = value + draw(1ull << 32) + 1; /* the threshold is beyond 32 bits */
		break;
	default:
		what.threshold = value + draw(12);
	}
	if (draw(3) == 0) {
		what.rearm = 1 + draw(5) * (draw(4) ? 1 : 1ull << 31);
		if (what.threshold + 9 < value) /* otherwise the post would be due too often */
			what.threshold = value - 9;
	}
	uint32_t i = 0;
	while (i < POSTS && o->post[i].used)
		i++;
	int rc = list_add(l, &what, &id);
	if (rc != (i == POSTS ? LOOM_EFULL : 0))
		return 0;
	if (rc)
		return 1;
	o->post[i] = (struct known){.used = 1, .id = id, .tag = what.tag, .threshold = what.threshold,
				    .rearm = what.rearm, .order = o->order++};
	oracle_queue(o, what.tag);
	return 1;
}

static int random_count(struct trigger_list *l, struct oracle *o)
{
	uint64_t tag = 1 + draw(TAGS), n = 1 + draw(4);
	if (draw(1000) == 0) { /* a jump beyond 32 bits; with small steps of re-arming, it would take hours */
		for (uint32_t i = 0; i < POSTS; i++)
			if (o->post[i].used && o->post[i].tag == tag && o->post[i].rearm &&
			    o->post[i].rearm < 1ull << 30)
				return 1;
		n = (1ull << 32) + draw(3);
	}
	o->value[tag] += n;
	oracle_queue(o, tag);
	return list_count(l, tag, n, 0) == 0;
}

/* Takes some runs in order, and ends them. */
static int random_run(struct trigger_list *l, struct oracle *o)
{
	struct list_run due;
	for (uint64_t n = draw(8); n > 0 && list_next(l, &due); n--) {
		uint64_t id = id_of(l, due.post);
		if (o->head == o->tail || o->run[o->tail++ & 0xffff] != id)
			return 0;
		struct known *k = oracle_find(o, id);
		if (!k)
			return 0;
		list_done(l, due.post);
		if (--k->in_flight == 0 && k->spent)
			k->used = 0;
	}
	return 1;
}

TEST(random_orders)
{
	static struct oracle o;
	struct trigger_list l;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, POSTS), 0);
	int ok = 1;
	for (uint32_t i = 0; i < 1000000 && ok; i++) {
		switch (draw(8)) {
		case 0:
		case 1:
			ok = random_post(&l, &o);
			break;
		case 2:
		case 3:
		case 4:
		case 5:
			ok = random_run(&l, &o);
			break;
		default:
			ok = random_count(&l, &o);
		}
		/* The queue must not become full, because the list would then defer runs, which the oracle does not. */
		while (ok && list_queued(&l) > l.ready_mask / 4)
			ok = random_run(&l, &o);
		if (!ok)
			fprintf(stderr, "step %u differs from the oracle\n", i);
	}
	CU_ASSERT(ok);
	list_close(&fake_host, &l);
}

static uint64_t post_one(struct trigger_list *l, uint64_t tag, uint64_t threshold, uint64_t rearm)
{
	struct loom_trigger_post what = {.size = sizeof(what), .tag = tag, .threshold = threshold, .rearm = rearm};
	uint64_t id = 0;
	CU_ASSERT_EQUAL(list_add(l, &what, &id), 0);
	return id;
}

/* A run gets the argument of its own fire, even if the queue was full at this fire. An operation that is posted after
 * the fire is rejected. */
TEST(arguments_are_kept_D7)
{
	struct trigger_list l;
	struct list_run due;
	uint64_t id, runs = 0, wrong = 0;
	struct loom_trigger_post what = {
	    .size = sizeof(what), .tag = 1, .threshold = 1, .flags = LOOM_NET_REMOTE_FROM_FIRE};
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, 4096), 0);
	uint32_t n = (uint32_t)l.ready_mask + 100;
	for (uint32_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(list_add(&l, &what, &id), 0);
	what.threshold = 2;
	CU_ASSERT_EQUAL(list_add(&l, &what, &id), 0);
	CU_ASSERT_EQUAL(list_count(&l, 1, 1, 77), 0);
	CU_ASSERT_EQUAL(list_count(&l, 1, 1, 88), 0); /* by now the queue is full */
	for (; list_next(&l, &due); list_done(&l, due.post))
		wrong += runs++ < n ? due.argument != 77 : due.argument == 77;
	CU_ASSERT_EQUAL(runs, n + 1ull);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(list_add(&l, &what, &id), LOOM_EBUSY);
	what.threshold = 3;
	CU_ASSERT_EQUAL(list_add(&l, &what, &id), 0);
	list_close(&fake_host, &l);
}

/* An addition makes more runs due than the queue holds. No run may be lost, and the order must be kept. */
TEST(small_queue)
{
	struct trigger_list l;
	struct list_run due;
	uint64_t last = 0, runs = 0;
	CU_ASSERT_EQUAL_FATAL(list_open(&fake_host, &l, 16, 8), 0);
	uint64_t fast = post_one(&l, 1, 1, 1);
	uint64_t slow = post_one(&l, 1, 1000, 1000), other = post_one(&l, 2, 1, 0);
	list_count(&l, 1, 100000, 0);
	CU_ASSERT_EQUAL(list_queued(&l), (uint64_t)l.ready_mask + 1);
	list_count(&l, 2, 1, 0); /* the queue is full, so this run is also deferred */
	uint64_t slow_runs = 0, other_runs = 0;
	while (list_next(&l, &due)) {
		if (due.post == (uint32_t)fast)
			last = ++runs;
		else if (due.post == (uint32_t)slow) {
			slow_runs++; /* the fast post re-armed for this threshold later, so it runs later */
			CU_ASSERT_EQUAL(last, slow_runs * 1000 - 1);
		} else if (due.post == (uint32_t)other) {
			other_runs++;
		}
		list_done(&l, due.post);
	}
	CU_ASSERT_EQUAL(runs, 100000);
	CU_ASSERT_EQUAL(slow_runs, 100);
	CU_ASSERT_EQUAL(other_runs, 1);
	CU_ASSERT_EQUAL(l.room, 6); /* the two re-armed posts keep their entries */
	list_close(&fake_host, &l);
}

/* ---- links of a simulated network --------------------------------------------------------------------- */

static struct links *links_of(const struct simnet_model *m, uint32_t hosts)
{
	struct links *l = links_create(m, hosts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	return l;
}

/* On a link, messages pass one at a time. The second message waits for the first on their common link. */
TEST(queues_of_links)
{
	struct simnet_model m = {
	    .sim_rate = 1e9, .sim_ranks_per_host = 1, .sim_uplinks = 1, .sim_latency = 100, .sim_hop = 10};
	struct links *l = links_of(&m, 4);
	struct link_route a = links_route(l, 0, 2), b = links_route(l, 1, 2);
	CU_ASSERT_EQUAL(links_queue(l, &a, 0, 1000), 1100);
	CU_ASSERT_EQUAL(links_queue(l, &b, 0, 1000), 2100);
	links_reset(l);
	CU_ASSERT_EQUAL(links_queue(l, &b, 0, 1000), 1100);
	links_destroy(l);
}

/* Each route through a tree begins and ends at its hosts. Between leaf switches it has an uplink of each, which no
 * route of another leaf switch has. */
TEST(ways_of_links)
{
	struct simnet_model m = {.sim_rate = 1e9,
				 .sim_ranks_per_host = 1,
				 .sim_hosts_per_leaf = 2,
				 .sim_uplinks = 2,
				 .sim_latency = 100,
				 .sim_hop = 10};
	struct links *l = links_of(&m, 7); /* four leaves, of which the last has one host */
	uint32_t leaf_of[32] = {0};
	for (uint32_t a = 0; a < 7; a++)
		for (uint32_t b = 0; b < 7; b++) {
			if (a == b)
				continue;
			struct link_route r = links_route(l, a, b);
			CU_ASSERT_EQUAL_FATAL(r.count, a / 2 == b / 2 ? 2 : 4);
			CU_ASSERT_EQUAL(r.link[0], a);
			CU_ASSERT_EQUAL(r.link[r.count - 1], 7 + b);
			links_reset(l);
			CU_ASSERT_EQUAL(links_queue(l, &r, 0, 1000), r.count == 2 ? 1100 : 1120);
			for (uint32_t i = 1; i + 1 < r.count; i++) {
				uint32_t leaf = 1 + (i == 1 ? a : b) / 2;
				CU_ASSERT_FATAL(r.link[i] >= 14 && r.link[i] < 14 + 16);
				CU_ASSERT(!leaf_of[r.link[i]] || leaf_of[r.link[i]] == leaf);
				leaf_of[r.link[i]] = leaf;
			}
		}
	links_destroy(l);
}

TEST_MAIN("trigger_nic", 60)
