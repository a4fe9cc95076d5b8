/* SPDX-License-Identifier: Apache-2.0 */
/* Tests device_cpu.so alone: cores, isolation, death, retirement, rejected settings. `gpuloom validate` tests the
 * common requirements of devices (check-validate.sh). */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "cpu_rig.h"

/* Options of ThreadSanitizer. The child process of isolation = process must be able to start threads, although its
 * parent has threads. One test needs a real segmentation fault, so the sanitizer must not handle it. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0:handle_segv=0";
}
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_segv=0";
}

static struct loom__drive rig;

/* The results of a worker, in the worker's row of board(). */
struct row {
	uint64_t runs, address;
	int32_t pid;
	uint32_t flags, cores_bound;
};
static struct row *row_of(struct loom_ctx *c)
{
	return (struct row *)c->global[LOOM_SCHED] + c->worker;
}
static struct row *board(void)
{
	return (struct row *)rig.shared->board;
}

static void open_rig(uint32_t devices, const char *settings, void (*run)(struct loom_ctx *c))
{
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, devices, settings), 0);
	CU_ASSERT_EQUAL_FATAL(loom__drive_memory(&rig), 0);
	CU_ASSERT_EQUAL_FATAL(loom__drive_build(&rig, run), 0);
}

static void launch_rig(uint32_t devices, const char *settings, void (*run)(struct loom_ctx *c))
{
	open_rig(devices, settings, run);
	CU_ASSERT_EQUAL_FATAL(loom__drive_launch(&rig, LOOM_ENTRY_WORK), 0);
}

static void end_rig(uint64_t timeout_ns)
{
	CU_ASSERT_EQUAL(loom__drive_retire(&rig, timeout_ns), 0);
	loom__drive_close(&rig);
}

/* ---- samples */

static void note(struct loom_ctx *c)
{
	struct row *row = row_of(c);
	cpu_set_t set;
	if (c->lane != 0)
		return;
	row->pid = getpid();
	row->flags = c->flags;
	row->address = (uint64_t)(uintptr_t)row;
	sched_getaffinity(0, sizeof(set), &set);
	row->cores_bound = (uint32_t)CPU_COUNT(&set);
}

TEST(pinning)
{
	launch_rig(1, "workers=1", note);
	uint64_t end, go = fake_host.now_ns(&fake_host);
	CU_ASSERT_EQUAL(loom__drive_sample(&rig, 0, &end), 0);
	const struct loom_counters *k = rig.shared->counters;
	CU_ASSERT(k->cpu_ns > 0 && k->cpu_ns <= fake_host.now_ns(&fake_host) - go);
	CU_ASSERT_EQUAL(end, k->end_ns);
	if (!*fake.log) /* if there is a warning in the log, the sandbox forbids binding */
		CU_ASSERT_EQUAL(board()[0].cores_bound, 1);
	end_rig(5 * SECOND);
}

/* Cores are claimed per network namespace. In a new namespace no other process has claimed a core, so this test's
 * workers can claim all. */
TEST(crowded_flag)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return;
	launch_rig(1, "workers=1", note);
	CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
	CU_ASSERT_EQUAL(board()[0].flags, 0);
	end_rig(5 * SECOND);
	if (sysconf(_SC_NPROCESSORS_ONLN) >= 64)
		return;
	launch_rig(1, "workers=1 lanes=64", note);
	CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
	CU_ASSERT_EQUAL(board()[0].flags, LOOM_CTX_OVERSUBSCRIBED);
	end_rig(5 * SECOND);
}

/* ---- isolation */

TEST(addresses_differ)
{
	launch_rig(2, "workers=1 oversubscribe=yes isolation=process", note);
	CU_ASSERT_EQUAL_FATAL(rig_sample(&rig, 0), 0);
	const struct row *a = &board()[0], *b = &board()[1];
	uint64_t base_a = a->address, base_b = b->address - sizeof(*b);
	CU_ASSERT_NOT_EQUAL(base_a, base_b);
	CU_ASSERT_NOT_EQUAL(base_a, (uint64_t)(uintptr_t)a);
	CU_ASSERT_NOT_EQUAL(base_b, (uint64_t)(uintptr_t)a);
	CU_ASSERT_NOT_EQUAL(a->pid, b->pid);
	CU_ASSERT_NOT_EQUAL(a->pid, getpid());
	end_rig(5 * SECOND);
}

static void *inherited; /* an address in memory of the parent */

static void stray(struct loom_ctx *c)
{
	(void)c;
	*(volatile char *)inherited = 1;
}

TEST(raw_pointer_faults)
{
	uint64_t end;
	open_rig(1, "workers=1 isolation=process", stray);
	inherited = rig.shared->board;
	CU_ASSERT_EQUAL_FATAL(loom__drive_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(loom__drive_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(loom__drive_go(&rig, 0), 0);
	REFUSED(loom__drive_wait(&rig, 20 * SECOND, &end), LOOM_EDIED, rig.err, "signal 11");
	end_rig(SECOND);
}

/* ---- death and retirement */

static void until_stopped(struct loom_ctx *c)
{
	struct row *row = row_of(c);
	row->pid = getpid();
	__atomic_store_n(&row->runs, 1, __ATOMIC_RELEASE);
	while (!loom_stopped(c))
		loom_pause(c);
}

static void for_ever(struct loom_ctx *c)
{
	row_of(c)->pid = getpid();
	__atomic_store_n(&row_of(c)->runs, 1, __ATOMIC_RELEASE);
	for (;;)
		usleep(1000);
}

static void start_rig(uint32_t devices, const char *settings, void (*run)(struct loom_ctx *c))
{
	launch_rig(devices, settings, run);
	CU_ASSERT_EQUAL_FATAL(loom__drive_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(loom__drive_go(&rig, 0), 0);
}

/* Opens the rig and waits until all workers have arrived. */
static void start_all(uint32_t devices, const char *settings, void (*run)(struct loom_ctx *c))
{
	start_rig(devices, settings, run);
	for (uint32_t i = 0; i < rig.layout.workers; i++)
		while (!__atomic_load_n(&board()[i].runs, __ATOMIC_ACQUIRE))
			usleep(100);
}

TEST(killed)
{
	uint64_t end;
	char words[64];
	start_all(2, "workers=1 oversubscribe=yes isolation=process", until_stopped);
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[0], 1000, &end, &rig.err), LOOM_EAGAIN);
	/* Ctrl-C goes to the whole process group, but only the host handles it. */
	CU_ASSERT_EQUAL(kill(board()[1].pid, SIGINT), 0);
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[1], 20000000, &end, &rig.err), LOOM_EAGAIN);
	CU_ASSERT_EQUAL(kill(board()[1].pid, SIGKILL), 0);
	snprintf(words, sizeof(words), "cpu:1&%d&signal 9", board()[1].pid);
	REFUSED(rig.ops->wait(rig.self[1], 2 * SECOND, &end, &rig.err), LOOM_EDIED, rig.err, words);
	/* A repeated call returns the same answer. */
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[1], 2 * SECOND, &end, &rig.err), LOOM_EDIED);
	CU_ASSERT_EQUAL(rig.ops->ready(rig.self[1], 2 * SECOND, &rig.err), LOOM_EDIED);
	__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
	end_rig(5 * SECOND);
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

TEST(retire_by_force)
{
	fake.log[0] = 0;
	start_all(1, "workers=1 isolation=process", for_ever);
	end_rig(SECOND / 20);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake.log, "killed"));
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static int let_go;

/* Worker 0 sets the stop word and returns, as a failing worker does. The other workers continue. */
static void first_gives_up(struct loom_ctx *c)
{
	if (!c->worker)
		__atomic_store_n(&c->ctl->stop, 1, __ATOMIC_RELAXED);
	while (c->worker && !__atomic_load_n(&row_of(c)->runs, __ATOMIC_RELAXED))
		usleep(100);
}

/* A worker that sets the stop word wakes the host, because the host may have to wake sleeping workers. Otherwise wait()
 * would last for hours. */
TEST(told_of_stop)
{
	static const char *const settings[] = {"workers=2 oversubscribe=yes",
					       "workers=2 oversubscribe=yes isolation=process"};
	for (size_t i = 0; i < 2; i++) {
		uint64_t end;
		start_rig(1, settings[i], first_gives_up);
		CU_ASSERT_EQUAL(rig.ops->wait(rig.self[0], 10000 * SECOND, &end, &rig.err), LOOM_EAGAIN);
		__atomic_store_n(&board()[1].runs, 1, __ATOMIC_RELAXED);
		while (rig.ops->wait(rig.self[0], 10000 * SECOND, &end, &rig.err) == LOOM_EAGAIN)
			;
		end_rig(20 * SECOND);
	}
}

static void until_let_go(struct loom_ctx *c)
{
	__atomic_store_n(&row_of(c)->runs, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&let_go, __ATOMIC_RELAXED))
		usleep(100);
}

/* A thread that does not return is reported. Its memory remains until the thread returns. */
TEST(stuck_thread)
{
	let_go = 0;
	start_all(1, "workers=1", until_let_go);
	REFUSED(loom__drive_retire(&rig, SECOND / 20), LOOM_ETIMEDOUT, rig.err, "isolation = process");
	__atomic_store_n(&let_go, 1, __ATOMIC_RELAXED);
	end_rig(20 * SECOND);
}

static int stopper[2];

/* Asks the test's child to stop this process while the host waits in retire(). The worker then runs on for some time. */
static void asks_and_leaves(struct loom_ctx *c)
{
	__atomic_store_n(&row_of(c)->runs, 1, __ATOMIC_RELEASE);
	while (!loom_stopped(c))
		usleep(100);
	usleep(20000); /* by then the host is in retire() */
	CU_ASSERT_EQUAL(write(stopper[1], "s", 1), 1);
	for (int i = 0; i < 50; i++) /* one of these sleeps lasts until the process continues */
		usleep(1000);
}

/* The process is stopped for longer than the time-out of retire(). Afterwards, its workers still have time to leave. */
TEST(retire_beside_a_stop)
{
	char byte;
	CU_ASSERT_EQUAL_FATAL(pipe(stopper), 0);
	pid_t us = getpid(), child = fork();
	if (!child) {
		close(stopper[1]);
		if (read(stopper[0], &byte, 1) == 1) {
			kill(us, SIGSTOP);
			usleep(1200000);
			kill(us, SIGCONT);
		}
		_exit(0);
	}
	start_all(1, "workers=1", asks_and_leaves);
	__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
	end_rig(SECOND);
	close(stopper[0]);
	close(stopper[1]);
	CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
}

static void meet(struct loom_ctx *c)
{
	for (int i = 0; i < 4; i++)
		loom_barrier_lanes(c);
}

/* The host abandons a sample while lanes wake up for the sample. Either all lanes of a worker take part in it or none,
 * because the lanes wait for each other at barriers. */
TEST(given_up)
{
	static const char *const settings[] = {"workers=2 lanes=3 oversubscribe=yes spin=0us",
					       "workers=2 lanes=3 oversubscribe=yes spin=10ms"};
	for (uint32_t i = 0; i < 2; i++) {
		open_rig(1, settings[i], meet);
		for (uint32_t n = 0; n < 150; n++) {
			rig.shared->ctl.stop = 0;
			CU_ASSERT_EQUAL_FATAL(loom__drive_launch(&rig, LOOM_ENTRY_WORK), 0);
			if (n % 2)
				CU_ASSERT_EQUAL_FATAL(loom__drive_ready(&rig, 0), 0);
			CU_ASSERT_EQUAL_FATAL(loom__drive_go(&rig, 0), 0);
			if (n % 3)
				usleep(n % 16 * 8);
			__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
			CU_ASSERT_EQUAL_FATAL(loom__drive_retire(&rig, 20 * SECOND), 0);
		}
		loom__drive_close(&rig);
	}
}

TEST(dies_with_parent)
{
	int pids[2];
	CU_ASSERT_EQUAL_FATAL(pipe(pids), 0);
	pid_t middle = fork();
	if (middle == 0) {
		start_all(1, "workers=1 isolation=process", until_stopped);
		int32_t pid = board()[0].pid;
		if (write(pids[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
	}
	/* The worker also has the write end of the pipe. So read() finds the end of the file only after the worker has
	 * ended. */
	int32_t worker = 0;
	close(pids[1]);
	CU_ASSERT_EQUAL(read(pids[0], &worker, sizeof(worker)), sizeof(worker));
	CU_ASSERT_EQUAL(kill(worker, 0), 0);
	kill(middle, SIGKILL);
	CU_ASSERT_EQUAL(read(pids[0], &worker, 1), 0);
	close(pids[0]);
	waitpid(middle, NULL, 0);
}

/* ---- refusals */

static void refused(uint32_t devices, const char *settings, const char *says)
{
	REFUSED(rig_open(&rig, devices, settings), LOOM_EINVAL, rig.err, says);
	loom__drive_close(&rig);
}

TEST(refusals)
{
	refused(1, "workers=4000", "oversubscribe = yes");
	refused(1, "cores=0-", "not a list of cores");
	refused(1, "cores=zero", "not a list of cores");
	refused(1, "cores=5000", "may run on");
	refused(1, "cores=-", "not a list of cores");
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		return;
	refused(2, "", "[run] devices");
	refused(1, "workers=2", "1 core");
	CU_ASSERT_EQUAL(rig_open(&rig, 3, "oversubscribe=yes"), 0);
	CU_ASSERT_EQUAL(rig.layout.workers, 3);
	loom__drive_close(&rig);
	sched_setaffinity(0, sizeof(all), &all);
}

TEST(disjoint_sets)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, ""), 0);
	uint32_t all = rig.layout.workers;
	loom__drive_close(&rig);
	if (all < 2)
		return;
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 2, ""), 0);
	CU_ASSERT_EQUAL(rig.layout.workers, all);
	CU_ASSERT(rig.shape[0].workers > 0 && rig.shape[1].workers > 0);
	CU_ASSERT_EQUAL(rig.shape[0].kind, LOOM_ON_CPU);
	loom__drive_close(&rig);
}

TEST(build_refuses)
{
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, "workers=1"), 0);
	struct loom_plugin policy = {.name = "term_gpu_only"};
	const struct loom_plugin *table[LOOM_KINDS_MAX] = {[LOOM_TERM] = &policy};
	struct loom_program program = {.size = sizeof(program), .policy = table};
	REFUSED(rig.ops->build(rig.self[0], &program, &rig.err), LOOM_ENOTSUP, rig.err, "term_gpu_only");
	struct loom_task_entry task = {.name = "fib"};
	table[LOOM_TERM] = NULL;
	program.task = &task;
	program.tasks = 1;
	REFUSED(rig.ops->build(rig.self[0], &program, &rig.err), LOOM_ENOTSUP, rig.err, "fib");
	CU_ASSERT_EQUAL_FATAL(loom__drive_memory(&rig), 0);
	CU_ASSERT_EQUAL(loom__drive_launch(&rig, LOOM_ENTRY_WORK), LOOM_EINVAL);
	loom__drive_close(&rig);
}

TEST(mem_map_refuses)
{
	struct loom_memory vram = {.size = sizeof(vram), .bytes = 4096, .fd = -1};
	static const char *const settings[] = {"workers=1", "workers=1 isolation=process"};
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, settings[i]), 0);
		CU_ASSERT_EQUAL(rig.ops->mem_map(rig.self[0], &vram, &rig.err), LOOM_EUNAVAIL);
		struct loom_memory none;
		CU_ASSERT_EQUAL(rig.ops->mem_alloc(rig.self[0], 0, 0, &none, &rig.err),
				LOOM_EINVAL);
		loom__drive_close(&rig);
	}
}

/* On some kernels, a worker that yields must also sleep now and then. On other kernels it does not sleep. */
TEST(gaps_by_kernel_D20)
{
	static const struct {
		const char *release;
		int gap;
	} kernel[] = {{"6.18.44-x", 1}, {"6.6.0", 1},
		      {"7.0", 1},       {"", 1},
		      {"x", 1},         {"6.", 1},
		      {"6.5.13", 0},    {"6.1.0-49-amd64", 0},
		      {"5.15.0-1", 0},  {"4.18.0-553.el8", 0},
		      {"10.0", 1}};
	for (size_t i = 0; i < sizeof(kernel) / sizeof(*kernel); i++)
		CU_ASSERT_EQUAL(loom_needs_gap(kernel[i].release), kernel[i].gap);
}

TEST_MAIN("device_cpu", 120)
