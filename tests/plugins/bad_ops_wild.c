/* SPDX-License-Identifier: Apache-2.0 */
/* Its ops table is an address where nothing is. */
#include "bad.h"

BAD_DEFINE("term_ops_wild", .ops = (const void *)64, .dev = &good_code)
