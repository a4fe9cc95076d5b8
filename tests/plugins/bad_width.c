/* SPDX-License-Identifier: Apache-2.0 */
/* An option whose field is narrower than its type. */
#include "bad.h"

struct opts {
	uint16_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U64, "5", "how deep"),
	{0},
};

BAD_DEFINE("term_width", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))
