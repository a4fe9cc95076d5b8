/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for the probe, on every descriptor, before it crashes. */
#include "bad.h"

WHEN_LOADED
{
	for (int fd = 3; fd < 8; fd++)
		if (write(fd, "ok\n", 3) < 0)
			continue;
	abort();
}

BAD_DEFINE("term_answer", GOOD_PARTS)
