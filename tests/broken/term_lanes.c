/* SPDX-License-Identifier: Apache-2.0 */
/* Counts every lane of a worker. */
#define NAME "term_lanes"
#define COUNTS(c) (c)
#include "term.h"
