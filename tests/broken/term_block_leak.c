/* SPDX-License-Identifier: Apache-2.0 */
/* destroy() gives nothing back. */
#define NAME "term_block_leak"
#define DESTROY(i) (void)(i)
#include "term.h"
