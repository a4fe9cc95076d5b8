/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "facts/environment.h"
#include "facts/must.h"
#include "report/document.h"

int loom__is_result(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (!strcasecmp(dot, ".json") || !strcasecmp(dot, ".jsonl"));
}

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
};

static void tell(struct teller *t, const char *what, const cJSON *was, const cJSON *is)
{
	struct loom__text a = {0}, b = {0};
	if (!was || cJSON_Compare(was, is, 1))
		return;
	loom__environment_text(was, &a);
	loom__environment_text(is, &b);
	loom__say_note(t->cli, "since %s: %s was %.200s, is %.200s", t->path, what, loom__must_text(&a),
		       loom__must_text(&b));
	t->said++;
	loom__text_free(&a);
	loom__text_free(&b);
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

static void tell_plugins(struct teller *t, const cJSON *was, const cJSON *is)
{
	static const char *const key[] = {"version", "build_id"};
	const cJSON *p;
	cJSON_ArrayForEach(p, loom__json_list(was, "plugins"))
	{
		const cJSON *now = plugin_of(is, loom__json_text(p, "name"));
		for (size_t i = 0; now && i < LOOM__COUNT(key); i++) {
			struct loom__text what = {0};
			loom__text_add(&what, "the %s of %s", key[i], loom__json_text(p, "name"));
			tell(t, loom__must_text(&what), cJSON_GetObjectItemCaseSensitive(p, key[i]),
			     cJSON_GetObjectItemCaseSensitive(now, key[i]));
			loom__text_free(&what);
		}
	}
}

void loom__rerun_tell(const struct loom__cli *cli, const char *path, const cJSON *now)
{
	static const char *const version[] = {"version", "revision"};
	struct teller t = {cli, path, 0};
	struct loom__doc doc;
	const cJSON *o;
	if (read_result(cli, path, &doc))
		return;
	const cJSON *a = loom__json_object(doc.root, "gpuloom"), *b = loom__json_object(now, "gpuloom");
	for (size_t i = 0; i < LOOM__COUNT(version); i++) {
		struct loom__text what = {0};
		loom__text_add(&what, "gpuloom's %s", version[i]);
		tell(&t, loom__must_text(&what), cJSON_GetObjectItemCaseSensitive(a, version[i]),
		     cJSON_GetObjectItemCaseSensitive(b, version[i]));
		loom__text_free(&what);
	}
	tell_plugins(&t, doc.root, now);
	cJSON_ArrayForEach(o, loom__json_object(doc.root, "config"))
	{
		const cJSON *is = loom__json_object(loom__json_object(now, "config"), o->string);
		tell(&t, o->string, cJSON_GetObjectItemCaseSensitive(o, "value"),
		     cJSON_GetObjectItemCaseSensitive(is, "value"));
	}
	a = loom__json_object(loom__json_object(doc.root, "environment"), "before");
	b = loom__json_object(loom__json_object(now, "environment"), "before");
	for (const char *const *fact = loom__environment_fixed; *fact; fact++)
		tell(&t, *fact, cJSON_GetObjectItemCaseSensitive(a, *fact), cJSON_GetObjectItemCaseSensitive(b, *fact));
	if (!t.said)
		loom__say_note(cli, "since %s: the same versions, options and machine", path);
	loom__doc_free(&doc);
}
