/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry symbol resolves to code of another file. */
#include "bad.h"

typedef const struct loom_plugin *entry(void);

static BAD_UNUSED __attribute__((no_sanitize("address", "thread", "undefined"))) entry *
elsewhere(void)
{
	return (entry *)(void *)&getpid;
}

const struct loom_plugin *loom_plugin_entry(void) __attribute__((ifunc("elsewhere")));
