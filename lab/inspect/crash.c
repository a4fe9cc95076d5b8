/* SPDX-License-Identifier: Apache-2.0 */
/* Most crashes are in the user's own tasks or policies, which workers call without a wrapper. The worker is known by
 * the name of its thread ("cpu:0.w1"), and the plug-in by the dynamic linker's list of loaded files, which
 * _dl_find_object() reads without a lock. */
#include "inspect/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#define NEAR_STACK   (64u << 10) /* an overflow accesses memory at most this far from the stack pointer */
#define FRAMES_MOST  64          /* calls among which a caller is looked for, the handler's included */
#define SIGNAL_STACK (64u << 10)

void loom__crash_put(struct loom__crash *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(c->text + c->length, sizeof(c->text) - c->length, fmt, args);
	va_end(args);
	size_t left = sizeof(c->text) - c->length - 1;
	c->length += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
}

#define put loom__crash_put

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

/* Finds the function that called what crashed at `code`. If there is no code, it returns to `back`. The place is that
 * of the call, which precedes the address of return. */
static int find_caller(uintptr_t code, uintptr_t back, struct place *p)
{
	void *frame[FRAMES_MOST];
	if (!find(code, p))
		return is_own_code(back - 1, p);
	int n = backtrace(frame, FRAMES_MOST), i = 0;
	while (i < n && (uintptr_t)frame[i] != code)
		i++;
	for (i++; i < n; i++)
		if (is_own_code((uintptr_t)frame[i] - 1, p))
			return 1;
	return 0;
}

/* Appends the place of the code that is probably at fault, and keeps it. */
static void put_place(struct loom__crash *c, const struct place *p)
{
	put(c, "%s at offset 0x%lx", p->name, p->offset);
	c->file = p->file;
	c->offset = p->offset;
}

static void put_code(struct loom__crash *c, uintptr_t code, uintptr_t back)
{
	struct place p;
	put(c, ", in ");
	if (is_own_code(code, &p)) {
		put_place(c, &p);
		return;
	}
	if (find(code, &p))
		put(c, "%s", p.name);
	else
		put(c, "a jump to 0x%lx, where there is no code", code);
	if (!find_caller(code, back, &p))
		return;
	put(c, ", called by ");
	put_place(c, &p);
}

static void put_signal(struct loom__crash *c, int number, const siginfo_t *info, uintptr_t stack)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	if (number == SIGABRT)
		put(c, " was aborted (SIGABRT)");
	else if (number == SIGFPE)
		put(c, info->si_code == FPE_INTDIV ? " divided an integer by zero (SIGFPE)" : " crashed (SIGFPE)");
	else if (number == SIGILL)
		put(c, " executed an illegal instruction (SIGILL)");
	else if (number == SIGSEGV && at - stack + NEAR_STACK < 2 * NEAR_STACK)
		put(c, " overflowed its stack (SIGSEGV)"); /* by a recursion without end, or large local variables */
	else if (at)
		put(c, " crashed (SIG%s, access to address 0x%lx)", number == SIGBUS ? "BUS" : "SEGV", at);
	else
		put(c, " crashed (SIG%s, access to a null pointer)", number == SIGBUS ? "BUS" : "SEGV");
}

/* Appends "worker 1 of cpu:0" for the thread cpu:0.w1. */
static void put_thread(struct loom__crash *c)
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
		put(c, "worker %s of %s", worker + 2, name);
	} else {
		put(c, getpid() == gettid() ? "the main thread" : "the thread '%s'", name);
	}
	c->of_cpu = worker && !strncmp(name, "cpu:", 4) && strncmp(main_name, "cpu:", 4);
}

void loom__crash_alone(void)
{
	static pid_t first;
	/* Relaxed: no data goes with the word. A forked child has a number of its own. */
	for (pid_t by = 0; !__atomic_compare_exchange_n(&first, &by, getpid(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
			   by == getpid();
	     by = 0)
		pause();
}

void loom__crash_say(struct loom__crash *c, int number, const siginfo_t *info, const void *context)
{
	const ucontext_t *u = context;
	uintptr_t code = 0, stack = 0, back = 0;
	struct place p;
#if defined(__x86_64__)
	code = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	stack = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
	back = find(code, &p) ? 0 : *(const uintptr_t *)stack;
#elif defined(__aarch64__)
	code = u->uc_mcontext.pc;
	stack = u->uc_mcontext.sp;
	back = u->uc_mcontext.regs[30];
	(void)p;
#else
	(void)u, (void)p;
#endif
	put_thread(c);
	put_signal(c, number, info, stack);
	put_code(c, code, back);
}

void loom__crash_catch(void (*handler)(int number, siginfo_t *info, void *context), int missing)
{
	static const int crash[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	static char room[SIGNAL_STACK];
	const stack_t own = {.ss_sp = room, .ss_size = sizeof(room)};
	stack_t other;
	void *frame;
	struct sigaction how = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, was;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	if (missing)
		return;
#endif
	/* For the main thread. Threads of workers have such a stack, too (lib/thread.h). Without it an overflow of the
	 * stack ends the process without a message. A sanitizer has its own, which stays. */
	if (!sigaltstack(NULL, &other) && other.ss_flags & SS_DISABLE)
		sigaltstack(&own, NULL);
	backtrace(&frame, 1); /* its first call loads a library, which a handler must not do */
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		sigaddset(&how.sa_mask, crash[i]);
	for (size_t i = 0; i < LOOM__COUNT(crash); i++)
		if (!missing || (!sigaction(crash[i], NULL, &was) && was.sa_handler == SIG_DFL))
			sigaction(crash[i], &how, NULL);
}
