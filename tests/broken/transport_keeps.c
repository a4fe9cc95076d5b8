/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets one device when it unmaps. */
#define NAME "transport_keeps"
#define UNMAP(mapped) mapped -= mapped > 1
#include "transport.h"
