/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a crash of the command: the worker, the plug-in and what to try. Then the signal ends the process as usual.
 *
 * Most crashes are in the user's own tasks or policies, which workers call without a wrapper. The handler uses only
 * calls that are allowed in signal handlers. It knows the worker by the name of the thread ("cpu:0.w1"), and the
 * plug-in by /proc/self/maps. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "cli/base/session.h"

#define NEAR_STACK   (64u << 10) /* an overflow accesses memory at most this far from the stack pointer */
#define WORDS_MOST   2048        /* words of the stack in which a caller is looked for */
#define SIGNAL_STACK (64u << 10)

static char maps[256 << 10]; /* /proc/self/maps; if it is longer, its end is missing */
static char text[16 << 10];
static size_t length;
static int progress; /* 1: the cursor of the terminal may be in the line of the progress */

struct mapping {
	uintptr_t begin, end, base; /* base: the address of the file's first mapping */
	int may_read, may_run;
	const char *file; /* "": no file; ends at the end of the line */
};

static void put_n(const char *s, size_t n)
{
	for (size_t i = 0; i < n && length < sizeof(text); i++)
		text[length++] = s[i];
}

static void put(const char *s)
{
	put_n(s, strlen(s));
}

static void put_hex(uintptr_t v)
{
	char digits[2 * sizeof(v)];
	size_t at = sizeof(digits);
	do
		digits[--at] = "0123456789abcdef"[v % 16];
	while (v /= 16);
	put("0x");
	put_n(digits + at, sizeof(digits) - at);
}

/* Reads the file into `to`, as a text. Returns its length. */
static size_t slurp(const char *path, char *to, size_t room)
{
	size_t n = 0;
	ssize_t part;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n + 1 < room && (part = read(fd, to + n, room - 1 - n)) > 0)
		n += (size_t)part;
	if (fd >= 0)
		close(fd);
	to[n] = 0;
	return n;
}

static const char *read_hex(const char *s, uintptr_t *v)
{
	for (*v = 0; (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f'); s++)
		*v = *v * 16 + (uintptr_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
	return s;
}

static size_t line_length(const char *s)
{
	return (size_t)(strchrnul(s, '\n') - s);
}

/* Finds the mapping of an address. Returns 0 if there is none. A line is "BEGIN-END rwxp OFFSET DEVICE INODE FILE". */
static int find(uintptr_t at, struct mapping *m)
{
	struct mapping last = {.file = ""};
	for (const char *s = maps, *next; *s; s = *next ? next + 1 : next) {
		next = s + line_length(s);
		s = read_hex(s, &m->begin);
		s = read_hex(s + (*s == '-'), &m->end);
		if (next - s < 6)
			continue;
		m->may_read = s[1] == 'r';
		m->may_run = s[3] == 'x';
		m->file = memchr(s, '/', (size_t)(next - s));
		m->file = m->file ? m->file : "";
		size_t n = line_length(m->file);
		int same = *m->file && n == line_length(last.file) && !memcmp(m->file, last.file, n);
		m->base = same ? last.base : m->begin;
		if (at >= m->begin && at < m->end)
			return 1;
		last = *m;
	}
	return 0;
}

static const char *base_name(const char *file)
{
	const char *name = file;
	for (const char *s = file; *s && *s != '\n'; s++)
		if (*s == '/')
			name = s + 1;
	return name;
}

/* Returns 1 if the address is in code, and not in a shared library: plug-ins are not called lib*. */
static int is_own_code(uintptr_t at, struct mapping *m)
{
	if (!find(at, m) || !m->may_run || !*m->file)
		return 0;
	const char *name = base_name(m->file);
	return strncmp(name, "lib", 3) && strncmp(name, "ld-", 3);
}

/* Looks in the stack for the return address of the function that called the library. An old return address, which is no
 * longer in use, may come first, so the result is only likely. */
static int find_caller(uintptr_t stack, struct mapping *m, uintptr_t *caller)
{
	if (!find(stack, m) || !m->may_read || stack % sizeof(uintptr_t))
		return 0;
	uintptr_t end = m->end;
	for (int i = 0; i < WORDS_MOST && stack < end; i++, stack += sizeof(uintptr_t)) {
		*caller = *(const uintptr_t *)stack;
		if (is_own_code(*caller, m))
			return 1;
	}
	return 0;
}

static void put_place(const struct mapping *m, uintptr_t at)
{
	put_n(base_name(m->file), line_length(base_name(m->file)));
	put(" at offset ");
	put_hex(at - m->base);
}

/* Writes the place of the crash. Returns the address of the code that is probably at fault, and its mapping; 0: not
 * known. */
static uintptr_t put_code(uintptr_t code, uintptr_t stack, struct mapping *m)
{
	uintptr_t caller;
	if (is_own_code(code, m)) {
		put(", in ");
		put_place(m, code);
		return code;
	}
	if (find(code, m) && m->may_run && *m->file) {
		put(", in ");
		put_n(base_name(m->file), line_length(base_name(m->file)));
	} else {
		put(", in a jump to ");
		put_hex(code);
		put(", where there is no code");
	}
	if (!find_caller(stack, m, &caller))
		return 0;
	put(", probably called by ");
	put_place(m, caller);
	return caller;
}

/* Writes what to try. */
static void put_advice(const struct mapping *m, uintptr_t at, int of_cpu)
{
	const char *file = at ? m->file : "FILE";
	size_t n = line_length(file);
	put("\n  To find the cause: `gpuloom validate ");
	put_n(file, n);
	put("` tests a plug-in; ");
	if (at) {
		put("`addr2line -fe ");
		put_n(file, n);
		put(" ");
		put_hex(at - m->base);
		put("` or ");
	}
	put("`gdb --args gpuloom ...` shows the line");
	if (of_cpu)
		put("; with `--set device.cpu.isolation=process` a crash ends only the process of its device");
	put("\n");
}

static void put_signal(int number, const siginfo_t *info, uintptr_t stack)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	struct mapping m;
	if (number == SIGABRT) {
		put("was aborted (SIGABRT");
	} else if (number == SIGFPE) {
		put(info->si_code == FPE_INTDIV ? "divided an integer by zero (SIGFPE" : "crashed (SIGFPE");
	} else if (number == SIGILL) {
		put("executed an illegal instruction (SIGILL");
	} else if (number == SIGSEGV && at - stack + NEAR_STACK < 2 * NEAR_STACK && !(find(at, &m) && m.may_read)) {
		put("overflowed its stack (SIGSEGV"); /* by a recursion without end, or large local variables */
	} else {
		put("crashed (");
		put(number == SIGBUS ? "SIGBUS" : "SIGSEGV");
		put(at ? ", access to address " : ", access to a null pointer");
		if (at)
			put_hex(at);
	}
	put(")");
}

/* Writes "worker 1 of cpu:0" for the thread cpu:0.w1. Returns 1 if it is a worker of device_cpu. */
static int put_thread(void)
{
	char name[17] = "", main_name[17] = "";
	prctl(PR_GET_NAME, name);
	slurp("/proc/self/comm", main_name, sizeof(main_name));
	char *worker = strstr(name, ".w");
	if (worker) {
		*worker = 0;
		put("worker ");
		put(worker + 2);
		put(" of ");
		put(name);
	} else if (getpid() == gettid()) {
		put("the main thread");
	} else {
		put("the thread '");
		put(name);
		put("'");
	}
	return worker && !strncmp(name, "cpu:", 4) && strncmp(main_name, "cpu:", 4);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	static pid_t reporter;
	const ucontext_t *u = context;
	uintptr_t code = 0, stack = 0;
	struct mapping m;
	/* The first thread that crashes ends the process; others wait for that. Relaxed: no data goes with the word. */
	for (pid_t by = 0;
	     !__atomic_compare_exchange_n(&reporter, &by, getpid(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	     by == getpid();
	     by = 0)
		pause();
#if defined(__x86_64__)
	code = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	stack = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	code = u->uc_mcontext.pc;
	stack = u->uc_mcontext.sp;
#else
	(void)u;
#endif
	if (info->si_code > 0 || info->si_pid == getpid()) { /* otherwise another process has sent the signal */
		slurp("/proc/self/maps", maps, sizeof(maps));
		put(progress ? "\ngpuloom: error: " : "gpuloom: error: ");
		int of_cpu = put_thread();
		put(" ");
		put_signal(number, info, stack);
		uintptr_t at = put_code(code, stack, &m);
		put_advice(&m, at, of_cpu);
		if (write(2, text, length) < 0)
			length = 0;
	}
	signal(number, SIG_DFL);
	if (info->si_code <= 0)
		raise(number); /* pending until this handler returns; a fault occurs again by itself */
}

void loom__catch_crashes(void)
{
	static const int crash[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	static char room[SIGNAL_STACK];
	const stack_t own = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction how = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK}, was;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* the handlers of the sanitizer tell more */
#endif
	/* For the main thread. Workers of device_cpu have such a stack, too (threads.c). Without it an overflow of the
	 * stack ends the process without a message. */
	sigaltstack(&own, NULL);
	progress = isatty(2);
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		sigaddset(&how.sa_mask, crash[i]);
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		if (!sigaction(crash[i], NULL, &was) && was.sa_handler == SIG_DFL)
			sigaction(crash[i], &how, NULL);
}
