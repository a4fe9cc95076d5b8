/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets the last task of an odd initial set. */
#define NAME "sched_odd"
#define INITIAL(c)                                                                                 \
	((c)->ctl->initial_tasks > 1 ? (c)->ctl->initial_tasks & ~1ull : (c)->ctl->initial_tasks)
#include "sched.h"
