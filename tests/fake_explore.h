/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of PTX with a runtime whose functions write their arguments into `calls`. */
#ifndef LOOM_TEST_FAKE_EXPLORE_H
#define LOOM_TEST_FAKE_EXPLORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "explore/ptx.c"

static char calls[4096], refusal[500];
static jmp_buf refused;
static int waits; /* the number of tests of an mbarrier until its phase ends */

__attribute__((format(printf, 1, 2))) static void call(const char *format, ...)
{
	size_t n = strlen(calls);
	va_list args;
	va_start(args, format);
	vsnprintf(calls + n, sizeof(calls) - n, format, args);
	va_end(args);
}

uint64_t explore_load(const struct explore_place *at, const void *p, uint32_t size, int order, enum explore_scope scope)
{
	uint64_t v = 0;
	(void)at;
	call("load%u.%d.%d ", size, order, scope);
	memcpy(&v, p, size);
	return v;
}

void explore_store(const struct explore_place *at, void *p, uint32_t size, uint64_t v, int order,
		   enum explore_scope scope)
{
	(void)at;
	call("store%u.%d.%d=%llx ", size, order, scope, (unsigned long long)v);
	memcpy(p, &v, size);
}

uint64_t explore_change(const struct explore_place *at, void *p, uint32_t size, uint64_t (*next)(uint64_t, uint64_t),
			uint64_t v, int order, enum explore_scope scope)
{
	uint64_t old = 0;
	(void)at;
	memcpy(&old, p, size);
	v = next(old, v);
	memcpy(p, &v, size);
	v = 0;
	memcpy(&v, p, size);
	call("change%u.%d.%d=%llx ", size, order, scope, (unsigned long long)v);
	return old;
}

uint64_t explore_cas(const struct explore_place *at, void *p, uint32_t size, uint64_t expected, uint64_t v, int order,
		     enum explore_scope scope)
{
	uint64_t old = 0;
	(void)at;
	memcpy(&old, p, size);
	call("cas%u.%d.%d=%llx ", size, order, scope, (unsigned long long)v);
	if (old == expected)
		memcpy(p, &v, size);
	return old;
}

void explore_fence(const struct explore_place *at, int order, enum explore_scope scope)
{
	(void)at;
	call("fence.%d.%d ", order, scope);
}

void explore_proxy_fence(const struct explore_place *at)
{
	(void)at;
	call("proxy ");
}

void explore_plain(const struct explore_place *at, const void *p, size_t bytes, int is_write)
{
	(void)at, (void)p;
	call("plain%zu.%d ", bytes, is_write);
}

void explore_pause(void)
{
	call("pause ");
}

void explore_barrier(const struct explore_place *at, uint32_t id, uint32_t threads, int wait)
{
	(void)at;
	call("barrier%u.%u.%d ", id, threads, wait);
}

void explore_syncwarp(const struct explore_place *at, uint32_t mask)
{
	(void)at;
	call("warp%x ", mask);
}

void explore_mbarrier_init(const struct explore_place *at, void *bar, uint32_t count)
{
	(void)at, (void)bar;
	call("init%u ", count);
}

uint64_t explore_mbarrier_arrive(const struct explore_place *at, void *bar, uint32_t count, uint32_t bytes, int order,
				 enum explore_scope scope)
{
	(void)at, (void)bar;
	call("arrive%u.%u.%d.%d ", count, bytes, order, scope);
	return 5;
}

int explore_mbarrier_test(const struct explore_place *at, void *bar, uint32_t parity, int order,
			  enum explore_scope scope)
{
	(void)at, (void)bar;
	call("test%u.%d.%d ", parity, order, scope);
	return waits-- <= 0;
}

void explore_bulk(const struct explore_place *at, void *to, const void *from, uint32_t bytes, void *bar)
{
	(void)at, (void)to, (void)from;
	call("bulk%u.%d ", bytes, bar != NULL);
}

void explore_bulk_commit(const struct explore_place *at)
{
	(void)at;
	call("commit ");
}

void explore_bulk_wait(const struct explore_place *at, uint32_t most, int reads)
{
	(void)at;
	call("await%u.%d ", most, reads);
}

uint64_t explore_special(const struct explore_place *at, const char *name)
{
	(void)at;
	call("%s ", name);
	return 3;
}

void explore_wrong(const struct explore_place *at, const char *text)
{
	(void)at;
	call("wrong: %s", text);
}

void explore_refuse(const struct explore_place *at, const char *format, ...)
{
	(void)at;
	va_list args;
	va_start(args, format);
	vsnprintf(refusal, sizeof(refusal), format, args);
	va_end(args);
	longjmp(refused, 1);
}

/* Parses a statement with n operands. Returns 0 if it was refused. */
static int fake_parse(const char *text, uint32_t n)
{
	static const struct explore_place at = {"asm", "x.cu", 9};
	refusal[0] = 0;
	if (setjmp(refused))
		return 0;
	program(&at, text, n);
	return 1;
}

/* Frees all programs. */
static void fake_forget(void)
{
	for (uint32_t k = 0; k < sizeof(cache) / sizeof(*cache); k++)
		for (struct program *p; (p = cache[k]);) {
			cache[k] = p->next;
			free(p->insn);
			free(p->names);
			free(p);
		}
}

#endif
