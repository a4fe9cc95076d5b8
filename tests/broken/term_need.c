/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for another amount of memory every time. */
#define NAME "term_need"
#define NEED(need) (need)->global = sizeof(struct block) + 64 * ((uint64_t)rand() % 100)
#include "term.h"
