/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a compiled program, from the report of the assembler (--ptxas-options=-v). */
#ifndef GPULOOM_CUDA_PTXAS_H
#define GPULOOM_CUDA_PTXAS_H

#include "../device_common/gpu/resources.h"

/* Reads the resources of `kernel` from a log. Returns 1, or 0 if the log has no report for it. */
int resources_read(const char *log, const char *kernel, struct resources *out);

#endif
