/* SPDX-License-Identifier: Apache-2.0 */
/* Does not heed the stop word. */
#define NAME "sched_deaf"
#define STOPPED(c) 0
#define NEVER_STOPS 1
#include "sched.h"
