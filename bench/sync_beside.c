/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how fast a compute thread works beside K waiting consumers (observation 3.1 of WIC, on a CPU).
 *   sync_beside PLUGIN K MS
 * prints rounds of work per ms, and the share of the process's CPU time that the compute thread used. All threads are
 * on core 0. K = 0 gives the baseline. Other load on the machine changes the speed, but not the share. The program
 * measures once, so that its caller can interleave different measurements. */
#include "../tests/sync_rig.h"
#include "times.h"

static uint32_t waiters, window_ms;

static void run(struct loom_ctx *c)
{
	const void *data;
	uint64_t *out = c->global[LOOM_SCHED];
	if (c->device == 1) {
		if (c->worker - c->first < waiters)
			LOOM_CALL(sync, wait, c, 0, c->worker - c->first, 0, &data);
		return;
	}
	usleep(100000); /* after this time the consumers wait */
	uint64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t begin = loom_clock_ns(c), end = begin + window_ms * 1000000ull, x = 1, rounds = 0, now;
	do {
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
		rounds++;
	} while ((now = loom_clock_ns(c)) < end);
	out[0] = rounds;
	out[1] = now - begin;
	out[2] = x;
	out[3] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	out[4] = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all;
	for (uint32_t i = 0; i < waiters; i++)
		LOOM_CALL(sync, publish, c, 0, i, &x, 8, 0);
}

int main(int argc, char **argv)
{
	static struct sync_rig rig;
	char settings[128];
	if (argc != 4)
		return 2;
	waiters = (uint32_t)atoi(argv[2]);
	window_ms = (uint32_t)atoi(argv[3]);
	struct loom_channel k = {.slots = 64, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	snprintf(settings, sizeof(settings),
		 "workers=1 oversubscribe=yes cores=0|workers=%u oversubscribe=yes cores=0", waiters ? waiters : 1);
	if (sync_rig_open(&rig, argv[1], 2, settings, &k, 1, run) || sync_rig_launch(&rig) ||
	    sync_rig_sample(&rig)) {
		fprintf(stderr, "%s\n", rig.r.err.text);
		return 1;
	}
	const uint64_t *out = (const uint64_t *)rig.r.shared->board;
	printf("%.3f %.4f\n", (double)out[0] / ((double)out[1] / 1e6), (double)out[3] / (double)out[4]);
	loom__drive_retire(&rig.r, 10 * SECOND);
	sync_rig_close(&rig);
	return 0;
}
