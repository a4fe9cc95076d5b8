/* SPDX-License-Identifier: Apache-2.0 */
/* C_CG: conjugate gradients on a 27-point stencil. Device code. */
#ifndef CG_DEV_H
#define CG_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "solver.dev.h"
#endif

LOOM_FN void workload_cg_kernel(struct loom_ctx *c)
{
	ex_begin(c);
	(void)cg_solve(c);
	ex_end(c);
}

#endif
