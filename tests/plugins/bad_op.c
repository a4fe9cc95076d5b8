/* SPDX-License-Identifier: Apache-2.0 */
/* Its ops table ends before the mandatory 'init'. */
#include "bad.h"

static const struct loom_term_ops short_ops = {
	.size = offsetof(struct loom_term_ops, init),
	.create = bad_create,
	.destroy = bad_destroy,
	.need = bad_need,
	.init = bad_init,
};

BAD_DEFINE("term_op", .ops = &short_ops, .dev = &good_code)
