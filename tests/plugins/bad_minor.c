/* SPDX-License-Identifier: Apache-2.0 */
/* Made for a later minor ABI: longer tables. Not broken: it must be accepted. */
#include "bad.h"

static const struct {
	struct loom_plugin plugin;
	void *later[4];
} self = {.plugin = {GOOD_HEAD("term_minor"), GOOD_PARTS, .abi = LOOM_ABI(1, 9),
		     .size = sizeof(self)}};

BAD_NOTE(GOOD_MANIFEST("term_minor"), .abi = LOOM_ABI(1, 9));

const struct loom_plugin *loom_plugin_entry(void)
{
	return &self.plugin;
}
