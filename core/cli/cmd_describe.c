/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom describe: all that a plug-in says about itself. */
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "plugin/describe.h"
#include "plugin/probe.h"
#include "plugin/registry.h"

struct request {
	struct loom__words word;
	const char *name, *plugin_path;
	uint8_t json, markdown;
};

static const struct loom__option options[] = {
	{"json", NULL, "as JSON", LOOM__AT(struct request, json, BOOL)},
	{"md", NULL, "as Markdown", LOOM__AT(struct request, markdown, BOOL)},
	LOOM__OPTION_PLUGIN_PATH(struct request),
	{0}};

const struct loom__usage loom__describe_usage = {
	.command = "describe",
	.synopsis = "NAME|FILE.so [options]",
	.about = "  gpuloom describe mgws              by its short name, where only one kind has it\n"
		 "  gpuloom describe scheduler.mgws    by its section in the conf (sched_mgws will do, "
		 "too)\n"
		 "  gpuloom describe ./sched_mine.so   a file that is in no plug-in folder\n",
	.options = options,
	.words = offsetof(struct request, word)};

static int parse(const struct loom__cli *cli, int argc, char **argv, struct request *r)
{
	int status = loom__options_read(cli, &loom__describe_usage, argc, argv, r);
	if (status)
		return status;
	if (r->word.n != 1) {
		loom__say_error(cli, "describe: name one plug-in, as in: gpuloom describe NAME "
				     "(gpuloom list shows the names)");
		return LOOM_EXIT_USAGE;
	}
	r->name = r->word.at[0];
	return 0;
}

/* "scheduler.mgws", or "sched.mgws", names its kind: 1 when `name` did, and moves it on. */
static int take_kind(const char **name, enum loom_kind *kind)
{
	size_t n = strcspn(*name, ".");
	for (int k = 1; (*name)[n] && k < LOOM_KINDS; k++) {
		const char *word[] = {loom__kind_section(k), loom__kind_name(k)};
		for (int w = 0; w < 2; w++)
			if (strlen(word[w]) == n && !strncmp(*name, word[w], n)) {
				*name += n + 1;
				*kind = k;
				return 1;
			}
	}
	return 0;
}

/* What a plug-in is called can be told from its file, manifest or not: the loader insists on it. */
struct file_name {
	enum loom_kind kind; /* LOOM_KIND_NONE: not called as a plug-in must be */
	char whole[64];      /* "sched_mgws" */
	const char *brief;   /* "mgws" */
};

static struct file_name *file_names(const struct loom__candidates *all)
{
	struct file_name *name = calloc(all->count + 1, sizeof(*name));
	for (size_t i = 0; name && i < all->count; i++) {
		const char *file = strrchr(all->list[i].path, '/') + 1;
		snprintf(name[i].whole, sizeof(name[i].whole), "%.*s", (int)strcspn(file, "."),
			 file);
		for (int k = 1; k < LOOM_KINDS; k++) {
			size_t n = strlen(loom__kind_name(k));
			if (strncmp(file, loom__kind_name(k), n) || file[n] != '_')
				continue;
			name[i].kind = k;
			name[i].brief = name[i].whole + n + 1;
		}
		if (!strncmp(all->list[i].fault, "hidden by ", 10))
			name[i].kind = LOOM_KIND_NONE;
	}
	return name;
}

static int not_found(const struct file_name *file, size_t n, const char *name,
		     struct loom_error *err)
{
	const char **known = calloc(2 * n + 1, sizeof(*known));
	size_t count = 0;
	for (size_t i = 0; known && i < n; i++)
		if (file[i].kind) {
			known[count++] = file[i].brief;
			known[count++] = file[i].whole;
		}
	const char *nearest = known ? loom__nearest(name, known, count) : NULL;
	int rc = LOOM__FAIL(
		err, LOOM_ENOENT, "no plug-in '%s'%s%s%s; gpuloom list shows what there is", name,
		nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	free(known);
	return rc;
}

/* "mgws" and "sched_mgws" both name sched_mgws.so. */
static int find_among_all(const struct loom__candidates *all, const char *name, char **path,
			  struct loom_error *err)
{
	struct file_name *file = file_names(all);
	struct loom__text choices = {0};
	size_t found = 0, n = 0;
	int rc = 0;
	for (size_t i = 0; file && i < all->count; i++) {
		if (!file[i].kind || (strcmp(file[i].whole, name) && strcmp(file[i].brief, name)))
			continue;
		loom__text_add(&choices, "%s%s.%s", n++ ? ", " : "",
			       loom__kind_section(file[i].kind), file[i].brief);
		found = i;
	}
	if (!file)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	else if (!n)
		rc = not_found(file, all->count, name, err);
	else if (n > 1)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is the name of %zu plug-ins; say which: %s",
				name, n, choices.at ? choices.at : "");
	else if (!(*path = strdup(all->list[found].path)))
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&choices);
	free(file);
	return rc;
}

/* FILE.so without a folder means the one here, and never one in a library path. */
static int find_file(const char *name, char **path, struct loom_error *err)
{
	const struct loom__search nowhere = {0};
	struct loom__text t = {0};
	loom__text_add(&t, "%s%s", strchr(name, '/') ? "" : "./", name);
	int rc = loom__text_ok(&t) ? loom__plugin_find(&nowhere, LOOM_KIND_NONE, t.at, path, err)
				   : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&t);
	return rc;
}

static int find(const struct request *r, char **path, struct loom_error *err)
{
	struct loom__search search;
	struct loom__candidates all = {0};
	enum loom_kind kind = LOOM_KIND_NONE;
	const char *name = r->name;
	size_t n = strlen(name);
	if (strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so")))
		return find_file(name, path, err);
	int rc = loom__search_create(r->plugin_path, &search, err);
	if (rc)
		return rc;
	if (take_kind(&name, &kind))
		rc = loom__plugin_find(&search, kind, name, path, err);
	else if (!(rc = loom__candidates_scan(&search, &all, err)))
		rc = find_among_all(&all, name, path, err);
	if (rc == LOOM_ENOENT && loom__plugin_absent(&search, kind, name, err))
		rc = LOOM_EUNAVAIL;
	loom__candidates_free(&all);
	loom__search_free(&search);
	return rc;
}

static int print(const struct loom__cli *cli, const struct request *r, const struct loom_plugin *p,
		 const char *path)
{
	struct loom__text text = {0};
	int ok;
	if (r->json) {
		char *json = loom__describe_json(p, path);
		ok = json != NULL;
		if (ok)
			fprintf(cli->out, "%s\n", json);
		free(json);
		return ok ? 0 : LOOM_ENOMEM;
	}
	if (r->markdown)
		loom__describe_markdown(p, &text);
	else
		loom__describe_text(p, path, &text);
	ok = loom__text_ok(&text);
	if (ok)
		fputs(text.at, cli->out);
	loom__text_free(&text);
	return ok ? 0 : LOOM_ENOMEM;
}

int loom__cmd_describe(struct loom__cli *cli, int argc, char **argv)
{
	struct request r = {0};
	struct loom_error err = {0};
	struct loom__probed probed;
	const struct loom_plugin *p;
	char *path = NULL;
	int rc = parse(cli, argc, argv, &r);
	if (rc) {
		loom__options_free(&loom__describe_usage, &r);
		return rc < 0 ? LOOM_EXIT_OK : rc;
	}
	rc = find(&r, &path, &err);
	/* In a child first: a constructor that aborts shall be a sentence and not our end. */
	if (!rc)
		rc = loom__plugin_examine(cli->self, path, LOOM__PROBE_MS, &probed, &err);
	if (!rc && probed.noise[0])
		loom__say_warning(cli, "%s: prints when loaded: %s", path, probed.noise);
	if (!rc)
		rc = loom__plugin_load(path, LOOM_KIND_NONE, &p, &err);
	if (rc)
		loom__say_error(cli, "%s", err.text);
	else if ((rc = print(cli, &r, p, path)))
		loom__say_error(cli, "describe: %s", loom_strerror(rc));
	free(path);
	loom__options_free(&loom__describe_usage, &r);
	return rc ? (int)loom__exit_of(rc) : LOOM_EXIT_OK;
}
