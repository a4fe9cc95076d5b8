/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

APP_PLUGIN(bfs, "Breadth-first search of a graph that faults in")
