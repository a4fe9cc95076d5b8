/* SPDX-License-Identifier: Apache-2.0 */
/* Puts one task more into the queue than fits. */
#define NAME "sched_overrun"
#define ROOM(q) ((q)->slots + 1)
#include "sched.h"
