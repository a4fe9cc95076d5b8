/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuloom/gpuloom.h>

const char *loom_version(void)
{
	return LOOM_VERSION_TEXT;
}
