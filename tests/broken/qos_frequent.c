/* SPDX-License-Identifier: Apache-2.0 */
/* Makes interrupts more frequent. */
#define NAME "qos_frequent"
#define INTERRUPT(m) (m)->count = 1
#include "qos.h"
