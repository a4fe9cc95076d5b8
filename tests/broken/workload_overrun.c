/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a task more than it announced. */
#define NAME "workload_overrun"
#define MORE_TASKS 1
#include "workload.h"
