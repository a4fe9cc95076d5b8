/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf/conf.h"
#include "cli/base/files.h"
#include "facts/must.h"
#include "facts/variables.h"
#include "inspect/probe.h"
#include "papers/papers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_LIMIT_MS 10000 /* long enough for a busy machine */

int loom__say_mistakes(struct loom__diag *diag)
{
	static struct loom__text said; /* lines printed so far; never freed */
	struct loom__text text = {0};
	loom__diag_text(diag, &text);
	for (const char *line = loom__must_text(&text); *line;) {
		size_t n = strcspn(line, "\n") + 1;
		if (!said.at || !memmem(said.at, said.length, line, n)) {
			fwrite(line, 1, n, stderr);
			loom__text_put(&said, line, n);
			loom__must_text(&said);
		}
		line += n;
	}
	loom__text_free(&text);
	int status = diag->errors ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
	loom__diag_free(diag);
	return status;
}

/* Ends the command if memory ran out while the conf was read, because later diagnostics would be wrong. */
static void must_config(const struct loom_config *cfg)
{
	if (loom__config_broken(cfg))
		loom__must(NULL);
}

static void set_one(struct loom_config *cfg, const struct loom__setting *s, size_t number, struct loom__diag *diag)
{
	struct loom__text from = {0}, text = {0};
	const char *hash = strchr(s->before, '#');
	loom__text_add(&from, "--%s %.200s", s->option, s->value);
	if (hash)
		loom__text_add(&text, "%.*s%zu%s%s", (int)(hash - s->before), s->before, number, hash + 1, s->value);
	else
		loom__text_add(&text, "%s%s", s->before, s->value);
	struct loom__entry where = {.source = LOOM_FROM_COMMAND_LINE, .file = loom__must_text(&from)};
	loom__config_set_at(cfg, loom__must_text(&text), &where, diag);
	loom__text_free(&from);
	loom__text_free(&text);
}

static void read_named(const struct loom__cli *cli, const char *name, struct loom_config *cfg, struct loom__diag *diag)
{
	struct loom_error err;
	char *path;
	if (loom__conf_named(cli, name, &path, &err))
		loom__diag_add(diag, 0, NULL, 0, 0, "%s", err.text);
	else
		loom__config_read(cfg, path, diag);
	free(path);
}

int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a, struct loom_config **cfg)
{
	struct loom_error err;
	struct loom__diag diag = {0};
	if (loom_config_create(cfg, &err))
		return loom__refuse(cli, LOOM_EXIT_FAILURE, "%s", err.text);
	int status = LOOM_EXIT_OK, rc = 0;
	const char *file;
	for (size_t i = 0; i < a->file.n && !status; i++)
		if (loom__input_kind(a->file.at[i]) == LOOM__INPUT_DOCUMENT) {
			status = loom__result_conf(cli, a->file.at[i], a->trust, *cfg, &diag);
			rc = rc ? rc : loom__file_reads(cli, a->file.at[i], &err);
		} else {
			read_named(cli, a->file.at[i], *cfg, &diag);
		}
	for (size_t i = 0; !rc && (file = loom__config_file(*cfg, i)); i++)
		rc = loom__file_reads(cli, file, &err);
	if (rc && !status)
		status = loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	loom__config_read_environment(*cfg, environ, &diag);
	for (size_t i = 0; i < a->set.n; i++)
		set_one(*cfg, &a->set.at[i], i + 1, &diag);
	must_config(*cfg);
	int mistaken = loom__say_mistakes(&diag);
	status = status ? status : mistaken;
	if (status) {
		loom_config_destroy(*cfg);
		*cfg = NULL;
	}
	return status;
}

/* Callback of struct loom__plan_hooks: probes a plug-in, at most once per command. */
static int probe(void *arg, const char *path, struct loom_error *err)
{
	static struct loom__text sound; /* paths of plug-ins that passed, one per line; never freed */
	const struct loom__cli *cli = arg;
	size_t n = strlen(path);
	for (const char *at = sound.at; at && *at; at = strchr(at, '\n') + 1)
		if (!strncmp(at, path, n) && at[n] == '\n')
			return 0;
	int rc = loom__plugin_examine(cli->self, path, PROBE_LIMIT_MS, NULL, err);
	if (!rc)
		loom__text_add(&sound, "%s\n", path);
	return rc;
}

void loom__conf_sections(void *arg, struct loom_config *cfg, struct loom__diag *diag)
{
	struct loom__sweep_spec spec = {0};
	struct loom__figure figure;
	(void)arg;
	if (!loom__sweep_spec_in(cfg) || !loom__sweep_spec_read(cfg, &spec, diag)) {
		loom__figure_read(cfg, &spec, &figure, diag);
		loom__figure_free(&figure);
	}
	loom__sweep_spec_free(&spec);
}

int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan)
{
	return loom__conf_plan_config(cli, cfg, NULL, NULL, plan);
}

int loom__conf_plan_config(const struct loom__cli *cli, struct loom_config *cfg, const struct loom__sweep_spec *spec,
			   const size_t *pick, struct loom__plan *plan)
{
	struct loom__diag diag = {0};
	struct loom__plan_hooks hooks = {probe, loom__conf_sections, (void *)(uintptr_t)cli};
	if (spec) {
		loom__sweep_spec_overruled(spec, pick, cfg, &diag);
		loom__sweep_spec_apply(spec, pick, cfg, &diag);
	}
	int rc = diag.errors ? LOOM_EINVAL : loom__plan_create(cfg, &hooks, plan, &diag);
	if (!rc && spec) { /* keys of the environment become declared only now, so check a second time */
		loom__sweep_spec_overruled(spec, pick, cfg, &diag);
		rc = diag.errors ? LOOM_EINVAL : 0;
		if (rc)
			loom__plan_free(plan);
	}
	int status = loom__say_mistakes(&diag);
	struct loom_error err;
	if (!rc && !status && loom__files_of_plan(cli, plan, &err)) {
		loom__plan_free(plan);
		return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	}
	if (rc == LOOM_ENOMEM)
		return LOOM_EXIT_FAILURE;
	return rc == LOOM_EUNAVAIL ? LOOM_EXIT_UNAVAILABLE : rc && !status ? LOOM_EXIT_FAILURE : status;
}

int loom__conf_sweep(struct loom_config *cfg, struct loom__sweep_spec *spec)
{
	struct loom__diag diag = {0};
	int rc = loom__sweep_spec_read(cfg, spec, &diag);
	must_config(cfg);
	if (!rc && !spec->factors && loom__sweep_spec_in(cfg)) {
		int line;
		const char *file = loom__config_section_at(cfg, "sweep", &line);
		loom__diag_add(&diag, 0, file, line, 0,
			       "[sweep] varies nothing: give values as in [sweep.scheduler] use = mgws, static, or "
			       "points in [sweep.points]");
		loom__sweep_spec_free(spec);
	}
	int status = loom__say_mistakes(&diag);
	return rc && !status ? LOOM_EXIT_FAILURE : status;
}
