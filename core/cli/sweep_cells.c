/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/session.h"
#include "cli/sweep.h"
#include "run/hash.h"

#define PROBE_LIMIT_MS 5000

/* ---- one cell's conf and plan
 * --------------------------------------------------------------------*/

/* Each plug-in is examined in a process of its own once, not once per cell. */
static int probe(void *arg, const char *path, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	if (loom__names_find(&s->probed, path) != LOOM__NO_NAME)
		return 0;
	int rc = loom__plugin_probe(s->cli->self, path, PROBE_LIMIT_MS, err);
	if (!rc)
		loom__names_add(&s->pool, &s->probed, path);
	return rc;
}

/* The mistakes of a cell as one sentence or several, for its row. */
static void word_mistakes(const struct loom__diag *diag, struct loom__text *out)
{
	for (size_t i = 0; i < diag->count; i++)
		if (!diag->list[i].warning)
			loom__text_add(out, "%s%s", out->length ? "; " : "", diag->list[i].text);
}

static void set_values(struct loom__sweep_session *s, const size_t *pick, struct loom_config *cfg,
		       struct loom__diag *diag)
{
	const struct loom__sweep_args *a = s->args;
	for (size_t i = 0; i < a->conf.set.n; i++)
		loom__config_set_text(cfg, a->conf.set.at[i], LOOM_FROM_COMMAND_LINE, diag);
	for (size_t f = 0; f < a->factors; f++) {
		struct loom__text t = {0};
		loom__text_add(&t, "%s=%s", a->factor[f].key, a->factor[f].value[pick[f]]);
		loom__config_set_text(cfg, t.at ? t.at : "", LOOM_FROM_COMMAND_LINE, diag);
		loom__text_free(&t);
	}
}

/* The conf of a cell as a plan. The plan points into *cfg. 0; else the reason stands in `why`. */
static int plan_cell(struct loom__sweep_session *s, size_t i, struct loom_config **cfg,
		     struct loom__plan *plan, struct loom_error *why)
{
	struct loom__diag diag = {0};
	struct loom__prober prober = {probe, s};
	struct loom__text text = {0};
	int rc = loom_config_create(cfg, why);
	if (rc)
		return rc;
	for (size_t f = 0; f < s->args->conf.file.n; f++)
		loom__config_read(*cfg, s->args->conf.file.at[f], &diag);
	loom__config_read_environment(*cfg, environ, &diag);
	set_values(s, s->cells.pick + i * s->cells.factors, *cfg, &diag);
	if (!diag.errors)
		rc = loom__plan_create(*cfg, &prober, plan, &diag);
	if (diag.errors || rc) {
		word_mistakes(&diag, &text);
		rc = LOOM__FAIL(why, rc ? rc : LOOM_EINVAL, "%s",
				text.at ? text.at : loom_strerror(rc ? rc : LOOM_EINVAL));
	} else if (!*plan->run.workload) {
		rc = LOOM__FAIL(why, LOOM_EINVAL,
				"the conf names no job: add 'workload = NAME' to [run]");
		loom__plan_free(plan);
	}
	loom__text_free(&text);
	loom__diag_free(&diag);
	if (rc) {
		loom_config_destroy(*cfg);
		*cfg = NULL;
	}
	return rc;
}

/* ---- identity
 * ------------------------------------------------------------------------------------*/

/* Options that change how often or under which name a cell runs, but not what it is. */
static int is_identity(const struct loom__effective *e)
{
	static const char *const other[] = {"samples", "title", "time_limit"};
	for (size_t i = 0; i < LOOM__COUNT(other); i++)
		if (!strcmp(e->section, "run") && !strcmp(e->key, other[i]))
			return 0;
	return strcmp(e->section, "gpuloom") != 0;
}

static int hash_option(void *arg, const struct loom__effective *e)
{
	struct loom__hash *h = arg;
	const char *part[] = {e->section, e->key, e->value};
	for (size_t i = 0; is_identity(e) && i < LOOM__COUNT(part); i++)
		loom__hash_add(h, part[i], strlen(part[i]) + 1); /* the NUL keeps them apart */
	return 0;
}

static void hash_values(struct loom__hash *h, const cJSON *values)
{
	const cJSON *v;
	loom__hash_add(h, "values", sizeof("values"));
	cJSON_ArrayForEach(v, values)
	{
		loom__hash_add(h, v->string, strlen(v->string) + 1);
		loom__hash_add(h, v->valuestring, strlen(v->valuestring) + 1);
	}
}

/* Of the resolved configuration; of the bare values when there is none. */
static void name_cell(struct loom__sweep_cell *c, const struct loom_config *cfg)
{
	struct loom__hash h;
	char digest[LOOM__HASH_TEXT];
	loom__hash_begin(&h);
	if (cfg)
		loom__config_each(cfg, hash_option, &h);
	else
		hash_values(&h, c->values);
	loom__hash_end(&h, digest);
	memcpy(c->id, digest, sizeof(c->id) - 1);
}

static void keep_text(char **to, const char *text)
{
	free(*to);
	*to = strdup(text && *text ? text : "unknown");
}

/* 0, or -1: out of memory. */
static int resolve(struct loom__sweep_session *s, size_t i, struct loom__names *seen)
{
	struct loom__sweep_cell *c = &s->sweep.cell[i];
	const size_t *pick = s->cells.pick + i * s->cells.factors;
	const struct loom__constraint *left_out =
	    loom__constraint_of(s->args->constraint, s->args->constraints, pick);
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	struct loom_error why = {0};
	c->values = cJSON_CreateObject();
	for (size_t f = 0; f < s->args->factors; f++)
		cJSON_AddStringToObject(c->values, s->args->factor[f].key,
					s->args->factor[f].value[pick[f]]);
	if (left_out) {
		keep_text(&c->skipped, left_out->reason);
		name_cell(c, NULL);
		return c->skipped ? 0 : -1;
	}
	int rc = plan_cell(s, i, &cfg, &plan, &why);
	name_cell(c, cfg);
	if (rc) {
		keep_text(&c->refused, why.text);
		s->reason = s->reason ? s->reason : (int)loom__exit_of(rc);
		return c->refused ? 0 : -1;
	}
	size_t before = seen->count, first = loom__names_add(&s->pool, seen, c->id);
	if (first < before) { /* an option of a plug-in that this cell does not use */
		keep_text(&c->skipped, "the same configuration as another cell");
		name_cell(c, NULL);
	} else if (!s->title) {
		s->title = strdup(plan.run.title ? plan.run.title : "");
		s->workload = strdup(plan.run.workload);
		s->sweep.samples = s->args->samples ? s->args->samples : plan.run.samples;
	}
	loom__plan_free(&plan);
	loom_config_destroy(cfg);
	return first == LOOM__NO_NAME ? -1 : 0;
}

int loom__sweep_resolve(struct loom__sweep_session *s)
{
	struct loom_config *base = NULL;
	struct loom__names seen = {0};
	/* A mistake in the files is everybody's: said once, and the end. */
	int status = loom__conf_load(s->cli, &s->args->conf, &base);
	loom_config_destroy(base);
	if (status)
		return status;
	s->sweep.cell = calloc(s->cells.count + 1, sizeof(*s->sweep.cell));
	for (size_t i = 0; s->sweep.cell && i < s->cells.count && !loom__stop_asked(); i++) {
		s->sweep.cells++;
		if (resolve(s, i, &seen))
			s->pool.failed = 1;
	}
	if (loom__stop_asked())
		return LOOM_EXIT_INTERRUPTED;
	if (!s->sweep.cell || s->pool.failed) {
		loom__say_error(s->cli, "out of memory");
		return LOOM_EXIT_FAILURE;
	}
	return LOOM_EXIT_OK;
}

/* ---- running
 * -------------------------------------------------------------------------------------*/

struct run {
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_result *result;
};

static void stop(void *arg)
{
	loom_stack_stop(arg);
}

/* What is the same for all cells, but for the values that are varied: from the first that ran. */
static int tell_about(struct loom__sweep_session *s, const struct loom_result *r,
		      struct loom_error *err)
{
	cJSON *line = cJSON_CreateObject(), *about = cJSON_Duplicate(r->about, 1);
	int rc = LOOM_ENOMEM;
	s->told = 1;
	if (about && cJSON_AddItemToObject(line, "about", about))
		rc = loom__journal_add(&s->journal, line, err);
	else
		LOOM__FAIL(err, rc, "out of memory");
	cJSON_Delete(line);
	return rc;
}

static void close_run(void *arg, void *run)
{
	struct run *r = run;
	(void)arg;
	loom__on_stop(NULL, NULL, NULL);
	loom_result_destroy(r->result);
	loom_stack_close(r->stack);
	loom_config_destroy(r->cfg);
	free(r);
}

static int get_ready(struct loom__sweep_session *s, struct run *r, struct loom_error *err)
{
	int rc = loom__stack_prepare(r->stack, err);
	if (rc)
		return rc;
	r->result = loom__result_create(r->stack);
	if (!r->result)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!s->told)
		rc = tell_about(s, r->result, err);
	if (!rc)
		rc = loom__stack_launch(r->stack, err);
	for (uint32_t i = 0; i < r->stack->plan.run.warmup && !rc; i++) {
		if (loom__stop_asked())
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted");
		rc = loom__stack_sample(r->stack, r->result, 1, err);
	}
	return rc;
}

static int open_run(void *arg, size_t cell, void **run, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	struct loom__plan plan;
	struct loom_stack_params params = {
	    .size = sizeof(params), .log = loom__log_line, .log_level = (int)s->args->log};
	struct run *r = calloc(1, sizeof(*r));
	if (!r)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	int rc = plan_cell(s, cell, &r->cfg, &plan, err);
	if (!rc)
		rc = loom__stack_open(&plan, &params, &r->stack, err);
	if (!rc) {
		loom__on_stop(stop, r->stack,
			      "gpuloom: stopping after this sample; again to stop now\n");
		rc = get_ready(s, r, err);
	}
	if (rc)
		close_run(s, r);
	else
		*run = r;
	return rc;
}

static int sample_run(void *arg, void *run, cJSON *line, struct loom_error *err)
{
	struct run *r = run;
	(void)arg;
	int rc = loom__stack_sample(r->stack, r->result, 0, err);
	if (rc)
		return rc;
	const struct loom__sample *sample = &r->result->sample[r->result->samples - 1];
	cJSON_AddNumberToObject(line, "seconds", sample->seconds);
	cJSON *metrics = cJSON_AddObjectToObject(line, "metrics");
	cJSON *units = cJSON_AddObjectToObject(line, "units");
	cJSON *better = cJSON_AddObjectToObject(line, "better");
	for (size_t i = 0; better && i < sample->report.count; i++) {
		const struct loom__metric *m = &sample->report.list[i];
		cJSON_AddNumberToObject(metrics, m->name, m->value);
		if (*m->unit)
			cJSON_AddStringToObject(units, m->name, m->unit);
		if (*loom__better_name(m->better))
			cJSON_AddStringToObject(better, m->name, loom__better_name(m->better));
	}
	return better ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
}

const struct loom__sweep_ops loom__sweep_stack_ops = {open_run, sample_run, close_run};
