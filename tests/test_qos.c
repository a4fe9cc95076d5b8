/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the service path: every arrangement and notification, each service against the system call that it stands for,
 * and requests that must be rejected. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gpuloom/interrupt.h>

#include "qos_rig.h"

#define PAGE 4096ull

static const struct {
	const char *name, *options;
} paths[] = {
    {"split", "notify=eventfd class=other"},
    {"split", "notify=eventfd class=other"},
    {"split", "notify=poll class=other"},
    {"monolithic", "notify=eventfd class=other"},
    {"monolithic", "notify=poll class=other"},
    {"monolithic", "notify=eventfd class=other worker=yes"},
    {"monolithic", "notify=poll class=other worker=yes"},
};

/* ---- one tenant with all kinds of grants ---- */

struct world {
	struct qos_rig *r;
	uint32_t buffer, demand, zeroes, heap, file, readonly, socket, process; /* the numbers of the grants */
	char *at, *demand_at, *zeroes_at, *heap_at;
	char *content;
	char path[64];
	int fd, ro, pair[2], pidfd, signalled[2];
	pid_t child;
};

/* The child writes SIGUSR1 and SIGRTMIN to the pipe. */
static _Noreturn void listener(int out)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	for (;;) {
		int n = sigwaitinfo(&set, NULL);
		char c = n == SIGUSR1 ? 'u' : 'r';
		if (n > 0 && write(out, &c, 1) != 1)
			_exit(1);
	}
}

static void make_world(struct world *w, struct qos_rig *r, uint32_t tenant)
{
	sigset_t set, old;
	w->r = r;
	snprintf(w->path, sizeof(w->path), "/tmp/test_qos.XXXXXX");
	w->fd = mkstemp(w->path);
	w->ro = open(w->path, O_RDONLY | O_CLOEXEC);
	fake_must(w->fd >= 0 && w->ro >= 0 && !ftruncate(w->fd, 64 * PAGE), "file", NULL);
	fake_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, w->pair), "socket", NULL);
	fake_must(!pipe(w->signalled), "pipe", NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, &old);
	w->child = fork();
	if (w->child == 0)
		listener(w->signalled[1]);
	sigprocmask(SIG_SETMASK, &old, NULL);
	w->pidfd = (int)syscall(SYS_pidfd_open, w->child, 0);
	fake_must(w->pidfd >= 0, "pidfd", NULL);
	w->content = malloc(16 * PAGE);
	for (uint64_t i = 0; i < 16 * PAGE; i++)
		w->content[i] = (char)(i / PAGE * 7 + i + 1);
	w->buffer = qos_rig_buffer(r, tenant, LOOM_GRANT_BUFFER, 16 * PAGE, NULL, &w->at);
	w->demand = qos_rig_buffer(r, tenant, LOOM_GRANT_DEMAND, 16 * PAGE, w->content, &w->demand_at);
	w->zeroes = qos_rig_buffer(r, tenant, LOOM_GRANT_DEMAND, 16 * PAGE, NULL, &w->zeroes_at);
	w->heap = qos_rig_buffer(r, tenant, LOOM_GRANT_HEAP, 16 * PAGE, NULL, &w->heap_at);
	struct loom_grant g = {
	    .tenant = tenant, .kind = LOOM_GRANT_FILE, .fd = w->fd, .access = LOOM_READ | LOOM_WRITE};
	w->file = qos_rig_grant(r, g);
	g.fd = w->ro;
	g.access = LOOM_READ;
	w->readonly = qos_rig_grant(r, g);
	w->socket =
	    qos_rig_grant(r, (struct loom_grant){.tenant = tenant, .kind = LOOM_GRANT_SOCKET, .fd = w->pair[0]});
	w->process = qos_rig_grant(
	    r, (struct loom_grant){
		   .tenant = tenant, .kind = LOOM_GRANT_PROCESS, .fd = w->pidfd, .signals = 1ull << (SIGUSR1 - 1)});
}

static void end_world(struct world *w)
{
	kill(w->child, SIGKILL);
	waitpid(w->child, NULL, 0);
	close(w->pidfd);
	close(w->fd);
	close(w->ro);
	close(w->pair[0]);
	close(w->pair[1]);
	close(w->signalled[0]);
	close(w->signalled[1]);
	unlink(w->path);
	free(w->content);
}

static int present(const char *at, uint64_t page)
{
	unsigned char in[1] = {0};
	CU_ASSERT_EQUAL(mincore((void *)(uintptr_t)(at + page * PAGE), PAGE, in), 0);
	return in[0] & 1;
}

/* ---- each service does what its system call does ---- */

#define DO(...) qos_rig_do(w->r, worker, (struct loom_request){__VA_ARGS__})

static void check_files(struct world *w, uint32_t worker)
{
	char direct[PAGE];
	for (uint64_t i = 0; i < 3 * PAGE; i++)
		w->at[i] = (char)(i * 31 + 5);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_WRITE, .handle = w->file, .buffer = w->buffer, .bytes = 3 * PAGE,
			   .argument = 2 * PAGE + 7),
			3 * (int64_t)PAGE);
	CU_ASSERT_EQUAL(pread(w->fd, direct, PAGE, 3 * PAGE + 7), (ssize_t)PAGE);
	CU_ASSERT_EQUAL(memcmp(direct, w->at + PAGE, PAGE), 0);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_READ, .handle = w->readonly, .buffer = w->buffer, .offset = 8 * PAGE,
			   .bytes = PAGE, .argument = 3 * PAGE + 7),
			(int64_t)PAGE);
	CU_ASSERT_EQUAL(memcmp(w->at + 8 * PAGE, direct, PAGE), 0);
	/* The first read crosses the end of the file. The second is behind the end. */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .bytes = PAGE,
			   .argument = 64 * PAGE - 10),
			10);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .bytes = PAGE,
			   .argument = 70 * PAGE),
			0);
}

static void check_signal(struct world *w, uint32_t worker)
{
	char c = 0;
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_SIGNAL, .handle = w->process, .argument = SIGUSR1), 0);
	CU_ASSERT_EQUAL(read(w->signalled[0], &c, 1), 1);
	CU_ASSERT_EQUAL(c, 'u');
}

static void check_faults(struct world *w, uint32_t worker)
{
	CU_ASSERT_FALSE(present(w->demand_at, 3));
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FAULT, .buffer = w->demand, .offset = 3 * PAGE, .bytes = 2 * PAGE),
			2 * (int64_t)PAGE);
	CU_ASSERT_TRUE(present(w->demand_at, 3));
	CU_ASSERT_FALSE(present(w->demand_at, 5));
	CU_ASSERT_EQUAL(memcmp(w->demand_at + 3 * PAGE, w->content + 3 * PAGE, 2 * PAGE), 0);
	/* Some pages of the range are present. They keep written data, and the others are filled. */
	w->demand_at[3 * PAGE] = 'x';
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FAULT, .buffer = w->demand, .offset = 2 * PAGE, .bytes = 4 * PAGE),
			2 * (int64_t)PAGE);
	CU_ASSERT_EQUAL(w->demand_at[3 * PAGE], 'x');
	CU_ASSERT_EQUAL(memcmp(w->demand_at + 5 * PAGE, w->content + 5 * PAGE, PAGE), 0);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_EVICT, .buffer = w->demand, .bytes = 16 * PAGE), 0);
	for (uint64_t p = 0; p < 16; p++)
		CU_ASSERT_FALSE(present(w->demand_at, p));
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FAULT, .buffer = w->zeroes, .bytes = PAGE), (int64_t)PAGE);
	CU_ASSERT_EQUAL(w->zeroes_at[PAGE - 1], 0);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_EVICT, .buffer = w->zeroes, .bytes = PAGE), 0);
	/* No page of the range is present, so none is moved. */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_MIGRATE, .buffer = w->demand, .bytes = PAGE), 0);
}

static void check_heap(struct world *w, uint32_t worker)
{
	int64_t a = DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 3 * PAGE - 5);
	int64_t b = DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 1);
	CU_ASSERT(a >= 0 && b >= 0 && a != b && a % (int64_t)PAGE == 0 && b % (int64_t)PAGE == 0);
	CU_ASSERT_TRUE(present(w->heap_at + a, 2));
	memset(w->heap_at + a, 'a', 3 * PAGE);
	CU_ASSERT_EQUAL(w->heap_at[b], 0);
	/* The heap serves as a buffer. Only its allocated pages are valid. */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_WRITE, .handle = w->file, .buffer = w->heap, .offset = (uint64_t)a,
			   .bytes = PAGE),
			(int64_t)PAGE);
	CU_ASSERT_EQUAL(
	    DO(.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->heap, .offset = 15 * PAGE, .bytes = PAGE),
	    -EFAULT);
	CU_ASSERT_FALSE(present(w->heap_at, 15));
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = (uint64_t)a + PAGE), -EINVAL);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = (uint64_t)a), 3 * (int64_t)PAGE);
	CU_ASSERT_FALSE(present(w->heap_at + a, 0));
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = (uint64_t)a), -EINVAL);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 17 * PAGE), -ENOMEM);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = (uint64_t)b), (int64_t)PAGE);
	int64_t all = DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 16 * PAGE);
	CU_ASSERT_EQUAL(all, 0);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 1), -ENOMEM);
	CU_ASSERT_EQUAL(w->heap_at[a], 0); /* memory that is allocated again is zero */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap), 16 * (int64_t)PAGE);
}

static void check_socket(struct world *w, uint32_t worker)
{
	char got[100];
	memset(w->at, 's', 200);
	CU_ASSERT_EQUAL(
	    DO(.service = LOOM_SERVICE_SEND, .handle = w->socket, .buffer = w->buffer, .offset = 50, .bytes = 100),
	    100);
	CU_ASSERT_EQUAL(recv(w->pair[1], got, sizeof(got), 0), 100);
	CU_ASSERT_EQUAL(memcmp(got, w->at + 50, 100), 0);
	/* A request to a full socket is answered with -EAGAIN. It does not block the server. */
	int64_t rc = 0;
	for (int i = 0; i < 1000 && rc >= 0; i++)
		rc = DO(.service = LOOM_SERVICE_SEND, .handle = w->socket, .buffer = w->buffer, .bytes = 16 * PAGE);
	CU_ASSERT_EQUAL(rc, -EAGAIN);
	fcntl(w->pair[1], F_SETFL, O_NONBLOCK);
	while (recv(w->pair[1], w->at, 16 * PAGE, 0) > 0)
		;
}

static void check_migration(struct world *w, uint32_t worker)
{
	memset(w->at, 1, 4 * PAGE);
	void *page = w->at;
	int node = 0, status = -1;
	long direct = syscall(SYS_move_pages, 0, 1ul, &page, &node, &status, 2);
	int64_t rc = DO(.service = LOOM_SERVICE_MIGRATE, .buffer = w->buffer, .bytes = 4 * PAGE);
	CU_ASSERT_EQUAL(rc, direct == 0 && status == 0 ? 4 : -ENODEV);
	CU_ASSERT(DO(.service = LOOM_SERVICE_MIGRATE, .buffer = w->buffer, .bytes = PAGE, .argument = 999) < 0);
}

TEST(services)
{
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct world w;
		struct qos_rig *r = qos_rig_create(2);
		qos_rig_stage(r, paths[i].name, paths[i].options);
		qos_rig_tenant(r, 0, 2, 16, 1);
		make_world(&w, r, 0);
		qos_rig_must_start(r);
		CU_ASSERT_EQUAL(qos_rig_do(r, 0, (struct loom_request){0}), 0);
		check_files(&w, 0);
		check_signal(&w, 1);
		check_faults(&w, 0);
		check_heap(&w, 1);
		check_socket(&w, 0);
		check_migration(&w, 0);
		qos_rig_collect(r);
		CU_ASSERT(qos_rig_metric("qos_cpu") > 0);
		qos_rig_close(r);
		end_world(&w);
	}
}

/* ---- memory of a GPU, to which copies are complete only after flush() ---- */

static struct {
	struct loom_interrupt is;
	char *at; /* the workload's block in the memory of the GPU */
	unsigned copies;
	struct {
		void *to;
		const void *from;
		uint64_t bytes;
	} copy[64];
	int broken;
} line;

static int copy_later(struct loom_interrupt *alarm, uint64_t offset, void *to, const void *from, uint64_t bytes,
		      struct loom_error *err)
{
	(void)alarm, (void)err;
	CU_ASSERT(line.copies < COUNT(line.copy) && !to != !from);
	line.copy[line.copies].to = to ? to : line.at + offset;
	line.copy[line.copies].from = to ? line.at + offset : from;
	line.copy[line.copies++].bytes = bytes;
	return 0;
}

static int settle(struct loom_interrupt *alarm, struct loom_error *err)
{
	(void)alarm, (void)err;
	for (unsigned i = 0; i < line.copies; i++)
		memcpy(line.copy[i].to, line.copy[i].from, line.copy[i].bytes);
	line.copies = 0;
	return line.broken ? LOOM_EDIED : 0;
}

static void hang_up(struct loom_interrupt *alarm)
{
	(void)alarm;
	free(line.at);
	line.at = NULL;
}

static int open_line(const struct loom_interrupts *interrupts, uint32_t device, uint32_t kind, uint64_t offset,
		     struct loom_interrupt **alarm, struct loom_error *err)
{
	(void)interrupts, (void)err;
	CU_ASSERT(device == 0 && kind == LOOM_WORKLOAD && offset == 0);
	line.is =
	    (struct loom_interrupt){.size = sizeof(line.is), .copy = copy_later, .flush = settle, .close = hang_up};
	line.at = malloc(64 * PAGE);
	line.copies = 0;
	line.broken = 0;
	memset(line.at, 0xff, 64 * PAGE);
	*alarm = &line.is;
	return 0;
}

static const struct loom_interrupts lines = {.size = sizeof(lines), .open = open_line};

static struct qos_rig *placed_rig(const struct loom_interrupts *interrupts)
{
	struct qos_rig *r = qos_rig_create(2);
	r->rig.shape[0].kind = LOOM_ON_GPU;
	r->rig.layout.interrupts = r->layout.interrupts = interrupts;
	qos_rig_stage(r, "monolithic", "class=other");
	qos_rig_tenant(r, 0, 1, 16, 1);
	qos_rig_tenant(r, 1, 1, 16, 1);
	return r;
}

static int64_t fault_page(struct qos_rig *r, uint32_t worker, uint64_t page)
{
	return qos_rig_do(r, worker,
			  (struct loom_request){.service = LOOM_SERVICE_FAULT, .offset = page * PAGE, .bytes = PAGE});
}

/* Eight pages of two tenants share three frames in turn. Then a heap of four pages is tested. */
TEST(frames)
{
	struct world world, *w = &world;
	struct qos_rig *r = placed_rig(&lines);
	struct loom_grant demand = {
	    .kind = LOOM_GRANT_DEMAND, .at = 2 * PAGE, .bytes = 8 * PAGE, .device = 1, .frames = 3};
	char *frame, *content = malloc(8 * PAGE);
	const uint32_t worker = 0;
	w->r = r;
	for (uint64_t i = 0; i < 8 * PAGE; i++)
		content[i] = (char)(i / PAGE * 7 + i + 1);
	demand.content = content;
	qos_rig_grant(r, demand);
	demand.tenant = 1;
	qos_rig_grant(r, demand);
	w->heap = qos_rig_grant(
	    r, (struct loom_grant){.kind = LOOM_GRANT_HEAP, .at = 5 * PAGE, .bytes = 4 * PAGE, .device = 1});
	w->buffer = qos_rig_buffer(r, 0, LOOM_GRANT_BUFFER, PAGE, NULL, &w->at);
	w->demand = qos_rig_buffer(r, 0, LOOM_GRANT_DEMAND, PAGE, NULL, &w->demand_at);
	w->zeroes = qos_rig_buffer(r, 0, LOOM_GRANT_HEAP, PAGE, NULL, &w->zeroes_at);
	qos_rig_must_start(r);
	frame = line.at + 2 * PAGE;
	for (uint64_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(fault_page(r, (uint32_t)i % 2, 5 - i), (int64_t)(i * PAGE));
		CU_ASSERT_EQUAL(memcmp(frame + i * PAGE, content + (5 - i) * PAGE, PAGE), 0);
	}
	CU_ASSERT_EQUAL(fault_page(r, 1, 4), (int64_t)PAGE); /* the page is present */
	CU_ASSERT_EQUAL(fault_page(r, 0, 0), -ENOMEM);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FAULT, .bytes = 2 * PAGE), -EINVAL);
	/* Evicted contents are lost, and moved contents are kept. */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_EVICT, .offset = 4 * PAGE, .bytes = PAGE), 0);
	frame[3] = 'x';
	int64_t moved = DO(.service = LOOM_SERVICE_MIGRATE, .offset = 4 * PAGE + 1, .bytes = PAGE);
	CU_ASSERT(moved == 1 || moved == -ENODEV);
	CU_ASSERT_EQUAL(fault_page(r, 1, 7), 0);
	CU_ASSERT_EQUAL(memcmp(frame, content + 7 * PAGE, PAGE), 0);
	CU_ASSERT_EQUAL(fault_page(r, 1, 5), (int64_t)PAGE);
	CU_ASSERT(frame[PAGE + 3] == 'x' && !memcmp(frame + PAGE + 4, content + 5 * PAGE + 4, PAGE - 4));
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_EVICT, .bytes = 8 * PAGE), 0);
	CU_ASSERT(fault_page(r, 0, 5) >= 0 && fault_page(r, 0, 6) >= 0 && fault_page(r, 1, 7) >= 0);
	CU_ASSERT_EQUAL(memcmp(frame + fault_page(r, 0, 5), content + 5 * PAGE, PAGE), 0);
	int64_t at = DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 2 * PAGE);
	CU_ASSERT_EQUAL(at, 0);
	CU_ASSERT(line.at[5 * PAGE] == 0 && line.at[7 * PAGE - 1] == 0 && line.at[7 * PAGE] == (char)0xff);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = 3 * PAGE), -ENOMEM);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = PAGE), -EINVAL);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FREE, .buffer = w->heap), 2 * (int64_t)PAGE);
	/* Here only the demand buffer in GPU memory can be moved. */
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_MIGRATE, .buffer = w->heap, .bytes = PAGE), -EFAULT);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_MIGRATE, .buffer = w->buffer, .bytes = PAGE), -EOPNOTSUPP);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_FAULT, .buffer = w->demand, .bytes = PAGE), -EOPNOTSUPP);
	CU_ASSERT_EQUAL(DO(.service = LOOM_SERVICE_ALLOC, .buffer = w->zeroes, .bytes = PAGE), -EOPNOTSUPP);
	line.broken = 1;
	CU_ASSERT_EQUAL(fault_page(r, 0, 5), -EIO);
	qos_rig_close(r);
	CU_ASSERT_PTR_NULL(line.at);
	free(content);
}

/* Many requests arrive at once. The host waits once for the copies of all, before it sends the first answer. */
TEST(frames_of_a_turn)
{
	struct qos_rig *r = placed_rig(&lines);
	struct loom_ctx *c;
	char content[16 * PAGE];
	uint64_t id[16];
	for (uint64_t i = 0; i < sizeof(content); i++)
		content[i] = (char)(i / PAGE + 1);
	qos_rig_grant(
	    r, (struct loom_grant){
		   .kind = LOOM_GRANT_DEMAND, .bytes = sizeof(content), .device = 1, .frames = 16, .content = content});
	qos_rig_must_start(r);
	c = &r->ctx[0];
	for (int round = 0; round < 50; round++) {
		struct loom_request evict = {.service = LOOM_SERVICE_EVICT, .bytes = sizeof(content)};
		CU_ASSERT_EQUAL(qos_rig_do(r, 0, evict), 0);
		for (uint64_t i = 0; i < 16; i++) {
			struct loom_request fault = {.service = LOOM_SERVICE_FAULT, .offset = i * PAGE, .bytes = PAGE};
			CU_ASSERT_EQUAL(c->qos->request(c, &fault, &id[i]), 0);
		}
		for (uint64_t i = 0; i < 16; i++) {
			int64_t at = -1;
			CU_ASSERT_EQUAL(c->qos->wait(c, id[i], 0, &at), 0);
			CU_ASSERT_FATAL(at >= 0);
			CU_ASSERT(line.at[at] == (char)(i + 1) && line.at[at + (int64_t)PAGE - 1] == (char)(i + 1));
		}
	}
	qos_rig_close(r);
}

/* ---- requests that are rejected and change nothing ---- */

static void check_refusals(struct world *w, uint32_t worker)
{
	const uint64_t huge = ~0ull;
	const struct {
		struct loom_request r;
		int64_t result;
	} bad[] = {
	    {{.service = LOOM_SERVICES}, -ENOSYS},
	    {{.service = 0xffffffff}, -ENOSYS},
	    {{.service = LOOM_SERVICE_NOTHING, .reserved = 1}, -EINVAL},
	    /* the tenant has no grant of this number or kind */
	    {{.service = LOOM_SERVICE_READ, .handle = 99, .buffer = w->buffer, .bytes = 1}, -EBADF},
	    {{.service = LOOM_SERVICE_READ, .handle = huge & 0xffffffff, .buffer = w->buffer, .bytes = 1}, -EBADF},
	    {{.service = LOOM_SERVICE_READ, .handle = w->socket, .buffer = w->buffer, .bytes = 1}, -EBADF},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->file, .bytes = 1}, -EFAULT},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = 99, .bytes = 1}, -EFAULT},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->demand, .bytes = PAGE}, -EFAULT},
	    {{.service = LOOM_SERVICE_WRITE, .handle = w->readonly, .buffer = w->buffer, .bytes = 1}, -EACCES},
	    /* the ranges are invalid */
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .bytes = 0}, -EINVAL},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .offset = 16 * PAGE, .bytes = 1},
	     -EFAULT},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .offset = huge, .bytes = 2},
	     -EFAULT},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .offset = 16, .bytes = huge - 8},
	     -E2BIG},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .bytes = 16 * PAGE + 1}, -EFAULT},
	    {{.service = LOOM_SERVICE_READ, .handle = w->file, .buffer = w->buffer, .bytes = 1, .argument = huge},
	     -EOVERFLOW},
	    {{.service = LOOM_SERVICE_SEND, .handle = w->file, .buffer = w->buffer, .bytes = 1}, -EBADF},
	    {{.service = LOOM_SERVICE_FAULT, .buffer = w->demand, .offset = 1, .bytes = PAGE}, -EINVAL},
	    {{.service = LOOM_SERVICE_FAULT, .buffer = w->demand, .bytes = 100}, -EINVAL},
	    {{.service = LOOM_SERVICE_FAULT, .buffer = w->buffer, .bytes = PAGE}, -EFAULT},
	    {{.service = LOOM_SERVICE_EVICT, .buffer = w->buffer, .bytes = PAGE}, -EFAULT},
	    {{.service = LOOM_SERVICE_ALLOC, .buffer = w->buffer, .bytes = PAGE}, -EFAULT},
	    {{.service = LOOM_SERVICE_ALLOC, .buffer = w->heap, .bytes = huge}, -E2BIG},
	    {{.service = LOOM_SERVICE_ALLOC, .buffer = w->heap}, -EINVAL},
	    {{.service = LOOM_SERVICE_FREE, .buffer = w->heap, .offset = huge - PAGE + 1}, -EINVAL},
	    {{.service = LOOM_SERVICE_MIGRATE, .buffer = w->buffer, .bytes = PAGE, .argument = huge}, -EINVAL},
	    /* signals that were not granted, and invalid signal numbers */
	    {{.service = LOOM_SERVICE_SIGNAL, .handle = w->process, .argument = SIGKILL}, -EPERM},
	    {{.service = LOOM_SERVICE_SIGNAL, .handle = w->process, .argument = 0}, -EPERM},
	    {{.service = LOOM_SERVICE_SIGNAL, .handle = w->process, .argument = 65}, -EPERM},
	    {{.service = LOOM_SERVICE_SIGNAL, .handle = w->process, .argument = huge}, -EPERM},
	    {{.service = LOOM_SERVICE_SIGNAL, .handle = w->file, .argument = SIGUSR1}, -EBADF},
	};
	memset(w->at, 0x5a, 16 * PAGE);
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t got = qos_rig_do(w->r, worker, bad[i].r);
		if (got != bad[i].result)
			printf("refusal %zu: %lld instead of %lld\n", i, (long long)got, (long long)bad[i].result);
		CU_ASSERT_EQUAL(got, bad[i].result);
	}
	for (uint64_t i = 0; i < 16 * PAGE; i++)
		if (w->at[i] != 0x5a) {
			CU_FAIL("a refused request wrote");
			break;
		}
	for (uint64_t p = 0; p < 16; p++)
		CU_ASSERT_FALSE(present(w->demand_at, p));
	CU_ASSERT_EQUAL(kill(w->child, 0), 0);
}

/* Grants are numbered per tenant, so a tenant cannot name the grants of another tenant. */
TEST(refusals)
{
	struct world w;
	struct qos_rig *r = qos_rig_create(3);
	qos_rig_stage(r, "monolithic", "class=other");
	qos_rig_tenant(r, 0, 1, 16, 1);
	qos_rig_tenant(r, 1, 1, 16, 1);
	make_world(&w, r, 0);
	char *other;
	uint32_t mine = qos_rig_buffer(r, 1, LOOM_GRANT_BUFFER, PAGE, NULL, &other);
	qos_rig_must_start(r);
	check_refusals(&w, 0);
	CU_ASSERT_EQUAL(mine, 0);
	CU_ASSERT_EQUAL(qos_rig_do(r, 1,
				   (struct loom_request){
				       .service = LOOM_SERVICE_READ, .handle = w.file, .buffer = mine, .bytes = 1}),
			-EBADF);
	CU_ASSERT_EQUAL(
	    qos_rig_do(r, 1, (struct loom_request){.service = LOOM_SERVICE_FAULT, .buffer = w.demand, .bytes = PAGE}),
	    -EFAULT);
	/* The worker belongs to no tenant. */
	uint64_t id;
	struct loom_request nothing = {0};
	CU_ASSERT_EQUAL(r->ctx[2].qos->request(&r->ctx[2], &nothing, &id), LOOM_EINVAL);
	close(w.ro);
	CU_ASSERT_EQUAL(
	    qos_rig_do(r, 0,
		       (struct loom_request){
			   .service = LOOM_SERVICE_READ, .handle = w.readonly, .buffer = w.buffer, .bytes = 1}),
	    -EBADF);
	kill(w.child, SIGKILL);
	waitpid(w.child, NULL, 0);
	CU_ASSERT_EQUAL(
	    qos_rig_do(r, 0,
		       (struct loom_request){.service = LOOM_SERVICE_SIGNAL, .handle = w.process, .argument = SIGUSR1}),
	    -ESRCH);
	qos_rig_close(r);
	end_world(&w);
}

TEST(bad_grants)
{
	int pipes[2];
	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	const struct loom_grant bad[] = {
	    {.tenant = 7, .kind = LOOM_GRANT_BUFFER, .at = LOOM_REF(2, 0), .bytes = 1},
	    {.kind = 99},
	    {.kind = LOOM_GRANT_BUFFER, .at = LOOM_REF(3, 0), .bytes = 1},
	    {.kind = LOOM_GRANT_BUFFER, .at = LOOM_REF(2, QOS_RIG_MEMORY - 1), .bytes = 2},
	    {.kind = LOOM_GRANT_BUFFER, .at = LOOM_REF(2, 4096), .bytes = ~0ull},
	    {.kind = LOOM_GRANT_HEAP, .at = LOOM_REF(2, 5u << 20), .bytes = 100},
	    {.kind = LOOM_GRANT_FILE, .fd = pipes[0], .access = LOOM_READ},
	    {.kind = LOOM_GRANT_SOCKET, .fd = pipes[0]},
	    {.kind = LOOM_GRANT_PROCESS, .fd = pipes[0]},
	    {.kind = LOOM_GRANT_FILE, .fd = -1},
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct loom_error err = {0};
		struct qos_rig *r = qos_rig_create(1);
		qos_rig_stage(r, "split", "class=other");
		qos_rig_tenant(r, 0, 1, 16, 1);
		qos_rig_grant(r, bad[i]);
		CU_ASSERT_EQUAL(qos_rig_start(r, &err), LOOM_EPLUGIN);
		CU_ASSERT(strlen(err.text) > 0);
		qos_rig_close(r);
	}
	close(pipes[0]);
	close(pipes[1]);
	/* Frames are rejected if their device is missing, if there are none, or if the memory cannot be reached by
	 * copies. */
	const struct {
		struct loom_grant grant;
		const struct loom_interrupts *interrupts;
		int code;
	} placed[] = {
	    {{.kind = LOOM_GRANT_DEMAND, .bytes = PAGE, .device = 2, .frames = 1}, &lines, LOOM_EPLUGIN},
	    {{.kind = LOOM_GRANT_DEMAND, .bytes = PAGE, .device = 1}, &lines, LOOM_EPLUGIN},
	    {{.kind = LOOM_GRANT_BUFFER, .bytes = PAGE, .device = 1, .frames = 1}, &lines, LOOM_EPLUGIN},
	    {{.kind = LOOM_GRANT_HEAP, .bytes = PAGE, .device = 1}, NULL, LOOM_ENOTSUP},
	};
	for (size_t i = 0; i < COUNT(placed); i++) {
		struct loom_error err = {0};
		struct qos_rig *r = placed_rig(placed[i].interrupts);
		qos_rig_grant(r, placed[i].grant);
		CU_ASSERT_EQUAL(qos_rig_start(r, &err), placed[i].code);
		CU_ASSERT(strlen(err.text) > 0);
		qos_rig_close(r);
	}
}

/* ---- waiting ---- */

static void sleepy(void *self, const struct loom_qos_load *load, struct loom_qos_round *turn)
{
	uint32_t *naps = self;
	(void)load, (void)turn;
	if (*naps && (*naps)--)
		usleep(1000000);
}

/* The thread that serves requests is blocked for a second. Workers see time-outs and full rings, but no request is
 * lost. */
TEST(stopped_handler)
{
	const struct loom_qos_ops ops = {.size = sizeof(ops), .admit = sleepy};
	uint32_t naps = 1;
	struct qos_rig *r = qos_rig_create(1);
	qos_rig_stage(r, "split", "class=other");
	qos_rig_own_stage(r, &ops, &naps);
	qos_rig_tenant(r, 0, 1, 8, 1);
	qos_rig_must_start(r);
	struct loom_ctx *c = &r->ctx[0];
	struct loom_request request = {0};
	uint64_t id[9];
	int64_t result;
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[i]), 0);
	CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[8]), LOOM_EAGAIN);
	CU_ASSERT_EQUAL(c->qos->wait(c, id[0], 10000000, &result), LOOM_ETIMEDOUT);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(c->qos->wait(c, id[i], 0, &result), 0);
	CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[8]), 0);
	CU_ASSERT_EQUAL(c->qos->wait(c, id[8], 0, &result), 0);
	/* The slot of id[0] was used again. The id after id[8] was never returned. */
	CU_ASSERT_EQUAL(c->qos->wait(c, id[0], 0, &result), LOOM_ENOENT);
	CU_ASSERT_EQUAL(c->qos->wait(c, id[8] + 1, 0, &result), LOOM_EINVAL);
	/* The stop word ends a wait. */
	naps = 1;
	CU_ASSERT_EQUAL(c->qos->request(c, &request, &id[0]), 0);
	r->ctl->stop = 1;
	CU_ASSERT_EQUAL(c->qos->wait(c, id[0], 0, &result), LOOM_EINTR);
	qos_rig_close(r);
}

TEST_MAIN("qos", 60)
