/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the form GPULOOM_SECTION__KEY. The sections [a.b] and [a_b] have the same variables, so a variable
 * becomes an entry only when a section with its key is declared. */
#include "facts/variables.h"

#include <string.h>

#include "config/inside.h"

#define PREFIX "GPULOOM_"

/* Variables that have the prefix but set no option. */
static const char *const reserved[] = {PREFIX "PLUGIN_PATH", PREFIX "LIBRARY"};

static void add_upper(struct loom__text *t, const char *s)
{
	for (; *s; s++) {
		char c = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
		c = c == '.' || c == '-' ? '_' : c;
		loom__text_put(t, &c, 1);
	}
}

/* Appends "GPULOOM_SCHEDULER_MGWS__PUBLIC_QUEUE" for [scheduler.mgws] public_queue. */
static void name_variable(struct loom__text *t, const char *section, const char *key)
{
	loom__text_put(t, PREFIX, strlen(PREFIX));
	add_upper(t, section);
	loom__text_put(t, "__", 2);
	add_upper(t, key);
}

static int is_reserved(const char *name)
{
	for (size_t i = 0; i < LOOM__COUNT(reserved); i++)
		if (!strcmp(name, reserved[i]))
			return 1;
	return 0;
}

static void bind_key(struct loom_config *cfg, const char *section, const char *key, struct loom__diag *diag)
{
	struct loom__text name = {0};
	name_variable(&name, section, key);
	if (!loom__text_ok(&name))
		cfg->failed = 1;
	for (struct loom__entry *v = cfg->variables; v && !cfg->failed; v = v->next) {
		if (v->done || strcmp(v->file, name.at))
			continue;
		const struct loom__entry where = {.source = LOOM_FROM_ENVIRONMENT, .file = v->file};
		v->done = 1;
		const char *fault = loom__value_fault(loom__slice_of(v->value));
		if (fault)
			loom__diag_add(diag, 0, v->file, 0, 0, "%s", fault);
		else
			loom__config_add(cfg, &where, loom__slice_of(section), loom__slice_of(key),
					 loom__slice_of(v->value), diag);
	}
	loom__text_free(&name);
}

static void report_variable(const struct loom_config *cfg, const struct loom__entry *v, struct loom__diag *diag);

/* The member `bind` of struct loom_config. */
static void bind_rows(struct loom_config *cfg, const char *section, const struct loom_opt *rows, struct loom__diag *diag)
{
	for (const struct loom__entry *v = !section && !rows ? cfg->variables : NULL; v; v = v->next)
		if (!v->done)
			report_variable(cfg, v, diag);
	for (const struct loom_opt *row = rows; cfg->variables && row && row->name; row++) {
		bind_key(cfg, section, row->name, diag);
		if (row->section)
			bind_key(cfg, row->section, row->name, diag);
	}
}

int loom__config_read_environment(struct loom_config *cfg, char *const *environment, struct loom__diag *diag)
{
	size_t before = diag->errors;
	struct loom__entry **tail = &cfg->variables;
	while (*tail)
		tail = &(*tail)->next;
	for (; *environment && !cfg->failed; environment++) {
		const char *name = *environment, *equals = strchr(name, '=');
		if (!equals || strncmp(name, PREFIX, strlen(PREFIX)))
			continue;
		struct loom__slice value = loom__strip(loom__slice_of(equals + 1));
		struct loom__entry *v = loom__config_alloc(cfg, sizeof(*v));
		if (!v)
			break;
		v->file = loom__config_keep(cfg, name, (size_t)(equals - name));
		v->value = loom__config_keep(cfg, value.at, value.n);
		if (cfg->failed || is_reserved(v->file))
			continue;
		*tail = v;
		tail = &v->next;
	}
	cfg->bind = bind_rows;
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		bind_rows(cfg, d->section, d->rows, diag);
	return loom__config_verdict(cfg, diag, before);
}

/* Other programs have variables with the prefix, such as GPULOOM_HOME of an environment module or GPULOOM_SERVICE_HOST
 * of Kubernetes. So the function reports a name only if it contains "__", or is close to the name of an option. */
static void report_variable(const struct loom_config *cfg, const struct loom__entry *v, struct loom__diag *diag)
{
	const size_t prefix = strlen(PREFIX);
	struct loom__near near = {.word = v->file + prefix};
	struct loom__text best = {0};
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++) {
			struct loom__text name = {0};
			name_variable(&name, row->section ? row->section : d->section, row->name);
			int nearer = loom__text_ok(&name) && loom__nearer(&near, name.at + prefix);
			loom__text_free(nearer ? &best : &name);
			if (nearer)
				best = name;
		}
	for (size_t i = 0; i < LOOM__COUNT(reserved); i++)
		loom__nearer(&near, reserved[i] + prefix);
	if (near.name || strstr(v->file + prefix, "__"))
		loom__diag_add(diag, 1, v->file, 0, 0, "unknown variable%s%s%s",
			       near.name ? "; did you mean '" PREFIX : "", near.name ? near.name : "",
			       near.name ? "'?" : "");
	loom__text_free(&best);
}
