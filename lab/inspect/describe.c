/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/describe.h"

#include "base/json.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "plugin/identity.h"
#include "stack/plan.h"
#include "facts/must.h"
#include "facts/text.h"

/* ---- parts shared by all formats ------------------------------------------------------------- */

static const struct {
	const char *name, *syntax;
} types[] = {{"none", ""},
#define TYPE_ROW(name, type, text) {#name, text},
	     LOOM_OPT_MAP(TYPE_ROW)
#undef TYPE_ROW
};

#define add(t, ...) loom__line_add(t, __VA_ARGS__)

static void type_name(const struct loom_opt *o, char out[8])
{
	size_t i = 0;
	for (const char *c = types[o->type].name; *c && i < 7; c++)
		out[i++] = (char)tolower((unsigned char)*c);
	out[i] = 0;
}

/* Appends the allowed values: "1..256", "a|b", or nothing. `bar` separates choices. */
static void add_allowed(struct loom__text *t, const struct loom_opt *o, const char *bar)
{
	for (size_t i = 0; o->type == LOOM_OPT_ENUM && o->choices && o->choices[i]; i++)
		add(t, "%s%s", i ? bar : "", o->choices[i]);
	/* An enumeration has no bounds. */
	union loom__value min, max;
	if (o->type == LOOM_OPT_ENUM || !loom__value_bounds(o, &min, &max))
		return;
	loom__value_amount(o, &min, t);
	/* A maximum this large is the limit of the type, and not a bound of the option. */
	if (o->max >= INT64_MAX) {
		loom__text_add(t, " or more");
	} else {
		loom__text_add(t, "..");
		loom__value_amount(o, &max, t);
	}
}

/* Appends the lines of a conf that select the plug-in. Devices and workloads are selected in [run], policies in the
 * section of their kind. */
static void add_use(struct loom__text *t, const struct loom_plugin *p, const char *name)
{
	int in_run = p->kind == LOOM_DEVICE || p->kind == LOOM_WORKLOAD;
	add(t, "[%s]\n%s = %s\n", in_run ? "run" : loom__kind_section(p->kind),
	    p->kind == LOOM_DEVICE ? "devices" : in_run ? "workload" : "use", name);
}

static const char *gpu_source(const struct loom_plugin *p)
{
	return LOOM_HAS(p->dev, source_end) && p->dev->source && LOOM_HAS(p->dev, source_name)
		       ? p->dev->source_name
		       : NULL;
}

static const char *where_it_runs(const struct loom_plugin *p)
{
	int cpu = LOOM_HAS(p->dev, cpu), gpu = gpu_source(p) != NULL;
	return cpu && gpu ? "CPU and GPU" : cpu ? "CPU only" : gpu ? "GPU only" : "the host only";
}

static int is_of(const struct loom_opt *o, const char *section)
{
	return section ? o->section && !strcmp(o->section, section) : !o->section;
}

/* Lists the sections that the plug-in's options belong to, each once. NULL stands for the plug-in's own section; the
 * others are shared with other plug-ins. Returns the number of entries. */
static size_t sections_of(const struct loom_plugin *p, const char *section[8])
{
	size_t n = 0;
	for (const struct loom_opt *o = p->opts; o && o->name; o++) {
		size_t i = 0;
		while (i < n && !is_of(o, section[i]))
			i++;
		if (i == n && n < 8)
			section[n++] = o->section;
	}
	return n;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Appends `text`, wrapped before column 96 and indented by `indent` blanks. */
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
	add(t, "  %s = %s%s%s\n      %s", o->name, o->dflt && o->dflt[0] ? o->dflt : o->dflt ? "\"\"" : "...",
	    o->flags & LOOM_OPT_REQUIRED ? "  (required)" : "",
	    o->flags & LOOM_OPT_DEPRECATED ? "  (deprecated)" : "",
	    o->type == LOOM_OPT_ENUM ? "one of " : types[o->type].syntax);
	if (o->flags & LOOM_OPT_AUTO)
		loom__text_add(t, ", or auto");
	if (allowed.at && allowed.at[0])
		loom__text_add(t, "%s%s", o->type == LOOM_OPT_ENUM ? "" : "; ", allowed.at);
	loom__text_add(t, "\n");
	add(&help, "%s", o->help);
	if (help.at && help.at[0])
		add_wrapped(t, help.at, 6);
	loom__text_free(&help);
	loom__text_free(&allowed);
}

/* Appends the options of one section with their defaults, as lines of a conf. */
static void add_rows(struct loom__text *t, const struct loom_plugin *p, const char *section)
{
	for (const struct loom_opt *o = p->opts; o->name; o++)
		if (is_of(o, section) && !(o->flags & LOOM_OPT_DEPRECATED)) {
			int empty = o->dflt && !o->dflt[0];
			const char *value = o->dflt ? o->dflt : "...    ; required";
			add(t, "%s%s =%s%s\n", empty ? ";" : "", o->name, empty ? "" : " ", value);
		}
}

/* Plug-ins for the kinds that a workload needs. */
static const char *const usual[LOOM_KINDS] = {
    [LOOM_TRANSPORT] = "host", [LOOM_SCHED] = "mgws",  [LOOM_TERM] = "counter",  [LOOM_SYNC] = "poll",
    [LOOM_BARRIER] = "auto",   [LOOM_TRIGGER] = "peer", [LOOM_QOS] = "monolithic"};

void loom__describe_text(const struct loom_plugin *p, const char *path, int by_path, struct loom__text *out)
{
	const char *section = loom__kind_section(p->kind), *name = loom__plugin_short(p);
	add(out, "%s.%s %s\n  %s\n\n  kind      %s\n  licence   %s\n  ABI       %u\n  file      %s\n  runs on   %s\n",
	    section, name, p->version, p->summary, section, p->license, (unsigned)p->abi, path, where_it_runs(p));
	if (gpu_source(p))
		add(out, "  source    %s\n", gpu_source(p));
	const char *of[8];
	size_t n = sections_of(p, of);
	if (!n)
		loom__text_add(out, "\nIt has no options.\n");
	for (size_t i = 0; i < n; i++) {
		add(out, of[i] ? "\nOptions of [%s], which it shares with other plug-ins, with their defaults:\n" :
		    "\nOptions, with their defaults:\n", of[i]);
		for (const struct loom_opt *o = p->opts; o && o->name; o++)
			if (is_of(o, of[i]))
				add_option_text(out, o);
	}
	add(out, p->kind == LOOM_WORKLOAD ? "\nA conf that runs it:\n\n" : "\nTo use it:\n\n");
	add_use(out, p, by_path ? path : name);
	if (p->kind == LOOM_WORKLOAD)
		add(out, "devices = cpu:0%s\n", loom__plan_needs(p) >> LOOM_SYNC & 1 ? " cpu:1" : "");
	/* add_use() has begun the section of the kind, so its options come first. */
	for (size_t i = 0; i < n; i++)
		if (of[i] && !strcmp(of[i], section))
			add_rows(out, p, of[i]);
	for (size_t i = 0; i < n; i++)
		if (!of[i] || strcmp(of[i], section)) {
			add(out, of[i] ? "[%s]\n" : "[%s.%s]\n", of[i] ? of[i] : section, name);
			add_rows(out, p, of[i]);
		}
	for (int k = 0; p->kind == LOOM_WORKLOAD && k < LOOM_KINDS; k++)
		if (loom__plan_needs(p) >> k & 1)
			add(out, "[%s]\nuse = %s\n", loom__kind_section(k), usual[k]);
}

/* ---- Markdown ------------------------------------------------------------------------------- */

/* Appends text of a table cell. Escapes characters that would end the cell or start a tag. */
static void put_cell(struct loom__text *t, const char *text, size_t most)
{
	struct loom__text plain = {0};
	loom__put_line(&plain, text, most);
	for (const char *c = plain.at; c && *c; c++)
		loom__text_add(t, *c == '|' ? "\\|" : *c == '<' ? "&lt;" : "%c", *c);
	loom__text_free(&plain);
}

#define add_cells(t, ...) loom__text_with(t, put_cell, __VA_ARGS__)

void loom__describe_rows_markdown(const char *section, const struct loom_opt *rows, const char *shared,
				  struct loom__text *out)
{
	loom__text_add(out,
		       "\n| option of `[%s]` | type | default | allowed | meaning |\n|---|---|---|---|---|\n", section);
	for (const struct loom_opt *o = rows; o && o->name; o++) {
		struct loom__text allowed = {0};
		if (!is_of(o, shared))
			continue;
		int required = o->flags & LOOM_OPT_REQUIRED, given = !required && o->dflt && o->dflt[0];
		const char *quote = given ? "`" : "";
		add_allowed(&allowed, o, ", ");
		add_cells(out, "| `%s` | %s%s | %s%s%s | %s | %s%s |\n", o->name,
			  o->type == LOOM_OPT_ENUM ? "choice" : types[o->type].syntax,
			  o->flags & LOOM_OPT_AUTO ? ", or auto" : "", quote,
			  required ? "required" : given ? o->dflt : "", quote, loom__must_text(&allowed),
			  o->flags & LOOM_OPT_DEPRECATED ? "Deprecated. " : "", o->help);
		loom__text_free(&allowed);
	}
}

void loom__describe_markdown(const struct loom_plugin *p, struct loom__text *out)
{
	const char *kind = loom__kind_section(p->kind), *name = loom__plugin_short(p);
	char section[120];
	add(out, "### %s.%s\n\n", kind, name);
	add_cells(out, "%s", p->summary);
	add(out, "\n\nFile `%s.so`, version %s, licence %s; runs on %s.\n\n```ini\n", p->name, p->version, p->license,
	    where_it_runs(p));
	add_use(out, p, name);
	loom__text_add(out, "```\n");
	const char *of[8];
	size_t n = sections_of(p, of);
	if (!n)
		loom__text_add(out, "\nIt has no options.\n");
	snprintf(section, sizeof(section), "%s.%s", kind, name);
	for (size_t i = 0; i < n; i++)
		if (!of[i])
			loom__describe_rows_markdown(section, p->opts, NULL, out);
	for (size_t i = 0; i < n; i++)
		if (of[i])
			add(out, "\nIt has the shared options of `[%s]`%s.\n", of[i], n > 1 ? ", too" : "");
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put(cJSON *object, const char *key, const char *text)
{
	struct loom__text shown = {0};
	if (text) {
		add(&shown, "%s", text);
		loom__json_add_text(object, key, loom__must_text(&shown));
	} else {
		loom__json_add_null(object, key);
	}
	loom__text_free(&shown);
}

cJSON *loom__describe_row_json(const struct loom_opt *o)
{
	cJSON *j = cJSON_CreateObject();
	char type[8];
	type_name(o, type);
	put(j, "name", o->name);
	put(j, "type", type);
	put(j, "syntax", types[o->type].syntax);
	put(j, "default", o->dflt);
	loom__json_add_bool(j, "required", o->flags & LOOM_OPT_REQUIRED);
	loom__json_add_bool(j, "auto", o->flags & LOOM_OPT_AUTO);
	loom__json_add_bool(j, "deprecated", o->flags & LOOM_OPT_DEPRECATED);
	loom__json_add_bool(j, "trust", o->flags & (LOOM_OPT_TRUST | LOOM__OPT_FILE | LOOM__OPT_FILES | LOOM__OPT_FOLDERS));
	if (o->type == LOOM_OPT_ENUM && o->choices) {
		cJSON *choices = loom__json_add_array(j, "choices");
		for (size_t i = 0; o->choices[i]; i++)
			loom__json_append_text(choices, o->choices[i]);
	} else if (o->min || o->max || o->from != 0 || o->to != 0) {
		int real = o->type == LOOM_OPT_F64 || o->type == LOOM_OPT_SHARE;
		loom__json_add_number(j, "min", real ? o->from : (double)o->min);
		loom__json_add_number(j, "max", real ? o->to : (double)o->max);
	}
	if (o->section)
		put(j, "section", o->section);
	put(j, "help", o->help);
	return j;
}

static void put_device_code(cJSON *object, const struct loom_plugin *p)
{
	cJSON *code = loom__json_add_object(object, "device_code");
	loom__json_add_bool(code, "cpu", LOOM_HAS(p->dev, cpu));
	put(code, "gpu_source", gpu_source(p));
}

static void put_conf(cJSON *object, const struct loom_plugin *p, const char *name)
{
	struct loom__text t = {0};
	cJSON *conf = loom__json_add_object(object, "conf");
	loom__text_add(&t, "%s.%s", loom__kind_section(p->kind), loom__plugin_short(p));
	put(conf, "section", loom__must_text(&t));
	loom__text_free(&t);
	int in_run = p->kind == LOOM_DEVICE || p->kind == LOOM_WORKLOAD;
	put(conf, "select_section", in_run ? "run" : loom__kind_section(p->kind));
	put(conf, "select_key", p->kind == LOOM_DEVICE ? "devices" : in_run ? "workload" : "use");
	put(conf, "select_value", name);
}

char *loom__describe_json(const struct loom_plugin *p, const char *path, int by_path)
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
	loom__json_add_number(j, "abi", p->abi);
	put_device_code(j, p);
	put_conf(j, p, by_path ? path : loom__plugin_short(p));
	cJSON *options = loom__json_add_array(j, "options");
	for (const struct loom_opt *o = p->opts; o && o->name; o++)
		loom__json_append(options, loom__describe_row_json(o));
	char *text = loom__json_print(j, 1);
	cJSON_Delete(j);
	return text;
}
