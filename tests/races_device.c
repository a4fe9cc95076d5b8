/* SPDX-License-Identifier: Apache-2.0 */
/* The device code of one barrier or sync plug-in, RACES_NAME in RACES_FILE, for test_races_gpu. */
#include <gpuloom/barrier.h>
#include <gpuloom/sync.h>

#include "races_gpu.h"

#define RACES_DEV_(name) races_##name
#define RACES_DEV(name)  RACES_DEV_(name)

#ifdef RACES_barrier
#include "../plugins/barrier/state.dev.h"
#include RACES_FILE
#ifdef BARRIER_HOW
#include "../plugins/barrier/counter.dev.h"
#endif
#include "../plugins/barrier/rounds.dev.h"
extern const struct loom_barrier_dev RACES_DEV(RACES_NAME);
const struct loom_barrier_dev RACES_DEV(RACES_NAME) = {.size = sizeof(struct loom_barrier_dev),
						       .wait = BARRIER_OP(wait),
						       .arrive = BARRIER_OP(arrive),
						       .test = BARRIER_OP(test),
						       .await = BARRIER_OP(await),
						       .missing = BARRIER_OP(missing),
						       .drop = BARRIER_OP(drop)};
#else
#include "../plugins/sync_common/slot.dev.h"
#include RACES_FILE
#include "../plugins/sync_common/channel.dev.h"
extern const struct loom_sync_dev RACES_DEV(RACES_NAME);
const struct loom_sync_dev RACES_DEV(RACES_NAME) = {.size = sizeof(struct loom_sync_dev),
						    .reserve = SYNC_OP(reserve),
						    .publish = SYNC_OP(publish),
						    .wait = SYNC_OP(wait),
						    .wait_all = SYNC_OP(wait_all),
						    .release = SYNC_OP(release)};
#endif
