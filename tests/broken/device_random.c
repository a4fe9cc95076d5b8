/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers are the same in every sample. */
#define NAME "device_random"
#define RANDOM(x) (((x) & 0) + 12345)
#include "device.h"
