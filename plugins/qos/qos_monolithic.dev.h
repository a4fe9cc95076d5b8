/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QOS_MONOLITHIC_DEV_H
#define QOS_MONOLITHIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "service.dev.h"
#endif

SSR_DEVICE_HALF(qos_monolithic)

#endif
