/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry point has nothing to say. */
#include "bad.h"

const struct loom_plugin *loom_plugin_entry(void)
{
	return NULL;
}
