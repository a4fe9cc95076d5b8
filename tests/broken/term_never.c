/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a worker too many, so the end never comes. */
#define NAME "term_never"
#define DONE(idle, c) (idle) == (c)->workers + 1
#include "term.h"
