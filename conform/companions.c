/* SPDX-License-Identifier: Apache-2.0 */
/* With a conf: the plug-in in a real stack, with the companions that the conf names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "facts/must.h"
#include "inspect/child.h"
#include "plugin/registry.h"
#include "conform/tests.h"

enum { MOST_MS = 600000 };

static const char *selector(const struct loom_plugin *p)
{
	return p->kind == LOOM_WORKLOAD ? "run.workload" : loom__kind_section(p->kind);
}

int loom__test_stack_runs(struct loom__trial *t)
{
	char use[4200], text[500];
	if (!t->with)
		return loom__skip(t, "no conf with companions: give one with --with CONF");
	char *real = realpath(t->path, NULL);
	if (t->plugin->kind == LOOM_DEVICE) {
		free(real);
		return loom__skip(
		    t, "the devices of a conf are listed in [run] devices: run it without validate");
	}
	snprintf(use, sizeof(use), t->plugin->kind == LOOM_WORKLOAD ? "%s=%s" : "%s.use=%s",
		 selector(t->plugin), real ? real : t->path);
	free(real);
	const char *const argv[] = {t->self, "run", t->with, "--quiet", "--samples", "3", "--set", use, NULL};
	struct loom__child child;
	struct loom_error err;
	int failed = loom__child_run(argv, t->limit_ms ? t->limit_ms : MOST_MS, &child, &err), status = child.status;
	const char *said = loom__must_text(&child.noise);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(said, "\r\n"), said); /* the first line is the reason */
	loom__child_free(&child);
	if (failed)
		return loom__skip(t, "no process for the run: %s", err.text);
	if (child.timed_out)
		return loom__fault(t, "in a stack of %s the run does not end", t->with);
	if (status == CHILD_LOST)
		return loom__skip(t, "the exit status of the run is not known");
	if (WIFSIGNALED(status))
		return loom__fault(t, "in a stack of %s the process dies of signal %d", t->with,
				   WTERMSIG(status));
	if (WEXITSTATUS(status) == 4)
		return loom__skip(t, "%s", text);
	return WEXITSTATUS(status) ? loom__fault(t, "in a stack of %s: %s", t->with, text) : 0;
}
