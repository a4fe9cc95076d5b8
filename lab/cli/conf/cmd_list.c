/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom list: lists plug-ins. Runs their code only if --probe is given or a file has no manifest. */
#include <gpuloom/gpuloom.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf/conf.h"
#include "cli/conf/named.h"
#include "cli/base/options.h"
#include "plugin/identity.h"
#include "inspect/probe.h"
#include "inspect/candidates.h"
#include "report/text/grid.h"
#include "facts/must.h"

struct request {
	struct loom__words word;
	enum loom_kind kind;
	uint8_t probe, verbose;
	const char *plugin_path;
};

static const struct loom__option options[] = {
    {"probe", NULL, "load each plug-in in its own process, and report failures", LOOM__AT(struct request, probe, BOOL)},
    {"verbose", NULL, "also show versions and files", LOOM__AT(struct request, verbose, BOOL), .letter = 'v'},
    LOOM__OPTION_PLUGIN_PATH(struct request),
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__list_usage = {
    .command = "list",
    .synopsis = "[KIND] [options]\nconfs",
    .about = "Lists every plug-in of the search path, or those of one kind; or the confs shipped with gpuloom, which\n"
	     "`gpuloom run NAME` finds from any folder.\n",
    .notes =
	"Kinds: device, transport, scheduler, termination, sync, barrier, trigger, qos, workload.\n\n"
	"TAKES is what a conf took on two cores of a Xeon, or with an H100 if it needs a GPU; empty: not measured.\n",
    .options = options,
    .examples = "list\tall plug-ins\n"
		"list scheduler\tone kind\n"
		"list confs\tthe confs shipped with gpuloom\n",
    .page = "docs/plugins.md",
    LOOM__REQUEST(struct request, word, run)};

/* A row of the table. */
struct row {
	const struct loom__candidate *candidate;
	struct loom_manifest is;
	int known, probed;
	char fault[sizeof(((struct loom_error *)0)->text)];
	char warning[240];
};

static int check(const struct loom__cli *cli, struct request *r)
{
	if (r->word.n && !(r->kind = loom__take_kind(cli, "list", r->word.at[0])))
		return LOOM_EXIT_USAGE;
	if (r->word.n > 1)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "list: one kind at a time: unexpected argument '%s'",
				    r->word.at[1]);
	return 0;
}

/* Returns `path` relative to the current folder if it is inside that folder, else `path` itself. */
static const char *short_path(const char *path)
{
	char here[PATH_MAX];
	size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;
	return n > 1 && !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path;
}

static void examine(const struct loom__cli *cli, struct row *row)
{
	struct loom__probed probed;
	struct loom_error err;
	row->probed = 1;
	if (loom__plugin_examine(cli->self, row->candidate->path, LOOM__PROBE_MS, &probed, &err)) {
		snprintf(row->fault, sizeof(row->fault), "%s", loom__cause(row->candidate->path, err.text));
		return;
	}
	row->is = probed.identity;
	row->known = 1;
	if (probed.noise[0])
		snprintf(row->warning, sizeof(row->warning), "prints when loaded: %s", probed.noise);
}

static void fill(const struct loom__cli *cli, const struct request *r, const struct loom__candidate *c, struct row *row)
{
	*row = (struct row){.candidate = c, .is = c->manifest, .known = c->has_manifest};
	if (c->fault[0])
		snprintf(row->fault, sizeof(row->fault), "%s", c->fault);
	else if (r->probe || !c->has_manifest)
		examine(cli, row);
}

static int by_kind(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return x->is.kind != y->is.kind ? (int)x->is.kind - (int)y->is.kind : strcmp(x->is.name, y->is.name);
}

static const char *short_name(const struct row *row)
{
	struct loom_plugin p = {.kind = row->is.kind, .name = row->is.name};
	return loom__plugin_short(&p);
}

/* ---- table ---------------------------------------------------------------------------------- */

static void print_table(const struct loom__cli *cli, int verbose, const struct row *row, size_t n)
{
	struct loom__text text = {0};
	struct loom__grid g = {0};
	size_t bad = 0;
	loom__grid_columns(&g, verbose ? "KIND|NAME|VERSION|FILE|SUMMARY" : "KIND|NAME|SUMMARY");
	for (size_t i = 0; i < n; i++) {
		bad += row[i].fault[0] != 0;
		if (row[i].fault[0])
			continue;
		loom__grid_cell(&g, 0, "%s", loom__kind_section(row[i].is.kind));
		loom__grid_cell(&g, 0, "%s", short_name(&row[i]));
		if (verbose) {
			loom__grid_cell(&g, 0, "%s", row[i].is.version);
			loom__grid_cell(&g, 0, "%s", short_path(row[i].candidate->path));
		}
		loom__grid_cell(&g, 0, "%s", row[i].is.summary);
	}
	if (bad < n)
		loom__grid_text(&g, &text, 0);
	loom__grid_free(&g);
	if (bad)
		loom__text_add(&text, "%sCannot be used:\n", bad < n ? "\n" : "");
	for (size_t i = 0; i < n; i++)
		if (row[i].fault[0])
			loom__text_add(&text, "  %s: %s\n", short_path(row[i].candidate->path), row[i].fault);
	loom__put_table(cli, &text);
	loom__text_free(&text);
}

/* Prints the plug-ins that this build left out, of the requested kind or of all kinds. */
static void print_absent(const struct loom__cli *cli, const struct request *r, const struct loom__absent *absent,
			 size_t n)
{
	int any = 0;
	for (size_t i = 0; i < n; i++)
		if (!r->kind || absent[i].kind == r->kind)
			fprintf(cli->out, "%s  %s %s: %s; %s\n", any++ ? "" : "\nLeft out of this build:\n",
				loom__kind_section(absent[i].kind), loom__absent_brief(&absent[i]), absent[i].why,
				absent[i].fix);
}

/* ---- command -------------------------------------------------------------------------------- */

static void list(const struct loom__cli *cli, const struct request *r, struct loom__search *search,
		 struct loom__candidates *all)
{
	struct row *row = loom__must(calloc(all->count + 1, sizeof(*row)));
	struct loom__absent absent[LOOM__ABSENT_MOST];
	size_t n = 0, absents = loom__absent_scan(search, absent, LOOM__ABSENT_MOST);
	for (size_t i = 0; i < all->count; i++) {
		fill(cli, r, &all->list[i], &row[n]);
		/* Faulty files whose kind is not known appear in every listing. */
		if (!r->kind || !row[n].known || row[n].is.kind == r->kind)
			n++;
	}
	/* Control characters are removed here, because paths and folders are only printed from here on. */
	for (size_t i = 0; i < all->count; i++)
		loom__clean(all->list[i].path, strlen(all->list[i].path) + 1);
	for (size_t i = 0; i < search->count; i++)
		loom__clean(search->folder[i], strlen(search->folder[i]) + 1);
	qsort(row, n, sizeof(*row), by_kind);
	for (size_t i = 0; i < n; i++)
		if (row[i].warning[0])
			loom__say_warning(cli, "%s: %s", row[i].candidate->path, row[i].warning);
	print_table(cli, r->verbose, row, n);
	print_absent(cli, r, absent, absents);
	if (!n)
		loom__say_warning(cli,
				  "no plug-ins in %zu folder%s; name one with --plugin-path or "
				  "GPULOOM_PLUGIN_PATH",
				  search->count, search->count == 1 ? "" : "s");
	free(row);
}

static int list_confs(const struct loom__cli *cli, const struct request *r)
{
	struct loom__confs all;
	struct loom__grid g = {0};
	struct loom__text out = {0};
	if (r->word.n > 1 || r->probe || r->plugin_path || r->verbose)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "list confs: unexpected option or argument");
	loom__confs_list(cli, &all);
	loom__grid_columns(&g, "NAME|TAKES|SHOWS");
	for (size_t i = 0; i < all.n; i++) {
		struct loom__text shows = {0}, takes = {0};
		loom__conf_summary(all.at[i].path, &shows, &takes);
		loom__grid_cell(&g, 0, "%s", all.at[i].name);
		loom__grid_cell(&g, 0, "%s", loom__must_text(&takes));
		loom__grid_cell(&g, 0, "%s", loom__must_text(&shows));
		loom__text_free(&shows);
		loom__text_free(&takes);
	}
	if (all.n)
		loom__grid_text(&g, &out, 0);
	else
		loom__say_warning(cli, "no confs are installed with %s", cli->self);
	loom__grid_free(&g);
	loom__put_table(cli, &out);
	loom__text_free(&out);
	loom__confs_free(&all);
	return LOOM_EXIT_OK;
}

static int run(struct loom__cli *cli, void *args)
{
	struct request *r = args;
	if (r->word.n && !strcmp(r->word.at[0], "confs"))
		return list_confs(cli, r);
	struct loom__search search = {0};
	struct loom__candidates all = {0};
	struct loom_error err = {0};
	int status = check(cli, r);
	if (status)
		return status;
	int rc = loom__search_create(r->plugin_path, &search, &err);
	if (!rc)
		rc = loom__candidates_scan(&search, &all, &err);
	if (rc)
		loom__say_error(cli, "%s", err.text);
	else
		list(cli, r, &search, &all);
	loom__candidates_free(&all);
	loom__search_free(&search);
	return rc ? (int)loom__exit_of(rc) : LOOM_EXIT_OK;
}
