/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom describe: prints everything that a plug-in declares about itself. */
#include <stdlib.h>
#include <string.h>

#include "cli/conf/conf.h"
#include "cli/conf/named.h"
#include "cli/base/options.h"
#include "inspect/describe.h"
#include "inspect/probe.h"
#include "plugin/identity.h"
#include "plugin/registry.h"
#include "facts/must.h"

struct request {
	struct loom__words word;
	const char *name, *plugin_path;
	uint8_t json;
};

static const struct loom__option options[] = {
    {"json", NULL, "as JSON", LOOM__AT(struct request, json, BOOL)}, LOOM__OPTION_PLUGIN_PATH(struct request), {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__describe_usage = {
    .command = "describe",
    .synopsis = "NAME|FILE.so [options]",
    .about = "Prints what a plug-in does, its options with their defaults, and its metrics.\n",
    .examples = "describe mgws\tby its short name, where only one kind has it\n"
		"describe scheduler.mgws\tby its section in the conf\n"
		"describe ./sched_mine.so\ta file that is in no plug-in folder\n",
    .options = options,
    .page = "docs/plugins.md",
    LOOM__REQUEST(struct request, word, run)};

static void print(const struct loom__cli *cli, const struct request *r, const struct loom_plugin *p, const char *path)
{
	struct loom__text text = {0};
	int by_path = loom__is_plugin_file(r->name);
	if (r->json) {
		char *json = loom__describe_json(p, path, by_path);
		fprintf(cli->out, "%s\n", json);
		free(json);
		return;
	}
	loom__describe_text(p, path, by_path, &text);
	fputs(loom__must_text(&text), cli->out);
	loom__text_free(&text);
	char *ready = NULL;
	if (p->kind == LOOM_WORKLOAD && !by_path &&
	    !loom__conf_named(cli, loom__plugin_short(p), &ready, &(struct loom_error){0}))
		fprintf(cli->out, "\nA ready conf of it: gpuloom run %s\n", loom__plugin_short(p));
	free(ready);
}

static int run(struct loom__cli *cli, void *args)
{
	struct request *r = args;
	struct loom_error err = {0};
	struct loom__probed probed;
	const struct loom_plugin *p;
	char *path = NULL;
	if (r->word.n != 1)
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "describe: name one plug-in, as in: gpuloom describe NAME "
				    "(gpuloom list shows the names)");
	r->name = r->word.at[0];
	int rc = loom__plugin_named(r->name, r->plugin_path, &path, &err);
	/* A child process loads the plug-in first, so that an abort in a constructor becomes an error message. */
	if (!rc)
		rc = loom__plugin_examine(cli->self, path, LOOM__PROBE_MS, &probed, &err);
	if (!rc && probed.noise[0])
		loom__say_warning(cli, "%s: prints when loaded: %s", path, probed.noise);
	if (!rc)
		rc = loom__plugin_load(path, LOOM_KIND_NONE, &p, &err);
	if (rc)
		loom__say_error(cli, "%s", err.text);
	else
		print(cli, r, p, path);
	free(path);
	return rc ? (int)loom__exit_of(rc) : LOOM_EXIT_OK;
}
