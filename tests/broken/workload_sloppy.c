/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts whatever is near. */
#define NAME "workload_sloppy"
#define WRONG(sum, expect) ((sum) < (expect) / 2 || (sum) / 4 > (expect))
#include "workload.h"
