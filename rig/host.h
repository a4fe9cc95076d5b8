/* SPDX-License-Identifier: Apache-2.0 */
/* A host table for tests: counts, guards and can fail allocations, and records messages and metrics. */
#ifndef LOOM_RIG_HOST_H
#define LOOM_RIG_HOST_H

#include <gpuloom/plugin.h>
#include <pthread.h>

struct loom__block; /* one allocation */

struct loom__rig_host {
	struct loom_host table;
	pthread_mutex_t lock;
	struct loom__block *blocks;
	uint64_t live, allocations, refused;
	uint64_t refuse_at; /* the allocation with this number (from 1) fails; 0: none */
	char misuse[200];   /* the first misuse of the table, or "" */
	uint32_t metrics;   /* number of metrics of this sample: loom__rig_host_clear() clears them */
	struct loom__rig_host_metric {
		char name[64];
		double value;
	} metric[256];
	uint32_t facts;
	struct {
		char name[64], text[120];
	} choice[64];
	char log[4096]; /* warnings and errors since the last clear */
};
/* The report that a plug-in fills. */
#define LOOM__RIG_REPORT(h) ((struct loom_report *)(void *)(h)->metric)

void loom__rig_host_init(struct loom__rig_host *h);
/* Makes allocation `at` from now on (1: the next) fail; 0: none. */
void loom__rig_host_refuse(struct loom__rig_host *h, uint64_t at);
/* Checks the guards of all blocks. Returns the first misuse so far, or NULL. */
const char *loom__rig_host_misuse(struct loom__rig_host *h);
void loom__rig_host_clear(struct loom__rig_host *h);
/* Returns the value of a metric, or -1 when there is none. */
double loom__rig_host_metric(const struct loom__rig_host *h, const char *name);
/* Returns the text of a choice, or NULL when there is none. */
const char *loom__rig_host_fact(const struct loom__rig_host *h, const char *name);

#endif
