/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_release: all workers increment the device's counter. The last arriver writes the release word, which the
 * waiting workers poll. Device code, which counter.dev.h follows. */
#ifndef BARRIER_RELEASE_DEV_H
#define BARRIER_RELEASE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op)    barrier_release_##op
#define BARRIER_HOW(c, h) BARRIER_RELEASED

#endif
