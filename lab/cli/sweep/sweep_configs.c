/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/workload.h>

#include "cli/run/run.h"
#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "facts/facts.h"
#include "facts/must.h"
#include "stack/host.h"
#include "papers/papers.h"

/* ---- conf and plan of a configuration -------------------------------------------------------- */

/* Makes the plan of configuration i. The plan points into *cfg. Prints errors, and returns an exit code. */
static int plan_config(struct loom__sweep_session *s, size_t i, struct loom_config **cfg, struct loom__plan *plan)
{
	int status = loom__conf_load(s->cli, s->conf, cfg);
	if (!status)
		status = loom__conf_plan_config(s->cli, *cfg, s->spec, s->configs.pick + i * s->configs.factors, plan);
	if (!status && !*plan->run.workload) {
		loom__say_error(s->cli, "the conf selects no workload: add 'workload = NAME' to [run]");
		loom__plan_free(plan);
		status = LOOM_EXIT_USAGE;
	}
	if (status) {
		loom_config_destroy(*cfg);
		*cfg = NULL;
	}
	return status;
}

/* Checks that the workload's input files exist. The op inputs() of the workload does this. */
static int find_inputs(const struct loom__plan *plan, struct loom_error *err)
{
	const struct loom__choice *c = loom__plan_get(plan, LOOM_WORKLOAD);
	const struct loom_workload_ops *ops = c ? c->plugin->ops : NULL;
	struct loom__host host;
	loom__host_init(&host, NULL);
	return LOOM_HAS(ops, inputs) && c->opts ? ops->inputs(&host.table, c->opts, err) : 0;
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Returns 1 if an option is part of the identity of a configuration. Options that affect only how often or under which
 * title the configuration runs are not part of it. */
static int is_identity(const struct loom__effective *e)
{
	static const char *const other[] = {"samples", "title", "time_limit"};
	for (size_t i = 0; i < LOOM__COUNT(other); i++)
		if (!strcmp(e->section, "run") && !strcmp(e->key, other[i]))
			return 0;
	return strcmp(e->section, "gpuloom") && strcmp(e->section, "sweep") && strncmp(e->section, "sweep.", 6) &&
	       strncmp(e->section, "x-", 2);
}

/* Adds a text to a hash (FNV-1a with 128 bits). Also hashes the final NUL, so that it separates texts. */
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

/* Sets the id to a hash of the resolved configuration. If cfg is NULL, because the configuration is left out, hashes
 * only the levels. */
static void name_config(struct loom__sweep_config *c, const struct loom_config *cfg)
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

/* Returns [x-paper] in the form that the head of a sweep has. The plan has checked the section. */
static cJSON *paper_of(const struct loom__sweep_session *s, const struct loom_config *cfg)
{
	struct loom__diag diag = {0};
	struct loom__figure f;
	cJSON *o = !loom__figure_read(cfg, s->spec, &f, &diag) && f.entry ? loom__figure_json(&f) : NULL;
	loom__figure_free(&f);
	loom__diag_free(&diag);
	return o;
}

/* Sets the id of configuration i, or the reason to skip it. Returns 0, or an exit code after printing an error. */
static int resolve(struct loom__sweep_session *s, size_t i, struct loom__names *seen)
{
	struct loom__sweep_config *c = &s->sweep.config[i];
	const size_t *pick = s->configs.pick + i * s->configs.factors;
	const struct loom__constraint *left_out = loom__constraint_of(s->spec->constraint, s->spec->constraints, pick);
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	c->values = cJSON_CreateObject();
	for (size_t f = 0; f < s->spec->factors; f++)
		loom__json_add_text(c->values, s->spec->factor[f].key, s->spec->factor[f].value[pick[f]]);
	if (left_out) {
		c->skipped = loom__must(strdup(left_out->reason));
		name_config(c, NULL);
		return 0;
	}
	int status = plan_config(s, i, &cfg, &plan);
	if (status)
		return status;
	name_config(c, cfg);
	size_t before = seen->count, first = loom__names_add(&s->arena, seen, c->id);
	if (first < before) { /* the two configurations differ only in an option of a plug-in that they do not use */
		c->skipped = loom__must(strdup("identical to another configuration"));
		name_config(c, NULL);
	} else if (!s->title) {
		s->title = loom__must(strdup(plan.run.title ? plan.run.title : ""));
		s->workload = loom__must(strdup(plan.run.workload));
		s->paper = paper_of(s, cfg);
		s->sweep.samples = plan.run.samples;
	}
	struct loom_error err;
	if (!c->skipped && !find_inputs(&plan, &err))
		s->ready++;
	else if (!c->skipped && !s->missing.code)
		s->missing = err;
	loom__plan_free(&plan);
	loom_config_destroy(cfg);
	return 0;
}

/* Resolves all configurations even after an error, to report all errors in one run. */
int loom__sweep_resolve(struct loom__sweep_session *s)
{
	struct loom__names seen = {0};
	int status = LOOM_EXIT_OK;
	s->sweep.config = loom__must(calloc(s->configs.count + 1, sizeof(*s->sweep.config)));
	for (size_t i = 0; i < s->configs.count && !loom__stop_asked(); i++) {
		s->sweep.configs++;
		int one = resolve(s, i, &seen);
		s->sweep.config[i].elsewhere = s->params->shards && i % s->params->shards != s->params->shard;
		status = status ? status : one;
	}
	return loom__stop_asked() ? LOOM_EXIT_INTERRUPTED : status;
}

/* ---- running --------------------------------------------------------------------------------- */

struct run {
	struct loom_config *cfg;
	struct loom__rank_threads *others; /* NULL: there is a single rank */
	struct loom_stack *stack;
	struct loom_result *result;
};

/* Writes the line `about` when the first configuration has run: what all configurations share, except the factors. */
static int tell_about(struct loom__sweep_session *s, const struct loom_result *r, struct loom_error *err)
{
	cJSON *line = cJSON_CreateObject();
	s->about_written = 1;
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
	(void)loom__rank_threads_finish(r->others, 0, &err);
	loom_result_destroy(r->result);
	/* If the stack were only closed, workers that do not end, and their memory, would not be reported. */
	if (r->stack && loom__stack_retire(r->stack, &err))
		loom__say_warning(s->cli, "%s", err.text);
	loom_stack_close(r->stack);
	loom_config_destroy(r->cfg);
	free(r);
}

/* Ends all ranks after a failure. Returns the error of the rank that failed first. */
static int fail_run(struct run *r, int rc, struct loom_error *err)
{
	loom__on_stop(NULL, NULL, NULL);
	rc = loom__rank_threads_finish(r->others, rc, err);
	r->others = NULL;
	return rc;
}

static int get_ready(struct loom__sweep_session *s, struct run *r, struct loom_error *err)
{
	int rc = loom__stack_prepare(r->stack, err);
	if (rc)
		return rc;
	r->result = loom__must(loom__result_create(r->stack));
	r->result->watched = 1;
	if (!s->about_written) {
		loom__facts_begin(NULL, r->stack, r->result);
		rc = tell_about(s, r->result, err);
	}
	if (!rc)
		rc = loom__stack_launch(r->stack, err);
	loom__measured();
	for (uint32_t i = 0; i < r->stack->plan.run.warmup && !rc; i++) {
		if (loom__stop_asked())
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted");
		rc = loom__rank_threads_sample(r->others, r->stack, r->result, 1, err);
	}
	return rc;
}

/* Prints a failure immediately, so that the user can, for example, install a missing program before the sweep ends. */
static int say_failure(struct loom__sweep_session *s, int rc, const struct loom_error *err)
{
	struct loom__text line = {0}, config = {0};
	const cJSON *v;
	if (!rc || rc == LOOM_EINTR || s->journal.failed)
		return rc;
	loom__text_add(&line, "%s\n", err->text);
	cJSON_ArrayForEach(v, s->sweep.config[s->at].values)
	{
		loom__text_add(&config, "%s%s", config.length ? ", " : "", v->valuestring);
	}
	if (!strstr(loom__must_text(&s->said), loom__must_text(&line))) {
		if (s->cli->err_is_tty && !s->params->quiet)
			fputs("\r\033[K", stderr);
		loom__say_warning(s->cli, "%s: %s", loom__must_text(&config), err->text);
		loom__text_put(&s->said, line.at, line.length);
	}
	loom__text_free(&line);
	loom__text_free(&config);
	return rc;
}

/* Starts the ranks of the conf if they are threads. */
static int gather(const struct loom__sweep_session *s, struct run *r, const struct loom__plan *plan,
		  struct loom_stack_params *params, struct loom_error *err)
{
	uint32_t ranks = 1;
	int status = 0, rc = 0;
	if (loom__ranks_threads(s->cli, NULL, plan, &ranks, &status))
		rc = status ? LOOM__FAIL(err, LOOM_EINVAL, "the ranks of [run] are not available")
			    : loom__rank_threads_start(r->cfg, ranks, LOOM__RANK_THREADS_SAMPLE, &r->others, err);
	else if (plan->run.ranks > 1)
		rc = LOOM__FAIL(err, LOOM_ENOTSUP,
				"[run] ranks = %u: sweeps have one rank, except on simulated devices: set "
				"ranks = 1",
				plan->run.ranks);
	if (r->others)
		params->ranks = loom__rank_threads_ranks(r->others);
	return rc;
}

static int open_run(void *arg, size_t config, void **run, struct loom_error *err)
{
	struct loom__sweep_session *s = arg;
	struct loom__plan plan = {0};
	struct loom_stack_params params = {
	    .size = sizeof(params), .log = loom__log_line, .log_level = (int)s->params->log};
	struct run *r = loom__must(calloc(1, sizeof(*r)));
	int rc = 0;
	struct loom__sweep_config now = {0};
	s->at = config;
	if (plan_config(s, config, &r->cfg, &plan))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "the conf was changed while the sweep ran");
	if (!rc) {
		name_config(&now, r->cfg);
		if (strcmp(now.id, s->sweep.config[config].id)) {
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
		loom__rank_threads_on_stop(r->others, r->stack,
					   "gpuloom: stopping after this sample; again to stop now\n");
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
	int rc = loom__rank_threads_sample(r->others, r->stack, r->result, 0, err);
	if (rc)
		return say_failure(s, fail_run(r, rc, err), err);
	struct loom__sample *sample = &r->result->sample[r->result->samples - 1];
	struct loom__derived derived;
	rc = loom__derived_read(s->spec->opts.derive, &derived, err);
	if (!rc && loom__derived_sample(&derived, sample, err) == LOOM_EINVAL)
		s->mistake = *err; /* the option --derive causes the error, not the configuration */
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
