/* SPDX-License-Identifier: Apache-2.0 */
/* sync_wic for channels with a GPU at one or both ends. A GPU has no page faults that a plug-in can use, so gpu_wait.dev.h
 * parks its workers. CPU threads sleep as with sync_futex. wic_channel.c has the channels between CPUs. Device code. */
#ifndef SYNC_WIC_DEV_H
#define SYNC_WIC_DEV_H

#define SYNC_OP(op) sync_wic_##op

#ifndef LOOM_DEVICE_COMPILE
#include "../sync_common/sleep.h"

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	return sync_sleep_until(c, word, sleepers, want, until_ns);
}
#endif

#endif
