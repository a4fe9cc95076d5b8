/* SPDX-License-Identifier: Apache-2.0 */
/* Does not start anew with the second sample. */
#define NAME "workload_stale"
#define RESET(sum) (sum) = (sum) ? (sum) : 0
#include "workload.h"
