/* SPDX-License-Identifier: Apache-2.0 */
/* Two option rows share a field. */
#define NAME "term_row"
#define MORE_ROWS                                                                                  \
	{.name = "other", .dflt = "5", .help = "The same field again.",                            \
	 .offset = offsetof(struct opts, size), .size = 4, .type = LOOM_OPT_U32},
#include "term.h"
