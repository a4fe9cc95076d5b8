/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOM_ENERGY_H
#define LOOM_ENERGY_H

#include "stack/stack.h"

/* Reads the energy counters of all devices, and sets *joules to their sum. A counter that devices share counts once.
 * Differences of two sums are consumption. */
int loom__energy(const struct loom_stack *s, double *joules, struct loom_error *err);

#endif
