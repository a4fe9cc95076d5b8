/* SPDX-License-Identifier: Apache-2.0 */
/* Says another error than LOOM_EWRONG. */
#define NAME "workload_code"
#define VERDICT LOOM_EINVAL
#include "workload.h"
