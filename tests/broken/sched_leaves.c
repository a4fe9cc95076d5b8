/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves without asking the detector. */
#define NAME "sched_leaves"
#define LEAVE(c) 1
#include "sched.h"
