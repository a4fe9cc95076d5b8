/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QOS_SPLIT_DEV_H
#define QOS_SPLIT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "service.dev.h"
#endif

SSR_DEVICE_HALF(qos_split)

#endif
