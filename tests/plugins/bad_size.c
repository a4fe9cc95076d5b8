/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that states less than ABI 1.0 has. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_size"), GOOD_PARTS, .size = 40)
