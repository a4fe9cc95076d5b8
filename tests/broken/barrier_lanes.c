/* SPDX-License-Identifier: Apache-2.0 */
/* Does not wait for the other lanes of a worker. */
#define NAME "barrier_lanes"
#define LANES(c) (void)0
#include "barrier.h"
