/* SPDX-License-Identifier: Apache-2.0 */
/* Gives memory that is not zeroed. */
#define NAME "device_dirty"
#define GOT_MEMORY(at) memset(at, 1, bytes)
#include "device.h"
