/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/schema.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "plugin/describe.h"
#include "stack/plan.h"

#define PROBE_LIMIT_MS 5000

static void core_markdown(struct loom__text *out)
{
	size_t n;
	const struct loom__core_section *section = loom__core_sections(&n);
	for (size_t i = 0; i < n; i++) {
		loom__text_add(out, "### %s\n\n%s\n", section[i].name, section[i].summary);
		loom__describe_rows_markdown(section[i].name, section[i].rows, out);
		loom__text_add(out, "\n");
	}
}

static cJSON *core_json(void)
{
	size_t n;
	const struct loom__core_section *section = loom__core_sections(&n);
	cJSON *all = cJSON_CreateObject();
	for (size_t i = 0; i < n; i++) {
		cJSON *list = cJSON_AddArrayToObject(all, section[i].name);
		for (const struct loom_opt *o = section[i].rows; o->name; o++) {
			cJSON *row = cJSON_CreateObject();
			cJSON_AddStringToObject(row, "name", o->name);
			cJSON_AddStringToObject(row, "default", o->dflt ? o->dflt : "");
			cJSON_AddBoolToObject(row, "required", o->flags & LOOM_OPT_REQUIRED);
			cJSON_AddStringToObject(row, "help", o->help);
			cJSON_AddItemToArray(list, row);
		}
	}
	return all;
}

int loom__print_schema(const struct loom__cli *cli, int json)
{
	struct loom__search search;
	struct loom__candidates found;
	struct loom_error err;
	struct loom__text text = {0};
	if (loom__search_create(NULL, &search, &err)) {
		loom__say_error(cli, "%s", err.text);
		return LOOM_EXIT_USAGE;
	}
	if (loom__candidates_scan(&search, &found, &err)) {
		loom__say_error(cli, "%s", err.text);
		loom__search_free(&search);
		return LOOM_EXIT_FAILURE;
	}
	cJSON *doc = cJSON_CreateObject();
	cJSON_AddStringToObject(doc, "schema", "gpuloom.schema/1");
	cJSON_AddItemToObject(doc, "core", core_json());
	cJSON *plugins = cJSON_AddArrayToObject(doc, "plugins");
	core_markdown(&text);
	for (size_t i = 0; i < found.count; i++) {
		const struct loom__candidate *c = &found.list[i];
		const struct loom_plugin *p;
		if (*c->fault || loom__plugin_probe(cli->self, c->path, PROBE_LIMIT_MS, &err) ||
		    loom__plugin_load(c->path, LOOM_KIND_NONE, &p, &err)) {
			loom__say_warning(cli, "left out: %s", *c->fault ? c->fault : err.text);
			continue;
		}
		loom__describe_markdown(p, &text);
		loom__text_add(&text, "\n");
		char *one = loom__describe_json(p, c->path);
		cJSON_AddItemToArray(plugins, cJSON_Parse(one));
		free(one);
	}
	char *printed = json ? cJSON_Print(doc) : NULL;
	if (json && printed)
		fprintf(cli->out, "%s\n", printed);
	else if (!json && text.at)
		fputs(text.at, cli->out);
	free(printed);
	cJSON_Delete(doc);
	loom__text_free(&text);
	loom__candidates_free(&found);
	loom__search_free(&search);
	return LOOM_EXIT_OK;
}
