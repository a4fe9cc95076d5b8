/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry point returns an address where nothing is. */
#include "bad.h"

const struct loom_plugin *loom_plugin_entry(void)
{
	return (const struct loom_plugin *)4096;
}
