/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts as soon as it is loaded. */
#include "bad.h"

WHEN_LOADED
{
	fputs("no luck today\n", stderr);
	abort();
}

BAD_DEFINE("term_abort", GOOD_PARTS)
