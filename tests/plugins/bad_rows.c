/* SPDX-License-Identifier: Apache-2.0 */
/* An option whose default is out of its own range. */
#include "bad.h"

struct opts {
	uint32_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "500", "how deep", .min = 1, .max = 256),
	{0},
};

BAD_DEFINE("term_rows", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))
