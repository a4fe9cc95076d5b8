/* SPDX-License-Identifier: Apache-2.0 */
/* Reads by io_uring over a kernel that refuses calls, or cannot be waited for. */
#include "support.h"

#if __has_include(<liburing.h>)
#include <liburing.h>

#include "fake_host.h"

/* The kernel: how many calls it takes before it fails, and whether waits fail. */
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
/* Takes what stands in the ring, that of before too. */
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
#define SSR_URING
#include "../plugins/qos/files.c"

static int64_t result[8];
static uint32_t completed[8];
static struct ssr_call call[8];

uint64_t ssr_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
int ssr_is_read(const struct ssr_call *one)
{
	return one->bytes != 0;
}
int64_t ssr_work(struct service *s, const struct ssr_call *one)
{
	(void)s, (void)one;
	return 200;
}
void ssr_complete(struct service *s, struct ssr_tenant *tenant, struct ssr_call *one, int64_t with, uint64_t now_ns)
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
	CU_ASSERT_EQUAL_FATAL(ssr_files_open(s, &err), 0);
	for (uint32_t i = 0; i < n; i++) {
		call[i].bytes = 8;
		CU_ASSERT_EQUAL(ssr_files_add(s, &call[i]), 1);
	}
}

/* What the kernel does not take is done without it, once; and nothing of it is taken later, when it would be another's. */
TEST(refused_calls_are_not_kept_D14)
{
	struct service s;
	begin(&s, 4);
	kernel.takes = 2;
	ssr_files_flush(&s, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(completed[i], 1);
		CU_ASSERT_EQUAL(result[i], i < 2 ? 100 : 200);
	}
	kernel.takes = 8;
	int submits = kernel.submits;
	CU_ASSERT_EQUAL(ssr_files_add(&s, &call[4]), 0); /* to be done at once */
	call[5].bytes = 8;
	CU_ASSERT_EQUAL(ssr_files_add(&s, &call[5]), 0);
	ssr_files_flush(&s, NULL);
	CU_ASSERT_EQUAL(kernel.submits, submits);
	for (uint32_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(completed[i], i < 4);
	ssr_files_close(&s);
}

/* Calls that were taken are completed, also where the kernel cannot be waited for. */
TEST(failed_waits_lose_no_call_D14)
{
	struct service s;
	begin(&s, 3);
	kernel.takes = 8;
	kernel.wait = -ENXIO;
	ssr_files_flush(&s, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(completed[i], 1);
		CU_ASSERT_EQUAL(result[i], 100);
	}
	ssr_files_close(&s);
}
#else
TEST(liburing_is_not_here)
{
	puts("skipped: built without liburing");
}
#endif

TEST_MAIN("qos_files", 60)
