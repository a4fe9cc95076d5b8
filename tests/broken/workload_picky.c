/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects what is right when there are several workers. */
#define NAME "workload_picky"
#define WRONG(sum, expect) ((sum) != (expect) || layout->workers > 1)
#include "workload.h"
