/* SPDX-License-Identifier: Apache-2.0 */
/* A victim with measurable stalls. One thread per core executes chunks of dependent integer work, about 20 us each, for
 * a given time. The program prints the number of chunks and the longest stalls.
 *   qos_victim CORE,CORE... MILLISECONDS
 * A stall is the time of a chunk minus that of the shortest chunk. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "times.h"

#define STEPS 20000
#define BINS 20000 /* bins of 1 us */
#define CORES 64

static volatile int over;

struct victim {
	pthread_t id;
	int core;
	uint64_t chunks, shortest, bins[BINS];
	volatile uint64_t result;
};

static void *work(void *arg)
{
	struct victim *v = arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(v->core, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	uint64_t x = 1, before = now_ns();
	v->shortest = ~0ull;
	while (!over) {
		for (int i = 0; i < STEPS; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t now = now_ns(), took = now - before;
		before = now;
		v->chunks++;
		v->shortest = took < v->shortest ? took : v->shortest;
		v->bins[took / 1000 < BINS ? took / 1000 : BINS - 1]++;
	}
	v->result = x;
	return NULL;
}

/* Returns the stall in us that a share `share` of all chunks does not exceed. */
static double stall(const uint64_t *bins, uint64_t chunks, double share, uint64_t shortest)
{
	uint64_t seen = 0;
	for (int b = 0; b < BINS; b++) {
		seen += bins[b];
		if ((double)seen >= share * (double)chunks)
			return (double)b + 1 - (double)shortest / 1000;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct victim victim[CORES];
	static uint64_t bins[BINS];
	uint64_t chunks = 0, shortest = ~0ull;
	int n = 0;
	if (argc != 3)
		return 2;
	for (char *core = strtok(argv[1], ","); core && n < CORES; core = strtok(NULL, ","))
		victim[n++].core = atoi(core);
	long ms = atol(argv[2]);
	uint64_t begin = now_ns();
	for (int i = 0; i < n; i++)
		if (pthread_create(&victim[i].id, NULL, work, &victim[i]))
			return 1;
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
	over = 1;
	for (int i = 0; i < n; i++) {
		pthread_join(victim[i].id, NULL);
		chunks += victim[i].chunks;
		shortest = victim[i].shortest < shortest ? victim[i].shortest : shortest;
		for (int b = 0; b < BINS; b++)
			bins[b] += victim[i].bins[b];
	}
	double seconds = (double)(now_ns() - begin) / 1e9;
	printf("{\"rate\": %.3f, \"chunk_us\": %.1f, \"stall_p50_us\": %.1f, \"stall_p999_us\": %.1f, "
	       "\"stall_max_us\": %.1f}\n",
	       (double)chunks / seconds, (double)shortest / 1000, stall(bins, chunks, 0.5, shortest),
	       stall(bins, chunks, 0.999, shortest), stall(bins, chunks, 1, shortest));
	return 0;
}
