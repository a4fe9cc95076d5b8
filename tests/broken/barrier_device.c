/* SPDX-License-Identifier: Apache-2.0 */
/* Has no barrier of a device. */
#define NAME "barrier_device"
#define DEVICE 0
#include "barrier.h"
