/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys a configuration, and implements the public calls of gpuloom.h. */
#include <stdlib.h>
#include <string.h>

#include "config/inside.h"

const char *loom__source_name(enum loom_source source)
{
	static const char *const names[] = {"default", "file", "environment", "command line", "api"};
	return (size_t)source < LOOM__COUNT(names) ? names[source] : "unknown";
}

/* ---- gpuloom.h ------------------------------------------------------------------------------ */

int loom_config_create(struct loom_config **cfg, struct loom_error *err)
{
	int rc = loom__borrowed ? loom__borrowed(err) : 0;
	struct loom_config *c = rc ? NULL : calloc(1, sizeof(*c));
	if (!rc && !c)
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!rc)
		*cfg = c;
	return rc;
}

void loom_config_destroy(struct loom_config *cfg)
{
	if (!cfg)
		return;
	while (cfg->blocks) {
		struct loom__block *b = cfg->blocks;
		cfg->blocks = b->next;
		free(b);
	}
	loom__diag_free(&cfg->notes);
	free(cfg);
}

/* Ends a public call. Its caller gets no diag, so all errors become one text in *err, and warnings are kept for
 * loom__config_unknown(). */
static int conclude(struct loom_config *cfg, int code, struct loom__diag *diag, struct loom_error *err)
{
	if (code == LOOM_EINVAL) {
		code = loom__diag_fail(diag, code, err);
	} else if (!code) {
		for (size_t i = 0; i < diag->count; i++)
			loom__diag_add(&cfg->notes, 1, diag->list[i].file, diag->list[i].line, diag->list[i].column,
				       "%s", diag->list[i].text);
	}
	if (code == LOOM_ENOMEM)
		LOOM__FAIL(err, code, "out of memory");
	loom__diag_free(diag);
	return code;
}

int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err)
{
	struct loom__diag diag = {0};
	int code = loom__stack_room(err);
	if (code)
		return code;
	code = loom__config_read(cfg, path, &diag);
	return conclude(cfg, code, &diag, err);
}

int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text, struct loom_error *err)
{
	struct loom__diag diag = {0};
	int code = loom__stack_room(err);
	if (code)
		return code;
	code = loom__config_read_text(cfg, name, text, strlen(text), &diag);
	return conclude(cfg, code, &diag, err);
}

int loom_config_set(struct loom_config *cfg, const char *section, const char *key, const char *value,
		    struct loom_error *err)
{
	struct loom__diag diag = {0};
	const struct loom__entry where = {.source = LOOM_FROM_API, .file = "loom_config_set"};
	int code = loom__config_assign(cfg, &where, loom__slice_of(section), loom__slice_of(key), loom__slice_of(value),
				       &diag);
	return conclude(cfg, code, &diag, err);
}
