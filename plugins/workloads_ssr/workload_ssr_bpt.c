/* SPDX-License-Identifier: Apache-2.0 */
#include "workload_ssr_bpt.dev.h"

#include "app.h"

APP_PLUGIN(bpt, "Look-ups in a B+ tree that faults in")
