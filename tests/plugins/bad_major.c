/* SPDX-License-Identifier: Apache-2.0 */
/* Another major ABI in manifest and descriptor; its code must not even run. */
#include "bad.h"

WHEN_LOADED
{
	abort();
}

BAD_NOTE(GOOD_MANIFEST("term_major"), .abi = LOOM_ABI(7, 0));
BAD_ENTRY(GOOD_HEAD("term_major"), GOOD_PARTS, .abi = LOOM_ABI(7, 0))
