/* SPDX-License-Identifier: Apache-2.0 */
/* The context says where the workers of a device begin, and is wrong. */
#define NAME "device_context"
#define FIRST 1
#include "device.h"
