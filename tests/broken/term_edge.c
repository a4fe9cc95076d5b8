/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes when an option is at its maximum. */
#define NAME "term_edge"
#define CREATED(i) ((i)->opts->size == 1000 ? abort() : (void)0)
#include "term.h"
