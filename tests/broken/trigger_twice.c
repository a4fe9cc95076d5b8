/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an operation again with every further count. */
#define NAME "trigger_twice"
#define DONE(w) (w)->at++
#include "trigger.h"
