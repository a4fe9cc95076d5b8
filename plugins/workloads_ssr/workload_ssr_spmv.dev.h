/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKLOAD_SSR_SPMV_DEV_H
#define WORKLOAD_SSR_SPMV_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "jobs.dev.h"
#endif

LOOM_FN void workload_ssr_spmv_kernel(struct loom_ctx *c)
{
	ssr_app_run(c, ssr_spmv);
}

#endif
