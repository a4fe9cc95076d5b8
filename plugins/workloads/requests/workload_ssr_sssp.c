/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

APP_PLUGIN(sssp, "Shortest paths in a graph that faults in")
