/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiled program takes, read from the assembler's report (--ptxas-options=-v). */
#ifndef GPULOOM_CUDA_PTXAS_H
#define GPULOOM_CUDA_PTXAS_H

#include "../shared/gpu/resources.h"

/* 1, or 0 when the log holds no such report for `kernel`. */
int resources_read(const char *log, const char *kernel, struct resources *out);

#endif
