/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for more memory than there is. */
#define NAME "term_huge"
#define NEED(need) (need)->global = 1ull << 43
#include "term.h"
