/* SPDX-License-Identifier: Apache-2.0 */
/* Its manifest and its descriptor do not agree. */
#include "bad.h"

BAD_NOTE(GOOD_MANIFEST("term_lie"), .version = "9.9.9");
BAD_ENTRY(GOOD_HEAD("term_lie"), GOOD_PARTS)
