/* SPDX-License-Identifier: Apache-2.0 */
/* Its table of device functions lacks the mandatory 'done'. */
#include "bad.h"

static const struct loom_term_dev dev = {.size = sizeof(dev), .idle = bad_step, .busy = bad_step};
static const struct loom_device_code code = {.size = sizeof(code), .cpu = &dev};

BAD_DEFINE("term_dev_op", .ops = &good_ops, .dev = &code)
