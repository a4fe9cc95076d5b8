/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the suite. */
#ifndef LOOM_VALIDATE_TESTS_H
#define LOOM_VALIDATE_TESTS_H

#include "conform/trial.h"

#define ROW(name, fn, ...) loom__trial_fn loom__test_##fn;
#include "conform/suite.def"
#undef ROW

#endif
