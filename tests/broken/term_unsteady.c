/* SPDX-License-Identifier: Apache-2.0 */
/* Its starting state is another one each time. */
#define NAME "term_unsteady"
#define INIT(block) ((block)->idle = 0, (block)->entries = 0, (block)->pad[0] = (uint64_t)rand())
#include "term.h"
