/* SPDX-License-Identifier: Apache-2.0 */
/* GPULOOM_SECTION__KEY. A variable's name cannot tell [a.b] from [a_b]: it waits until a declared
 * key has that name. */
#include <string.h>

#include "config/inside.h"

#define PREFIX "GPULOOM_"

/* Variables of that prefix which mean something else. */
static const char *const reserved[] = {PREFIX "PLUGIN_PATH", PREFIX "LOG", PREFIX "LIBRARY", PREFIX "RANK", PREFIX "RANKS", PREFIX "ROOT",
				       PREFIX "TOKEN", PREFIX "TOKEN_FILE"};

static void add_upper(struct loom__text *t, const char *s)
{
	for (; *s; s++) {
		char c = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
		c = c == '.' || c == '-' ? '_' : c;
		loom__text_put(t, &c, 1);
	}
}

/* "GPULOOM_SCHEDULER_MGWS__PUBLIC_QUEUE" for [scheduler.mgws] public_queue. */
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

static void bind_key(struct loom_config *cfg, const char *section, const char *key,
		     struct loom__diag *diag)
{
	struct loom__text name = {0};
	name_variable(&name, section, key);
	if (!loom__text_ok(&name))
		cfg->failed = 1;
	for (struct loom__variable *v = cfg->variables; v && !cfg->failed; v = v->next) {
		if (v->bound || strcmp(v->name, name.at))
			continue;
		struct loom__place place = {.source = LOOM_FROM_ENVIRONMENT, .file = v->name};
		v->bound = 1;
		const char *fault = loom__value_fault((struct loom__slice){v->value, strlen(v->value)});
		if (fault) {
			loom__diag_add(diag, 0, v->name, 0, 0, "%s", fault);
			continue;
		}
		loom__config_add(cfg, &place, (struct loom__slice){section, strlen(section)},
				 (struct loom__slice){key, strlen(key)},
				 (struct loom__slice){v->value, strlen(v->value)}, diag);
	}
	loom__text_free(&name);
}

void loom__config_bind(struct loom_config *cfg, const struct loom__declared *d,
		       struct loom__diag *diag)
{
	if (cfg->variables)
		for (const struct loom_opt *row = d->rows; row->name; row++)
			bind_key(cfg, d->section, row->name, diag);
}

int loom__config_read_environment(struct loom_config *cfg, char *const *environment,
				  struct loom__diag *diag)
{
	size_t before = diag->errors;
	struct loom__variable **tail = &cfg->variables;
	while (*tail)
		tail = &(*tail)->next;
	for (; *environment && !cfg->failed; environment++) {
		const char *name = *environment, *equals = strchr(name, '=');
		if (!equals || strncmp(name, PREFIX, strlen(PREFIX)))
			continue;
		struct loom__slice value = {equals + 1, strlen(equals + 1)};
		struct loom__variable *v = loom__config_alloc(cfg, sizeof(*v));
		if (!v)
			break;
		v->name = loom__config_keep(cfg, name, (size_t)(equals - name));
		value = loom__strip(value);
		v->value = loom__config_keep(cfg, value.at, value.n);
		if (cfg->failed || is_reserved(v->name))
			continue;
		*tail = v;
		tail = &v->next;
	}
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		loom__config_bind(cfg, d, diag);
	return loom__config_verdict(cfg, diag, before);
}

/* Of all names that a variable may have. Other programs have names of that prefix as well, as GPULOOM_HOME of an environment
 * module or GPULOOM_SERVICE_HOST of Kubernetes: only what looks like SECTION__KEY, or like a slip, is worth a word. */
static void report_variable(const struct loom_config *cfg, const struct loom__variable *v, struct loom__diag *diag)
{
	const size_t prefix = strlen(PREFIX);
	struct loom__near near = {.word = v->name + prefix};
	struct loom__text best = {0};
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++) {
			struct loom__text name = {0};
			name_variable(&name, d->section, row->name);
			int nearer = loom__text_ok(&name) && loom__nearer(&near, name.at + prefix);
			loom__text_free(nearer ? &best : &name);
			if (nearer)
				best = name;
		}
	for (size_t i = 0; i < LOOM__COUNT(reserved); i++)
		loom__nearer(&near, reserved[i] + prefix);
	if (near.name || strstr(v->name + prefix, "__"))
		loom__diag_add(diag, 1, v->name, 0, 0, "unknown variable%s%s%s", near.name ? "; did you mean '" PREFIX : "",
			       near.name ? near.name : "", near.name ? "'?" : "");
	loom__text_free(&best);
}

void loom__config_unbound(struct loom_config *cfg, struct loom__diag *diag)
{
	for (const struct loom__variable *v = cfg->variables; v; v = v->next)
		if (!v->bound)
			report_variable(cfg, v, diag);
}
