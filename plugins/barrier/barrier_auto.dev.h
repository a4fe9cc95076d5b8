/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_auto: works as barrier_central for few workers, and as barrier_release for many. Device code, which
 * counter.dev.h follows. */
#ifndef BARRIER_AUTO_DEV_H
#define BARRIER_AUTO_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op)    barrier_auto_##op
#define BARRIER_HOW(c, h) barrier_how(c, h)

#endif
