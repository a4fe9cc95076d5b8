/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a later core. */
#include "bad.h"

BAD_NOTE(GOOD_MANIFEST("term_min_host"), .min_host_abi = LOOM_ABI(1, 42));
BAD_ENTRY(GOOD_HEAD("term_min_host"), GOOD_PARTS, .min_host_abi = LOOM_ABI(1, 42))
