/* SPDX-License-Identifier: Apache-2.0 */
/* A host table that counts what a plug-in takes and gives back, guards the ends of its memory and
 * can refuse an allocation. */
#ifndef LOOM_VALIDATE_WATCHHOST_H
#define LOOM_VALIDATE_WATCHHOST_H

#include <pthread.h>

#include "stack/host.h"

struct loom__block; /* one allocation */

struct loom__watchhost {
	struct loom_host table;
	pthread_mutex_t lock;
	struct loom__block *blocks;
	uint64_t live, allocations, refused;
	uint64_t refuse_at; /* the allocation of this number (from 1) fails; 0: none */
	char misuse[200];   /* the first wrong use of the table, or "" */
	struct loom_report report;
	uint32_t errors; /* calls of fail() */
};

void loom__watchhost_init(struct loom__watchhost *h);
/* From now on allocation `at` (1: the next) fails; 0: none. Counts from now. */
void loom__watchhost_refuse(struct loom__watchhost *h, uint64_t at);
/* Looks at the guards of all blocks; the first misuse so far in words, or NULL. */
const char *loom__watchhost_misuse(struct loom__watchhost *h);
void loom__watchhost_clear_report(struct loom__watchhost *h);

#endif
