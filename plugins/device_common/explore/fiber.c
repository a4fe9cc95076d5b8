/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The macros below notify sanitizers of each switch of stacks. */
#include "lib/align.h"
#if defined(__has_feature)
#define FIBER_HAS(feature) __has_feature(feature)
#else
#define FIBER_HAS(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || FIBER_HAS(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TSAN_HERE()     __tsan_get_current_fiber()
#define TSAN_NEW()      __tsan_create_fiber(0)
#define TSAN_TO(fiber)  __tsan_switch_to_fiber(fiber, 0)
#define TSAN_END(fiber) __tsan_destroy_fiber(fiber)
#else
#define TSAN_HERE()     NULL
#define TSAN_NEW()      NULL
#define TSAN_TO(fiber)  ((void)(fiber))
#define TSAN_END(fiber) ((void)(fiber))
#endif
#if defined(__SANITIZE_ADDRESS__) || FIBER_HAS(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define ASAN_LEAVE(from, to)          __sanitizer_start_switch_fiber(&(from)->asan, (to)->stack, (to)->bytes)
#define ASAN_ARRIVE(me, stack, bytes) __sanitizer_finish_switch_fiber((me)->asan, (const void **)(stack), bytes)
#else
#define ASAN_LEAVE(from, to)          ((void)0)
#define ASAN_ARRIVE(me, stack, bytes) ((void)(me), (void)(stack), (void)(bytes))
#endif

#ifdef __x86_64__
/* Saves the callee-saved registers and continues the other fiber. It does not save the control words of floating point,
 * because they are equal in all fibers. */
void sim_fiber_swap(void **from, void *to);
__asm__(".text\n"
	".p2align 4\n"
	".local sim_fiber_swap\n"
	".type sim_fiber_swap, @function\n"
	"sim_fiber_swap:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size sim_fiber_swap, . - sim_fiber_swap\n");

/* Returns the distance of the first frame from the end of the stack, which differs between stacks. If thousands of
 * stacks had equal page offsets, they would compete for a few sets of the cache. */
static size_t colour(const struct fiber *f)
{
	return ((uintptr_t)f->stack >> 12) * 0x9e3779b9u % 16 * 128;
}

/* Makes the initial frame: six registers, the address of main(), and a return address of NULL. */
static void prepare(struct fiber *f, void (*main)(void))
{
	void **top = (void **)(f->stack + f->bytes - colour(f)) - 1;
	*top = NULL;
	*--top = (void *)(uintptr_t)main;
	top -= 6;
	memset(top, 0, 6 * sizeof(*top));
	f->at = top;
}

static void swap(struct fiber *from, struct fiber *to)
{
	sim_fiber_swap(&from->at, to->at);
}
#else
static void prepare(struct fiber *f, void (*main)(void))
{
	getcontext(&f->at);
	f->at.uc_stack.ss_sp = f->stack;
	f->at.uc_stack.ss_size = f->bytes;
	f->at.uc_link = NULL;
	makecontext(&f->at, main, 0);
}

static void swap(struct fiber *from, struct fiber *to)
{
	swapcontext(&from->at, &to->at);
}
#endif

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int fiber_make(struct fiber *f, size_t bytes, void (*main)(void))
{
	if (!f->stack) {
		bytes = loom__align(bytes, page());
		char *at = mmap(NULL, page() + bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
		if (at == MAP_FAILED)
			return errno;
		if (mprotect(at, page(), PROT_NONE) != 0) {
			int code = errno;
			munmap(at, page() + bytes);
			return code;
		}
		f->stack = at + page();
		f->bytes = bytes;
	}
	if (f->tsan)
		TSAN_END(f->tsan);
	f->tsan = TSAN_NEW();
	f->asan = NULL;
	prepare(f, main);
	return 0;
}

void fiber_free(struct fiber *f)
{
	if (!f->stack)
		return;
	if (f->tsan)
		TSAN_END(f->tsan);
	munmap(f->stack - page(), page() + f->bytes);
	*f = (struct fiber){0};
}

void fiber_home(struct fiber *f)
{
	*f = (struct fiber){.tsan = TSAN_HERE()};
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	ASAN_LEAVE(from, to);
	TSAN_TO(to->tsan);
	swap(from, to);
}

void fiber_arrive(struct fiber *me, struct fiber *from)
{
	char *stack = from->stack;
	size_t bytes = from->bytes;
	ASAN_ARRIVE(me, &stack, &bytes);
	if (!from->stack) { /* `from` runs on the thread's own stack, and only the sanitizer knows its bounds */
		from->stack = stack;
		from->bytes = bytes;
	}
}
