/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

APP_PLUGIN(xsbench, "Cross-section look-ups in a grid that faults in")
