/* SPDX-License-Identifier: Apache-2.0 */
/* wait() does not wait for the last worker. */
#define NAME "device_early"
#define EARLY (d->started > 0)
#include "device.h"
