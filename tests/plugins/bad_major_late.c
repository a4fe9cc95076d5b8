/* SPDX-License-Identifier: Apache-2.0 */
/* Another major ABI, found out only when its code has run. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_major_late"), GOOD_PARTS, .abi = LOOM_ABI(7, 0))
