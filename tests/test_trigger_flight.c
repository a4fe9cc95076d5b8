/* SPDX-License-Identifier: Apache-2.0 */
/* Which operations are under way, with a network whose operations end when the test says so: a flush waits for this
 * sample's, neither for receives nor for what a sample before has left. */
#include "../plugins/trigger_nic/check.c"
#include "../plugins/trigger_nic/list.c"
#include "../plugins/trigger_nic/nic.c"
#include "../plugins/trigger_nic/policy.c"

#include "fake_host.h"

/* ---- the network ----------------------------------------------------------------------------------- */

#define FLIGHTS 8u

static struct {
	struct fabric_context *under_way[FLIGHTS], *ended; /* one event at a time */
	uint32_t count;
	int full; /* has no room for a notification */
} net;

int fabric_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		struct loom_error *err)
{
	(void)host, (void)want, (void)fabric, (void)err;
	return 0;
}
void fabric_stop(struct fabric *f)
{
	(void)f;
}
void fabric_close(struct fabric *f)
{
	(void)f;
}
const char *fabric_name(const struct fabric *f)
{
	return f ? "a network" : "none";
}
int fabric_share(struct fabric *f, const struct loom_segments *segments, struct loom_error *err)
{
	(void)f, (void)segments, (void)err;
	return 0;
}
int fabric_check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	(void)f, (void)rank, (void)ref, (void)bytes;
	return 0;
}
int fabric_can_add(const struct fabric *f, uint32_t type, uint64_t bytes)
{
	(void)f, (void)type, (void)bytes;
	return 0;
}
static int take_off(struct fabric_context *context)
{
	CU_ASSERT_FATAL(net.count < FLIGHTS);
	net.under_way[net.count++] = context;
	return 0;
}
int fabric_start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	(void)f, (void)io, (void)status;
	return take_off(context);
}
int fabric_notify(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status)
{
	(void)f, (void)target, (void)notify, (void)status;
	return net.full ? LOOM_EAGAIN : take_off(context);
}
void fabric_cancel(struct fabric *f, struct fabric_context *context)
{
	(void)f, (void)context; /* it ends when it ends */
}
int fabric_poll(struct fabric *f, struct fabric_event *event, uint32_t room)
{
	(void)f, (void)room;
	if (!net.ended)
		return 0;
	*event = (struct fabric_event){.what = FABRIC_DONE, .context = net.ended};
	net.ended = NULL;
	return 1;
}
const char *fabric_strerror(int status)
{
	return status ? "failed" : "fine";
}

/* ---- a NIC whose steps the test takes -------------------------------------------------------------- */

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
static const struct nic_way way = {.name = "trigger_test", .poll = nothing_fired, .drained = always};

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

static void rig_open(struct rig *r)
{
	void *self;
	struct loom_need need = {.size = sizeof(need)};
	void *at[2] = {NULL, r->block};
	uint64_t bytes[2] = {0, sizeof(r->block)};
	const struct loom_segments segments = {.size = sizeof(segments), .count = 2, .at = at, .bytes = bytes};
	*r = (struct rig){.opts = {.posts = 8, .tags = 16, .slots = 4, .arrivals = 4, .fifo = 2, .flights = FLIGHTS}};
	net.count = 0;
	net.ended = NULL;
	net.full = 0;
	CU_ASSERT_EQUAL_FATAL(nic_policy_create(&fake_host, &r->opts, &way, &self, &r->err), 0);
	r->nic = self;
	r->shape = (struct loom_device_shape){.name = "cpu:0", .workers = 1, .lanes = 1, .numa_node = -1};
	r->layout = (struct loom_layout){.size = sizeof(r->layout), .devices = 1, .workers = 1, .device = &r->shape};
	r->device[0] = &r->on_device;
	r->view = (struct loom_view){.size = sizeof(r->view), .global = r->block, .device = r->device};
	CU_ASSERT_EQUAL_FATAL(nic_policy_need(self, &r->layout, &need, &r->err), 0);
	CU_ASSERT_FATAL(need.global <= sizeof(r->block));
	CU_ASSERT_EQUAL_FATAL(take_blocks(r->nic, &r->layout, &r->view, &segments, &r->err), 0);
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
	net.ended = net.under_way[i];
	net.under_way[i] = net.under_way[--net.count];
	nic_step(r->nic);
}

static int flushed(struct rig *r)
{
	return !nic_policy_flush(r->nic, 0, &r->err);
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void test_left_by_a_sample(void)
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
	end(&r, 0); /* that of the sample before */
	CU_ASSERT(!flushed(&r));
	end(&r, 0);
	CU_ASSERT(flushed(&r));
	nic_policy_destroy(r.nic);
}

static void test_notification_of_a_sample_before(void)
{
	struct rig r;
	rig_open(&r);
	sample(&r);
	begin(&r, LOOM_NET_GET, 1);
	net.full = 1;
	end(&r, 0); /* its notification waits for room */
	CU_ASSERT(!flushed(&r));
	sample(&r);
	net.full = 0;
	nic_step(r.nic);
	CU_ASSERT_EQUAL(net.count, 0); /* nobody in this sample waits for it */
	CU_ASSERT(flushed(&r));
	nic_policy_destroy(r.nic);
}

/* Any order of beginnings, ends and samples, against a count of this sample's operations. */
static void test_any_order(void)
{
	struct { uint32_t sample, receive; } known[FLIGHTS];
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
		} else if (draw % 2 && net.count < FLIGHTS) {
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

static const struct test tests[] = {
	{"left_by_a_sample", test_left_by_a_sample},
	{"notification_of_a_sample_before", test_notification_of_a_sample_before},
	{"any_order", test_any_order},
};
TEST_MAIN("trigger_flight", 60, tests)
