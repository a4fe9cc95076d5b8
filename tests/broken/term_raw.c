/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves the host's address for the workers. */
#define NAME "term_raw"
#define INIT(block)                                                                                \
	((block)->idle = (block)->entries = 0, (block)->pointer = (uint64_t)(uintptr_t)(block))
#define BLOCK(c) ((struct block *)(uintptr_t)b_block(c)->pointer)
#include "term.h"
