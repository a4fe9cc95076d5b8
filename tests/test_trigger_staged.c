/* SPDX-License-Identifier: Apache-2.0 */
/* Tests device memory that the network cannot access: copies to another GPU, and copies in host memory, which the network
 * uses. The emulated provider accepts a message, has no room for it, or rejects it. The emulated device ends a copy when a
 * test says so. */
#include "support.h"

#if __has_include(<rdma/fabric.h>)
#include "../plugins/trigger_common/fabric/fabric_staged.c"
#include "fake_host.h"

static ssize_t result; /* what the provider returns for the next messages */
static uint32_t issued, notified; /* numbers of operations and of notifications that were passed to the provider */
static struct fabric_io last;	  /* the last operation */
static uint32_t last_notify;
static struct fabric_context *last_context;
static uint64_t started[LOOM_COPIES], ended[LOOM_COPIES], copied_to; /* ended: copies up to this number have ended */
static int start_result;

const char *fi_strerror(int code)
{
	return strerror(code);
}
int fabric_register_host(struct fabric_ofi *f, void *at, uint64_t bytes, struct fid_mr **mr)
{
	(void)f, (void)at, (void)bytes, (void)mr;
	return 0;
}
struct fabric_remote fabric_remote(const struct fabric_ofi *f, const struct fabric_local *here)
{
	(void)f, (void)here;
	return (struct fabric_remote){0};
}
int fabric_result(ssize_t code, int *status)
{
	*status = (int)-code;
	return code ? LOOM_EIO : 0;
}
ssize_t fabric_issue(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context)
{
	(void)f;
	issued++;
	last = *io;
	last_context = context;
	return result;
}
ssize_t fabric_issue_notify(struct fabric_ofi *f, uint32_t target, uint32_t notify, struct fabric_context *context)
{
	(void)f, (void)target;
	notified++;
	last_notify = notify;
	last_context = context;
	return result;
}
static ssize_t writedata(struct fid_ep *ep, const void *from, size_t bytes, void *desc, uint64_t data, fi_addr_t to,
			 uint64_t at, uint64_t key, void *context)
{
	(void)ep, (void)from, (void)bytes, (void)desc, (void)data, (void)to, (void)at, (void)key, (void)context;
	return result;
}
static int copied(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		  struct loom_error *err)
{
	(void)ctx, (void)segment, (void)offset, (void)host, (void)bytes, (void)in, (void)err;
	return 0;
}
static int start_copy(void *ctx, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
		      uint64_t *number, struct loom_error *err)
{
	(void)ctx, (void)segment, (void)offset, (void)bytes, (void)err;
	copied_to = other;
	*number = ++started[how];
	return start_result;
}
static int copy_ended(void *ctx, uint32_t segment, uint32_t how, uint64_t number)
{
	(void)ctx, (void)segment;
	return ended[how] == UINT64_MAX ? LOOM_EDIED : ended[how] >= number;
}
static int fits(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	(void)f, (void)rank, (void)ref, (void)bytes;
	return 0;
}

/* The state of one rank, whose segment 1 is staged. */
static struct fabric_ofi f;
static struct fabric_staging staging;
static struct fabric_event event[4];

static void open_one(void)
{
	static struct fi_ops_rma rma = {.size = sizeof(rma), .writedata = writedata};
	static struct fid_ep ep = {.rma = &rma};
	static struct fid_mr mr;
	/* Segment 1 is device memory, segment 2 is host memory. */
	static struct fabric_local here[3] = {{0}, {.bytes = 64, .staged = 1}, {.bytes = 64}};
	static struct fabric_remote there[3] = {{0}, {.bytes = 64, .staged = 1}, {.bytes = 64}}, scratch[1];
	static char memory[64];
	static fi_addr_t peer[1];
	static struct staged_notice notice[2 * MOST];
	static struct staged_ack acks[MOST];
	static struct staged_reach reached[3];
	static struct staged_copy out[MOST], in[2 * MOST];
	static const struct fabric_ops ops = {.check = fits};
	here[1].at = here[2].at = memory;
	memset(notice, 0, sizeof(notice));
	memset(acks, 0, sizeof(acks));
	memset(reached, 0, sizeof(reached));
	memset(started, 0, sizeof(started));
	memset(ended, 0, sizeof(ended));
	staging = (struct fabric_staging){.waits = 1,
					  .copy = copied,
					  .start_copy = start_copy,
					  .copy_ended = copy_ended,
					  .notice = notice,
					  .there = scratch,
					  .reach = reached,
					  .ack = acks,
					  .out = {.copy = out, .most = MOST},
					  .in = {.copy = in, .most = 2 * MOST},
					  .mr = &mr};
	f = (struct fabric_ofi){.is = {.host = &fake_host, .ops = &ops},
				.ep = &ep,
				.segments = 3,
				.piece = 16,
				.local = here,
				.remote = there,
				.staging = &staging,
				.peer = peer,
				.scratch_remote = scratch,
				.scratch_mr = &mr};
	issued = notified = 0;
	result = 0;
	start_result = 0;
}

/* Starts a put, whose data arrive in the copy at the target. The message that notifies the target is then sent, with
 * the result `result`. */
static void put_arrives(struct fabric_context *owner)
{
	struct fabric_io io = {
	    .op = LOOM_NET_PUT, .local = LOOM_REF(1, 0), .remote = LOOM_REF(1, 0), .bytes = 8, .notify = 3};
	int status = 0;
	ssize_t then = result;
	CU_ASSERT_EQUAL(fabric_staged_start(&f, &io, owner, &status), 0);
	result = 0;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(issued, 1);
	result = then;
	struct fabric_event e = {.what = FABRIC_DONE, .context = fabric_staged_context(&f, owner)};
	CU_ASSERT_EQUAL(fabric_staged_event(&f, &e), 0);
}

TEST(a_failed_message_ends_its_operation_D9)
{
	struct fabric_context owner;
	open_one();
	result = -FI_EINVAL;
	put_arrives(&owner);
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[0].status, FI_EINVAL);
	CU_ASSERT_PTR_EQUAL(event[0].context, &owner);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 0);
}

TEST(a_message_without_room_is_sent_later_D9)
{
	struct fabric_context owner;
	open_one();
	result = -FI_EAGAIN;
	put_arrives(&owner);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 1);
	result = 0;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 0);
	CU_ASSERT_EQUAL(staging.op[0].state, OP_NOTICE);
	result = -FI_EAGAIN; /* here there is no room at first, and then the message fails */
	open_one();
	result = -FI_EAGAIN;
	put_arrives(&owner);
	result = -FI_EIO;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].status, FI_EIO);
	CU_ASSERT_EQUAL(staging.due, 0);
}

TEST(a_failed_acknowledgement_is_reported_D9)
{
	open_one();
	staging.notice[MOST] = (struct staged_notice){.ref = LOOM_REF(1, 0), .bytes = 8, .notify = 3};
	struct fabric_event e = {.what = FABRIC_ARRIVED, .notify = NOTICE};
	result = -FI_EPERM;
	CU_ASSERT_EQUAL(fabric_staged_event(&f, &e), 0);
	/* the data have arrived, although the acknowledgement fails */
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 2);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_ARRIVED);
	CU_ASSERT_EQUAL(event[0].notify, 3);
	CU_ASSERT_EQUAL(event[1].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[1].status, FI_EPERM);
	CU_ASSERT_PTR_NULL(event[1].context);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
}

/* Starts a put of `bytes` from device memory to device memory. Returns what fabric_staged_start() returns. */
static int put(uint64_t bytes, uint32_t notify, struct fabric_context *owner)
{
	struct fabric_io io = {
	    .op = LOOM_NET_PUT, .local = LOOM_REF(1, 8), .remote = LOOM_REF(1, 8), .bytes = bytes, .notify = notify};
	int status = 0;
	return fabric_staged_start(&f, &io, owner, &status);
}

/* Opens a rank whose device starts copies without waiting. direct: 1 if it can copy to the device of the target. */
static void open_async(int direct)
{
	open_one();
	staging.waits = 0;
	staging.reach[1] = (struct staged_reach){.at = direct ? 0x10000 : 0, .offset = 0x100};
}

/* Ends the operation that was passed to the provider last. Returns the number of events for the caller. */
static int provider_ends(int status, struct fabric_event *e)
{
	*e = (struct fabric_event){
	    .what = status ? FABRIC_FAILED : FABRIC_DONE, .status = status, .context = last_context};
	return fabric_staged_event(&f, e);
}

/* The provider ends the notice of operation i, and the target acknowledges it. Returns the number of events for the
 * caller. */
static int acknowledged(uint32_t i)
{
	struct fabric_event sent = {.what = FABRIC_DONE, .context = &staging.op[i].context},
			    ack = {.what = FABRIC_ARRIVED, .notify = ACK | i};
	return fabric_staged_event(&f, &sent) + fabric_staged_event(&f, &ack);
}

TEST(a_direct_put_notifies_after_its_copy)
{
	struct fabric_context owner;
	struct fabric_event e;
	open_async(1);
	CU_ASSERT_EQUAL(put(40, 3, &owner), 0); /* larger than a piece, but direct puts are not split */
	CU_ASSERT_EQUAL(started[LOOM_COPY_TO], 1);
	CU_ASSERT_EQUAL(copied_to, 0x10000 + 0x100 + 8);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(notified, 0); /* the data are not there yet */
	CU_ASSERT_EQUAL(fabric_staged_busy(&f), 1);
	ended[LOOM_COPY_TO] = 1;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(notified, 1);
	CU_ASSERT_EQUAL(last_notify, 3);
	CU_ASSERT_EQUAL(issued, 0);
	CU_ASSERT_EQUAL(fabric_staged_busy(&f), 0);
	CU_ASSERT_EQUAL_FATAL(provider_ends(0, &e), 1);
	CU_ASSERT_EQUAL(e.what, FABRIC_DONE);
	CU_ASSERT_PTR_EQUAL(e.context, &owner);
}

TEST(a_direct_put_without_notification_sends_no_message)
{
	struct fabric_context owner;
	open_async(1);
	CU_ASSERT_EQUAL(put(8, 0, &owner), 0);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	ended[LOOM_COPY_TO] = 1;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_DONE);
	CU_ASSERT_PTR_EQUAL(event[0].context, &owner);
	CU_ASSERT_EQUAL(notified, 0);
}

TEST(a_notification_without_room_is_sent_later)
{
	struct fabric_context owner;
	open_async(1);
	CU_ASSERT_EQUAL(put(8, 3, &owner), 0);
	ended[LOOM_COPY_TO] = 1;
	result = -FI_EAGAIN;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(fabric_staged_busy(&f), 1);
	result = -FI_EIO;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[0].status, FI_EIO);
	CU_ASSERT_EQUAL(fabric_staged_busy(&f), 0);
}

TEST(operations_leave_in_order)
{
	struct fabric_context owner[3];
	struct fabric_io host = {.op = LOOM_NET_PUT, .local = LOOM_REF(2, 0), .remote = LOOM_REF(2, 0), .bytes = 24};
	int status;
	open_async(0);
	CU_ASSERT_EQUAL(put(8, 0, &owner[0]), 0);
	CU_ASSERT_EQUAL(put(8, 0, &owner[1]), 0);
	CU_ASSERT_EQUAL(fabric_staged_start(&f, &host, &owner[2], &status), 0); /* needs no copy, but comes later */
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(issued, 0);
	ended[LOOM_COPY_OUT] = 1;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(issued, 1);
	ended[LOOM_COPY_OUT] = 2;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(issued, 3);
	CU_ASSERT_EQUAL(last.bytes, 24);
	CU_ASSERT_EQUAL(fabric_staged_start(&f, &host, &owner[2], &status), 0); /* now there is nothing to wait for */
	CU_ASSERT_EQUAL(issued, 4);
}

TEST(a_put_in_pieces_notifies_after_the_last_acknowledgement)
{
	struct fabric_context owner;
	struct fabric_event e;
	open_async(0);
	CU_ASSERT_EQUAL(put(40, 3, &owner), 0); /* pieces of 16, 16 and 8 bytes: operations 1 to 3 */
	CU_ASSERT_EQUAL(started[LOOM_COPY_OUT], 3);
	for (uint32_t i = 1; i <= 3; i++) {
		ended[LOOM_COPY_OUT] = i;
		CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
		CU_ASSERT_EQUAL_FATAL(issued, i); /* the piece is sent while the next one is copied */
		CU_ASSERT_EQUAL(last.bytes, i < 3 ? 16 : 8);
		CU_ASSERT_EQUAL(last.remote, LOOM_REF(1, 8 + (i - 1) * 16));
		CU_ASSERT_EQUAL(last.notify, 0);
		CU_ASSERT_EQUAL(provider_ends(0, &e), 0);
		CU_ASSERT_EQUAL(staging.notice[i].notify, 0);
	}
	CU_ASSERT_EQUAL(acknowledged(2) + acknowledged(3), 0);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(notified, 0);
	CU_ASSERT_EQUAL(acknowledged(1), 0);
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(notified, 1);
	CU_ASSERT_EQUAL(last_notify, 3);
	CU_ASSERT_EQUAL_FATAL(provider_ends(0, &e), 1);
	CU_ASSERT_EQUAL(e.what, FABRIC_DONE);
	CU_ASSERT_PTR_EQUAL(e.context, &owner);
	for (uint32_t i = 0; i < MOST; i++)
		CU_ASSERT_EQUAL(staging.op[i].state, OP_FREE);
}

TEST(a_failed_piece_fails_its_put_once)
{
	struct fabric_context owner;
	struct fabric_event e;
	open_async(0);
	CU_ASSERT_EQUAL(put(1600, 3, &owner), 0); /* 100 pieces, of which 8 are in flight */
	CU_ASSERT_EQUAL(started[LOOM_COPY_OUT], PARTS);
	ended[LOOM_COPY_OUT] = PARTS;
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(issued, PARTS);
	for (uint32_t i = 1; i <= PARTS; i++) {
		last_context = &staging.op[i].context;
		CU_ASSERT_EQUAL(provider_ends(i == 2 ? FI_EPERM : 0, &e), 0);
		CU_ASSERT_EQUAL(i == 2 ? 0 : acknowledged(i), 0);
	}
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 0); /* the piece that followed the first one is copied */
	ended[LOOM_COPY_OUT] = UINT64_MAX; /* and the device fails */
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[0].status, FI_EPERM);
	CU_ASSERT_PTR_EQUAL(event[0].context, &owner);
	CU_ASSERT_EQUAL(notified, 0);
	for (uint32_t i = 0; i < MOST; i++)
		CU_ASSERT_EQUAL(staging.op[i].state, OP_FREE);
}

TEST(puts_in_pieces_leave_room_for_a_piece)
{
	struct fabric_context owner[2 * MOST];
	struct fabric_event e;
	uint32_t puts = 0, done = 0;
	open_async(0);
	while (puts < 2 * MOST && !put(160, 3, &owner[puts]))
		puts++;
	CU_ASSERT_TRUE(puts > 1 && puts < MOST);
	ended[LOOM_COPY_OUT] = UINT64_MAX - 1; /* copies end at once */
	for (int steps = 0; done < puts && steps < 10000; steps++) {
		done += (uint32_t)fabric_staged_go_on(&f, event, 4);
		for (uint32_t i = 0; i < MOST; i++) {
			last_context = &staging.op[i].context;
			if (staging.op[i].state == OP_PUT)
				CU_ASSERT_EQUAL(provider_ends(0, &e), 0);
			if (staging.op[i].state == OP_LAST)
				done += (uint32_t)provider_ends(0, &e);
			if (staging.op[i].state == OP_NOTICE)
				CU_ASSERT_EQUAL(acknowledged(i), 0);
		}
	}
	CU_ASSERT_EQUAL(done, puts);
	CU_ASSERT_EQUAL(notified, puts);
}

TEST(an_arrival_waits_for_its_copy)
{
	open_async(0);
	for (uint32_t i = 0; i < 2; i++) {
		staging.notice[MOST + i] = (struct staged_notice){.ref = LOOM_REF(1, 0), .bytes = 8, .notify = 3 + i};
		struct fabric_event e = {.what = FABRIC_ARRIVED, .notify = NOTICE | i};
		CU_ASSERT_EQUAL(fabric_staged_event(&f, &e), 0);
	}
	CU_ASSERT_EQUAL(fabric_staged_go_on(&f, event, 4), 0);
	CU_ASSERT_EQUAL(notified, 0);
	ended[LOOM_COPY_IN] = 1;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_ARRIVED);
	CU_ASSERT_EQUAL(event[0].notify, 3);
	CU_ASSERT_EQUAL(last_notify, ACK | 0);
	ended[LOOM_COPY_IN] = UINT64_MAX;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(notified, 1);
}

TEST(a_copy_that_does_not_start_fails_its_operation)
{
	struct fabric_context owner;
	for (int direct = 0; direct < 2; direct++) {
		open_async(direct);
		start_result = LOOM_EIO;
		CU_ASSERT_EQUAL(put(8, 3, &owner), LOOM_EIO);
		CU_ASSERT_EQUAL(fabric_staged_busy(&f), 0);
		CU_ASSERT_EQUAL(staging.op[0].state, OP_FREE);
	}
	open_async(0);
	start_result = LOOM_EIO;
	CU_ASSERT_EQUAL(put(40, 3, &owner), 0); /* in pieces */
	CU_ASSERT_EQUAL_FATAL(fabric_staged_go_on(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].status, FI_EIO);
	CU_ASSERT_PTR_EQUAL(event[0].context, &owner);
}
#else
TEST(libfabric_is_not_here)
{
	puts("skipped: built without libfabric");
}
#endif

TEST_MAIN("trigger_staged", 60)
