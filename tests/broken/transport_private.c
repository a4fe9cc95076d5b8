/* SPDX-License-Identifier: Apache-2.0 */
/* The host and the devices see different memory. */
#define NAME "transport_private"
#define SHARING MAP_PRIVATE
#include "transport.h"
