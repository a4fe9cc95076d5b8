/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_LIMIT_MS 10000 /* a loaded machine is slow; a hanging constructor is rare */

int loom__conf_argument(struct loom__conf_args *a, int argc, char **argv, int i)
{
	if (!a->file) {
		a->file = calloc((size_t)argc + 1, sizeof(*a->file));
		a->set = calloc((size_t)argc + 1, sizeof(*a->set));
		if (!a->file || !a->set)
			abort(); /* a few bytes at start-up */
	}
	if (!strcmp(argv[i], "--set") && i + 1 < argc) {
		a->set[a->sets++] = argv[i + 1];
		return 2;
	}
	if (!strncmp(argv[i], "--set=", 6)) {
		a->set[a->sets++] = argv[i] + 6;
		return 1;
	}
	if (argv[i][0] == '-' && argv[i][1])
		return 0;
	a->file[a->files++] = argv[i];
	return 1;
}

void loom__conf_free(struct loom__conf_args *a)
{
	free(a->file);
	free(a->set);
	*a = (struct loom__conf_args){0};
}

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
	for (size_t i = 0; i < a->files; i++)
		loom__config_read(*cfg, a->file[i], &diag);
	loom__config_read_environment(*cfg, environ, &diag);
	for (size_t i = 0; i < a->sets; i++)
		loom__config_set_text(*cfg, a->set[i], LOOM_FROM_COMMAND_LINE, &diag);
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

int loom__bad_option(const struct loom__cli *cli, const char *command, const char *option,
		     const char *const *known, size_t n)
{
	const char *near = loom__nearest(option, known, n);
	if (near)
		loom__say_error(cli, "%s: no option '%s'; did you mean '%s'?", command, option, near);
	else
		loom__say_error(cli, "%s: no option '%s': see `gpuloom %s --help`", command, option,
				command);
	return LOOM_EXIT_USAGE;
}
