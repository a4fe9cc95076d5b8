/* SPDX-License-Identifier: Apache-2.0 */
/* Measures lower bounds for service requests: a signal, the filling of a page, and one thread that wakes another thread
 * on the same core. The program prints the medians in ns as one line of JSON. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "times.h"

#define N 20000
#define PAGES 256u
#define PAGE 4096u

static uint64_t took[N], begun;
static int bell;
static volatile int seen;

static double middle(void)
{
	sort_ns(took, N);
	return (double)took[N / 2];
}

static double direct_signal(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t child = fork();
	if (child == 0) {
		struct timespec nap = {.tv_nsec = 1000000};
		for (;;) {
			sigwaitinfo(&set, NULL);
			nanosleep(&nap, NULL);
		}
	}
	int fd = (int)syscall(SYS_pidfd_open, child, 0);
	for (int i = 0; i < N; i++) {
		uint64_t begin = now_ns();
		syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0);
		took[i] = now_ns() - begin;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
	return middle();
}

static double direct_fault(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
	int memory = memfd_create("qos_direct", MFD_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ftruncate(memory, PAGES * PAGE))
		return -1;
	char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct uffdio_register range = {.range = {(uintptr_t)at, PAGES * PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		return -1;
	for (int i = 0; i < N; i++) {
		if (i % PAGES == 0)
			madvise(at, PAGES * PAGE, MADV_REMOVE);
		struct uffdio_zeropage zero = {
			.range = {(uintptr_t)at + (unsigned)i % PAGES * PAGE, PAGE}};
		uint64_t begin = now_ns();
		ioctl(fd, UFFDIO_ZEROPAGE, &zero);
		took[i] = now_ns() - begin;
	}
	return middle();
}

static void *sleeper(void *arg)
{
	uint64_t n;
	(void)arg;
	for (int i = 0; i < N && read(bell, &n, sizeof(n)) == sizeof(n); i++) {
		took[i] = now_ns() - begun;
		__atomic_store_n(&seen, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The sleeper has a real-time priority, so that the write itself switches to the sleeper. */
static double wake(void)
{
	pthread_t id;
	uint64_t one = 1;
	struct sched_param fifo = {.sched_priority = 10};
	bell = eventfd(0, EFD_CLOEXEC);
	pthread_create(&id, NULL, sleeper, NULL);
	pthread_setschedparam(id, SCHED_FIFO, &fifo);
	for (int i = 0; i < N; i++) {
		begun = now_ns();
		if (write(bell, &one, sizeof(one)) < 0)
			return -1;
		while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != i + 1)
			sched_yield();
	}
	pthread_join(id, NULL);
	return middle();
}

int main(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	double s = direct_signal(), f = direct_fault(), w = wake();
	printf("{\"signal_ns\": %.0f, \"fault_ns\": %.0f, \"wake_ns\": %.0f}\n", s, f, w);
	return s < 0 || f < 0 || w < 0;
}
