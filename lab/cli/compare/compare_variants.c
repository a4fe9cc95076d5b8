/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the variants of a comparison, and names them after their confs and values. */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/base/session.h"
#include "report/view/document.h"
#include "stack/stack.h"
#include "facts/must.h"

size_t loom__variant_count(const struct loom__compare_args *a)
{
	size_t configs = loom__factor_configs(a->factor, a->factors), n;
	return __builtin_mul_overflow(configs, a->conf.file.n, &n) ? SIZE_MAX : n;
}

/* Appends the label of a conf: "memset" for "conf/memset.ini", or the whole path if another conf has the same file
 * name. */
static void file_label(const struct loom__compare_args *a, size_t file, struct loom__text *out)
{
	const char *path = a->conf.file.at[file], *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
	for (size_t i = 0; i < a->conf.file.n; i++) {
		const char *other = strrchr(a->conf.file.at[i], '/');
		other = other ? other + 1 : a->conf.file.at[i];
		if (i != file && !strncmp(other, name, n) && (!other[n] || other[n] == '.')) {
			loom__text_add(out, "%s", path);
			return;
		}
	}
	loom__text_put(out, name, n);
}

/* Returns a value for a label. If the values are absolute paths with a common folder, returns the part after that
 * folder. */
static const char *short_value(const struct loom__factor *f, size_t pick)
{
	const char *first = f->value[0];
	size_t same = strlen(first);
	for (size_t i = 0; i < f->values; i++)
		for (size_t k = 0; k < same; k++)
			if (f->value[i][k] != first[k])
				same = k;
	while (same && first[same - 1] != '/')
		same--;
	const char *rest = f->value[pick] + (*first == '/' && f->values > 1 ? same : 0);
	return *rest ? rest : f->value[pick];
}

static void name_variant(const struct loom__compare_args *a, size_t index, struct loom__opened *v, size_t *pick)
{
	size_t configs = loom__factor_configs(a->factor, a->factors), file = index / configs;
	struct loom__text name = {0}, label = {0};
	loom__factor_pick(a->factor, a->factors, index % configs, pick);
	v->varied = cJSON_CreateObject();
	if (a->conf.file.n > 1) {
		file_label(a, file, &label);
		loom__text_add(&name, "%s", a->conf.file.at[file]);
		loom__json_add_text(v->varied, "file", a->conf.file.at[file]);
	}
	for (size_t f = 0; f < a->factors; f++) {
		const char *value = a->factor[f].value[pick[f]];
		loom__text_add(&name, "%s%s=%s", name.length ? " " : "", a->factor[f].key, value);
		if (a->factor[f].values > 1 || a->factors == 1)
			loom__text_add(&label, "%s%s", label.length ? ", " : "",
				       *value ? short_value(&a->factor[f], pick[f]) : "(none)");
		loom__json_add_text(v->varied, a->factor[f].key, value);
	}
	v->name = loom__must(strdup(loom__must_text(&name)));
	v->label = loom__must(strdup(*loom__must_text(&label) ? label.at : "variant"));
	loom__text_free(&name);
	loom__text_free(&label);
}

/* Loads the conf of a variant. The levels of the factors override --set, and --set overrides the file. */
static int load(const struct loom__cli *cli, const struct loom__compare_args *a, size_t index, const size_t *pick,
		struct loom_config **cfg)
{
	size_t configs = loom__factor_configs(a->factor, a->factors), sets = a->conf.set.n;
	const char *file = a->conf.file.at[index / configs];
	struct loom__setting *set = loom__must(calloc(sets + a->factors + 1, sizeof(*set)));
	struct loom__text *text = loom__must(calloc(a->factors + 1, sizeof(*text)));
	for (size_t i = 0; i < sets; i++)
		set[i] = a->conf.set.at[i];
	for (size_t f = 0; f < a->factors; f++) {
		loom__text_add(&text[f], "%s=%s", a->factor[f].key, a->factor[f].value[pick[f]]);
		set[sets + f] = (struct loom__setting){"vary", "", loom__must_text(&text[f])};
	}
	struct loom__conf_args one = {.file = {&file, 1}, .set = {set, sets + a->factors}};
	int status = loom__conf_load(cli, &one, cfg);
	for (size_t f = 0; f < a->factors; f++)
		loom__text_free(&text[f]);
	free(text);
	free(set);
	return status;
}

static int open_stack(const struct loom__cli *cli, const struct loom__compare_args *a, struct loom__plan *plan,
		      struct loom__opened *v)
{
	struct loom_stack_params params = {.size = sizeof(params), .log = loom__log_line, .log_level = (int)a->log};
	struct loom_error err = {0};
	if (!*plan->run.workload) {
		loom__say_error(cli, "compare: %s: the conf selects no workload: add 'workload = NAME' to [run]",
				v->label);
		loom__plan_free(plan);
		return LOOM_EXIT_USAGE;
	}
	if (plan->run.ranks > 1) {
		loom__say_error(cli, "compare: %s: [run] ranks = %u: comparisons have one rank: set ranks = 1",
				v->label, plan->run.ranks);
		loom__plan_free(plan);
		return LOOM_EXIT_USAGE;
	}
	v->warmup = plan->run.warmup;
	v->time_limit = plan->run.time_limit;
	int rc = loom__stack_open(plan, &params, &v->stack, &err);
	if (!rc)
		rc = loom__stack_prepare(v->stack, &err);
	if (!rc && !loom__holds_gpu(v->stack))
		rc = loom__stack_launch(v->stack, &err);
	if (rc)
		loom__say_error(cli, "%s: %s", v->label, err.text);
	return loom__exit_of(rc);
}

int loom__variant_open(const struct loom__cli *cli, const struct loom__compare_args *a, size_t index,
		       struct loom__opened *v)
{
	struct loom__plan plan;
	size_t *pick = loom__must(calloc(a->factors + 1, sizeof(*pick)));
	*v = (struct loom__opened){0};
	name_variant(a, index, v, pick);
	int status = load(cli, a, index, pick, &v->cfg);
	free(pick);
	if (!status)
		status = loom__conf_plan(cli, v->cfg, &plan);
	return status ? status : open_stack(cli, a, &plan, v);
}

void loom__variant_shut(struct loom__opened *v)
{
	loom_stack_close(v->stack);
	v->stack = NULL;
}

int loom__variant_again(const struct loom__cli *cli, const struct loom__compare_args *a, struct loom__opened *v)
{
	struct loom__plan plan;
	int status = loom__conf_plan(cli, v->cfg, &plan);
	return status ? status : open_stack(cli, a, &plan, v);
}

void loom__variant_close(struct loom__opened *v)
{
	loom__variant_shut(v);
	loom_config_destroy(v->cfg);
	cJSON_Delete(v->varied);
	free(v->name);
	free(v->label);
	*v = (struct loom__opened){0};
}

int loom__variant_take(const struct loom__cli *cli, const struct loom__compare_args *a, size_t index,
		       struct loom__doc *doc, struct loom__opened *v, cJSON **result)
{
	const char *path = a->conf.file.at[index];
	*v = (struct loom__opened){0};
	size_t none = 0;
	name_variant(a, index, v, &none);
	const char *fault = NULL, *status = loom__json_text(doc->root, "status");
	if (doc->kind != LOOM__DOC_RESULT)
		fault = "is not a result of `gpuloom run`; `gpuloom report` shows comparisons and sweeps";
	else if (!strcmp(status, "wrong"))
		fault = "is from a run with a wrong result";
	else if (!doc->foreign && !loom__json_length(loom__json_list(doc->root, "samples")))
		fault = "has no samples";
	if (fault)
		loom__say_error(cli, "%s: %s", path, fault);
	else if (doc->foreign && strcmp(status, "ok"))
		loom__say_warning(cli, "%s: %s", path, loom__json_text(loom__json_object(doc->root, "error"), "text"));
	else if (strcmp(status, "ok"))
		loom__say_warning(cli, "%s: the run ended with status '%s'", path, status);
	*result = fault ? NULL : doc->root;
	if (!fault)
		doc->root = NULL;
	return fault ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
}
