/* SPDX-License-Identifier: Apache-2.0 */
/* Counts tasks wrongly. */
#define NAME "sched_miscounts"
#define COUNTED ((task)->param[0] % 50 != 49)
#include "sched.h"
