/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plug-in. */
#include "bad.h"

LOOM_EXPORT int bad_nothing_here(void);

int bad_nothing_here(void)
{
	return 0;
}
