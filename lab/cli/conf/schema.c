/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf/schema.h"

#include "base/json.h"
#include <stdlib.h>
#include <string.h>

#include "inspect/candidates.h"
#include "inspect/describe.h"
#include "inspect/probe.h"
#include "sweep/spec.h"
#include "facts/must.h"

const struct loom__core_section *loom__sections(size_t *n)
{
	static struct loom__core_section all[16];
	const struct loom__core_section *core = loom__core_sections(n);
	memcpy(all, core, *n * sizeof(*all));
	all[(*n)++] = (struct loom__core_section){
	    "sweep", loom__sweep_rows,
	    "many configurations in one run; the varied options are in `[sweep.SECTION]` and `[sweep.points]` "
	    "([sweeps](sweeps.md))"};
	return all;
}

static void core_markdown(struct loom__text *out)
{
	size_t n;
	const struct loom__core_section *section = loom__sections(&n);
	for (size_t i = 0; i < n; i++) {
		loom__text_add(out, "### %s\n\n%s\n", section[i].name, section[i].summary);
		loom__describe_rows_markdown(section[i].name, section[i].rows, NULL, out);
		loom__text_add(out, "\n");
	}
}

static cJSON *core_json(void)
{
	size_t n;
	const struct loom__core_section *section = loom__sections(&n);
	cJSON *all = cJSON_CreateObject();
	for (size_t i = 0; i < n; i++) {
		cJSON *list = loom__json_add_array(all, section[i].name);
		for (const struct loom_opt *o = section[i].rows; o->name; o++)
			loom__json_append(list, loom__describe_row_json(o));
	}
	return all;
}

enum { SHARED_MOST = 16, SHARED_ROWS = 65 };
struct shared {
	const char *section[SHARED_MOST];
	struct loom_opt rows[SHARED_MOST][SHARED_ROWS];
	struct loom__text by[SHARED_MOST]; /* names of the plug-ins that have options in the section */
	const char *kind[SHARED_MOST];
	size_t n;
};

static size_t shared_section(struct shared *s, const char *section)
{
	size_t i = 0;
	while (i < s->n && strcmp(s->section[i], section))
		i++;
	if (i == s->n && i < SHARED_MOST)
		s->section[s->n++] = section;
	return i;
}

/* Adds the shared options of p, each once. Warns if two plug-ins declare the same option differently. */
static void add_shared(const struct loom__cli *cli, struct shared *s, const struct loom_plugin *p)
{
	const char *last = NULL;
	for (const struct loom_opt *o = p->opts; o && o->name; o++) {
		size_t i = o->section ? shared_section(s, o->section) : SHARED_MOST, k = 0;
		if (i == SHARED_MOST)
			continue;
		while (s->rows[i][k].name && strcmp(s->rows[i][k].name, o->name))
			k++;
		if (s->rows[i][k].name && !loom__rows_same(&s->rows[i][k], o))
			loom__say_warning(cli, "%s declares the shared option '%s' of [%s] in another way", p->name,
					  o->name, o->section);
		else if (k + 1 < SHARED_ROWS)
			s->rows[i][k] = *o;
		s->kind[i] = loom__kind_section(p->kind);
		if (!last || strcmp(last, o->section))
			loom__text_add(&s->by[i], "%s%s", s->by[i].length ? ", " : "", loom__plugin_short(p));
		last = o->section;
	}
}

static void shared_markdown(const struct shared *s, struct loom__text *out)
{
	for (size_t i = 0; i < s->n; i++) {
		loom__text_add(out,
			       "### Options of `[%s]` that plug-ins share\n\n"
			       "%s have them. `[%s.NAME]`, the section of a plug-in, overrides `[%s]`.\n",
			       s->section[i], s->by[i].at, s->kind[i], s->section[i]);
		loom__describe_rows_markdown(s->section[i], s->rows[i], s->section[i], out);
		loom__text_add(out, "\n");
	}
}

int loom__print_schema(const struct loom__cli *cli, int json)
{
	struct loom__search search;
	struct loom__candidates found;
	struct loom_error err;
	struct loom__text text = {0}, own = {0};
	struct shared shared = {0};
	if (loom__search_create(NULL, &search, &err))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	if (loom__candidates_scan(&search, &found, &err)) {
		loom__say_error(cli, "%s", err.text);
		loom__search_free(&search);
		return LOOM_EXIT_FAILURE;
	}
	cJSON *doc = cJSON_CreateObject();
	loom__json_add_text(doc, "schema", "gpuloom.schema/1");
	loom__json_add(doc, "core", core_json());
	cJSON *plugins = loom__json_add_array(doc, "plugins");
	core_markdown(&text);
	for (size_t i = 0; i < found.count; i++) {
		const struct loom__candidate *c = &found.list[i];
		const struct loom_plugin *p;
		if (*c->fault || loom__plugin_examine(cli->self, c->path, LOOM__PROBE_MS, NULL, &err) ||
		    loom__plugin_load(c->path, LOOM_KIND_NONE, &p, &err)) {
			loom__say_warning(cli, "left out: %s", *c->fault ? c->fault : err.text);
			continue;
		}
		add_shared(cli, &shared, p);
		loom__describe_markdown(p, &own);
		loom__text_add(&own, "\n");
		char *one = loom__describe_json(p, c->path, 0);
		loom__json_append(plugins, cJSON_Parse(one));
		free(one);
	}
	shared_markdown(&shared, &text);
	if (!json) {
		fputs(loom__must_text(&text), cli->out);
		fputs(loom__must_text(&own), cli->out);
		cJSON_Delete(doc);
	} else {
		loom__print_json(cli, doc);
	}
	loom__text_free(&text);
	loom__text_free(&own);
	for (size_t i = 0; i < shared.n; i++)
		loom__text_free(&shared.by[i]);
	loom__candidates_free(&found);
	loom__search_free(&search);
	return LOOM_EXIT_OK;
}
