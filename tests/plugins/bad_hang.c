/* SPDX-License-Identifier: Apache-2.0 */
/* Never returns from loading, and leaves a child that would outlive it. */
#include "bad.h"

WHEN_LOADED
{
	if (!fork())
		pause();
	for (;;)
		pause();
}

BAD_DEFINE("term_hang", GOOD_PARTS)
