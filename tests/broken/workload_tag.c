/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a task a tag that there is not. */
#define NAME "workload_tag"
#define TAG(x) ((x) == 7)
#include "workload.h"
