/* SPDX-License-Identifier: Apache-2.0 */
/* Prints when it is created. */
#define NAME "term_prints"
#define CREATED(i) puts("created")
#include "term.h"
