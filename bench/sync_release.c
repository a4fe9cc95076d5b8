/* SPDX-License-Identifier: Apache-2.0 */
/* Resumes one of many sleeping consumers at a time. All resumptions go to the same 16 consumers.
 *   sync_release PLUGIN WAITERS CORE
 * prints three medians in microseconds, all from the start of publish(): until its return, until the consumer resumed,
 * and until both had happened. The producer is on core 0, the consumers are on CORE. Every consumer stalls before its
 * item arrives. If producer and consumer share a core, the consumer may resume before or after publish() returns. Then
 * only the third value is well defined. */
#define SYNC_RIG_WORKERS 4200
#include "../tests/sync_rig.h"
#include "times.h"

enum { RELEASES = 640, VICTIMS = 16 };

static uint32_t waiters;
static uint64_t begin[RELEASES], took[RELEASES], back[RELEASES], both[RELEASES];
static uint32_t rounds[SYNC_RIG_WORKERS];

static void consume(struct loom_ctx *c)
{
	uint32_t me = c->worker - c->first;
	const void *data;
	for (uint32_t tag = me;; tag += waiters) {
		if (LOOM_CALL(sync, wait, c, 0, tag, 0, &data) != 0)
			return;
		uint64_t now = loom_clock_ns(c), which = *(const uint64_t *)data;
		LOOM_CALL(sync, release, c, 0, tag);
		if (which == RELEASES)
			return;
		back[which] = now;
	}
}

static void run(struct loom_ctx *c)
{
	if (c->device == 1) {
		consume(c);
		return;
	}
	usleep(300000 + 100 * waiters); /* after this time all consumers sleep */
	for (uint64_t i = 0; i < RELEASES; i++) {
		uint32_t w = (uint32_t)(i % VICTIMS) * (waiters < VICTIMS ? 1 : waiters / VICTIMS) % waiters;
		usleep(300);
		begin[i] = loom_clock_ns(c);
		LOOM_CALL(sync, publish, c, 0, rounds[w]++ * waiters + w, &i, 8, 0);
		took[i] = loom_clock_ns(c) - begin[i];
	}
	uint64_t stop = RELEASES;
	usleep(10000);
	for (uint32_t w = 0; w < waiters; w++)
		LOOM_CALL(sync, publish, c, 0, rounds[w] * waiters + w, &stop, 8, 0);
}

static double median_us(uint64_t *list)
{
	sort_ns(list, RELEASES);
	return (double)list[RELEASES / 2] / 1e3;
}

int main(int argc, char **argv)
{
	static struct sync_rig rig;
	char settings[128];
	if (argc != 4 || (waiters = (uint32_t)atoi(argv[2])) == 0 || waiters > SYNC_RIG_WORKERS - 8)
		return 2;
	struct loom_channel k = {.slots = waiters, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	snprintf(settings, sizeof(settings),
		 "workers=1 oversubscribe=yes cores=0|workers=%u oversubscribe=yes cores=%u", waiters,
		 (uint32_t)atoi(argv[3]));
	if (sync_rig_open(&rig, argv[1], 2, settings, &k, 1, run) || sync_rig_launch(&rig) ||
	    sync_rig_sample(&rig)) {
		fprintf(stderr, "%s\n", rig.r.err.text);
		return 1;
	}
	for (uint32_t i = 0; i < RELEASES; i++) {
		back[i] -= begin[i];
		both[i] = took[i] > back[i] ? took[i] : back[i];
	}
	double call = median_us(took), resume = median_us(back), all = median_us(both);
	printf("%.3f %.3f %.3f\n", call, resume, all);
	loom__drive_retire(&rig.r, 10 * SECOND);
	sync_rig_close(&rig);
	return 0;
}
