/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom doctor: prints what this machine can run, what it cannot run, and how to fix the latter. */
#include <gpuloom/gpuloom.h>
#include <stdlib.h>
#include <string.h>

#include "cli/conf/conf.h"
#include "cli/doctor/doctor.h"
#include "plugin/identity.h"
#include "inspect/candidates.h"

/* Long, because the first use of a device or a fabric may be slow. */
enum { LIMIT_MS = 20000 };

struct request {
	struct loom__words word;
	const char *plugin_path, *profile;
	struct loom__conf_args conf;
};

static const struct loom__option options[] = {
    LOOM__OPTION_PLUGIN_PATH(struct request),
    {"profile", "DEVICES",
     "instead measure memory costs of the first of these devices, as in 'cuda:0' or 'cuda:0 cuda:1', and print them as "
     "a conf for simulated devices; the others are its peers",
     LOOM__AT(struct request, profile, STR)},
    {"set", "SECTION.KEY=VALUE", "with --profile: set one option, as in device.cuda.workers=132; may be repeated",
     .sets = "", LOOM__AT(struct request, conf.set, NONE)},
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__doctor_usage = {
    .command = "doctor",
    .synopsis = "[options]\n--profile DEVICES [--set SECTION.KEY=VALUE]...",
    .about = "Checks which devices, networks and other mechanisms this machine has, and how to enable the rest.\n"
	     "ok: usable; limited: usable with restrictions; no: not usable here. The exit status is 0, whatever the\n"
	     "findings.\n",
    .options = options,
    .examples = "doctor\twhat this machine can run\n"
		"doctor --profile cuda:0\tmemory costs, as a conf of simulated GPUs\n",
    .page = "docs/gpu.md",
    LOOM__REQUEST(struct request, word, run)};

static void take_row(void *arg, const char *topic, const char *state, const char *found, const char *fix)
{
	FILE *out = arg;
	int known = !strcmp(state, "ok") || !strcmp(state, "limited") || !strcmp(state, "no");
	if (!known)
		state = "no";
	fprintf(out, "%-24s %-8s %s\n", topic, state, found);
	if (fix[0])
		fprintf(out, "%-24s %-8s to fix: %s\n", "", "", fix);
	fflush(out);
}

static void ask(const struct loom__cli *cli, const char *question, const char *path, const char *topic)
{
	struct loom_error err;
	if (loom__ask_rows(cli->self, question, path, LIMIT_MS, take_row, cli->out, &err)) {
		loom__clean(err.text, sizeof(err.text));
		take_row(cli->out, topic, "no", err.text, "see `gpuloom list --probe` for what else cannot be used");
	}
}

static void plugin_rows(const struct loom__cli *cli, const struct loom__candidates *all, size_t folders)
{
	char found[120];
	size_t faulty = 0;
	for (size_t i = 0; i < all->count; i++)
		faulty += all->list[i].fault[0] != 0;
	if (folders)
		snprintf(found, sizeof(found), "%zu in %zu folder%s, and %zu that cannot be used", all->count - faulty,
			 folders, folders == 1 ? "" : "s", faulty);
	else
		snprintf(found, sizeof(found), "no folder of plug-ins was found");
	take_row(cli->out, "plug-ins",
		 all->count == faulty ? "no"
		 : faulty             ? "limited"
				      : "ok",
		 found,
		 all->count == 0 ? "name their folder with --plugin-path or GPULOOM_PLUGIN_PATH"
		 : faulty        ? "`gpuloom list` shows which and why"
				 : "");
	/* The kind of a file without a manifest is only known after loading the file, so such files are also asked for
	 * rows. */
	for (size_t i = 0; i < all->count; i++) {
		const struct loom__candidate *c = &all->list[i];
		if (c->fault[0] || (c->has_manifest && c->manifest.kind != LOOM_DEVICE))
			continue;
		ask(cli, "doctor", c->path, c->has_manifest ? c->manifest.name : "plug-in");
	}
}

static void absent_rows(FILE *out, const struct loom__search *search)
{
	struct loom__absent absent[LOOM__ABSENT_MOST];
	size_t n = loom__absent_scan(search, absent, LOOM__ABSENT_MOST);
	for (size_t i = 0; i < n; i++) {
		char found[300];
		snprintf(found, sizeof(found), "left out when gpuloom was built: %s", absent[i].why);
		take_row(out, absent[i].name, "no", found, absent[i].fix);
	}
}

static int examine(const struct loom__cli *cli, const struct loom__search *search, struct loom_error *err)
{
	struct loom__candidates all;
	int rc = loom__candidates_scan(search, &all, err);
	if (rc)
		return rc;
	loom__kernel_rows(take_row, cli->out);
	loom__processor_rows(take_row, cli->out);
	loom__memory_rows(take_row, cli->out);
	ask(cli, "fabric", "libfabric.so.1", "libfabric");
	plugin_rows(cli, &all, search->count);
	absent_rows(cli->out, search);
	loom__candidates_free(&all);
	return 0;
}

static int run(struct loom__cli *cli, void *args)
{
	const struct request *r = args;
	struct loom__search search = {0};
	struct loom_error err = {0};
	if (r->word.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "doctor: unexpected argument '%s'", r->word.at[0]);
	if (!r->profile && r->conf.set.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "doctor: --set requires --profile");
	if (r->profile)
		return loom__profile(cli, r->profile, r->plugin_path, &r->conf.set);
	int rc = loom__search_create(r->plugin_path, &search, &err);
	if (!rc)
		rc = examine(cli, &search, &err);
	if (rc)
		loom__say_error(cli, "%s", err.text);
	loom__search_free(&search);
	return rc ? (int)loom__exit_of(rc) : LOOM_EXIT_OK;
}
