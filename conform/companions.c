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

int loom__test_stack_runs(struct loom__trial *t)
{
	char text[500];
	struct loom__text use = {0}, sets = {0};
	if (!t->with)
		return loom__skip(t, "no conf with companions: give one with --with CONF");
	replace(t, &use);
	const char **argv = calloc(9 + 2 * t->sets, sizeof(*argv));
	const char *const head[] = {t->self, "run", t->with, "--quiet", "--samples", "3", "--set", use.at};
	size_t n = LOOM__COUNT(head);
	/* The options of the plug-in follow each other in one text, which is complete before argv points into it. */
	for (size_t i = 0; i < t->sets; i++)
		loom__text_add(&sets, "%s.%s.%s%c", loom__kind_section(t->plugin->kind), loom__plugin_short(t->plugin),
			       t->set[i], 0);
	if (!argv || !use.at || (t->sets && !sets.at))
		return loom__skip(t, "out of memory");
	memcpy(argv, head, sizeof(head));
	const char *at = sets.at;
	for (size_t i = 0; i < t->sets; i++, at += strlen(at) + 1) {
		argv[n++] = "--set";
		argv[n++] = at;
	}
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
