/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf/conf.h"

#include <stdio.h>
#include <string.h>

#include "facts/environment.h"
#include "facts/must.h"
#include "report/view/document.h"

static int read_result(const struct loom__cli *cli, const char *path, struct loom__doc *doc)
{
	static const char *const not [] = {"", "is a comparison, which has several confs; `gpuloom report` shows it",
					   ("is a sweep, which has several confs: `gpuloom sweep CONF --resume` "
					    "continues it, `gpuloom report` shows it")};
	struct loom_error err;
	if (loom__doc_read(path, doc, &err))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	if (doc->kind == LOOM__DOC_RESULT && loom__json_object(doc->root, "config"))
		return LOOM_EXIT_OK;
	loom__say_error(cli, "'%s' %s", path,
			doc->kind == LOOM__DOC_RESULT ? "lacks the configuration of its run" : not [doc->kind]);
	loom__doc_free(doc);
	return LOOM_EXIT_USAGE;
}

int loom__result_conf(const struct loom__cli *cli, const char *path, int trust, struct loom_config *cfg,
		      struct loom__diag *diag)
{
	struct loom__doc doc;
	const cJSON *o;
	int status = read_result(cli, path, &doc);
	if (status)
		return status;
	cJSON_ArrayForEach(o, loom__json_object(doc.root, "config"))
	{
		struct loom__text text = {0};
		/* Options that had their defaults keep the defaults of this version. The command later reports which of
		 * these defaults have changed. */
		if (!o->string || !strcmp(loom__json_text(o, "source"), "default"))
			continue;
		/* In the result of a single run, options of its sweep have no effect. */
		if (!strncmp(o->string, "sweep.", 6) || !strncmp(o->string, "x-paper.", 8))
			continue;
		struct loom__entry where = {.source = LOOM_FROM_FILE, .file = path, .untrusted = !trust};
		/* "written" is the text in the conf. In a result, the "value" of a time lacks the unit that a conf must
		 * have, so "written" is used. For a path "value" is used, because "written" may be relative to another
		 * folder. */
		const char *value = loom__json_text(o, "value"), *written = loom__json_text(o, "written");
		loom__text_add(&text, "%s=%s", o->string, *written && !strchr(value, '/') ? written : value);
		loom__config_set_at(cfg, loom__must_text(&text), &where, diag);
		loom__text_free(&text);
	}
	loom__doc_free(&doc);
	return LOOM_EXIT_OK;
}

struct teller {
	const struct loom__cli *cli;
	const char *path;
	size_t said;
	struct loom__text untold; /* what the file does not tell, separated by commas */
};

static void do_not_know(struct teller *t, const char *what)
{
	loom__text_add(&t->untold, "%s%s", t->untold.length ? ", " : "", what);
}

/* Compares a fact of the file with that of this run. */
static void tell(struct teller *t, const char *what, const cJSON *was, const cJSON *is)
{
	struct loom__text a = {0}, b = {0};
	if (!was && is)
		do_not_know(t, what);
	if (!was || cJSON_Compare(was, is, 1))
		return;
	loom__environment_text(was, &a);
	loom__environment_text(is, &b);
	loom__say_note(t->cli, "since %s: %s was %.200s, is %.200s", t->path, what, loom__must_text(&a),
		       is ? loom__must_text(&b) : "not there");
	t->said++;
	loom__text_free(&a);
	loom__text_free(&b);
}

static void tell_member(struct teller *t, const char *what, const cJSON *was, const cJSON *is, const char *key)
{
	tell(t, what, cJSON_GetObjectItemCaseSensitive(was, key), cJSON_GetObjectItemCaseSensitive(is, key));
}

static const cJSON *plugin_of(const cJSON *doc, const char *name)
{
	const cJSON *p;
	cJSON_ArrayForEach(p, loom__json_list(doc, "plugins"))
	{
		if (!strcmp(loom__json_text(p, "name"), name))
			return p;
	}
	return NULL;
}

/* Tells that the one run had something that the other has not. */
static void tell_only(struct teller *t, const char *kind, const char *name, const char *change)
{
	loom__say_note(t->cli, "since %s: %s %.200s %s", t->path, kind, name, change);
	t->said++;
}

static void tell_plugins(struct teller *t, const cJSON *was, const cJSON *is)
{
	static const char *const key[] = {"version", "build_id"};
	const cJSON *p;
	if (!loom__json_list(was, "plugins"))
		do_not_know(t, "the plug-ins");
	cJSON_ArrayForEach(p, loom__json_list(was, "plugins"))
	{
		const char *name = loom__json_text(p, "name");
		const cJSON *now = plugin_of(is, name);
		if (!now)
			tell_only(t, "plug-in", name, "is not used any more");
		for (size_t i = 0; now && i < LOOM__COUNT(key); i++) {
			struct loom__text what = {0};
			loom__text_add(&what, "the %s of %s", key[i], name);
			tell_member(t, loom__must_text(&what), p, now, key[i]);
			loom__text_free(&what);
		}
	}
	cJSON_ArrayForEach(p, loom__json_list(is, "plugins"))
	{
		if (loom__json_list(was, "plugins") && !plugin_of(was, loom__json_text(p, "name")))
			tell_only(t, "plug-in", loom__json_text(p, "name"), "was not used");
	}
}

/* Options of a sweep have no effect in a run. */
static int has_effect(const cJSON *option)
{
	return option->string && strncmp(option->string, "sweep.", 6) && strncmp(option->string, "x-", 2);
}

static void tell_options(struct teller *t, const cJSON *was, const cJSON *is)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, was)
	{
		const cJSON *now = loom__json_object(is, o->string);
		if (now)
			tell_member(t, o->string, o, now, "value");
		else if (has_effect(o))
			tell_only(t, "option", o->string, "does not exist any more");
	}
	cJSON_ArrayForEach(o, is)
	{
		if (has_effect(o) && !loom__json_object(was, o->string))
			tell_only(t, "option", o->string, "is new");
	}
}

void loom__rerun_tell(const struct loom__cli *cli, const char *path, const cJSON *now)
{
	struct teller t = {.cli = cli, .path = path};
	struct loom__doc doc;
	if (read_result(cli, path, &doc))
		return;
	const cJSON *a = loom__json_object(doc.root, "gpuloom"), *b = loom__json_object(now, "gpuloom");
	tell_member(&t, "gpuloom's version", a, b, "version");
	tell_member(&t, "gpuloom's revision", a, b, "revision");
	tell_plugins(&t, doc.root, now);
	tell_options(&t, loom__json_object(doc.root, "config"), loom__json_object(now, "config"));
	a = loom__json_object(loom__json_object(doc.root, "environment"), "before");
	b = loom__json_object(loom__json_object(now, "environment"), "before");
	if (!a)
		do_not_know(&t, "the machine");
	for (const char *const *fact = loom__environment_fixed; a && *fact; fact++)
		tell_member(&t, *fact, a, b, *fact);
	if (t.untold.length)
		loom__say_note(cli, "since %s: %s; the file does not tell %s", path,
			       t.said ? "more may have changed" : "no difference in what can be compared",
			       loom__must_text(&t.untold));
	else if (!t.said)
		loom__say_note(cli, "since %s: the same versions, options and machine", path);
	loom__text_free(&t.untold);
	loom__doc_free(&doc);
}
