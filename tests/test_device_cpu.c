/* SPDX-License-Identifier: Apache-2.0 */
/* device_cpu.so by itself: samples, lanes, isolation, death, retirement, refusals. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "cpu_rig.h"

/* The child of isolation = process starts threads, also when the parent has some; and one test
 * wants to see a segmentation fault as such. */
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

static struct rig rig;

/* What the workers write on the board, one row each. */
struct row {
	uint64_t runs, random, address, local_was, sum;
	int32_t pid;
	uint32_t flags, cores_bound, own_ok;
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
	CU_ASSERT_EQUAL_FATAL(rig_memory(&rig), 0);
	CU_ASSERT_EQUAL_FATAL(rig_build(&rig, run), 0);
	rig.local_bytes[LOOM_SCHED] = 100;
	rig.local_bytes[LOOM_TERM] = 8;
}

static size_t entries(const char *path)
{
	size_t n = 0;
	DIR *dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- samples */

static void note(struct loom_ctx *c)
{
	struct row *row = row_of(c);
	uint64_t *local = c->local[LOOM_TERM];
	cpu_set_t set;
	if (c->lane != 0)
		return;
	row->runs++;
	row->random = loom_random(c);
	row->local_was = *local;
	*local = 1;
	row->pid = getpid();
	row->flags = c->flags;
	row->address = (uint64_t)(uintptr_t)row;
	row->own_ok = c->own[LOOM_SCHED] == loom_public(c, LOOM_SCHED, c->worker) &&
		      !((uintptr_t)c->local[LOOM_SCHED] & 63) && !((uintptr_t)local & 63) &&
		      c->own[LOOM_TERM] == NULL && c->global[LOOM_TERM] == NULL;
	sched_getaffinity(0, sizeof(set), &set);
	row->cores_bound = (uint32_t)CPU_COUNT(&set);
}

static void samples(const char *settings)
{
	open_rig(1, settings, note);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	uint64_t random = 0;
	for (uint32_t n = 0; n < 5; n++) {
		uint64_t end;
		CU_ASSERT_EQUAL(rig_ready(&rig, n), 0);
		uint64_t go = fake_now_ns(NULL);
		CU_ASSERT_EQUAL(rig_go(&rig, n), 0);
		CU_ASSERT_EQUAL_FATAL(rig_wait(&rig, 20 * SECOND, &end), 0);
		uint64_t last = 0;
		for (uint32_t i = 0; i < rig.layout.workers; i++) {
			const struct loom_counters *k = &rig.shared->counters[i];
			CU_ASSERT(k->begin_ns >= go && k->end_ns >= k->begin_ns);
			/* Of this sample alone, and no more than all lanes had time for. */
			CU_ASSERT(k->cpu_ns > 0);
			CU_ASSERT(k->cpu_ns <= rig.layout.device[0].lanes * (fake_now_ns(NULL) - go));
			if (k->end_ns > last)
				last = k->end_ns;
			CU_ASSERT_EQUAL(board()[i].runs, n + 1);
			CU_ASSERT_EQUAL(board()[i].local_was, 0);
			CU_ASSERT_EQUAL(board()[i].own_ok, 1);
		}
		CU_ASSERT_EQUAL(end, last);
		CU_ASSERT_NOT_EQUAL(board()[0].random, random);
		random = board()[0].random;
		if (n == 2)
			usleep(1000); /* long enough to fall asleep */
	}
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	/* The same seed and sample give the same numbers, in another launch too. */
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(rig_sample(&rig, 4), 0);
	CU_ASSERT_EQUAL(board()[0].random, random);
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	rig_close(&rig);
}

static void test_samples_thread(void)
{
	samples("workers=1");
}
static void test_samples_process(void)
{
	samples("workers=1 isolation=process");
}
static void test_samples_crowded(void)
{
	samples("workers=7 oversubscribe=yes spin=0us");
	samples("workers=3 lanes=5 oversubscribe=yes isolation=process");
}

static void test_pinning(void)
{
	open_rig(1, "workers=1", note);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
	if (!*fake_log_text) /* else the sandbox forbids it, and we were warned */
		CU_ASSERT_EQUAL(board()[0].cores_bound, 1);
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	rig_close(&rig);
}

static void test_crowded_flag(void)
{
	open_rig(1, "workers=1", note);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
	CU_ASSERT_EQUAL(board()[0].flags, 0);
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	rig_close(&rig);
	open_rig(1, "workers=1 lanes=64", note);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 64) {
		CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
		CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
		CU_ASSERT_EQUAL(board()[0].flags, LOOM_CTX_CROWDED);
		CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	}
	rig_close(&rig);
}

/* ---- lanes */

#define MEETINGS 500u

/* Lanes write to a row of their own, meet, and each checks its neighbour's: a missing barrier shows
 * as a wrong sum, or as a race under ThreadSanitizer. */
static void meet(struct loom_ctx *c)
{
	uint64_t *slot = (uint64_t *)(c->global[LOOM_SCHED]) + 1024 + 64 * c->worker;
	struct row *row = row_of(c);
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < MEETINGS; i++) {
		slot[c->lane] = i * 100 + c->lane;
		loom_barrier_lanes(c);
		uint32_t next = (c->lane + 1) % c->lanes;
		wrong += slot[next] != i * 100 + next;
		uint64_t told = loom_from_lane0(c, c->lane == 0 ? i : ~0ull);
		wrong += told != i;
		told = loom_from_lane0(c, c->lane == 0 ? i + 7 : ~0ull);
		wrong += told != i + 7;
	}
	__atomic_fetch_add(&row->sum, wrong, __ATOMIC_RELAXED);
	__atomic_fetch_add(&row->runs, 1, __ATOMIC_RELAXED);
}

static void lanes(const char *settings, uint32_t count)
{
	open_rig(1, settings, meet);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	for (uint32_t n = 0; n < 3; n++)
		CU_ASSERT_EQUAL_FATAL(rig_sample(&rig, n), 0);
	for (uint32_t i = 0; i < rig.layout.workers; i++) {
		CU_ASSERT_EQUAL(board()[i].sum, 0);
		CU_ASSERT_EQUAL(board()[i].runs, 3 * count);
	}
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	rig_close(&rig);
}

static void test_lanes(void)
{
	lanes("workers=1 lanes=1", 1);
	lanes("workers=2 lanes=4 oversubscribe=yes", 4);
	lanes("workers=1 lanes=4 isolation=process", 4);
}

/* ---- isolation */

static void test_addresses_differ(void)
{
	open_rig(2, "workers=1 oversubscribe=yes isolation=process", note);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL_FATAL(rig_sample(&rig, 0), 0);
	const struct row *a = &board()[0], *b = &board()[1];
	uint64_t base_a = a->address, base_b = b->address - sizeof(*b);
	CU_ASSERT_NOT_EQUAL(base_a, base_b);
	CU_ASSERT_NOT_EQUAL(base_a, (uint64_t)(uintptr_t)a);
	CU_ASSERT_NOT_EQUAL(base_b, (uint64_t)(uintptr_t)a);
	CU_ASSERT_NOT_EQUAL(a->pid, b->pid);
	CU_ASSERT_NOT_EQUAL(a->pid, getpid());
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	rig_close(&rig);
}

static void *inherited; /* an address of the parent's */

static void stray(struct loom_ctx *c)
{
	(void)c;
	*(volatile char *)inherited = 1;
}

static void test_raw_pointer_faults(void)
{
	uint64_t end;
	open_rig(1, "workers=1 isolation=process", stray);
	inherited = rig.shared->board;
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(rig_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(rig_go(&rig, 0), 0);
	CU_ASSERT_EQUAL(rig_wait(&rig, 20 * SECOND, &end), LOOM_EDIED);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "signal 11"));
	CU_ASSERT_EQUAL(rig_retire(&rig, SECOND), 0);
	rig_close(&rig);
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

static void start_one(void)
{
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL_FATAL(rig_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(rig_go(&rig, 0), 0);
	for (uint32_t i = 0; i < rig.layout.workers; i++)
		while (!__atomic_load_n(&board()[i].runs, __ATOMIC_ACQUIRE))
			usleep(100);
}

static void test_killed(void)
{
	uint64_t end;
	char pid[32];
	open_rig(2, "workers=1 oversubscribe=yes isolation=process", until_stopped);
	start_one();
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[0], 1000, &end, &rig.err), LOOM_EAGAIN);
	/* Ctrl-C reaches the whole process group; only the host acts on it. */
	CU_ASSERT_EQUAL(kill(board()[1].pid, SIGINT), 0);
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[1], 20000000, &end, &rig.err), LOOM_EAGAIN);
	CU_ASSERT_EQUAL(kill(board()[1].pid, SIGKILL), 0);
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[1], 2 * SECOND, &end, &rig.err), LOOM_EDIED);
	snprintf(pid, sizeof(pid), "%d", board()[1].pid);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "cpu:1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, pid));
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "signal 9"));
	/* Whoever asks again gets the same answer. */
	CU_ASSERT_EQUAL(rig.ops->wait(rig.self[1], 2 * SECOND, &end, &rig.err), LOOM_EDIED);
	CU_ASSERT_EQUAL(rig.ops->ready(rig.self[1], 2 * SECOND, &rig.err), LOOM_EDIED);
	__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
	CU_ASSERT_EQUAL(rig_retire(&rig, 5 * SECOND), 0);
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	rig_close(&rig);
}

static void stopped_in_mid_sample(const char *settings)
{
	open_rig(1, settings, until_stopped);
	start_one();
	__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
	CU_ASSERT_EQUAL(rig_retire(&rig, 20 * SECOND), 0);
	rig_close(&rig);
}

static void test_retire_in_mid_sample(void)
{
	fake_log_text[0] = 0;
	stopped_in_mid_sample("workers=1");
	stopped_in_mid_sample("workers=1 isolation=process");
	CU_ASSERT_PTR_NULL(strstr(fake_log_text, "killed"));
}

static void test_retire_by_force(void)
{
	fake_log_text[0] = 0;
	open_rig(1, "workers=1 isolation=process", for_ever);
	start_one();
	CU_ASSERT_EQUAL(rig_retire(&rig, SECOND / 20), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_log_text, "killed"));
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	rig_close(&rig);
}

static int let_go;

/* Worker 0 gives up, as a failing one does; the others notice nothing. */
static void first_gives_up(struct loom_ctx *c)
{
	if (!c->worker)
		__atomic_store_n(&c->ctl->stop, 1, __ATOMIC_RELAXED);
	while (c->worker && !__atomic_load_n(&row_of(c)->runs, __ATOMIC_RELAXED))
		usleep(100);
}

/* The host, which would wait for hours, is told: it may have to wake those that sleep. */
static void test_told_of_stop(void)
{
	static const char *const settings[] = {"workers=2 oversubscribe=yes",
					       "workers=2 oversubscribe=yes isolation=process"};
	for (size_t i = 0; i < 2; i++) {
		uint64_t end;
		open_rig(1, settings[i], first_gives_up);
		CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
		CU_ASSERT_EQUAL_FATAL(rig_ready(&rig, 0), 0);
		CU_ASSERT_EQUAL(rig_go(&rig, 0), 0);
		CU_ASSERT_EQUAL(rig.ops->wait(rig.self[0], 10000 * SECOND, &end, &rig.err), LOOM_EAGAIN);
		__atomic_store_n(&board()[1].runs, 1, __ATOMIC_RELAXED);
		while (rig.ops->wait(rig.self[0], 10000 * SECOND, &end, &rig.err) == LOOM_EAGAIN)
			;
		CU_ASSERT_EQUAL(rig_retire(&rig, 20 * SECOND), 0);
		rig_close(&rig);
	}
}

static void until_let_go(struct loom_ctx *c)
{
	__atomic_store_n(&row_of(c)->runs, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&let_go, __ATOMIC_RELAXED))
		usleep(100);
}

/* A thread that does not come back is reported, and its memory is left alone until it does. */
static void test_stuck_thread(void)
{
	let_go = 0;
	open_rig(1, "workers=1", until_let_go);
	start_one();
	CU_ASSERT_EQUAL(rig_retire(&rig, SECOND / 20), LOOM_ETIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "isolation = process"));
	__atomic_store_n(&let_go, 1, __ATOMIC_RELAXED);
	CU_ASSERT_EQUAL(rig_retire(&rig, 20 * SECOND), 0);
	rig_close(&rig);
}

static void test_retire_at_gate(void)
{
	open_rig(1, "workers=2 lanes=2 oversubscribe=yes", note);
	CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
	CU_ASSERT_EQUAL(rig_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(rig_retire(&rig, 20 * SECOND), 0);
	rig_close(&rig);
}

static void test_dies_with_parent(void)
{
	int tell[2];
	CU_ASSERT_EQUAL_FATAL(pipe(tell), 0);
	pid_t middle = fork();
	if (middle == 0) {
		open_rig(1, "workers=1 isolation=process", until_stopped);
		start_one();
		int32_t pid = board()[0].pid;
		if (write(tell[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
	}
	/* The worker holds the writing end too: end of file says that it is gone. */
	int32_t worker = 0;
	close(tell[1]);
	CU_ASSERT_EQUAL(read(tell[0], &worker, sizeof(worker)), sizeof(worker));
	CU_ASSERT_EQUAL(kill(worker, 0), 0);
	kill(middle, SIGKILL);
	CU_ASSERT_EQUAL(read(tell[0], &worker, 1), 0);
	close(tell[0]);
	waitpid(middle, NULL, 0);
}

static void launches(const char *settings, int n)
{
	open_rig(2, settings, note);
	size_t fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	for (int i = 0; i < n; i++) {
		CU_ASSERT_EQUAL_FATAL(rig_launch(&rig, LOOM_ENTRY_WORK), 0);
		if (i % 4)
			CU_ASSERT_EQUAL(rig_sample(&rig, 0), 0);
		CU_ASSERT_EQUAL_FATAL(rig_retire(&rig, 20 * SECOND), 0);
	}
	CU_ASSERT_EQUAL(entries("/proc/self/fd"), fds);
	CU_ASSERT_EQUAL(entries("/proc/self/task"), threads);
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	rig_close(&rig);
}

static void test_launches_leave_nothing(void)
{
	size_t fds = entries("/proc/self/fd");
	launches("workers=1 oversubscribe=yes", 100);
	launches("workers=1 oversubscribe=yes isolation=process", 100);
	CU_ASSERT_EQUAL(entries("/proc/self/fd"), fds);
}

/* ---- refusals */

static void refused(uint32_t devices, const char *settings, const char *says)
{
	CU_ASSERT_EQUAL(rig_open(&rig, devices, settings), LOOM_EINVAL);
	if (!strstr(rig.err.text, says))
		printf("\n  '%s' does not say '%s'\n", rig.err.text, says);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, says));
	rig_close(&rig);
}

static void test_refusals(void)
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
	rig_close(&rig);
	sched_setaffinity(0, sizeof(all), &all);
}

static void test_disjoint_sets(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, ""), 0);
	uint32_t all = rig.layout.workers;
	rig_close(&rig);
	if (all < 2)
		return;
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 2, ""), 0);
	CU_ASSERT_EQUAL(rig.layout.workers, all);
	CU_ASSERT(rig.shape[0].workers > 0 && rig.shape[1].workers > 0);
	CU_ASSERT_EQUAL(rig.shape[0].kind, LOOM_ON_CPU);
	rig_close(&rig);
}

static void test_build_refuses(void)
{
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, "workers=1"), 0);
	struct loom_plugin policy = {.name = "term_gpu_only"};
	const struct loom_plugin *table[LOOM_KINDS] = {[LOOM_TERM] = &policy};
	struct loom_program program = {.size = sizeof(program), .policy = table};
	CU_ASSERT_EQUAL(rig.ops->build(rig.self[0], &program, &rig.err), LOOM_ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "term_gpu_only"));
	struct loom_task_entry task = {.name = "fib"};
	table[LOOM_TERM] = NULL;
	program.task = &task;
	program.tasks = 1;
	CU_ASSERT_EQUAL(rig.ops->build(rig.self[0], &program, &rig.err), LOOM_ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "fib"));
	/* Nothing to run. */
	CU_ASSERT_EQUAL_FATAL(rig_memory(&rig), 0);
	CU_ASSERT_EQUAL(rig_launch(&rig, LOOM_ENTRY_WORK), LOOM_EINVAL);
	rig_close(&rig);
}

static void test_mem_map_refuses(void)
{
	struct loom_memory vram = {.size = sizeof(vram), .bytes = 4096, .fd = -1};
	static const char *const settings[] = {"workers=1", "workers=1 isolation=process"};
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, settings[i]), 0);
		CU_ASSERT_EQUAL(rig.ops->mem_map(rig.self[0], &vram, &rig.err), LOOM_EUNAVAIL);
		struct loom_memory none;
		CU_ASSERT_EQUAL(rig.ops->mem_alloc(rig.self[0], 0, 0, &none, &rig.err),
				LOOM_EINVAL);
		rig_close(&rig);
	}
}

static int doctor_rows;

static void doctor_row(struct loom_doctor *out, const char *topic, const char *state,
		       const char *found, const char *mend)
{
	(void)out;
	doctor_rows++;
	CU_ASSERT(topic && found && mend);
	CU_ASSERT(!strcmp(state, "ok") || *mend); /* what is not well can be mended */
}

static void test_doctor(void)
{
	struct loom_doctor out = {.size = sizeof(out), .row = doctor_row};
	const struct loom_device_ops *ops = fake_load("device_cpu")->ops;
	ops->doctor(&fake_host, &out);
	CU_ASSERT(doctor_rows >= 5);
}

static const struct test tests[] = {
    {"samples_thread", test_samples_thread},
    {"samples_process", test_samples_process},
    {"samples_crowded", test_samples_crowded},
    {"pinning", test_pinning},
    {"crowded_flag", test_crowded_flag},
    {"lanes", test_lanes},
    {"addresses_differ", test_addresses_differ},
    {"raw_pointer_faults", test_raw_pointer_faults},
    {"killed", test_killed},
    {"retire_in_mid_sample", test_retire_in_mid_sample},
    {"retire_by_force", test_retire_by_force},
    {"retire_at_gate", test_retire_at_gate},
    {"told_of_stop", test_told_of_stop},
    {"stuck_thread", test_stuck_thread},
    {"dies_with_parent", test_dies_with_parent},
    {"launches_leave_nothing", test_launches_leave_nothing},
    {"refusals", test_refusals},
    {"disjoint_sets", test_disjoint_sets},
    {"build_refuses", test_build_refuses},
    {"mem_map_refuses", test_mem_map_refuses},
    {"doctor", test_doctor},
};

TEST_MAIN("device_cpu", 120, tests)
