/* SPDX-License-Identifier: Apache-2.0 */
/* A table of options that does not end. */
#include "bad.h"

struct opts {
	uint32_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "5", "how deep"),
	{.name = (const char *)64},
};

BAD_DEFINE("term_endless", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))
