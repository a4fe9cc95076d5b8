/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/crowd.h"
#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/sweep.h"
#include "facts/facts.h"
#include "facts/must.h"

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

/* FNV-1a of 128 bits; the NUL keeps texts apart. */
static void hash(unsigned __int128 *h, const char *text)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	for (const char *at = text;; at++) {
		*h = (*h ^ (unsigned char)*at) * prime;
		if (!*at)
			return;
	}
}

static int hash_option(void *arg, const struct loom__effective *e)
{
	const char *part[] = {e->section, e->key, e->value};
	for (size_t i = 0; is_identity(e) && i < LOOM__COUNT(part); i++)
		hash(arg, part[i]);
	return 0;
}

/* Of the resolved configuration; of the bare values when there is none. */
static void name_cell(struct loom__sweep_cell *c, const struct loom_config *cfg)
{
	unsigned __int128 h = (unsigned __int128)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;
	const cJSON *v;
	if (cfg)
		loom__config_each(cfg, hash_option, &h);
	else
		cJSON_ArrayForEach(v, c->values)
		{
			hash(&h, v->string);
			hash(&h, v->valuestring);
		}
	snprintf(c->id, sizeof(c->id), "%016llx%016llx", (unsigned long long)(h >> 64), (unsigned long long)h);
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
		loom__json_add_text(c->values, s->spec->factor[f].key,
					s->spec->factor[f].value[pick[f]]);
	if (left_out) {
		c->skipped = loom__must(strdup(left_out->reason));
		name_cell(c, NULL);
		return 0;
	}
	int status = plan_cell(s, i, &cfg, &plan);
	if (status)
		return status;
	name_cell(c, cfg);
	size_t before = seen->count, first = loom__names_add(&s->pool, seen, c->id);
	if (first < before) { /* an option of a plug-in that this cell does not use */
		c->skipped = loom__must(strdup("the same configuration as another cell"));
		name_cell(c, NULL);
	} else if (!s->title) {
		s->title = loom__must(strdup(plan.run.title ? plan.run.title : ""));
		s->workload = loom__must(strdup(plan.run.workload));
		s->sweep.samples = plan.run.samples;
	}
	struct loom_error err;
	if (!c->skipped && !loom__plan_inputs(&plan, &err))
		s->ready++;
	else if (!c->skipped && !s->missing.code)
		s->missing = err;
	loom__plan_free(&plan);
	loom_config_destroy(cfg);
	return 0;
}

/* All cells are resolved, also after a mistake: all mistakes are said at once. */
int loom__sweep_resolve(struct loom__sweep_session *s)
{
	struct loom__names seen = {0};
	int status = LOOM_EXIT_OK;
	s->sweep.cell = loom__must(calloc(s->cells.count + 1, sizeof(*s->sweep.cell)));
	for (size_t i = 0; i < s->cells.count && !loom__stop_asked(); i++) {
		s->sweep.cells++;
		int one = resolve(s, i, &seen);
		s->sweep.cell[i].elsewhere = s->wish->shards && i % s->wish->shards != s->wish->shard;
		status = status ? status : one;
	}
	return loom__stop_asked() ? LOOM_EXIT_INTERRUPTED : status;
}

/* ---- running
 * -------------------------------------------------------------------------------------*/

struct run {
	struct loom_config *cfg;
	struct loom__crowd *crowd; /* NULL: one rank */
	struct loom_stack *stack;
	struct loom_result *result;
};

/* What is the same for all cells, but for the values that are varied: from the first that ran. */
static int tell_about(struct loom__sweep_session *s, const struct loom_result *r,
		      struct loom_error *err)
{
	cJSON *line = cJSON_CreateObject();
	s->told = 1;
	loom__json_add_copy(line, "about", r->about);
	int rc = loom__journal_add(&s->journal, line, err);
	cJSON_Delete(line);
	return rc;
}

static void close_run(void *arg, void *run)
{
	const struct loom__sweep_session *s = arg;
	struct run *r = run;
	struct loom_error err;
	loom__on_stop(NULL, NULL, NULL);
	(void)loom__crowd_end(r->crowd, 0, &err);
	loom_result_destroy(r->result);
	/* Closing alone would keep silent about workers that stay, and about their memory. */
	if (r->stack && loom__stack_retire(r->stack, &err))
		loom__say_warning(s->cli, "%s", err.text);
	loom_stack_close(r->stack);
	loom_config_destroy(r->cfg);
	free(r);
}

/* Where a rank that follows has failed, its reason is the one. */
static int fail_run(struct run *r, int rc, struct loom_error *err)
{
	loom__on_stop(NULL, NULL, NULL);
	rc = loom__crowd_end(r->crowd, rc, err);
	r->crowd = NULL;
	return rc;
}

static int get_ready(struct loom__sweep_session *s, struct run *r, struct loom_error *err)
{
	int rc = loom__stack_prepare(r->stack, err);
	if (rc)
		return rc;
	r->result = loom__must(loom__result_create(r->stack));
	if (!s->told) {
		loom__facts_begin(NULL, r->result);
		rc = tell_about(s, r->result, err);
	}
	if (!rc)
		rc = loom__stack_launch(r->stack, err);
	loom__measured();
	for (uint32_t i = 0; i < r->stack->plan.run.warmup && !rc; i++) {
		if (loom__stop_asked())
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted");
		rc = loom__crowd_sample(r->crowd, r->stack, r->result, 1, err);
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
	if (!strstr(loom__must_text(&s->said), loom__must_text(&line))) {
		if (s->cli->err_is_tty && !s->wish->quiet)
			fputs("\r\033[K", stderr);
		loom__say_warning(s->cli, "%s: %s", loom__must_text(&cell), err->text);
		loom__text_put(&s->said, line.at, line.length);
	}
	loom__text_free(&line);
	loom__text_free(&cell);
	return rc;
}

/* The ranks that the conf wants, where they are threads. */
static int gather(const struct loom__sweep_session *s, struct run *r, const struct loom__plan *plan,
		  struct loom_stack_params *params, struct loom_error *err)
{
	uint32_t ranks = 1;
	int status = 0, rc = 0;
	if (loom__ranks_threads(s->cli, NULL, plan, &ranks, &status))
		rc = status ? LOOM__FAIL(err, LOOM_EINVAL, "[run] ranks cannot be had") :
			      loom__crowd_begin(r->cfg, ranks, LOOM__CROWD_SAMPLES, &r->crowd, err);
	else if (plan->run.ranks > 1)
		rc = LOOM__FAIL(err, LOOM_ENOTSUP, "[run] ranks = %u: a sweep has one rank, but for simulated devices: say "
				"ranks = 1", plan->run.ranks);
	if (r->crowd)
		params->ranks = loom__crowd_ranks(r->crowd);
	return rc;
}

static int open_run(void *arg, size_t cell, void **run, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	struct loom__plan plan = {0};
	struct loom_stack_params params = {
	    .size = sizeof(params), .log = loom__log_line, .log_level = (int)s->wish->log};
	struct run *r = loom__must(calloc(1, sizeof(*r)));
	int rc = 0;
	struct loom__sweep_cell now = {0};
	s->at = cell;
	if (plan_cell(s, cell, &r->cfg, &plan))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf was changed while the sweep ran");
	if (!rc) {
		name_cell(&now, r->cfg);
		if (strcmp(now.id, s->sweep.cell[cell].id)) {
			rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf was changed while the sweep ran");
		}
	}
	if (!rc)
		rc = gather(s, r, &plan, &params, err);
	if (rc)
		loom__plan_free(&plan);
	else
		rc = loom__stack_open(&plan, &params, &r->stack, err);
	if (!rc) {
		loom__crowd_on_stop(r->crowd, r->stack, "gpuloom: stopping after this sample; again to stop now\n");
		rc = get_ready(s, r, err);
	}
	if (rc)
		rc = fail_run(r, rc, err);
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
	int rc = loom__crowd_sample(r->crowd, r->stack, r->result, 0, err);
	if (rc)
		return say_failure(s, fail_run(r, rc, err), err);
	struct loom__sample *sample = &r->result->sample[r->result->samples - 1];
	struct loom__derived derived;
	rc = loom__derived_read(s->spec->opts.derive, &derived, err);
	if (!rc && loom__derived_sample(&derived, sample, err) == LOOM_EINVAL)
		s->mistake = *err; /* of the option, not of the cell */
	loom__sweep_note_sample(s, sample);
	loom__json_add_number(line, "seconds", sample->seconds);
	cJSON *metrics = loom__json_add_object(line, "metrics");
	cJSON *units = loom__json_add_object(line, "units");
	cJSON *better = loom__json_add_object(line, "better");
	for (size_t i = 0; i < sample->report.count; i++) {
		const struct loom__metric *m = &sample->report.list[i];
		loom__json_add_number(metrics, m->name, m->value);
		if (*m->unit)
			loom__json_add_text(units, m->name, m->unit);
		if (*loom__better_name(m->better))
			loom__json_add_text(better, m->name, loom__better_name(m->better));
	}
	return 0;
}

const struct loom__sweep_ops loom__sweep_stack_ops = {open_run, sample_run, close_run, loom__sweep_note_line};
