/* SPDX-License-Identifier: Apache-2.0 */
/* Does not heed the stop word. */
#define NAME "barrier_deaf"
#define STOPPED(c) 0
#include "barrier.h"
