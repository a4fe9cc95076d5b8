/* SPDX-License-Identifier: Apache-2.0 */
/* The parent process of probing. answer.c is the child. */
#include "inspect/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "inspect/child.h"
#include "plugin/identity.h"
#include "facts/must.h"

int loom__manifest_read(const char *path, struct loom_manifest *out, struct loom_error *err)
{
	int found;
	int rc = loom__elf_read(path, &found, out, err);
	if (rc)
		return rc;
	return found ? 0
		     : LOOM__FAIL(err, LOOM_EPLUGIN, "%s: it carries no gpuloom manifest; declare the plug-in with "
				"LOOM_PLUGIN_DEFINE", loom__shown(path));
}

static int ask(const char *self, const char *question, const char *path, unsigned limit_ms,
	       struct loom__child *child, struct loom_error *err)
{
	char fd[12];
	snprintf(fd, sizeof(fd), "%d", CHILD_ANSWER);
	const char *const argv[] = {self, "probe", question, fd, path, NULL};
	return loom__child_run(argv, limit_ms, child, err);
}

static int ended_well(const struct loom__child *c)
{
	return !c->timed_out && c->status == 0;
}

static void first_line(const struct loom__text *noise, char *out, size_t room)
{
	const char *text = loom__must_text(noise);
	text += strspn(text, "\r\n\t =");
	snprintf(out, room, "%.*s", (int)strcspn(text, "\r\n"), text);
	loom__clean(out, room);
}

/* Returns the error that the child has reported. If there is none, returns an error that says how the child ended.
 * `what` is the code that ran last. `sentence` is the child's message, or "". */
static int refuse(const char *path, const char *what, const struct loom__child *c,
		  unsigned limit_ms, const char *sentence, struct loom_error *err)
{
	char fate[200], noise[200], text[sizeof(err->text)];
	snprintf(text, sizeof(text), "%s", sentence);
	loom__clean(text, sizeof(text));
	if (text[0] && !c->timed_out && c->status > 0 && WIFEXITED(c->status)) /* the status is the error code */
		return LOOM__FAIL(err, -WEXITSTATUS(c->status), "%s", text);
	loom__child_fate(c, limit_ms, fate, sizeof(fate));
	if (c->status == CHILD_LOST && !c->timed_out)
		return LOOM__FAIL(err, LOOM_EIO, "%s: cannot be probed: the process that probes it %s", loom__shown(path), fate);
	first_line(&c->noise, noise, sizeof(noise));
	return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: %s %s%s%s%s; report it to its author",
			  loom__shown(path), what, fate, noise[0] ? ", with the output '" : "", noise,
			  noise[0] ? "'" : "");
}

static int examine(const char *self, const char *path, unsigned limit_ms, struct loom__probed *out,
		   struct loom_error *err)
{
	static const char ok[] = "ok\n";
	struct loom__child child;
	int rc = ask(self, "identity", path, limit_ms, &child, err);
	if (!rc) {
		const char *answer = loom__must_text(&child.answer);
		first_line(&child.noise, out->noise, sizeof(out->noise));
		int whole = child.answer.length == sizeof(ok) - 1 + sizeof(out->identity) &&
			    !memcmp(answer, ok, sizeof(ok) - 1);
		if (ended_well(&child) && whole)
			memcpy(&out->identity, answer + sizeof(ok) - 1, sizeof(out->identity));
		else
			rc = refuse(path, whole ? "its destructor" : "its constructor or entry point", &child, limit_ms,
				    strncmp(answer, ok, sizeof(ok) - 1) ? answer : "", err);
	}
	loom__child_free(&child);
	loom__manifest_clean(&out->identity);
	return rc;
}

int loom__plugin_examine(const char *self, const char *path, unsigned limit_ms,
			 struct loom__probed *out, struct loom_error *err)
{
	struct loom__probed unread;
	out = out ? out : &unread;
	memset(out, 0, sizeof(*out));
	char *real;
	int rc = loom__plugin_real(path, &real, err);
	if (!rc)
		rc = examine(self, real, limit_ms, out, err);
	free(real);
	return rc;
}

/* Returns the next field of the answer, which a NUL ends, and moves *at past it. Returns NULL if no complete field is
 * left. */
static char *next_field(char **at, const char *end)
{
	char *field = *at, *stop = memchr(field, 0, (size_t)(end - field));
	if (!stop)
		return NULL;
	*at = stop + 1;
	loom__clean(field, (size_t)(stop + 1 - field));
	return field;
}

int loom__ask_rows(const char *self, const char *question, const char *path, unsigned limit_ms,
		   loom__doctor_fn *row, void *arg, struct loom_error *err)
{
	struct loom__child child;
	int rc = ask(self, question, path, limit_ms, &child, err);
	char *at = child.answer.at, *end = at ? at + child.answer.length : NULL;
	while (!rc && at && at < end) {
		char *rest = at, *field[4];
		int n = 0;
		while (n < 4 && (field[n] = next_field(&rest, end)))
			n++;
		if (n < 4)
			break;
		row(arg, field[0], field[1], field[2], field[3]);
		at = rest;
	}
	/* An error message may follow the rows. */
	if (!rc && !ended_well(&child))
		rc = refuse(path, "its examination", &child, limit_ms, at ? at : "", err);
	loom__child_free(&child);
	return rc;
}
