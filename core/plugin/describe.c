/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/describe.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/identity.h"

/* ---- the parts that all forms share --------------------------------------------------------- */

static const struct {
	const char *name, *syntax;
} types[] = {{"none", ""},
#define TYPE_ROW(name, type, text) {#name, text},
	     LOOM_OPT_MAP(TYPE_ROW)
#undef TYPE_ROW
};

static void type_name(const struct loom_opt *o, char out[8])
{
	const char *name = types[o->type].name;
	size_t i = 0;
	for (; i < 7 && name[i]; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	out[i] = 0;
}

/* A bound in the largest unit that needs no fraction: 65536 bytes are 64KiB. */
static void add_bound(struct loom__text *t, const struct loom_opt *o, double value)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
		     {"s", 1e9},       {"ms", 1e6},      {"us", 1e3},      {"ns", 1}};
	size_t from = o->type == LOOM_OPT_SIZE ? 0 : 4, n = from + 4;
	if (o->type == LOOM_OPT_SHARE) {
		loom__text_add(t, "%.12g%%", value * 100);
		return;
	}
	for (size_t i = from; value > 0 && i < n; i++)
		if (o->type == LOOM_OPT_SIZE || o->type == LOOM_OPT_TIME) {
			double count = value / units[i].factor;
			if (count < 1e15 && count == (double)(long long)count) {
				loom__text_add(t, "%.0f%s", count, units[i].name);
				return;
			}
		}
	loom__text_add(t, "%.15g", value);
}

/* "1..256", "a|b", or nothing. `bar` stands between choices. */
static void add_allowed(struct loom__text *t, const struct loom_opt *o, const char *bar)
{
	for (size_t i = 0; o->type == LOOM_OPT_ENUM && o->choices && o->choices[i]; i++) {
		loom__text_add(t, "%s", i ? bar : "");
		loom__text_clean(t, o->choices[i]);
	}
	/* The checks leave an enumeration no other bounds. */
	if (o->type == LOOM_OPT_ENUM || (o->min == 0 && o->max == 0))
		return;
	add_bound(t, o, o->min);
	/* What no field can hold is no bound. */
	if (o->max >= 9e18) {
		loom__text_add(t, " or more");
	} else {
		loom__text_add(t, "..");
		add_bound(t, o, o->max);
	}
}

/* Devices and workloads are chosen in [run], policies in a section of their kind. */
static void add_use(struct loom__text *t, const struct loom_plugin *p)
{
	if (p->kind == LOOM_DEVICE || p->kind == LOOM_WORKLOAD)
		loom__text_add(t, "[run]\n%s = ", p->kind == LOOM_DEVICE ? "devices" : "workload");
	else
		loom__text_add(t, "[%s]\nuse = ", loom__kind_section(p->kind));
	loom__text_clean(t, loom__plugin_short(p));
	loom__text_add(t, "\n");
}

static const char *gpu_source(const struct loom_plugin *p)
{
	return LOOM_HAS(p->dev, source_end) && p->dev->source && LOOM_HAS(p->dev, source_name)
		       ? p->dev->source_name
		       : NULL;
}

static int has_cpu_code(const struct loom_plugin *p)
{
	return LOOM_HAS(p->dev, cpu);
}

static const char *where_it_runs(const struct loom_plugin *p)
{
	return has_cpu_code(p) && gpu_source(p) ? "CPU and GPU"
	       : has_cpu_code(p)                ? "CPU only"
	       : gpu_source(p)                  ? "GPU only"
						: "the host only";
}

static int has_options(const struct loom_plugin *p)
{
	return p->opts && p->opts[0].name;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Words of `text`, broken before column 96, every line behind `indent` blanks. */
static void add_wrapped(struct loom__text *t, const char *text, int indent)
{
	size_t column = 0;
	while (*text) {
		size_t n = strcspn(text, " ");
		if (column && column + 1 + n > (size_t)(96 - indent)) {
			loom__text_add(t, "\n");
			column = 0;
		}
		loom__text_add(t, "%*s%.*s", column ? 1 : indent, "", (int)n, text);
		column += n + (column ? 1 : 0);
		text += n + strspn(text + n, " ");
	}
	loom__text_add(t, "\n");
}

static void add_option_text(struct loom__text *t, const struct loom_opt *o)
{
	struct loom__text help = {0}, allowed = {0};
	add_allowed(&allowed, o, "|");
	loom__text_add(t, "  %s = ", o->name);
	loom__text_clean(t, o->dflt && o->dflt[0] ? o->dflt : o->dflt ? "\"\"" : "...");
	loom__text_add(t, "%s%s\n      ", o->flags & LOOM_OPT_REQUIRED ? "  (required)" : "",
		       o->flags & LOOM_OPT_DEPRECATED ? "  (deprecated)" : "");
	loom__text_add(t, "%s", o->type == LOOM_OPT_ENUM ? "one of " : types[o->type].syntax);
	if (allowed.at && allowed.at[0])
		loom__text_add(t, "%s%s", o->type == LOOM_OPT_ENUM ? "" : "; ", allowed.at);
	loom__text_add(t, "\n");
	loom__text_clean(&help, o->help);
	if (help.at && help.at[0])
		add_wrapped(t, help.at, 6);
	loom__text_free(&help);
	loom__text_free(&allowed);
}

static void add_field(struct loom__text *t, const char *what, const char *value)
{
	loom__text_add(t, "  %-9s ", what);
	loom__text_clean(t, value);
	loom__text_add(t, "\n");
}

void loom__describe_text(const struct loom_plugin *p, const char *path, struct loom__text *out)
{
	const char *section = loom__kind_section(p->kind), *name = loom__plugin_short(p);
	loom__text_add(out, "%s.", section);
	loom__text_clean(out, name);
	loom__text_add(out, " ");
	loom__text_clean(out, p->version);
	loom__text_add(out, "\n  ");
	loom__text_clean(out, p->summary);
	loom__text_add(out, "\n\n");
	add_field(out, "kind", section);
	add_field(out, "licence", p->license);
	loom__text_add(out, "  %-9s %u.%u, %s interface %u, for gpuloom ABI %u.%u or later\n",
		       "ABI", (unsigned)LOOM_ABI_MAJOR(p->abi), (unsigned)LOOM_ABI_MINOR(p->abi),
		       section, p->kind_abi, (unsigned)LOOM_ABI_MAJOR(p->min_host_abi),
		       (unsigned)LOOM_ABI_MINOR(p->min_host_abi));
	add_field(out, "file", path);
	add_field(out, "runs on", where_it_runs(p));
	if (gpu_source(p))
		add_field(out, "source", gpu_source(p));
	if (has_options(p)) {
		loom__text_add(out, "\nOptions, with their defaults:\n");
		for (const struct loom_opt *o = p->opts; o && o->name; o++)
			add_option_text(out, o);
	} else {
		loom__text_add(out, "\nIt has no options.\n");
	}
	loom__text_add(out, "\nTo use it:\n\n");
	add_use(out, p);
	if (has_options(p)) {
		loom__text_add(out, "[%s.%s]\n", section, name);
		for (const struct loom_opt *o = p->opts; o && o->name; o++)
			if (!(o->flags & LOOM_OPT_DEPRECATED)) {
				int empty = o->dflt && !o->dflt[0];
				loom__text_add(out, "%s%s =%s", empty ? ";" : "", o->name,
					       empty ? "" : " ");
				loom__text_clean(out, o->dflt ? o->dflt : "...");
				loom__text_add(out, "\n");
			}
	}
}

/* ---- Markdown ------------------------------------------------------------------------------- */

/* Text for a table cell: what would end the cell or be taken for a tag is escaped. */
static void add_cell(struct loom__text *t, const char *text)
{
	struct loom__text clean = {0};
	loom__text_clean(&clean, text);
	for (const char *c = clean.at; c && *c; c++) {
		if (*c == '|')
			loom__text_add(t, "\\|");
		else if (*c == '<')
			loom__text_add(t, "&lt;");
		else
			loom__text_put(t, c, 1);
	}
	loom__text_free(&clean);
}

static void add_option_row(struct loom__text *t, const struct loom_opt *o)
{
	struct loom__text allowed = {0};
	add_allowed(&allowed, o, ", ");
	loom__text_add(t, "| `%s` | ", o->name);
	add_cell(t, o->type == LOOM_OPT_ENUM ? "choice" : types[o->type].syntax);
	loom__text_add(t, " | ");
	if (o->flags & LOOM_OPT_REQUIRED) {
		loom__text_add(t, "required");
	} else if (o->dflt && o->dflt[0]) {
		loom__text_add(t, "`");
		add_cell(t, o->dflt);
		loom__text_add(t, "`");
	}
	loom__text_add(t, " | ");
	add_cell(t, allowed.at);
	loom__text_add(t, " | %s", o->flags & LOOM_OPT_DEPRECATED ? "Deprecated. " : "");
	add_cell(t, o->help);
	loom__text_add(t, " |\n");
	loom__text_free(&allowed);
}

void loom__describe_rows_markdown(const char *section, const struct loom_opt *rows,
				  struct loom__text *out)
{
	loom__text_add(out, "\n| option of `[%s]` | type | default | allowed | meaning |\n", section);
	loom__text_add(out, "|---|---|---|---|---|\n");
	for (; rows && rows->name; rows++)
		add_option_row(out, rows);
}

void loom__describe_markdown(const struct loom_plugin *p, struct loom__text *out)
{
	loom__text_add(out, "### %s.", loom__kind_section(p->kind));
	loom__text_clean(out, loom__plugin_short(p));
	loom__text_add(out, "\n\n");
	add_cell(out, p->summary);
	loom__text_add(out, "\n\nFile `%s.so`, version ", p->name);
	loom__text_clean(out, p->version);
	loom__text_add(out, ", licence ");
	loom__text_clean(out, p->license);
	loom__text_add(out, "; runs on %s.\n\n```ini\n", where_it_runs(p));
	add_use(out, p);
	loom__text_add(out, "```\n");
	if (!has_options(p)) {
		loom__text_add(out, "\nIt has no options.\n");
		return;
	}
	char section[120];
	snprintf(section, sizeof(section), "%s.%s", loom__kind_section(p->kind), loom__plugin_short(p));
	loom__describe_rows_markdown(section, p->opts, out);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put(cJSON *object, const char *key, const char *text)
{
	struct loom__text clean = {0};
	loom__text_clean(&clean, text);
	if (text)
		cJSON_AddStringToObject(object, key, clean.at ? clean.at : "");
	else
		cJSON_AddNullToObject(object, key);
	loom__text_free(&clean);
}

static void put_abi(cJSON *object, const char *key, uint32_t abi)
{
	struct loom__text t = {0};
	loom__text_add(&t, "%u.%u", (unsigned)LOOM_ABI_MAJOR(abi), (unsigned)LOOM_ABI_MINOR(abi));
	put(object, key, t.at);
	loom__text_free(&t);
}

static cJSON *option_json(const struct loom_opt *o)
{
	cJSON *j = cJSON_CreateObject();
	char type[8];
	type_name(o, type);
	put(j, "name", o->name);
	put(j, "type", type);
	put(j, "syntax", types[o->type].syntax);
	put(j, "default", o->dflt);
	cJSON_AddBoolToObject(j, "required", o->flags & LOOM_OPT_REQUIRED);
	cJSON_AddBoolToObject(j, "deprecated", o->flags & LOOM_OPT_DEPRECATED);
	if (o->type == LOOM_OPT_ENUM && o->choices) {
		cJSON *choices = cJSON_AddArrayToObject(j, "choices");
		for (size_t i = 0; o->choices[i]; i++)
			cJSON_AddItemToArray(choices, cJSON_CreateString(o->choices[i]));
	} else if (o->min != 0 || o->max != 0) {
		cJSON_AddNumberToObject(j, "min", o->min);
		cJSON_AddNumberToObject(j, "max", o->max);
	}
	put(j, "help", o->help);
	return j;
}

static void put_device_code(cJSON *object, const struct loom_plugin *p)
{
	cJSON *code = cJSON_AddObjectToObject(object, "device_code");
	cJSON_AddBoolToObject(code, "cpu", has_cpu_code(p));
	put(code, "gpu_source", gpu_source(p));
}

static void put_conf(cJSON *object, const struct loom_plugin *p)
{
	struct loom__text t = {0};
	cJSON *conf = cJSON_AddObjectToObject(object, "conf");
	loom__text_add(&t, "%s.%s", loom__kind_section(p->kind), loom__plugin_short(p));
	put(conf, "section", t.at);
	loom__text_free(&t);
	int in_run = p->kind == LOOM_DEVICE || p->kind == LOOM_WORKLOAD;
	put(conf, "select_section", in_run ? "run" : loom__kind_section(p->kind));
	put(conf, "select_key", p->kind == LOOM_DEVICE ? "devices" : in_run ? "workload" : "use");
	put(conf, "select_value", loom__plugin_short(p));
}

char *loom__describe_json(const struct loom_plugin *p, const char *path)
{
	cJSON *j = cJSON_CreateObject();
	put(j, "schema", "gpuloom.plugin/1");
	put(j, "name", p->name);
	put(j, "kind", loom__kind_section(p->kind));
	put(j, "short", loom__plugin_short(p));
	put(j, "version", p->version);
	put(j, "license", p->license);
	put(j, "summary", p->summary);
	put(j, "path", path);
	put_abi(j, "abi", p->abi);
	put_abi(j, "min_host_abi", p->min_host_abi);
	cJSON_AddNumberToObject(j, "kind_abi", p->kind_abi);
	put_device_code(j, p);
	put_conf(j, p);
	cJSON *options = cJSON_AddArrayToObject(j, "options");
	for (const struct loom_opt *o = p->opts; o && o->name; o++)
		cJSON_AddItemToArray(options, option_json(o));
	char *text = cJSON_Print(j);
	cJSON_Delete(j);
	return text;
}
