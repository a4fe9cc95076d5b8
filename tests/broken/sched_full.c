/* SPDX-License-Identifier: Apache-2.0 */
/* Drops a task that does not fit into a small queue. */
#define NAME "sched_full"
#define IN_PLACE (b_block(c)->slots > 100)
#include "sched.h"
