/* SPDX-License-Identifier: Apache-2.0 */
/* Of a kind that does not exist. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_kind"), GOOD_PARTS, .kind = 77)
