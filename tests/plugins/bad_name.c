/* SPDX-License-Identifier: Apache-2.0 */
/* No name. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD(NULL), GOOD_PARTS)
