/* SPDX-License-Identifier: Apache-2.0 */
/* Does not free memory. */
#define NAME "device_leak"
#define FREE_MEMORY(m) (void)(m)
#include "device.h"
