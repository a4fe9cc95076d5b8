/* SPDX-License-Identifier: Apache-2.0 */
/* With a conf: the plug-in in a real stack, with the companions that the conf names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "config/config.h"
#include "facts/must.h"
#include "inspect/child.h"
#include "plugin/registry.h"
#include "conform/tests.h"

enum { MOST_MS = 600000 };

/* The setting that puts the plug-in into the conf: as a workload or policy, or in place of each of its devices. */
static void replace(const struct loom__trial *t, struct loom__text *out)
{
	enum loom_kind kind = t->plugin->kind;
	char *real = realpath(t->path, NULL);
	const char *path = real ? real : t->path;
	if (kind == LOOM_DEVICE) {
		const struct loom__entry *devices = loom__config_get(t->cfg, "run", "devices");
		char *copy = devices ? strdup(devices->value) : NULL, *rest = copy;
		uint32_t all = 0;
		while (rest && loom__word(&rest, " \t,"))
			all++;
		loom__text_add(out, "run.devices=");
		for (uint32_t i = 0; i < all || !i; i++) {
			loom__text_add(out, "%s", i ? " " : "");
			loom__word_put(out, path, " \t,");
			loom__text_add(out, ":%u", i);
		}
		free(copy);
	} else if (kind == LOOM_WORKLOAD) {
		loom__text_add(out, "run.workload=%s", path);
	} else {
		loom__text_add(out, "%s.use=%s", loom__kind_section(kind), path);
	}
	free(real);
}

/* Runs a command of this executable, with the trial's settings of the plug-in after `head`. On success `child` has its
 * status. what: the run in words. */
static int run(struct loom__trial *t, const char *const *head, size_t n, const char *what, struct loom__child *child)
{
	struct loom__text sets = {0};
	struct loom_error err;
	const char **argv = calloc(n + 1 + 2 * t->sets, sizeof(*argv));
	/* The options of the plug-in follow each other in one text, which is complete before argv points into it. */
	for (size_t i = 0; i < t->sets; i++)
		loom__text_add(&sets, "%s.%s.%s%c", loom__kind_section(t->plugin->kind), loom__plugin_short(t->plugin),
			       t->set[i], 0);
	if (!argv || (t->sets && !sets.at))
		return loom__skip(t, "out of memory");
	memcpy(argv, head, n * sizeof(*head));
	const char *at = sets.at;
	for (size_t i = 0; i < t->sets; i++, at += strlen(at) + 1) {
		argv[n++] = "--set";
		argv[n++] = at;
	}
	if (loom__child_run(argv, t->limit_ms ? t->limit_ms : MOST_MS, child, &err))
		return loom__skip(t, "no process for the run: %s", err.text);
	if (child->timed_out)
		return loom__fault(t, "%s does not end", what);
	if (child->status == CHILD_LOST)
		return loom__skip(t, "the exit status of the run is not known");
	if (WIFSIGNALED(child->status))
		return loom__fault(t, "%s dies of signal %d", what, WTERMSIG(child->status));
	return 0;
}

/* Writes the line of the child's output that begins at `at`. */
static void copy_line(const char *at, char *text, size_t room)
{
	snprintf(text, room, "%.*s", (int)strcspn(at, "\r\n"), at);
}

int loom__test_stack_runs(struct loom__trial *t)
{
	char text[500], what[500];
	struct loom__text use = {0};
	struct loom__child child = {0};
	if (!t->with)
		return loom__skip(t, "no conf with companions: give one with --with CONF");
	replace(t, &use);
	const char *const head[] = {t->self,     "run", t->with, "--quiet",
				    "--samples", "3",   "--set", loom__must_text(&use)};
	snprintf(what, sizeof(what), "in a stack of %s the run", t->with);
	int rc = run(t, head, LOOM__COUNT(head), what, &child);
	if (rc)
		return rc;
	copy_line(loom__must_text(&child.noise), text, sizeof(text)); /* the first line is the reason */
	int status = WEXITSTATUS(child.status);
	loom__child_free(&child);
	return status == 4 ? loom__skip(t, "%s", text)
	       : status    ? loom__fault(t, "in a stack of %s: %s", t->with, text)
			   : 0;
}

int loom__test_stack_explored(struct loom__trial *t)
{
	char text[500];
	struct loom__child child = {0};
	const char *const head[] = {t->self, "explore", t->path, "--seeds", "300"};
	int rc = run(t, head, LOOM__COUNT(head), "gpuloom explore", &child);
	if (rc)
		return rc;
	const char *said = loom__must_text(&child.noise), *then = strstr(said, "then: ");
	copy_line(then ? then + 6 : said, text, sizeof(text));
	int status = WEXITSTATUS(child.status);
	loom__child_free(&child);
	return status == 4 ? loom__skip(t, "%s", text) : status ? loom__fault(t, "gpuloom explore: %s", text) : 0;
}
