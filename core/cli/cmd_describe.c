/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom describe: all that a plug-in says about itself. */
#include <stdlib.h>
#include <string.h>

#include "cli/named.h"
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
	return loom__is_plugin_file(r->name) ? find_file(r->name, path, err) :
					       loom__plugin_named(r->name, r->plugin_path, path, err);
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
