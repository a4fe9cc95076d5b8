/* SPDX-License-Identifier: Apache-2.0 */
/* Lets segments overlap. */
#define NAME "transport_overlap"
#define STEP(bytes) ((bytes) > 64 ? (((bytes) / 2 + 63) & ~63ull) : 64)
#include "transport.h"
