/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of other libraries, timed like workload_barrier: parts of FEW rounds and parts of FEW + DIFFERENCE rounds
 * alternate, and the medians of their times are compared.
 *   barrier_peer THREADS FEW DIFFERENCE PARTS
 * prints nanoseconds per barrier. PEER_OMP selects the compiler's OpenMP, PEER_PTHREAD selects pthread_barrier. Without
 * either, the program uses std::barrier of C++20. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#if !defined(PEER_OMP) && !defined(PEER_PTHREAD)
#include <barrier>
#endif

static long threads, few, difference, parts;
static std::vector<double> time_of[2];

static double now()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Pins thread i to a core of its own if there are enough cores for all threads. */
static void pin(long i)
{
	cpu_set_t all, one;
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) || threads > CPU_COUNT(&all))
		return;
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &all) && i-- == 0)
			CPU_SET(core, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

template <typename Wait> static void rounds(long i, Wait wait)
{
	for (long part = 0; part < 2 * parts; part++) {
		long n = part % 2 ? few + difference : few;
		wait();
		double begin = now();
		for (long round = 0; round < n; round++)
			wait();
		if (i == 0)
			time_of[part % 2].push_back(now() - begin);
	}
}

#ifdef PEER_OMP
#include <omp.h>
static void run()
{
	omp_set_dynamic(0);
#pragma omp parallel num_threads(threads)
	{
		pin(omp_get_thread_num());
		rounds(omp_get_thread_num(), [] {
#pragma omp barrier
		});
	}
}
#else
template <typename Wait> static void run_with(Wait wait)
{
	std::vector<std::thread> crew;
	for (long i = 0; i < threads; i++)
		crew.emplace_back([i, wait] {
			pin(i);
			rounds(i, wait);
		});
	for (auto &one : crew)
		one.join();
}
#ifdef PEER_PTHREAD
static void run()
{
	static pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, nullptr, (unsigned)threads);
	run_with([] { pthread_barrier_wait(&barrier); });
	pthread_barrier_destroy(&barrier);
}
#else
static void run()
{
	std::barrier<> barrier(threads);
	run_with([&barrier] { barrier.arrive_and_wait(); });
}
#endif
#endif

static double median(std::vector<double> &v)
{
	std::sort(v.begin(), v.end());
	return (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	threads = atol(argv[1]);
	few = atol(argv[2]);
	difference = atol(argv[3]);
	parts = atol(argv[4]);
	if (threads < 1 || few < 1 || difference < 1 || parts < 1)
		return 2;
	run();
	printf("%.2f\n", (median(time_of[1]) - median(time_of[0])) / (double)difference);
	return 0;
}
