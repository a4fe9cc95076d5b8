/* SPDX-License-Identifier: Apache-2.0 */
/* Its ops table does not begin with its size. */
#include "bad.h"

static const struct loom_term_ops ops = {.create = bad_create, .destroy = bad_destroy};

BAD_DEFINE("term_no_size", .ops = &ops, .dev = &good_code)
