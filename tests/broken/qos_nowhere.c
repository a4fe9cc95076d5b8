/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves no core to serve. */
#define NAME "qos_nowhere"
#define STEER(vectors) (vectors) = 0
#include "qos.h"
