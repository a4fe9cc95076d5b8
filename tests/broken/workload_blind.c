/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts any result. */
#define NAME "workload_blind"
#define WRONG(sum, expect) ((sum) == (expect) + 1 && !(sum))
#include "workload.h"
