/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 1024

static void say(void *arg, const char *text)
{
	loom__say_error(arg, "%s", text);
}

int loom__ranks_begin(struct loom__cli *cli, const char *n, struct loom__boot *boot, int *status)
{
	struct loom__boot_plan plan;
	struct loom_error err;
	char *end = NULL;
	unsigned long wanted = n ? strtoul(n, &end, 10) : 0;
	if (n && (*end || end == n || wanted < 1 || wanted > MOST_RANKS)) {
		loom__say_error(cli, "run: -n is 1 to %d ranks, not '%s'", MOST_RANKS, n);
		*status = LOOM_EXIT_USAGE;
		return 0;
	}
	int rc = loom__boot_plan((uint32_t)wanted, &plan, &err);
	if (!rc)
		rc = loom__boot_begin(&plan, say, cli, boot, status, &err);
	if (rc == LOOM__BOOT_PARENT)
		return 0;
	if (rc) {
		loom__say_error(cli, "%s", err.text);
		*status = loom__exit_of(rc);
		return 0;
	}
	/* What only one may say is said by rank 0. */
	if (boot->ranks.rank && !freopen("/dev/null", "w", cli->out)) {
		LOOM__FAIL(&err, LOOM_EIO, "cannot open /dev/null: %s", strerror(errno));
		*status = loom__ranks_end(cli, boot, LOOM_EXIT_FAILURE, &err);
		return 0;
	}
	return 1;
}

int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status,
		    const struct loom_error *err)
{
	/* Where a hub collects the reasons, only rank 0 says its own. */
	int hub = boot->how == LOOM__BOOT_FORK || boot->how == LOOM__BOOT_ROOT;
	const char *text = err->code == LOOM_EDIED ? NULL : err->code ? err->text : NULL;
	if (err->code && (!boot->ranks.rank || !hub))
		loom__say_error(cli, "%s", err->text);
	loom__boot_end(boot, status, text);
	return status;
}
