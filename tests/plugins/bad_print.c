/* SPDX-License-Identifier: Apache-2.0 */
/* Prints where only data belongs; usable otherwise. */
#include "bad.h"

WHEN_LOADED
{
	printf("hello from a constructor");
}

BAD_DEFINE("term_print", GOOD_PARTS)
