/* SPDX-License-Identifier: Apache-2.0 */
/* With a conf: the plug-in in a real stack, with the companions that the conf names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/registry.h"
#include "conform/tests.h"

static const char *selector(const struct loom_plugin *p)
{
	return p->kind == LOOM_WORKLOAD ? "run.workload" : loom__kind_section(p->kind);
}

/* The first line that says what went wrong. */
static void first_line(FILE *f, char *text, size_t room)
{
	text[0] = 0;
	while (!text[0] && fgets(text, (int)room, f))
		text[strcspn(text, "\r\n")] = 0;
}

static int run(struct loom__trial *t, char *const *argv, char *text, size_t room)
{
	FILE *out = tmpfile();
	if (!out)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fileno(out), 1);
		dup2(fileno(out), 2);
		execv(t->self, argv);
		_exit(127);
	}
	int status = -1;
	if (pid > 0)
		waitpid(pid, &status, 0);
	rewind(out);
	first_line(out, text, room);
	fclose(out);
	return status;
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
		    t, "which devices a conf uses stands in [run] devices: run it yourself");
	}
	snprintf(use, sizeof(use), t->plugin->kind == LOOM_WORKLOAD ? "%s=%s" : "%s.use=%s",
		 selector(t->plugin), real ? real : t->path);
	free(real);
	char *argv[] = {"gpuloom", "run",       (char *)(uintptr_t)t->with,
			"--quiet", "--samples", "3",
			"--set",   use,         NULL};
	int status = run(t, argv, text, sizeof(text));
	if (status == -1)
		return loom__skip(t, "no process for the run");
	if (WIFSIGNALED(status))
		return loom__fault(t, "in a stack of %s the process dies of signal %d", t->with,
				   WTERMSIG(status));
	if (WEXITSTATUS(status) == 4)
		return loom__skip(t, "%s", text);
	return WEXITSTATUS(status) ? loom__fault(t, "in a stack of %s: %s", t->with, text) : 0;
}
