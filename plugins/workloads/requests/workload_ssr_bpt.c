/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

APP_PLUGIN(bpt, "Look-ups in a B+ tree that faults in")
