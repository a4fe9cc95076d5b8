/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_central: a counter per device that all workers increment and poll. Device code, which counter.dev.h follows. */
#ifndef BARRIER_CENTRAL_DEV_H
#define BARRIER_CENTRAL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op)    barrier_central_##op
#define BARRIER_HOW(c, h) BARRIER_COUNTED

#endif
