/* SPDX-License-Identifier: Apache-2.0 */
/* The child process: loads the plug-in, runs one test, answers. */
#include "conform/trial.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "inspect/child.h"
#include "inspect/crash.h"
#include "plugin/registry.h"
#include "conform/settings.h"

static int word(struct loom__trial *t, int verdict, const char *fmt, va_list args)
{
	uint32_t running = 0;
	/* Only the first fault writes the text. Release: pairs with the acquire in loom__faulted(). */
	if (__atomic_compare_exchange_n(&t->ended, &running, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		vsnprintf(t->why, sizeof(t->why), fmt, args);
		__atomic_store_n(&t->ended, 2, __ATOMIC_RELEASE);
	}
	return verdict;
}

int loom__fault(struct loom__trial *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	word(t, LOOM__FAILED, fmt, args);
	va_end(args);
	return LOOM__FAILED;
}

void loom__fault_stop(const struct loom_ctx *c, uint64_t trial, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	word((struct loom__trial *)(uintptr_t)trial, LOOM__FAILED, fmt, args);
	va_end(args);
	__atomic_store_n(&c->ctl->stop, 1u, __ATOMIC_RELAXED);
}

int loom__skip(struct loom__trial *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	word(t, LOOM__SKIPPED, fmt, args);
	va_end(args);
	return LOOM__SKIPPED;
}

int loom__faulted(const struct loom__trial *t)
{
	return __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE) ? LOOM__FAILED : 0;
}

/* ---- the case in progress ---------------------------------------------------------------------
 * The case is in an anonymous file at a fixed descriptor, so that signal handlers need no variable. A write takes 1
 * us. */

enum { CASE_FD = CHILD_ANSWER + 1, CASE_BYTES = 400 };

static void write_case(int fd)
{
	char text[CASE_BYTES];
	ssize_t n = pread(CASE_FD, text, sizeof(text), 0);
	if (n > 0)
		loom__child_answer(fd, text, strnlen(text, (size_t)n));
}

void loom__say_case(struct loom__trial *t, uint64_t seed, const char *fmt, ...)
{
	char text[CASE_BYTES] = "";
	va_list args;
	(void)t;
	int n = snprintf(text, sizeof(text), "seed %llu\ncase ", (unsigned long long)seed);
	va_start(args, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, args);
	va_end(args);
	text[strlen(text)] = '\n';
	if (pwrite(CASE_FD, text, sizeof(text), 0) < 0)
		return;
}

struct hidden {
	uint64_t at, bytes;
};

void loom__say_hidden(const void *at, uint64_t bytes)
{
	const struct hidden h = {(uint64_t)(uintptr_t)at, bytes};
	if (pwrite(CASE_FD, &h, sizeof(h), CASE_BYTES) < 0)
		return;
}

/* Answers how and where this process crashes: "crash TEXT", and "at OFFSET FILE" if the file is known. */
static void answer_crash(int number, const siginfo_t *info, const void *context)
{
	static struct loom__crash crash;
	crash.length = 0;
	loom__crash_put(&crash, "crash ");
	loom__crash_say(&crash, number, info, context);
	if (crash.file)
		loom__crash_put(&crash, "\nat 0x%lx %s", crash.offset, crash.file);
	loom__crash_put(&crash, "\n");
	loom__child_answer(CHILD_ANSWER, crash.text, crash.length);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	static const char raw[] =
	    "failed\nits device code used an address of the host's view: devices have other addresses, "
	    "so shared memory must be named by a loom_ref and accessed through loom_at()";
	struct hidden h = {0};
	loom__crash_alone();
	write_case(CHILD_ANSWER);
	if (pread(CASE_FD, &h, sizeof(h), CASE_BYTES) == sizeof(h) && (number == SIGSEGV || number == SIGBUS) &&
	    (uint64_t)(uintptr_t)info->si_addr - h.at < h.bytes) {
		loom__child_answer(CHILD_ANSWER, raw, sizeof(raw) - 1);
		_exit(0);
	}
	answer_crash(number, info, context);
	signal(number, SIG_DFL);
	raise(number);
}

static void on_alarm(int number)
{
	(void)number;
	write_case(CHILD_ANSWER);
}

static void catch_crashes(const struct loom__trial *t)
{
	const struct sigaction alarm = {.sa_handler = on_alarm};
	int file = memfd_create("case", MFD_CLOEXEC);
	if (file != CASE_FD) {
		dup3(file, CASE_FD, O_CLOEXEC);
		close(file);
	}
	loom__crash_catch(on_crash, 0);
	sigaction(SIGALRM, &alarm, NULL);
	/* The alarm comes shortly before the parent's time-out. */
	if (t->limit_ms > 400) {
		unsigned ms = t->limit_ms - 200;
		const struct itimerval once = {.it_value = {ms / 1000, ms % 1000 * 1000}};
		setitimer(ITIMER_REAL, &once, NULL);
	}
}

static void answer(int fd, const char *verdict, const char *why)
{
	write_case(fd);
	loom__child_answer(fd, verdict, strlen(verdict));
	loom__child_answer(fd, "\n", 1);
	loom__child_answer(fd, why, strlen(why));
}

void loom__fault_now(struct loom__trial *t, const char *sentence)
{
	answer(t->fd, "failed", sentence);
	_exit(0);
}

/* Looked up once, because dlsym() takes a lock, which would order the accesses under test. */
static void (*tsan_read)(const void *, uint64_t), (*tsan_write)(const void *, uint64_t);

void loom__note_read(const void *at, uint64_t bytes)
{
	if (tsan_read)
		tsan_read(at, bytes);
}

void loom__note_write(void *at, uint64_t bytes)
{
	if (tsan_write)
		tsan_write(at, bytes);
}

int loom__is_error(int code)
{
	switch (code) {
#define CODE(name, value, text)                                                                                        \
	case value:                                                                                                    \
		return 1;
		LOOM_ERR_MAP(CODE)
#undef CODE
	}
	return 0;
}

int loom__judge_error(struct loom__trial *t, const char *what, int code, const struct loom_error *err)
{
	if (!loom__is_error(code))
		return loom__fault(t, "%s returned %d, which is no enum loom_err", what, code);
	if (!err->text[0])
		return loom__fault(t, "%s returned %d (%s) without a sentence that says why; use LOOM_FAIL", what, code,
				   loom_strerror(code));
	if (err->code != code)
		return loom__fault(t, "%s returned %d, but its loom_error says %d", what, code, err->code);
	return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(struct loom__trial *t, const struct loom__test *test)
{
	struct loom_error err = {0};
	if (test->flags & LOOM__TEST_UNLOADED)
		return 0;
	if (loom__plugin_load(t->path, LOOM_KIND_NONE, &t->plugin, &err))
		return loom__fault(t, "%s", err.text);
	if (loom__settings_fill(t, &err))
		return loom__skip(t, "%s", err.text);
	return 0;
}

/* A leak or overflow is a fault of the test that finds it. */
static int run(struct loom__trial *t, const struct loom__test *test)
{
	int verdict = prepare(t, test);
	if (!verdict)
		verdict = test->run(t);
	const char *misuse = verdict ? NULL : loom__rig_host_misuse(&t->host);
	return misuse ? loom__fault(t, "%s", misuse) : verdict;
}

void loom__trial_command(const char *self, const struct loom__test *test, int argc, char **argv)
{
	struct loom__trial t = {.self = self, .opts_text = ""};
	const char **set = calloc((size_t)argc + 1, sizeof(*set));
	if (!set)
		return;
	t.fd = atoi(argv[2]);
	t.path = argv[3];
	t.set = set;
	for (int i = 4; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--set"))
			set[t.sets++] = argv[i + 1];
		else if (!strcmp(argv[i], "--with"))
			t.with = argv[i + 1];
		else if (!strcmp(argv[i], "--seed"))
			t.seed = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--fuzz"))
			t.fuzz_ns = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--limit"))
			t.limit_ms = (unsigned)strtoul(argv[i + 1], NULL, 10);
	}
	t.rough = (test->flags & LOOM__TEST_ROUGH) != 0;
	tsan_read = (void (*)(const void *, uint64_t))dlsym(RTLD_DEFAULT, "__tsan_read_range");
	tsan_write = (void (*)(const void *, uint64_t))dlsym(RTLD_DEFAULT, "__tsan_write_range");
	loom__child_begin(t.fd);
	catch_crashes(&t);
	loom__rig_host_init(&t.host);
	static const char *const name[] = {"passed", "failed", "skipped"};
	int verdict = run(&t, test);
	fflush(NULL);
	/* Another thread may have found a fault. */
	if (verdict == LOOM__PASSED && loom__faulted(&t))
		verdict = LOOM__FAILED;
	answer(t.fd, name[verdict], verdict == LOOM__PASSED ? t.note : t.why);
	_exit(0); /* skips destructors of a faulty plug-in */
}
