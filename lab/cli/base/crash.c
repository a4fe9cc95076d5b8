/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a crash of the command: the worker, the plug-in and what to try. Then the signal ends the process as usual.
 *
 * Most crashes are in the user's own tasks or policies, which workers call without a wrapper. The handler takes no lock
 * and no memory. It knows the worker by the name of the thread ("cpu:0.w1"), and the plug-in by the dynamic linker's list
 * of loaded files, which _dl_find_object() reads without a lock. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "cli/base/session.h"

#define NEAR_STACK   (64u << 10) /* an overflow accesses memory at most this far from the stack pointer */
#define FRAMES_MOST  64          /* calls among which a caller is looked for, the handler's included */
#define SIGNAL_STACK (64u << 10)

static char text[16 << 10];
static size_t length;
static int progress; /* 1: the cursor of the terminal may be in the line of the progress */

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

/* A place in a loaded file. */
struct place {
	const char *file, *name; /* name: the file without its folder */
	uintptr_t offset;
};

/* Finds the file that has the address. Returns 0 if there is none. */
static int find(uintptr_t at, struct place *p)
{
	struct dl_find_object o;
	if (_dl_find_object((void *)at, &o))
		return 0;
	p->file = *o.dlfo_link_map->l_name ? o.dlfo_link_map->l_name : program_invocation_name;
	const char *slash = strrchr(p->file, '/');
	p->name = slash ? slash + 1 : p->file;
	p->offset = at - (uintptr_t)o.dlfo_map_start;
	return 1;
}

/* Returns 1 if the address is not in a shared library: plug-ins are not called lib*. */
static int is_own_code(uintptr_t at, struct place *p)
{
	return find(at, p) && strncmp(p->name, "lib", 3) && strncmp(p->name, "ld-", 3);
}

/* Finds the function that called what crashed at `code`. If there is no code, it returns to `back`. */
static int find_caller(uintptr_t code, uintptr_t back, struct place *p)
{
	void *frame[FRAMES_MOST];
	if (!find(code, p))
		return is_own_code(back, p);
	int n = backtrace(frame, FRAMES_MOST), i = 0;
	while (i < n && (uintptr_t)frame[i] != code)
		i++;
	for (i++; i < n; i++)
		if (is_own_code((uintptr_t)frame[i], p))
			return 1;
	return 0;
}

static void put_place(const struct place *p)
{
	put(p->name);
	put(" at offset ");
	put_hex(p->offset);
}

/* Writes the place of the crash. Returns 1 if the code that is probably at fault is known, with its place. */
static int put_code(uintptr_t code, uintptr_t back, struct place *p)
{
	put(", in ");
	if (is_own_code(code, p)) {
		put_place(p);
		return 1;
	}
	if (find(code, p)) {
		put(p->name);
	} else {
		put("a jump to ");
		put_hex(code);
		put(", where there is no code");
	}
	if (!find_caller(code, back, p))
		return 0;
	put(", called by ");
	put_place(p);
	return 1;
}

/* Writes what to try. `p` is NULL if no file is known. */
static void put_advice(const struct place *p, int of_cpu)
{
	put("\n  To find the cause: `gpuloom validate ");
	put(p ? p->file : "FILE");
	put("` tests a plug-in; ");
	if (p) {
		put("`addr2line -fe ");
		put(p->file);
		put(" ");
		put_hex(p->offset);
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
	if (number == SIGABRT) {
		put("was aborted (SIGABRT");
	} else if (number == SIGFPE) {
		put(info->si_code == FPE_INTDIV ? "divided an integer by zero (SIGFPE" : "crashed (SIGFPE");
	} else if (number == SIGILL) {
		put("executed an illegal instruction (SIGILL");
	} else if (number == SIGSEGV && at - stack + NEAR_STACK < 2 * NEAR_STACK) {
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
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, main_name, sizeof(main_name) - 1) < 0)
		*main_name = 0;
	if (fd >= 0)
		close(fd);
	prctl(PR_GET_NAME, name);
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
	uintptr_t code = 0, stack = 0, back = 0;
	struct place p;
	/* The first thread that crashes ends the process; others wait for that. Relaxed: no data goes with the word. */
	for (pid_t by = 0;
	     !__atomic_compare_exchange_n(&reporter, &by, getpid(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	     by == getpid();
	     by = 0)
		pause();
#if defined(__x86_64__)
	code = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	stack = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
	back = find(code, &p) ? 0 : *(const uintptr_t *)stack;
#elif defined(__aarch64__)
	code = u->uc_mcontext.pc;
	stack = u->uc_mcontext.sp;
	back = u->uc_mcontext.regs[30];
#else
	(void)u;
#endif
	if (info->si_code > 0 || info->si_pid == getpid()) { /* otherwise another process has sent the signal */
		put(progress ? "\ngpuloom: error: " : "gpuloom: error: ");
		int of_cpu = put_thread();
		put(" ");
		put_signal(number, info, stack);
		put_advice(put_code(code, back, &p) ? &p : NULL, of_cpu);
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
	void *frame;
	struct sigaction how = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK}, was;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* the handlers of the sanitizer tell more */
#endif
	/* For the main thread. Workers of device_cpu have such a stack, too (threads.c). Without it an overflow of the
	 * stack ends the process without a message. */
	sigaltstack(&own, NULL);
	backtrace(&frame, 1); /* its first call loads a library, which a handler must not do */
	progress = isatty(2);
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		sigaddset(&how.sa_mask, crash[i]);
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		if (!sigaction(crash[i], NULL, &was) && was.sa_handler == SIG_DFL)
			sigaction(crash[i], &how, NULL);
}
