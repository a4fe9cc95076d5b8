/* SPDX-License-Identifier: Apache-2.0 */
/* Says that all segments belong to device 0. */
#define NAME "transport_owner"
#define OWNER(owner) ((owner) * 0)
#include "transport.h"
