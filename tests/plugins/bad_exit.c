/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process that loads it. */
#include "bad.h"

WHEN_LOADED
{
	_exit(0);
}

BAD_DEFINE("term_exit", GOOD_PARTS)
