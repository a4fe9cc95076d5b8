/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "plugin/registry.h"

int loom__settings_create(const struct loom__trial *t, struct loom__settings *s)
{
	size_t bytes = t->plugin->opts_size + 8;
	*s = (struct loom__settings){.opts = calloc(1, bytes)};
	if (!s->opts)
		return LOOM_ENOMEM;
	memcpy(s->opts, t->opts, t->plugin->opts_size);
	loom__text_add(&s->text, "%s", t->opts_text);
	return 0;
}

void loom__settings_free(struct loom__settings *s)
{
	free(s->opts);
	loom__text_free(&s->text);
	s->opts = NULL;
}

const struct loom_opt *loom__row(const struct loom_plugin *p, const char *name)
{
	for (const struct loom_opt *row = p->opts; row && row->name; row++)
		if (!strcmp(row->name, name))
			return row;
	return NULL;
}

static int is_text(const struct loom_opt *row)
{
	return row->type == LOOM_OPT_STR || row->type == LOOM_OPT_PATH || row->type == LOOM_OPT_CPUS;
}

int loom__settings_put(const struct loom__trial *t, struct loom__settings *s, const struct loom_opt *row,
		       const char *text)
{
	struct loom_error err;
	(void)t;
	char *copy = strdup(text); /* Never freed, because plug-ins may keep the pointer until destroy(). */
	int code = copy ? loom__value_parse(row, copy, (char *)s->opts + row->offset, &err) : LOOM_ENOMEM;
	if (code || !is_text(row))
		free(copy);
	if (!code)
		loom__text_add(&s->text, "%s%s = %s", s->text.length ? ", " : "", row->name, text);
	return code;
}

int loom__settings_name(const struct loom__trial *t, struct loom__settings *s, const char *name, const char *text)
{
	const struct loom_opt *row = loom__row(t->plugin, name);
	return row ? loom__settings_put(t, s, row, text) : LOOM_ENOENT;
}

/* Writes a number in the syntax of the row's type. */
static void write_value(const struct loom_opt *row, double v, char *text, size_t room)
{
	if (row->type == LOOM_OPT_TIME)
		snprintf(text, room, "%.0fns", v);
	else if (row->type == LOOM_OPT_F64 || row->type == LOOM_OPT_SHARE)
		snprintf(text, room, "%.9g", v);
	else
		snprintf(text, room, "%.0f", v);
}

/* Returns the bounds of a row, or else those of its type. */
static void bounds(const struct loom_opt *row, double *min, double *max)
{
	*min = (double)row->min + row->from; /* one of the two is 0 */
	*max = (double)row->max + row->to;
	if (*min != 0 || *max != 0)
		return;
	switch (row->type) {
	case LOOM_OPT_SHARE:
		*max = 1;
		break;
	case LOOM_OPT_U32:
		*max = UINT32_MAX;
		break;
	case LOOM_OPT_I64:
		*min = -9007199254740992.0;
		*max = 9007199254740992.0;
		break;
	case LOOM_OPT_F64:
		*min = -1e9;
		*max = 1e9;
		break;
	default:
		*max = 9007199254740992.0; /* exact as a double */
	}
}

int loom__row_edge(const struct loom_opt *row, unsigned n, char *text, size_t room)
{
	double min, max;
	switch (row->type) {
	case LOOM_OPT_BOOL:
		snprintf(text, room, "%s", n ? "yes" : "no");
		return n < 2;
	case LOOM_OPT_ENUM:
		for (unsigned i = 0; i <= n; i++)
			if (!row->choices[i])
				return 0;
		snprintf(text, room, "%s", row->choices[n]);
		return 1;
	case LOOM_OPT_STR:
	case LOOM_OPT_PATH:
		snprintf(text, room, "%s", n == 0 ? "" : n == 1 ? "no such thing" : "%s%n\"\\");
		return n < 3 && !(row->flags & LOOM_OPT_REQUIRED && n == 0);
	case LOOM_OPT_CPUS:
		snprintf(text, room, "%s", n ? "8191" : "");
		return n < 2;
	}
	bounds(row, &min, &max);
	double at[] = {min, max, min + 1, max - 1};
	if (n >= LOOM__COUNT(at) || at[n] < min || at[n] > max)
		return 0;
	if ((row->type == LOOM_OPT_SHARE || row->type == LOOM_OPT_F64) && n > 1)
		return 0;
	write_value(row, at[n], text, room);
	return 1;
}

int loom__row_random(const struct loom_opt *row, struct loom__chance *chance, char *text, size_t room)
{
	double min, max, v;
	unsigned n = 0;
	if (is_text(row))
		return 0;
	if (row->type == LOOM_OPT_BOOL || row->type == LOOM_OPT_ENUM) {
		while (loom__row_edge(row, n, text, room))
			n++;
		return loom__row_edge(row, (unsigned)loom__draw_below(chance, n), text, room);
	}
	if (loom__one_in(chance, 4))
		return loom__row_edge(row, (unsigned)loom__draw_below(chance, 2), text, room);
	bounds(row, &min, &max);
	double share = (double)(loom__draw(chance) >> 11) * 0x1p-53;
	/* Nearly uniform in magnitude, and often a power of two, which queues need. */
	if (row->type == LOOM_OPT_SHARE || row->type == LOOM_OPT_F64)
		v = min + share * (max - min);
	else
		v = min + floor(exp2(share * log2(max - min + 1))) - 1;
	if (row->type == LOOM_OPT_U32 && loom__one_in(chance, 2))
		v = exp2(floor(log2(v < 1 ? 1 : v)));
	v = v < min ? min : v > max ? max : v;
	write_value(row, v, text, room);
	return 1;
}

void loom__settings_random(const struct loom__trial *t, struct loom__settings *s, struct loom__chance *chance)
{
	for (const struct loom_opt *row = t->plugin->opts; row && row->name; row++) {
		char text[64];
		if (!loom__one_in(chance, 3) && !(row->flags & LOOM_OPT_DEPRECATED) &&
		    loom__row_random(row, chance, text, sizeof(text)))
			loom__settings_put(t, s, row, text);
	}
}

/* Passes "option=value" to the config as "kind.name.option=value". */
static void put_set(struct loom_config *cfg, const char *section, const char *set, struct loom__diag *diag)
{
	struct loom__text text = {0};
	loom__text_add(&text, "--set %s.%s", section, set);
	if (loom__text_ok(&text))
		loom__config_set_at(cfg, text.at + strlen("--set "),
				    &(struct loom__entry){.source = LOOM_FROM_COMMAND_LINE, .file = text.at}, diag);
	loom__text_free(&text);
}

/* The config sections of a plug-in. `first`: of the first device, if the plug-in is for devices. */
struct sections {
	char own[80], first[96];
};
static struct sections sections_of(const struct loom_plugin *p)
{
	struct sections s;
	snprintf(s.own, sizeof(s.own), "%s.%s", loom__kind_section(p->kind), loom__plugin_short(p));
	snprintf(s.first, sizeof(s.first), "%s.0", s.own);
	return s;
}

static void declare(struct loom_config *cfg, const struct sections *s, const struct loom_plugin *p)
{
	loom__config_declare(cfg, s->own, p->opts, "");
	if (p->kind == LOOM_DEVICE)
		loom__config_declare(cfg, s->first, p->opts, "");
}

/* Frees the mistakes. Returns 0, or LOOM_EINVAL with the first one and `advice`. */
static int first_mistake(struct loom__diag *diag, const char *advice, struct loom_error *err)
{
	int code = 0;
	if (diag->errors) {
		struct loom__text text = {0};
		loom__diag_text(diag, &text);
		if (text.at)
			text.at[strcspn(text.at, "\n")] = 0;
		code = LOOM__FAIL(err, LOOM_EINVAL, "%s%s", text.at ? text.at : "bad options", advice);
		loom__text_free(&text);
	}
	loom__diag_free(diag);
	return code;
}

int loom__validate_set(const struct loom_plugin *p, const char *const *set, size_t n, struct loom_error *err)
{
	struct loom__diag diag = {0};
	struct loom_config *cfg;
	struct sections s = sections_of(p);
	int code = loom_config_create(&cfg, err);
	if (code)
		return code;
	declare(cfg, &s, p);
	for (size_t i = 0; i < n; i++)
		put_set(cfg, s.own, set[i], &diag);
	loom__config_check(cfg, s.own, p->opts, &diag);
	loom__config_unknown(cfg, &diag);
	code = first_mistake(&diag, " (--set takes OPTION=VALUE of the plug-in)", err);
	loom_config_destroy(cfg);
	return code;
}

int loom__settings_fill(struct loom__trial *t, struct loom_error *err)
{
	struct loom__diag diag = {0};
	const struct loom_plugin *p = t->plugin;
	struct sections s = sections_of(p);
	const char *sections[] = {s.own, s.first};
	int code = loom_config_create(&t->cfg, err);
	if (code)
		return code;
	t->opts = calloc(1, p->opts_size + 8);
	if (!t->opts)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (t->with)
		loom__config_read(t->cfg, t->with, &diag);
	for (size_t i = 0; i < t->sets; i++)
		put_set(t->cfg, s.own, t->set[i], &diag);
	declare(t->cfg, &s, p);
	loom__config_fill(t->cfg, sections, p->kind == LOOM_DEVICE ? 2 : 1, p->opts, t->opts, p->opts_size, &diag);
	return first_mistake(&diag, " (give its options with --set OPTION=VALUE, or a conf with --with)", err);
}
