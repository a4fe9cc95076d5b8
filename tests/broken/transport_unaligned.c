/* SPDX-License-Identifier: Apache-2.0 */
/* Aligns segments to 8 bytes. */
#define NAME "transport_unaligned"
#define SHIFT 8
#include "transport.h"
