/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets that a thief is busy again. */
#define NAME "term_no_busy"
#define BUSY 0
#include "term.h"
