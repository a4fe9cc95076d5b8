/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the lower bound for a resumption by the kernel. Two threads on one core wake each other alternately.
 *   sync_floor futex|copy|continue ROUNDS
 * prints the microseconds from one thread to the other.
 * - futex: FUTEX_WAKE ends FUTEX_WAIT.
 * - copy: UFFDIO_COPY ends a load of a missing page.
 * - continue: UFFDIO_CONTINUE ends a load of a page of a memfd that is not mapped. Each resumption uses a new page, so
 * the time does not include the cost of making a page missing again. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../plugins/sync_wic/uffd.c"
#include "times.h"

enum { FUTEX, COPY, CONTINUE };

static int kind, fd[2];
static uint32_t rounds, word[2];
static char *pages[2]; /* pages[i]: the pages on which thread i waits, one per round */
static char data[UFFD_PAGE];

static void resume(int end, uint32_t i)
{
	uint64_t at = (uintptr_t)pages[end] + (uint64_t)i * UFFD_PAGE;
	__atomic_store_n(&word[end], i + 1, __ATOMIC_SEQ_CST);
	if (kind == FUTEX)
		syscall(SYS_futex, &word[end], FUTEX_WAKE, 1, NULL, NULL, 0);
	else if (kind == COPY)
		uffd_copy(fd[end], at, data, UFFD_PAGE, 1);
	else
		uffd_continue(fd[end], at, UFFD_PAGE, 1);
}

static void await(int end, uint32_t i)
{
	uint32_t now;
	while ((now = __atomic_load_n(&word[end], __ATOMIC_SEQ_CST)) != i + 1) {
		if (kind == FUTEX)
			syscall(SYS_futex, &word[end], FUTEX_WAIT, now, NULL, NULL, 0);
		else
			(void)*(volatile char *)(pages[end] + (uint64_t)i * UFFD_PAGE);
	}
}

static void *other(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < rounds; i++) {
		await(1, i);
		resume(0, i);
	}
	return NULL;
}

static void arm(int end)
{
	uint64_t bytes = (uint64_t)rounds * UFFD_PAGE;
	int file = kind == CONTINUE ? memfd_create("floor", MFD_CLOEXEC) : -1;
	if (kind == CONTINUE && (ftruncate(file, (off_t)bytes) != 0 || fallocate(file, 0, 0, (off_t)bytes) != 0))
		exit(1);
	enum uffd_kind how = kind == CONTINUE ? UFFD_MINOR : UFFD_MISSING;
	pages[end] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  kind == CONTINUE ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
	madvise(pages[end], bytes, MADV_NOHUGEPAGE);
	fd[end] = uffd_open(how);
	if (fd[end] < 0 || uffd_register(fd[end], pages[end], bytes, how) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"futex", "copy", "continue"};
	pthread_t thread;
	cpu_set_t one;
	if (argc != 3 || (rounds = (uint32_t)atoi(argv[2])) == 0)
		return 2;
	while (kind < 3 && strcmp(argv[1], kinds[kind]) != 0)
		kind++;
	if (kind == 3)
		return 2;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int e = 0; kind != FUTEX && e < 2; e++)
		arm(e);
	pthread_create(&thread, NULL, other, NULL);
	usleep(10000);
	uint64_t begin = now_ns();
	for (uint32_t i = 0; i < rounds; i++) {
		resume(1, i);
		await(0, i);
	}
	uint64_t end = now_ns();
	pthread_join(thread, NULL);
	printf("%.3f\n", (double)(end - begin) / 1e3 / (2.0 * rounds));
	return 0;
}
