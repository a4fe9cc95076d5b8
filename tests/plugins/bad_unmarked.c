/* SPDX-License-Identifier: Apache-2.0 */
/* Sound, but without a manifest. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_unmarked"), GOOD_PARTS)
