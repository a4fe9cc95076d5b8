/* SPDX-License-Identifier: Apache-2.0 */
/* wait() fails when its time is over. */
#define NAME "device_late"
#define LATE LOOM_EDIED
#include "device.h"
