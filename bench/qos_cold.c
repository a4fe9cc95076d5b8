/* SPDX-License-Identifier: Apache-2.0 */
/* What rare requests cost, without service and policy, and what of it is cold: bursts of 128 reads of random pages
 * of a file in memory, beside a process that computes on both cores, by the time between bursts. Of one page or
 * of many, whole or 64 bytes of each, in the order of asking or by their places where so many wait. ns of
 * wall time per read of the burst's first, the next 15 and the last 64, and CPU time of waking per burst. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BURST 128
#define PAGE 4096u
#define BUFFER (1u << 20)
#define PAGES_MOST 65536u

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take_core(int core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static pid_t victim(int core)
{
	pid_t pid = fork();
	volatile uint64_t x = 1;
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_core(core);
	for (;;)
		x = x * 6364136223846793005u + 1442695040888963407u;
}

struct what {
	uint64_t pages;
	size_t bytes;
	uint32_t waiting; /* 0: in the order of asking */
};

static uint64_t draw(void)
{
	static uint64_t state = 88172645463325252ull;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 20;
}

/* The pages of the next burst: at random, or the next at which somebody waits, who asks again at random. */
static void choose(const struct what *w, uint64_t page[BURST])
{
	static uint32_t at[PAGES_MOST];
	static uint64_t place;
	static const struct what *last;
	if (w != last)
		memset(at, 0, sizeof(at));
	for (uint32_t i = 0; w != last && i < w->waiting; i++)
		at[draw() % w->pages]++;
	last = w;
	for (int i = 0; i < BURST; i++) {
		if (!w->waiting) {
			page[i] = draw() % w->pages;
			continue;
		}
		while (!at[place % w->pages])
			place++;
		page[i] = place % w->pages;
		at[page[i]]--;
		at[draw() % w->pages]++;
	}
}

static void measure(int file, const struct what *w, char *buffer, uint64_t period_ns)
{
	uint64_t page[BURST];
	struct itimerspec every = {.it_interval.tv_nsec = (long)period_ns, .it_value.tv_nsec = 1};
	uint64_t part[3] = {0}, bursts = 0, inside = 0, ticks;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (period_ns)
		timerfd_settime(timer, 0, &every, NULL);
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), last = begin;
	while (last - begin < 1000000000u) {
		choose(w, page);
		if (period_ns && read(timer, &ticks, sizeof(ticks)) < 0)
			return;
		uint64_t first = last = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < BURST; i++) {
			if (pread(file, buffer + draw() % (BUFFER / PAGE) * PAGE, w->bytes,
				  (off_t)(page[i] * PAGE)) != (ssize_t)w->bytes)
				return;
			if (i == 0 || i == 15 || i == 63 || i == 127) {
				uint64_t now = clock_ns(CLOCK_MONOTONIC);
				if (i != 63)
					part[i == 0 ? 0 : i == 15 ? 1 : 2] += now - last;
				last = now;
			}
		}
		inside += last - first;
		bursts++;
	}
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	close(timer);
	printf("%5zu of %5llu pages | %7u | %5.1f ms | %5.0f %5.0f %5.0f | %6.0f\n", w->bytes,
	       (unsigned long long)w->pages, w->waiting, (double)period_ns / 1e6,
	       (double)part[0] / (double)bursts, (double)part[1] / (double)bursts / 15,
	       (double)part[2] / (double)bursts / 64, cpu > inside ? (double)(cpu - inside) / (double)bursts : 0.0);
	fflush(stdout);
}

int main(void)
{
	static const uint64_t period_ns[] = {0, 1500000, 7500000};
	static const struct what what[] = {{1, 64, 0},	    {4096, 64, 0},	 {1, PAGE, 0},
					   {64, PAGE, 0},   {4096, PAGE, 0},	 {PAGES_MOST, PAGE, 0},
					   {4096, PAGE, 1024}, {4096, PAGE, 4096}, {4096, PAGE, 16384}};
	char *buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t other[2] = {victim(0), victim(1)};
	take_core(1);
	setpriority(PRIO_PROCESS, 0, -20);
	printf("bytes                | waiting | period   | first next  last | waking\n");
	int file = memfd_create("qos_cold", MFD_CLOEXEC);
	for (uint64_t i = 0; i < PAGES_MOST; i++)
		if (pwrite(file, buffer, PAGE, (off_t)(i * PAGE)) != PAGE)
			return 1;
	for (size_t f = 0; f < sizeof(what) / sizeof(*what); f++)
		for (int p = 0; p < 3; p++)
			measure(file, &what[f], buffer, period_ns[p]);
	kill(other[0], SIGKILL);
	kill(other[1], SIGKILL);
	return 0;
}
