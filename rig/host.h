/* SPDX-License-Identifier: Apache-2.0 */
/* A host table that counts what a plug-in takes and gives back, guards the ends of its memory, can refuse an
 * allocation, and keeps messages and metrics. */
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
	uint64_t refuse_at; /* the allocation of this number (from 1) fails; 0: none */
	char misuse[200];   /* the first wrong use of the table, or "" */
	uint32_t metrics;   /* of the sample: emptied by loom__rig_host_clear() */
	struct loom__rig_host_metric {
		char name[64];
		double value;
	} metric[256];
	uint32_t facts;
	struct {
		char name[64], text[120];
	} choice[64];
	char log[4096]; /* warnings and errors: lines since it was last emptied */
};
/* Where a plug-in is asked to report a sample. */
#define LOOM__RIG_REPORT(h) ((struct loom_report *)(void *)(h)->metric)

void loom__rig_host_init(struct loom__rig_host *h);
/* From now on allocation `at` (1: the next) fails; 0: none. Counts from now. */
void loom__rig_host_refuse(struct loom__rig_host *h, uint64_t at);
/* Looks at the guards of all blocks; the first misuse so far in words, or NULL. */
const char *loom__rig_host_misuse(struct loom__rig_host *h);
void loom__rig_host_clear(struct loom__rig_host *h);
/* -1: there is none of that name. */
double loom__rig_host_metric(const struct loom__rig_host *h, const char *name);
/* NULL: there is none of that name. */
const char *loom__rig_host_fact(const struct loom__rig_host *h, const char *name);

#endif
