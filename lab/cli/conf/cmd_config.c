/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom config: checks a conf, shows its effective values and their origin, or prints the schema. */
#include <stdlib.h>
#include <string.h>

#include "cli/conf/conf.h"
#include "cli/conf/schema.h"
#include "cli/sweep/sweep.h"
#include "facts/must.h"
#include "facts/text.h"

struct config_args {
	struct loom__conf_args conf; /* the first word is the action */
	uint8_t origin, as_ini, json;
};

static const struct loom__option options[] = {
    LOOM__OPTION_SET(struct config_args),
    LOOM__OPTION_TRUST(struct config_args),
    {"origin", NULL, "show: print the origin of each value", LOOM__AT(struct config_args, origin, BOOL)},
    {"as-ini", NULL, "show: print one conf file that gives the same run", LOOM__AT(struct config_args, as_ini, BOOL)},
    {"json", NULL, "schema: print JSON", LOOM__AT(struct config_args, json, BOOL)},
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__config_usage = {
    .command = "config",
    .synopsis = "check CONF... [options]\nshow CONF... [options]\nschema [options]",
    .about = "  check   read the conf and its plug-ins, report every error, run nothing\n"
	     "  show    print the effective value of every option\n"
	     "  schema  print all options of the core and of every plug-in found\n",
    .options = options,
    .examples = "config check my.ini\tall mistakes at once\n"
		"config show --origin contains\twhere each value comes from\n"
		"config schema\tall options\n",
    .page = "docs/config.md",
    .inputs = 1,
    LOOM__REQUEST(struct config_args, conf.file, run)};

struct show {
	FILE *out;
	int origin, as_ini;
	char section[128];
};

/* Returns the quotes that a value needs in a conf. Without them, reading would trim the value, cut it at a comment
 * character or remove its own quotes. */
static const char *quotes_of(const char *v)
{
	if (!*v || !(strpbrk(v, ";#") || strchr(" \t\"'", v[0]) || strchr(" \t", v[strlen(v) - 1])))
		return "";
	return strchr(v, '"') ? "'" : "\"";
}

static void show_place(FILE *out, const char *before, const char *file, int line)
{
	loom__print(out, "%s%s", before, file);
	if (line)
		fprintf(out, ":%d", line);
}

/* Writes a line of a conf. Keeps tabs, which a value may have. */
static void put_entry(FILE *out, const char *key, const char *quotes, const char *value)
{
	struct loom__text line = {0};
	loom__text_add(&line, "%s = %s%s%s", key, quotes, value, quotes);
	loom__text_clean(&line, 0, "\t");
	fprintf(out, "%s\n", loom__must_text(&line));
	loom__text_free(&line);
}

static int show_one(void *arg, const struct loom__effective *e)
{
	struct show *s = arg;
	const char *shown = e->shown ? e->shown : "";
	const char *q = quotes_of(shown);
	const char *source = loom__source_name(e->entry ? e->entry->source : LOOM_FROM_DEFAULT);
	if (strcmp(s->section, e->section)) {
		if (s->as_ini)
			loom__print(s->out, "%s[%s]\n", *s->section ? "\n" : "", e->section);
		snprintf(s->section, sizeof(s->section), "%s", e->section);
	}
	if (s->as_ini) {
		/* Paths become absolute, because the user may store the printed conf in another folder. */
		if (e->row && (e->row->type == LOOM_OPT_PATH || e->row->flags & (LOOM__OPT_FILES | LOOM__OPT_FOLDERS)))
			shown = e->value;
		q = quotes_of(shown);
		if (e->row && e->row->help)
			loom__print(s->out, "; %s\n", e->row->help);
		if (*shown || e->entry)
			put_entry(s->out, e->key, q, shown);
		else
			fprintf(s->out, ";%s =\n", e->key);
		return 0;
	}
	char name[200];
	snprintf(name, sizeof(name), "%s.%s", e->section, e->key);
	if (!s->origin) {
		loom__print(s->out, "%s=%s\n", name, shown);
		return 0;
	}
	loom__print(s->out, "%-36s %-20s %s", name, *shown ? shown : "(empty)", source);
	if (e->entry && e->entry->file)
		show_place(s->out, "  ", e->entry->file, e->entry->line);
	if (e->entry && e->entry->was) {
		const struct loom__entry *was = e->entry->was;
		loom__print(s->out, "  (was %s", was->value);
		show_place(s->out, ", ", was->file ? was->file : loom__source_name(was->source), was->line);
		fputc(')', s->out);
	}
	fputc('\n', s->out);
	return 0;
}

/* Writes all values as a conf, which the caller frees. Some values from --set do not fit into a line of a conf, for
 * example values with both kinds of quotes. Such values are errors. */
static int as_ini(const struct loom_config *cfg, char **ini, struct loom__diag *diag)
{
	struct loom_config *again = NULL;
	size_t n;
	struct show show = {.out = loom__must(open_memstream(ini, &n)), .as_ini = 1};
	loom__config_each(cfg, show_one, &show);
	fclose(show.out);
	loom_config_create(&again, NULL);
	int rc = loom__config_read_text(loom__must(again), "this conf", loom__must(*ini), n, diag);
	loom_config_destroy(again);
	return rc;
}

static int put_ini(const struct loom__cli *cli, const struct loom_config *cfg)
{
	struct loom__diag diag = {0};
	char *ini;
	int rc = as_ini(cfg, &ini, &diag);
	if (rc && diag.count) {
		const char *line = ini;
		for (int i = 1; i < diag.list[0].line && strchr(line, '\n'); i++)
			line = strchr(line, '\n') + 1;
		loom__say_error(cli, "config show: no conf can hold '%.60s...': %s", line, diag.list[0].text);
	}
	if (!rc)
		fputs(ini, cli->out);
	free(ini);
	loom__diag_free(&diag);
	return rc ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
}

/* Makes the plan of the conf without its sweep. If this plan is invalid, makes the plan of the first configuration of
 * the sweep. */
static int plan_shown(const struct loom__cli *cli, const struct config_args *a, const struct loom__sweep_spec *spec,
		      struct loom_config **cfg, struct loom__plan *plan)
{
	static const struct loom__plan_hooks unprobed = {.sections = loom__conf_sections};
	struct loom__diag unsaid = {0};
	size_t *first = loom__must(calloc(spec->factors + 1, sizeof(*first)));
	int status = loom__conf_load(cli, &a->conf, cfg);
	if (!status && spec->factors && loom__plan_create(*cfg, &unprobed, plan, &unsaid)) {
		loom_config_destroy(*cfg);
		status = loom__conf_load(cli, &a->conf, cfg);
		if (!status)
			status = loom__conf_plan_config(cli, *cfg, spec, first, plan);
	} else if (!status && !spec->factors) {
		status = loom__conf_plan(cli, *cfg, plan);
	}
	loom__diag_free(&unsaid);
	free(first);
	return status;
}

static int show_conf(const struct loom__cli *cli, const struct config_args *a, int check)
{
	struct show show = {.out = cli->out, .origin = a->origin};
	struct loom_config *cfg = NULL;
	struct loom__sweep_spec spec = {0};
	struct loom__plan plan;
	int status = loom__conf_load(cli, &a->conf, &cfg);
	if (!status)
		status = loom__conf_sweep(cfg, &spec);
	if (!status && spec.factors)
		status = loom__sweep_check(cli, &a->conf, &spec);
	if (!status && check) {
		if (!spec.factors && !(status = loom__conf_plan(cli, cfg, &plan)))
			loom__plan_free(&plan);
		if (!status)
			loom__print(stderr, "%s: ok\n", a->conf.file.at[0]);
	} else if (!status) {
		struct loom_config *shown = NULL;
		status = plan_shown(cli, a, &spec, &shown, &plan);
		if (!status) {
			if (a->as_ini)
				status = put_ini(cli, shown);
			else
				loom__config_each(shown, show_one, &show);
			loom__plan_free(&plan);
		}
		loom_config_destroy(shown);
	}
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
	return status;
}

static int run(struct loom__cli *cli, void *args)
{
	struct config_args *a = args, rest = *a;
	const char *action = a->conf.file.n ? a->conf.file.at[0] : "";
	int check = !strcmp(action, "check");
	if (!strcmp(action, "schema"))
		return loom__print_schema(cli, a->json);
	if (!check && strcmp(action, "show"))
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "config: expected check, show or schema: see `gpuloom config --help`");
	rest.conf.file.at++;
	if (--rest.conf.file.n)
		return show_conf(cli, &rest, check);
	return loom__refuse(cli, LOOM_EXIT_USAGE, "config %s: no conf given", action);
}
