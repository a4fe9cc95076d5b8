/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_release: a counter per device that all add to; the last to come writes another word, which the others look at.
 * Device code: in front of counter.dev.h. */
#ifndef BARRIER_RELEASE_DEV_H
#define BARRIER_RELEASE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "word.dev.h"
#endif

#define BARRIER_OP(op) barrier_release_##op
#define BARRIER_HOW(c, h) BARRIER_RELEASED

#endif
