/* SPDX-License-Identifier: Apache-2.0 */
#include "workload_ssr_sssp.dev.h"

#include "app.h"

APP_PLUGIN(sssp, "Shortest paths in a graph that faults in")
