/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_auto: central where few workers meet, release where many do. Device code: in front of counter.dev.h. */
#ifndef BARRIER_AUTO_DEV_H
#define BARRIER_AUTO_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "word.dev.h"
#endif

#define BARRIER_OP(op) barrier_auto_##op
#define BARRIER_HOW(c, h) barrier_how(c, h)

#endif
