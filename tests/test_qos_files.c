/* SPDX-License-Identifier: Apache-2.0 */
/* Tests reads by io_uring on an emulated kernel that rejects calls, or whose waits fail. */
#include "support.h"

#if __has_include(<liburing.h>)
#include <liburing.h>

#include "fake_host.h"

/* The emulated kernel accepts `takes` more calls. Its waits return `wait` if this is not 0. */
static struct {
	unsigned takes;
	int wait, submits;
	struct io_uring_sqe sqe[64];
	unsigned prepared, taken, done;
	struct io_uring_cqe cqe;
} kernel;

static struct io_uring_sqe *fake_get_sqe(struct io_uring *ring)
{
	(void)ring;
	return &kernel.sqe[kernel.prepared++];
}
/* Accepts entries of the ring, including those that earlier calls left there. */
static int fake_submit(struct io_uring *ring, unsigned wait)
{
	unsigned n = kernel.prepared - kernel.taken;
	(void)ring, (void)wait;
	kernel.submits++;
	n = n < kernel.takes ? n : kernel.takes;
	kernel.takes -= n;
	kernel.taken += n;
	return n ? (int)n : -ENOMEM;
}
static int fake_peek(struct io_uring *ring, struct io_uring_cqe **c)
{
	(void)ring;
	if (kernel.done == kernel.taken)
		return -EAGAIN;
	kernel.cqe.user_data = kernel.sqe[kernel.done++].user_data;
	kernel.cqe.res = 100;
	*c = &kernel.cqe;
	return 0;
}
static int fake_wait(struct io_uring *ring, struct io_uring_cqe **c)
{
	return kernel.wait ? kernel.wait : fake_peek(ring, c);
}
#define io_uring_get_sqe fake_get_sqe
#define io_uring_submit_and_wait fake_submit
#define io_uring_peek_cqe fake_peek
#define io_uring_wait_cqe fake_wait
#define io_uring_cqe_seen(ring, c) ((void)(c))
#define io_uring_queue_init(n, ring, flags) 0
#define io_uring_queue_exit(ring) ((void)(ring))
#define io_uring_register_iowq_max_workers(ring, most) ((void)(most), 0)
#define QOS_URING
#include "../plugins/qos/files.c"

static int64_t result[8];
static uint32_t completed[8];
static struct qos_call call[8];

uint64_t qos_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
int qos_is_read(const struct qos_call *one)
{
	return one->bytes != 0;
}
int64_t qos_execute(struct service *s, const struct qos_call *one)
{
	(void)s, (void)one;
	return 200;
}
void qos_complete(struct service *s, struct qos_tenant *tenant, struct qos_call *one, int64_t with, uint64_t now_ns)
{
	(void)s, (void)tenant, (void)now_ns;
	result[one - call] = with;
	completed[one - call]++;
}

static void begin(struct service *s, uint32_t n)
{
	struct loom_error err = {0};
	*s = (struct service){.host = &fake_host, .name = "qos_test"};
	memset(&kernel, 0, sizeof(kernel));
	memset(completed, 0, sizeof(completed));
	memset(call, 0, sizeof(call));
	CU_ASSERT_EQUAL_FATAL(qos_files_open(s, &err), 0);
	for (uint32_t i = 0; i < n; i++) {
		call[i].bytes = 8;
		CU_ASSERT_EQUAL(qos_files_add(s, &call[i]), 1);
	}
}

/* Calls that the kernel does not accept are executed once, by plain system calls. They are not submitted again later. */
TEST(refused_calls_are_not_kept_D14)
{
	struct service s;
	begin(&s, 4);
	kernel.takes = 2;
	qos_files_flush(&s, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(completed[i], 1);
		CU_ASSERT_EQUAL(result[i], i < 2 ? 100 : 200);
	}
	kernel.takes = 8;
	int submits = kernel.submits;
	CU_ASSERT_EQUAL(qos_files_add(&s, &call[4]), 0); /* the call is executed by a plain system call at once */
	call[5].bytes = 8;
	CU_ASSERT_EQUAL(qos_files_add(&s, &call[5]), 0);
	qos_files_flush(&s, NULL);
	CU_ASSERT_EQUAL(kernel.submits, submits);
	for (uint32_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(completed[i], i < 4);
	qos_files_close(&s);
}

/* Accepted calls are completed even if waits for them fail. */
TEST(failed_waits_lose_no_call_D14)
{
	struct service s;
	begin(&s, 3);
	kernel.takes = 8;
	kernel.wait = -ENXIO;
	qos_files_flush(&s, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(completed[i], 1);
		CU_ASSERT_EQUAL(result[i], 100);
	}
	qos_files_close(&s);
}
#else
TEST(liburing_is_not_here)
{
	puts("skipped: built without liburing");
}
#endif

TEST_MAIN("qos_files", 60)
