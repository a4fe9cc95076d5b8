/* SPDX-License-Identifier: Apache-2.0 */
/* workload_planted, but it declares that it uses a barrier. */
#define PLANTED_NAME "workload_meets"
#define PLANTED_NEEDS (1u << LOOM_BARRIER)
#include "workload_planted.c"
