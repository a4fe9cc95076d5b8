/* SPDX-License-Identifier: Apache-2.0 */
/* A termination detector that calls itself a scheduler. */
#include "bad.h"

BAD_DEFINE("sched_prefix", GOOD_PARTS)
