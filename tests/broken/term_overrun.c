/* SPDX-License-Identifier: Apache-2.0 */
/* Writes behind its block. */
#define NAME "term_overrun"
#define INIT(block) ((block)->idle = (block)->entries = 0, (block)[1].idle = 0)
#include "term.h"
