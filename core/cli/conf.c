/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_LIMIT_MS 10000 /* a loaded machine is slow; a hanging constructor is rare */

/* Prints what is in diag; an exit code. A command that reads a conf several times, once for each variant,
 * says the same only once. */
static int print_mistakes(const struct loom__diag *diag)
{
	static struct loom__text said; /* lines, kept until the process ends */
	struct loom__text text = {0};
	loom__diag_text(diag, &text);
	for (char *line = text.at; line && *line;) {
		size_t n = strcspn(line, "\n") + 1;
		if (!said.at || !memmem(said.at, said.length, line, n)) {
			fwrite(line, 1, n, stderr);
			loom__text_put(&said, line, n);
		}
		line += n;
	}
	loom__text_free(&text);
	return diag->errors ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
}

int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a,
		    struct loom_config **cfg)
{
	struct loom_error err;
	struct loom__diag diag = {0};
	if (loom_config_create(cfg, &err)) {
		loom__say_error(cli, "%s", err.text);
		return LOOM_EXIT_FAILURE;
	}
	for (size_t i = 0; i < a->file.n; i++)
		loom__config_read(*cfg, a->file.at[i], &diag);
	loom__config_read_environment(*cfg, environ, &diag);
	for (size_t i = 0; i < a->set.n; i++)
		loom__config_set_text(*cfg, a->set.at[i], LOOM_FROM_COMMAND_LINE, &diag);
	if (a->samples) {
		char text[64];
		snprintf(text, sizeof(text), "run.samples=%s", a->samples);
		loom__config_set_text(*cfg, text, LOOM_FROM_COMMAND_LINE, &diag);
	}
	int status = print_mistakes(&diag);
	loom__diag_free(&diag);
	if (status) {
		loom_config_destroy(*cfg);
		*cfg = NULL;
	}
	return status;
}

static int probe(void *arg, const char *path, struct loom_error *err)
{
	const struct loom__cli *cli = arg;
	return loom__plugin_probe(cli->self, path, PROBE_LIMIT_MS, err);
}

int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan)
{
	struct loom__diag diag = {0};
	struct loom__prober prober = {probe, (void *)(uintptr_t)cli};
	int rc = loom__plan_create(cfg, &prober, plan, &diag);
	int status = print_mistakes(&diag);
	loom__diag_free(&diag);
	return rc && !status ? LOOM_EXIT_FAILURE : status;
}
