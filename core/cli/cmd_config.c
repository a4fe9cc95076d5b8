/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom config: check a conf, show its effective values and where they come from, or the schema. */
#include <stdlib.h>
#include <string.h>

#include "cli/conf.h"
#include "cli/schema.h"

static const char help[] =
	"usage: gpuloom config check CONF... [--set k=v]\n"
	"       gpuloom config show CONF... [--origin] [--as-ini] [--set k=v]\n"
	"       gpuloom config schema [--json]\n\n"
	"check   reads the conf and its plug-ins, says every mistake, runs nothing\n"
	"show    the effective value of every option; --origin adds where each comes from;\n"
	"        --as-ini writes one conf file that gives the same run\n"
	"schema  all options of the core and of every plug-in found\n";

static const char *const options[] = {"--set", "--origin", "--as-ini", "--json", "--help"};

struct show {
	FILE *out;
	int origin, as_ini;
	char section[128];
};

/* A value that iniparser would cut or trim is quoted. */
static int needs_quotes(const char *v)
{
	return *v && (strpbrk(v, ";#") || v[0] == ' ' || v[strlen(v) - 1] == ' ');
}

static int show_one(void *arg, const struct loom__effective *e)
{
	struct show *s = arg;
	const char *shown = e->shown ? e->shown : "";
	const char *q = needs_quotes(shown) ? "\"" : "";
	const char *source = loom__source_name(e->entry ? e->entry->source : LOOM_FROM_DEFAULT);
	if (strcmp(s->section, e->section)) {
		if (s->as_ini)
			fprintf(s->out, "%s[%s]\n", *s->section ? "\n" : "", e->section);
		snprintf(s->section, sizeof(s->section), "%s", e->section);
	}
	if (s->as_ini) {
		if (e->row && e->row->help)
			fprintf(s->out, "; %s\n", e->row->help);
		if (*shown || e->entry)
			fprintf(s->out, "%s = %s%s%s\n", e->key, q, shown, q);
		else
			fprintf(s->out, ";%s =\n", e->key);
		return 0;
	}
	char name[200];
	snprintf(name, sizeof(name), "%s.%s", e->section, e->key);
	if (!s->origin) {
		fprintf(s->out, "%s=%s\n", name, shown);
		return 0;
	}
	fprintf(s->out, "%-36s %-20s %s", name, *shown ? shown : "(empty)", source);
	if (e->entry && e->entry->file)
		fprintf(s->out, e->entry->line ? "  %s:%d" : "  %s", e->entry->file, e->entry->line);
	if (e->entry && e->entry->was) {
		const struct loom__entry *was = e->entry->was;
		fprintf(s->out, was->line ? "  (was %s, %s:%d)" : "  (was %s, %s)", was->value,
			was->file ? was->file : loom__source_name(was->source), was->line);
	}
	fputc('\n', s->out);
	return 0;
}

int loom__cmd_config(struct loom__cli *cli, int argc, char **argv)
{
	struct loom__conf_args conf = {0};
	struct show show = {.out = cli->out};
	int json = 0, status = 0;
	const char *action = argc > 1 ? argv[1] : "";
	if (!strcmp(action, "--help") || !strcmp(action, "-h")) {
		fputs(help, cli->out);
		return LOOM_EXIT_OK;
	}
	int check = !strcmp(action, "check"), schema = !strcmp(action, "schema");
	if (!check && !schema && strcmp(action, "show")) {
		loom__say_error(cli, "config: say check, show or schema: see `gpuloom config --help`");
		return LOOM_EXIT_USAGE;
	}
	for (int i = 2; i < argc && !status;) {
		int used = 1;
		if (!strcmp(argv[i], "--origin"))
			show.origin = 1;
		else if (!strcmp(argv[i], "--as-ini"))
			show.as_ini = 1;
		else if (!strcmp(argv[i], "--json"))
			json = 1;
		else if (!(used = loom__conf_argument(&conf, argc, argv, i)))
			status = loom__bad_option(cli, "config", argv[i], options,
						  LOOM__COUNT(options));
		i += used;
	}
	if (!status && schema) {
		status = loom__print_schema(cli, json);
	} else if (!status && !conf.files) {
		loom__say_error(cli, "config %s: which conf?", action);
		status = LOOM_EXIT_USAGE;
	} else if (!status) {
		struct loom_config *cfg = NULL;
		struct loom__plan plan;
		status = loom__conf_load(cli, &conf, &cfg);
		if (!status)
			status = loom__conf_plan(cli, cfg, &plan);
		if (!status) {
			if (check)
				fprintf(stderr, "%s: ok\n", conf.file[0]);
			else
				loom__config_each(cfg, show_one, &show);
			loom__plan_free(&plan);
		}
		loom_config_destroy(cfg);
	}
	loom__conf_free(&conf);
	return status;
}
