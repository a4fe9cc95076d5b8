/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operations of one counter in the order of posting. */
#define NAME "trigger_order"
#define BEFORE(a, b) ((a)->id < (b)->id)
#include "trigger.h"
