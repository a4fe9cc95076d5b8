/* SPDX-License-Identifier: Apache-2.0 */
/* nudge() does not end the wait in progress. */
#define NAME "device_deaf"
#define NUDGE(d) (void)0
#include "device.h"
