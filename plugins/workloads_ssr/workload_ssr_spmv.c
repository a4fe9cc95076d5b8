/* SPDX-License-Identifier: Apache-2.0 */
#include "workload_ssr_spmv.dev.h"

#include "app.h"

APP_PLUGIN(spmv, "Sparse matrix times vector, the matrix faults in")
