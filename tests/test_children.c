/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that embed a stack and handle processes in unusual ways: they close standard streams, ignore SIGCHLD, wait
 * for any child, or fork. Each test runs in a child of this program, so that CUnit keeps its streams. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>

#include "base/base.h"
#include "inspect/child.h"
#include "inspect/probe.h"
#include "lib/child.h"
#include "lib/fd.h"
#include "lib/thread.h"

/* ---- running a test in a child, which prints the reason of a failure and ends with 1 ---- */

static int talk; /* a copy of stderr with a number above 2 */

static _Noreturn void wrong(int line, const char *what, const char *why)
{
	dprintf(talk, "tests/test_children.c:%d: %s: %s\n", line, what, why);
	_exit(1);
}

#define MUST(condition, why)                                    \
	do {                                                    \
		if (!(condition))                               \
			wrong(__LINE__, #condition, why);       \
	} while (0)

static int status_of(void (*body)(void))
{
	int status = -1;
	fflush(NULL);
	talk = fcntl(2, F_DUPFD_CLOEXEC, 10);
	pid_t pid = fork();
	if (pid == 0) {
		body();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	close(talk);
	return status;
}

/* ---- stacks ---- */

struct embedder {
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err;
	uint32_t tag;
	loom_ref ref;
	uint64_t *host;
};

static void set(struct embedder *e, const char *section, const char *key, const char *value)
{
	MUST(!loom_config_set(e->cfg, section, key, value, &e->err), e->err.text);
}

static void configure(struct embedder *e, const char *isolation)
{
	char path[4096];
	*e = (struct embedder){0};
	snprintf(path, sizeof(path), "%s/plugins", test_build_dir());
	MUST(!loom_config_create(&e->cfg, &e->err), e->err.text);
	set(e, "gpuloom", "plugin_path", path);
	set(e, "run", "devices", "cpu:0");
	set(e, "device.cpu", "workers", "2");
	set(e, "device.cpu", "oversubscribe", "yes");
	set(e, "device.cpu", "isolation", isolation);
	set(e, "transport", "use", "host");
	set(e, "scheduler", "use", "mgws");
	set(e, "termination", "use", "counter");
}

static void count(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t *ran = loom_at(c, t->data.ref);
	loom_fetch_add_relaxed_sys(ran, 1ull);
}

static void until_released(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t *word = loom_at(c, t->data.ref);
	while (!__atomic_load_n(&word[1], __ATOMIC_ACQUIRE) && !loom_stopped(c))
		loom_pause(c);
	loom_fetch_add_relaxed_sys(word, 1ull);
}

static void open_tasks(struct embedder *e, const char *isolation, loom_task_fn *fn)
{
	configure(e, isolation);
	MUST(!loom_stack_open(e->cfg, NULL, &e->stack, &e->err), e->err.text);
	MUST(!loom_stack_task(e->stack, "task", fn, &e->tag, &e->err), e->err.text);
	MUST(!loom_stack_alloc(e->stack, 4096, &e->ref, (void **)&e->host, &e->err), e->err.text);
}

static void submit(struct embedder *e, int n)
{
	struct loom_task t = {.tag = e->tag, .data = {.ref = e->ref, .bytes = 4096}};
	for (int i = 0; i < n; i++)
		MUST(!loom_stack_submit(e->stack, &t, 1, &e->err), e->err.text);
}

static void run_tasks(struct embedder *e, int n)
{
	uint64_t before = e->host[0];
	submit(e, n);
	MUST(!loom_stack_run(e->stack, NULL, &e->err), e->err.text);
	MUST(e->host[0] == before + (unsigned)n, "tasks that were run");
}

static void shut(struct embedder *e)
{
	loom_stack_close(e->stack);
	loom_config_destroy(e->cfg);
}

static void run_some(const char *isolation)
{
	struct embedder e;
	open_tasks(&e, isolation, count);
	for (int i = 0; i < 5; i++)
		run_tasks(&e, 8);
	shut(&e);
}

static void run_both(void)
{
	run_some("thread");
	run_some("process");
}

/* Runs `command` as a workload, and returns the code of loom_stack_run(). */
static int run_program(struct embedder *e, const char *isolation, const char *command)
{
	configure(e, isolation);
	set(e, "device.cpu", "workers", "1");
	set(e, "run", "workload", "exec");
	set(e, "run", "samples", "2");
	set(e, "run", "warmup", "0");
	set(e, "workload.exec", "command", command);
	MUST(!loom_stack_open(e->cfg, NULL, &e->stack, &e->err), e->err.text);
	struct loom_result *result = NULL;
	int rc = loom_stack_run(e->stack, &result, &e->err);
	loom_result_destroy(result);
	shut(e);
	return rc;
}

/* ---- closed standard streams ---- */

static void no_stream_is_open(void)
{
	char text[20];
	for (int fd = 0; fd <= 2; fd++) {
		snprintf(text, sizeof(text), "descriptor %d", fd);
		MUST(fcntl(fd, F_GETFD) < 0 && errno == EBADF, text);
	}
}

/* If the standard streams are closed, a stack, its launch and its services must not open a descriptor with the number
 * of a stream. */
static void closed_streams(void)
{
	static const char *const isolation[] = {"thread", "process"};
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	for (size_t i = 0; i < COUNT(isolation); i++) {
		struct embedder e;
		open_tasks(&e, isolation[i], until_released);
		no_stream_is_open();
		submit(&e, 4);
		MUST(!loom_stack_start(e.stack, &e.err), e.err.text);
		no_stream_is_open();
		__atomic_store_n(&e.host[1], 1, __ATOMIC_RELEASE);
		MUST(!loom_stack_wait(e.stack, UINT64_MAX, NULL, &e.err), e.err.text);
		MUST(e.host[0] == 4, "tasks that were run");
		shut(&e);
		MUST(!run_program(&e, isolation[i], "sh -c 'cat; echo data; echo talk >&2'"), e.err.text);
		no_stream_is_open();
	}
}

TEST(closed_streams_F9_S7)
{
	CU_ASSERT_EQUAL(status_of(closed_streams), 0);
}

static void closed_streams_service(void)
{
	static const char *const service[] = {"read", "signal", "send"};
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	for (size_t i = 0; i < COUNT(service); i++) {
		struct embedder e;
		configure(&e, "thread");
		set(&e, "run", "workload", "requests_storm");
		set(&e, "run", "samples", "1");
		set(&e, "run", "warmup", "0");
		set(&e, "qos", "use", "monolithic");
		set(&e, "workload.requests_storm", "service", service[i]);
		set(&e, "workload.requests_storm", "requests", "100");
		MUST(!loom_stack_open(e.cfg, NULL, &e.stack, &e.err), e.err.text);
		no_stream_is_open();
		MUST(!loom_stack_run(e.stack, NULL, &e.err), e.err.text);
		no_stream_is_open();
		shut(&e);
	}
}

TEST(closed_streams_of_services_F9)
{
	CU_ASSERT_EQUAL(status_of(closed_streams_service), 0);
}

static void one_above(void)
{
	int pair[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC), same = loom_fd(fd);
	MUST(same == fd, "a number above 2 stays");
	close(fd);
	close(0);
	close(1);
	fd = loom_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
	MUST(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "a number below 3");
	MUST(!loom_fd_pair(pipe(pair), pair) && pair[0] > 2 && pair[1] > 2, "both of a pair");
	MUST(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0, "the low numbers are free");
	unsigned held = loom_fd_hold();
	MUST(held == 3 && open("/dev/null", O_RDONLY) > 2, "low numbers are held");
	loom_fd_release(held);
	MUST(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) >= 0,
	     "only those that were held are closed");
	errno = EMFILE;
	MUST(loom_fd(-1) == -1 && errno == EMFILE && loom_fd_pair(-1, pair) == -1 && errno == EMFILE && pair[0] == -1,
	     "errors");
}

TEST(descriptors_above_the_streams_F9)
{
	CU_ASSERT_EQUAL(status_of(one_above), 0);
}

/* ---- threads beside a fork ---- */

static void *until_word(void *word)
{
	while (!__atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE))
		loom_futex_sleep(word, 0, 0, FUTEX_PRIVATE_FLAG);
	return NULL;
}

/* Allocates memory of many sizes, and starts a thread. Each of these steps needs a lock of a sanitizer. */
static void use_locks(void)
{
	for (size_t bytes = 16; bytes < 1 << 17; bytes *= 2) {
		void *volatile at = malloc(bytes);
		free(at);
	}
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer ends such a child that starts a thread */
	uint32_t word = 1;
	pthread_t thread;
	MUST(!thread_start(&thread, until_word, &word), "a thread of the child");
	pthread_join(thread, NULL);
#endif
}

/* A child that is forked directly after the start of a thread finds no lock locked. This can fail under a sanitizer
 * only. */
static void forks_after_starts(void)
{
	for (int i = 0; i < 200; i++) {
		uint32_t word = 0;
		pthread_t thread;
		struct child c;
		MUST(!thread_start(&thread, until_word, &word), "a thread");
		int inside = child_fork(&c, "child", 1);
		if (inside > 0) {
			use_locks();
			_exit(0);
		}
		MUST(!inside, strerror(errno));
		MUST(child_ended(&c, 60000000000ull), "the child hangs");
		MUST(child_wait(&c, NULL) == 0, "status of the child");
		__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
		loom_futex_wake(&word, 1, FUTEX_PRIVATE_FLAG);
		pthread_join(thread, NULL);
	}
}

TEST(forks_after_starts_of_threads)
{
	CU_ASSERT_EQUAL(status_of(forks_after_starts), 0);
}

/* ---- unusual ways in which a program handles its children ---- */

static void ignore(void)
{
	signal(SIGCHLD, SIG_IGN);
}

static void take_any(int number)
{
	int code = errno;
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = code;
}

static void reap_all(void)
{
	struct sigaction action = {.sa_handler = take_any, .sa_flags = SA_RESTART};
	sigaction(SIGCHLD, &action, NULL);
}

static void (*const habits[])(void) = {ignore, reap_all};
static void (*habit)(void);

static void runs_with_a_habit(void)
{
	habit();
	run_both();
}

TEST(devices_beside_other_waits_F1)
{
	for (size_t i = 0; i < COUNT(habits); i++) {
		habit = habits[i];
		CU_ASSERT_EQUAL(status_of(runs_with_a_habit), 0);
	}
}

/* A program that failed gives no result, even if the embedding program reaps it or ignores SIGCHLD. */
static void failed_program(void)
{
	static const char *const ends[] = {"sh -c 'sleep 0.05; exit 1'", "sh -c 'sleep 0.05; kill -SEGV $$'",
					   "sh -c 'exit 1'"};
	habit();
	for (size_t i = 0; i < COUNT(ends); i++) {
		struct embedder e;
		MUST(run_program(&e, "thread", ends[i]) == LOOM_EWRONG || e.err.code == LOOM_EDIED, e.err.text);
		/* With isolation = process, the program is a child of the device process, which handles SIGCHLD in the
		 * usual way. */
		MUST(run_program(&e, "process", ends[i]) != 0, "a failed program");
	}
}

TEST(failed_program_F1)
{
	for (size_t i = 0; i < COUNT(habits); i++) {
		habit = habits[i];
		CU_ASSERT_EQUAL(status_of(failed_program), 0);
	}
}

static void lost_status(void)
{
	struct embedder e;
	struct loom_error err;
	char self[4096], plugin[4096];
	ignore();
	MUST(run_program(&e, "thread", "true") == LOOM_EWRONG && test_says(e.err.text, "unknown status&SIGCHLD"),
	     e.err.text);
	MUST(!run_program(&e, "process", "true"), e.err.text);
	/* loom__plugin_examine() needs the exit status of its child, which is lost if SIGCHLD is ignored. */
	snprintf(self, sizeof(self), "%s/gpuloom", test_build_dir());
	snprintf(plugin, sizeof(plugin), "%s/plugins/term_counter.so", test_build_dir());
	MUST(loom__plugin_examine(self, plugin, 20000, NULL, &err) && test_says(err.text, "unknown status"),
	     err.text);
	signal(SIGCHLD, SIG_DFL);
	MUST(!loom__plugin_examine(self, plugin, 20000, NULL, &err), err.text);
}

TEST(lost_status_F1)
{
	CU_ASSERT_EQUAL(status_of(lost_status), 0);
}

static int run_victim(struct embedder *e, const char *victim)
{
	configure(e, "thread");
	set(e, "run", "workload", "requests_storm");
	set(e, "run", "samples", "1");
	set(e, "run", "warmup", "0");
	set(e, "qos", "use", "monolithic");
	set(e, "workload.requests_storm", "victim", victim);
	MUST(!loom_stack_open(e->cfg, NULL, &e->stack, &e->err), e->err.text);
	int rc = loom_stack_run(e->stack, NULL, &e->err);
	shut(e);
	return rc;
}

static void victims(void)
{
	struct embedder e;
	MUST(!run_victim(&e, "true"), e.err.text); /* the victim is found in PATH */
	MUST(run_victim(&e, "false") == LOOM_EWRONG && test_says(e.err.text, "exit code 1"), e.err.text);
	MUST(run_victim(&e, "no_such_victim") == LOOM_EUNAVAIL && test_says(e.err.text, "No such file&install"),
	     e.err.text);
	ignore();
	MUST(run_victim(&e, "false") == LOOM_EWRONG && test_says(e.err.text, "unknown status"), e.err.text);
}

TEST(victims_F1_D31)
{
	CU_ASSERT_EQUAL(status_of(victims), 0);
}

/* The exit status of the compiler does not come from wait() in this process, so it cannot be lost. */
static void compiles_with_a_habit(void)
{
	static const char *const name[] = {"add"};
	static const char good[] =
	    "LOOM_FN void add(struct loom_ctx *c, const struct loom_task *t)\n"
	    "{ loom_fetch_add_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), (uint64_t)1); }\n";
	struct embedder e;
	habit();
	open_tasks(&e, "thread", count);
	MUST(!loom_stack_source(e.stack, "add.dev.h", good, name, 1, &e.tag, &e.err), e.err.text);
	run_tasks(&e, 3);
	shut(&e);
	setenv("CC", "false", 1);
	open_tasks(&e, "thread", count);
	MUST(!loom_stack_source(e.stack, "add.dev.h", good, name, 1, &e.tag, &e.err), e.err.text);
	submit(&e, 1);
	MUST(loom_stack_run(e.stack, NULL, &e.err) == LOOM_EPLUGIN && test_says(e.err.text, "status 1&said nothing"),
	     e.err.text);
	shut(&e);
	setenv("CC", "sh -c 'kill -9 $$'", 1);
	char path[4096], folder[TEST_FOLDER];
	test_folder(folder);
	snprintf(path, sizeof(path), "%s/cc", folder);
	FILE *f = fopen(path, "we");
	MUST(f && fputs("#!/bin/sh\nkill -9 $$\n", f) >= 0 && !fclose(f) && !chmod(path, 0755), path);
	setenv("CC", path, 1);
	open_tasks(&e, "thread", count);
	MUST(!loom_stack_source(e.stack, "add.dev.h", good, name, 1, &e.tag, &e.err), e.err.text);
	submit(&e, 1);
	MUST(loom_stack_run(e.stack, NULL, &e.err) == LOOM_EUNAVAIL && test_says(e.err.text, "killed by signal 9"),
	     e.err.text);
	shut(&e);
	test_remove(folder);
}

TEST(compiler_beside_other_waits_F1_S15)
{
	for (size_t i = 0; i < COUNT(habits); i++) {
		habit = habits[i];
		CU_ASSERT_EQUAL(status_of(compiles_with_a_habit), 0);
	}
}

/* ---- a program that forks ---- */

static const char *isolated;

#define BUSY(call) MUST((call) == LOOM_EBUSY && test_says(e->err.text, "fork&process that opened it"), e->err.text)

static void use_in_fork(struct embedder *e)
{
	static const char *const name[] = {"add"};
	struct loom_task t = {.tag = e->tag, .data = {.ref = e->ref, .bytes = 4096}};
	struct loom_result *result = NULL;
	uint32_t tag;
	loom_ref ref;
	void *host;
	BUSY(loom_stack_submit(e->stack, &t, 1, &e->err));
	BUSY(loom_stack_run(e->stack, NULL, &e->err));
	BUSY(loom_stack_run(e->stack, &result, &e->err));
	BUSY(loom_stack_start(e->stack, &e->err));
	BUSY(loom_stack_wait(e->stack, 0, NULL, &e->err));
	BUSY(loom_stack_task(e->stack, "other", count, &tag, &e->err));
	BUSY(loom_stack_source(e->stack, "add.dev.h", "", name, 1, &tag, &e->err));
	BUSY(loom_stack_ir(e->stack, "add.o", "", 0, name, 1, &tag, &e->err));
	BUSY(loom_stack_alloc(e->stack, 64, &ref, &host, &e->err));
	BUSY(loom_stack_barrier(e->stack, &e->err));
	loom_stack_stop(e->stack);
	loom_stack_stop(e->stack);
}

static void in_fork(struct embedder *e, int use)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (use)
			use_in_fork(e);
		shut(e);
		run_some(isolated); /* the child opens its own stack */
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0, "the fork");
}

/* The parent runs tasks while the child uses the stack. The parent's workers would notice if the child changed shared
 * words. */
static void beside_runs(struct embedder *e)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 500; i++)
			use_in_fork(e);
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		run_tasks(e, 2);
	MUST(status == 0, "the fork");
	run_tasks(e, 2);
}

static void forks(void)
{
	struct embedder e;
	open_tasks(&e, isolated, count);
	in_fork(&e, 0); /* before the first run */
	for (int use = 0; use <= 1; use++) {
		run_tasks(&e, 8);
		in_fork(&e, use);
		run_tasks(&e, 8);
	}
	beside_runs(&e);
	submit(&e, 3);
	in_fork(&e, 1);
	MUST(!loom_stack_run(e.stack, NULL, &e.err), e.err.text);
	shut(&e);
	open_tasks(&e, isolated, until_released);
	submit(&e, 4);
	MUST(!loom_stack_start(e.stack, &e.err), e.err.text);
	in_fork(&e, 1); /* while a run is in progress */
	__atomic_store_n(&e.host[1], 1, __ATOMIC_RELEASE);
	MUST(!loom_stack_wait(e.stack, UINT64_MAX, NULL, &e.err), e.err.text);
	MUST(e.host[0] == 4, "the tasks of the run beside a fork");
	shut(&e);
}

/* ---- limits of a child: of CPU time, and of time without CPU time ---- */

static void spin(double seconds)
{
	while ((double)clock() < seconds * CLOCKS_PER_SEC)
		;
}

static void works(void)
{
	child_limit(1, 60);
	spin(2); /* more than idle_s, and SIGALRM comes at least once */
}

static void waits(void)
{
	child_limit(1, 60);
	for (;;)
		pause();
}

static void works_for_ever(void)
{
	child_limit(60, 1);
	spin(1e9);
}

TEST(limited)
{
	CU_ASSERT_EQUAL(status_of(works), 0);
	int status = status_of(waits);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	status = status_of(works_for_ever);
	CU_ASSERT(WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
}

TEST(forked_S12)
{
	static const char *const isolation[] = {"thread", "process"};
	for (size_t i = 0; i < COUNT(isolation); i++) {
		isolated = isolation[i];
		CU_ASSERT_EQUAL(status_of(forks), 0);
	}
}

TEST_MAIN("children", 300)
