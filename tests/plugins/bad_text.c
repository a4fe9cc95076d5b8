/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that must not reach a terminal or a document as they are. */
#include "bad.h"

BAD_NOTE(GOOD_MANIFEST("term_text"), .summary = "red \033[31m, bell \a, broken \xff UTF-8");
BAD_ENTRY(GOOD_HEAD("term_text"), GOOD_PARTS, .summary = "red \033[31m, bell \a, broken \xff UTF-8")
