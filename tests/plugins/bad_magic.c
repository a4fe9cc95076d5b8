/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor of something else. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_magic"), GOOD_PARTS, .magic = 0x21212121)
