/* SPDX-License-Identifier: Apache-2.0 */
/* An idle worker takes a task without saying so. */
#define NAME "sched_not_busy"
#define SAY_BUSY(c) (void)0
#include "sched.h"
