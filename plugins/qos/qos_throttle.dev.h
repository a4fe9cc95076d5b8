/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QOS_THROTTLE_DEV_H
#define QOS_THROTTLE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "service.dev.h"
#endif

SSR_DEVICE_HALF(qos_throttle)

#endif
