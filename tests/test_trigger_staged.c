/* SPDX-License-Identifier: Apache-2.0 */
/* Tests staged memory: device memory with a copy in host memory, which the network uses. The emulated provider accepts
 * a message, has no room for it, or rejects it. */
#include "support.h"

#if __has_include(<rdma/fabric.h>)
#include "../plugins/shared/fabric/fabric_staged.c"
#include "fake_host.h"

static ssize_t result; /* what the provider returns for the next messages */
static uint32_t issued;

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
	(void)f, (void)io, (void)context;
	issued++;
	return 0;
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
	static struct fabric_local here[2] = {{0}, {.bytes = 64, .staged = 1}};
	static struct fabric_remote there[2] = {{0}, {.bytes = 64, .staged = 1}}, scratch[1];
	static char memory[64];
	static fi_addr_t peer[1];
	static struct staged_notice notice[2 * MOST];
	static struct staged_ack acks[MOST];
	static const struct fabric_ops ops = {.check = fits};
	here[1].at = memory;
	memset(notice, 0, sizeof(notice));
	memset(acks, 0, sizeof(acks));
	staging = (struct fabric_staging){.copy = copied, .notice = notice, .there = scratch, .ack = acks, .mr = &mr};
	f = (struct fabric_ofi){.is = {.host = &fake_host, .ops = &ops},
				.ep = &ep,
				.segments = 2,
				.local = here,
				.remote = there,
				.staging = &staging,
				.peer = peer,
				.scratch_remote = scratch,
				.scratch_mr = &mr};
	issued = 0;
	result = 0;
}

/* Starts a put, whose data arrive in the copy at the target. The message that notifies the target is then sent, with
 * the result `result`. */
static void put_arrives(struct fabric_context *owner)
{
	struct fabric_io io = {
	    .op = LOOM_NET_PUT, .local = LOOM_REF(1, 0), .remote = LOOM_REF(1, 0), .bytes = 8, .notify = 3};
	int status = 0;
	CU_ASSERT_EQUAL(fabric_staged_start(&f, &io, owner, &status), 0);
	CU_ASSERT_EQUAL(issued, 1);
	struct fabric_event e = {.what = FABRIC_DONE, .context = fabric_staged_context(&f, owner)};
	CU_ASSERT_EQUAL(fabric_staged_event(&f, &e), 0);
}

TEST(a_failed_message_ends_its_operation_D9)
{
	struct fabric_context owner;
	open_one();
	result = -FI_EINVAL;
	put_arrives(&owner);
	CU_ASSERT_EQUAL_FATAL(fabric_staged_retry(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[0].status, FI_EINVAL);
	CU_ASSERT_PTR_EQUAL(event[0].context, &owner);
	CU_ASSERT_EQUAL(fabric_staged_retry(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 0);
}

TEST(a_message_without_room_is_sent_later_D9)
{
	struct fabric_context owner;
	open_one();
	result = -FI_EAGAIN;
	put_arrives(&owner);
	CU_ASSERT_EQUAL(fabric_staged_retry(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 1);
	result = 0;
	CU_ASSERT_EQUAL(fabric_staged_retry(&f, event, 4), 0);
	CU_ASSERT_EQUAL(staging.due, 0);
	CU_ASSERT_EQUAL(staging.op[0].state, OP_NOTICE);
	result = -FI_EAGAIN; /* here there is no room at first, and then the message fails */
	open_one();
	result = -FI_EAGAIN;
	put_arrives(&owner);
	result = -FI_EIO;
	CU_ASSERT_EQUAL_FATAL(fabric_staged_retry(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].status, FI_EIO);
	CU_ASSERT_EQUAL(staging.due, 0);
}

TEST(a_failed_acknowledgement_is_reported_D9)
{
	open_one();
	staging.notice[MOST] = (struct staged_notice){.ref = LOOM_REF(1, 0), .bytes = 8, .notify = 3};
	struct fabric_event e = {.what = FABRIC_ARRIVED, .notify = NOTICE};
	result = -FI_EPERM;
	CU_ASSERT_EQUAL(fabric_staged_event(&f, &e), 1); /* the data have arrived, although the acknowledgement fails */
	CU_ASSERT_EQUAL(e.notify, 3);
	CU_ASSERT_EQUAL_FATAL(fabric_staged_retry(&f, event, 4), 1);
	CU_ASSERT_EQUAL(event[0].what, FABRIC_FAILED);
	CU_ASSERT_EQUAL(event[0].status, FI_EPERM);
	CU_ASSERT_PTR_NULL(event[0].context);
	CU_ASSERT_EQUAL(fabric_staged_retry(&f, event, 4), 0);
}
#else
TEST(libfabric_is_not_here)
{
	puts("skipped: built without libfabric");
}
#endif

TEST_MAIN("trigger_staged", 60)
