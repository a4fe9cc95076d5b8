/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <errno.h>
#include <gpuloom/device.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 65536

static void say(void *arg, const char *text)
{
	loom__say_error(arg, "%s", text);
}

/* Returns the number of ranks: the argument of -n if given, else `ranks`. If the number is not in 1..most, prints an
 * error, sets *status and returns 0. */
static uint32_t wanted(const struct loom__cli *cli, const char *n, uint32_t ranks, uint32_t most, int *status)
{
	char *end = NULL;
	unsigned long number = n ? strtoul(n, &end, 10) : ranks;
	if ((!n || (end != n && !*end)) && number >= 1 && number <= most)
		return (uint32_t)number;
	if (n)
		loom__say_error(cli, "run: -n is 1 to %u ranks, not '%s'", most, n);
	else
		loom__say_error(cli, "[run] ranks is 1 to %u where ranks are processes, not %u", most, ranks);
	*status = LOOM_EXIT_USAGE;
	return 0;
}

int loom__ranks_threads(const struct loom__cli *cli, const char *n, const struct loom__plan *plan, uint32_t *ranks,
			int *status)
{
	struct loom__boot_plan boot;
	struct loom_error err;
	for (size_t i = 0; i < plan->choices; i++)
		if (plan->choice[i].kind == LOOM_DEVICE && !(plan->choice[i].plugin->caps & LOOM_CAP_DEVICE_IS_VIRTUAL))
			return 0;
	*ranks = wanted(cli, n, plan->run.ranks, MOST_THREADS, status);
	int rc = *ranks ? loom__boot_plan(0, &boot, &err) : 0;
	if (rc || (*ranks && boot.how != LOOM__BOOT_ALONE)) {
		loom__say_error(cli, "simulated devices have all ranks in one process: start `gpuloom run -n N` "
				"without a launcher");
		*status = LOOM_EXIT_USAGE;
		return 1;
	}
	return !*ranks || *ranks > 1 || loom__plan_get(plan, LOOM_TRIGGER);
}

int loom__ranks_begin(struct loom__cli *cli, const char *n, uint32_t ranks, struct loom__boot *boot, int *status)
{
	struct loom__boot_plan plan;
	struct loom_error err = {0};
	uint32_t number = wanted(cli, n, ranks, LOOM__BOOT_RANKS, status);
	*boot = (struct loom__boot){.fd = -1};
	if (!number)
		return 0;
	int rc = loom__boot_plan(n ? number : 0, &plan, &err);
	if (!rc && !n && number > 1 && plan.how == LOOM__BOOT_ALONE) /* without a launcher, the conf decides */
		rc = loom__boot_plan(number, &plan, &err);
	if (!rc)
		rc = loom__boot_begin(&plan, say, cli, boot, status, &err);
	if (rc == LOOM__BOOT_PARENT)
		return 0;
	/* Only rank 0 prints. */
	if (!rc && boot->ranks.rank && !freopen("/dev/null", "w", cli->out))
		rc = LOOM__FAIL(&err, LOOM_EIO, "cannot open /dev/null: %s", strerror(errno));
	if (rc)
		*status = loom__ranks_end(cli, boot, loom__exit_of(rc), &err);
	return !rc;
}

int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status, const struct loom_error *err)
{
	/* A hub prints the reasons of all ranks but rank 0, so the other ranks must not print theirs. */
	int said = err->code && (!boot->ranks.rank || boot->how != LOOM__BOOT_FORK);
	const char *text = err->code && err->code != LOOM_EDIED ? err->text : NULL;
	if (said)
		loom__say_error(cli, "%s", err->text);
	if (loom__boot_end(boot, status, text) && text && !said)
		loom__say_error(cli, "rank %u: %s", boot->ranks.rank, text);
	return status;
}
