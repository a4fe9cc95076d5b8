/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/session.h"
#include "cli/sweep.h"
#include "run/hash.h"

/* ---- one cell's conf and plan
 * --------------------------------------------------------------------*/

/* The conf of a cell as a plan, which points into *cfg. An exit code: the mistakes were said. */
static int plan_cell(struct loom__sweep_session *s, size_t i, struct loom_config **cfg, struct loom__plan *plan)
{
	int status = loom__conf_load(s->cli, s->conf, cfg);
	if (!status)
		status = loom__conf_plan_cell(s->cli, *cfg, s->spec, s->cells.pick + i * s->cells.factors, plan);
	if (!status && !*plan->run.workload) {
		loom__say_error(s->cli, "the conf names no job: add 'workload = NAME' to [run]");
		loom__plan_free(plan);
		status = LOOM_EXIT_USAGE;
	}
	if (status) {
		loom_config_destroy(*cfg);
		*cfg = NULL;
	}
	return status;
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
	return strcmp(e->section, "gpuloom") && strcmp(e->section, "sweep") && strncmp(e->section, "sweep.", 6);
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

/* 0, or an exit code: the mistake was said. */
static int resolve(struct loom__sweep_session *s, size_t i, struct loom__names *seen)
{
	struct loom__sweep_cell *c = &s->sweep.cell[i];
	const size_t *pick = s->cells.pick + i * s->cells.factors;
	const struct loom__constraint *left_out =
	    loom__constraint_of(s->spec->constraint, s->spec->constraints, pick);
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	c->values = cJSON_CreateObject();
	for (size_t f = 0; f < s->spec->factors; f++)
		cJSON_AddStringToObject(c->values, s->spec->factor[f].key,
					s->spec->factor[f].value[pick[f]]);
	if (left_out) {
		c->skipped = strdup(left_out->reason);
		name_cell(c, NULL);
		return c->skipped ? 0 : LOOM_EXIT_FAILURE;
	}
	int status = plan_cell(s, i, &cfg, &plan);
	if (status)
		return status;
	name_cell(c, cfg);
	size_t before = seen->count, first = loom__names_add(&s->pool, seen, c->id);
	if (first < before) { /* an option of a plug-in that this cell does not use */
		c->skipped = strdup("the same configuration as another cell");
		name_cell(c, NULL);
	} else if (!s->title) {
		s->title = strdup(plan.run.title ? plan.run.title : "");
		s->workload = strdup(plan.run.workload);
		s->sweep.samples = plan.run.samples;
	}
	loom__plan_free(&plan);
	loom_config_destroy(cfg);
	return first == LOOM__NO_NAME ? LOOM_EXIT_FAILURE : 0;
}

/* All cells are resolved, also after a mistake: all mistakes are said at once. */
int loom__sweep_resolve(struct loom__sweep_session *s)
{
	struct loom__names seen = {0};
	int status = LOOM_EXIT_OK;
	s->sweep.cell = calloc(s->cells.count + 1, sizeof(*s->sweep.cell));
	for (size_t i = 0; s->sweep.cell && i < s->cells.count && !loom__stop_asked(); i++) {
		s->sweep.cells++;
		int one = resolve(s, i, &seen);
		status = status ? status : one;
	}
	if (loom__stop_asked())
		return LOOM_EXIT_INTERRUPTED;
	if (!s->sweep.cell || s->pool.failed) {
		loom__say_error(s->cli, "out of memory");
		return LOOM_EXIT_FAILURE;
	}
	return status;
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
	const struct loom__sweep_session *s = arg;
	struct run *r = run;
	struct loom_error err;
	loom__on_stop(NULL, NULL, NULL);
	loom_result_destroy(r->result);
	/* Closing alone would keep silent about workers that stay, and about their memory. */
	if (r->stack && loom__stack_retire(r->stack, &err))
		loom__say_warning(s->cli, "%s", err.text);
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

/* At once, not when all is over: who forgot to install something need not wait. */
static int say_failure(struct loom__sweep_session *s, int rc, const struct loom_error *err)
{
	struct loom__text line = {0}, cell = {0};
	const cJSON *v;
	if (!rc || rc == LOOM_EINTR || s->journal.failed)
		return rc;
	loom__text_add(&line, "%s\n", err->text);
	cJSON_ArrayForEach(v, s->sweep.cell[s->at].values)
	{
		loom__text_add(&cell, "%s%s", cell.length ? ", " : "", v->valuestring);
	}
	if (line.at && cell.at && !(s->said.at && strstr(s->said.at, line.at))) {
		if (s->cli->err_is_tty && !s->wish->quiet)
			fputs("\r\033[K", stderr);
		loom__say_warning(s->cli, "%s: %s", cell.at, err->text);
		loom__text_put(&s->said, line.at, line.length);
	}
	loom__text_free(&line);
	loom__text_free(&cell);
	return rc;
}

static int open_run(void *arg, size_t cell, void **run, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	struct loom__plan plan;
	struct loom_stack_params params = {
	    .size = sizeof(params), .log = loom__log_line, .log_level = (int)s->wish->log};
	struct run *r = calloc(1, sizeof(*r));
	if (!r)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	int rc = 0;
	struct loom__sweep_cell now = {0};
	s->at = cell;
	if (plan_cell(s, cell, &r->cfg, &plan))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf was changed while the sweep ran");
	if (!rc) {
		name_cell(&now, r->cfg);
		if (strcmp(now.id, s->sweep.cell[cell].id)) {
			loom__plan_free(&plan);
			rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf was changed while the sweep ran");
		}
	}
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
	return say_failure(s, rc, err);
}

static int sample_run(void *arg, void *run, cJSON *line, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	struct run *r = run;
	int rc = loom__stack_sample(r->stack, r->result, 0, err);
	if (rc)
		return say_failure(s, rc, err);
	const struct loom__sample *sample = &r->result->sample[r->result->samples - 1];
	loom__sweep_note_sample(s, sample);
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

const struct loom__sweep_ops loom__sweep_stack_ops = {open_run, sample_run, close_run, loom__sweep_note_line};
