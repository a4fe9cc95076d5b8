/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the second sample with the counts of the first. */
#define NAME "term_no_reset"
#define INIT(block) (void)(block)
#include "term.h"
