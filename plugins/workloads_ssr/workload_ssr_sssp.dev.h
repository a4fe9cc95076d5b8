/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKLOAD_SSR_SSSP_DEV_H
#define WORKLOAD_SSR_SSSP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "jobs.dev.h"
#endif

LOOM_FN void workload_ssr_sssp_kernel(struct loom_ctx *c)
{
	ssr_app_run(c, ssr_sssp);
}

#endif
