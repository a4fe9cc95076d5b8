/* SPDX-License-Identifier: Apache-2.0 */
/* Values that come from no file: --set and the API. */
#include <string.h>

#include "config/inside.h"

const char *loom__value_fault(struct loom__slice value)
{
	size_t where;
	if (value.n > LOOM__VALUE_MOST)
		return "the value is too long: at most 4096 bytes";
	return loom__text_fault(value, &where);
}

int loom__config_assign(struct loom_config *cfg, const struct loom__entry *where,
			struct loom__slice section, struct loom__slice key,
			struct loom__slice value, struct loom__diag *diag)
{
	size_t at, before = diag->errors;
	const char *fault = loom__name_fault(section, 1, &at);
	if (!fault)
		fault = loom__name_fault(key, 0, &at);
	if (!fault)
		fault = loom__value_fault(value);
	if (!fault && loom__slice_is(section, "gpuloom") && loom__slice_is(key, "include"))
		fault = "include works in files alone; name another file instead";
	if (fault) {
		loom__diag_add(diag, 0, where->file, where->line, where->value_column, "%s", fault);
		return LOOM_EINVAL;
	}
	struct loom__place place = {.source = where->source,
				    .file = loom__config_keep(cfg, where->file, strlen(where->file)),
				    .line = where->line,
				    .column = where->column,
				    .value_column = where->value_column,
				    .untrusted = where->untrusted};
	loom__config_name_section(cfg, section, &place);
	loom__config_add(cfg, &place, section, key, value, diag);
	return loom__config_verdict(cfg, diag, before);
}

int loom__config_set_at(struct loom_config *cfg, const char *assignment,
			const struct loom__entry *where, struct loom__diag *diag)
{
	const char *equals = strchr(assignment, '=');
	const char *dot = equals ? memrchr(assignment, '.', (size_t)(equals - assignment)) : NULL;
	if (!dot) {
		loom__diag_add(diag, 0, where->file, where->line, where->value_column,
			       "expected section.key=value");
		return LOOM_EINVAL;
	}
	struct loom__slice section = {assignment, (size_t)(dot - assignment)};
	struct loom__slice key = {dot + 1, (size_t)(equals - dot - 1)};
	struct loom__slice value = {equals + 1, strlen(equals + 1)};
	return loom__config_assign(cfg, where, loom__strip(section), loom__strip(key),
				   loom__strip(value), diag);
}

int loom__config_set_text(struct loom_config *cfg, const char *assignment, enum loom_source source,
			  struct loom__diag *diag)
{
	struct loom__text from = {0};
	int code = LOOM_ENOMEM;
	loom__text_add(&from, "%s%.200s", source == LOOM_FROM_COMMAND_LINE ? "--set " : "",
		       assignment);
	if (loom__text_ok(&from))
		code = loom__config_set_at(
		    cfg, assignment, &(struct loom__entry){.source = source, .file = from.at}, diag);
	loom__text_free(&from);
	return code;
}
