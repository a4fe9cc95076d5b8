/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a sweep from its first configuration to its table: progress, the file of samples, the report. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/files.h"
#include "cli/report/report.h"
#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "report/text/table.h"
#include "facts/environment.h"
#include "facts/facts.h"
#include "facts/must.h"
#include "facts/write.h"

/* ---- progress -------------------------------------------------------------------------------- */

/* Shows the progress: redraws a bar on a terminal, and otherwise prints a line every ten seconds. Returns 1 to stop the
 * sweep. */
static int show_progress(void *arg, const struct loom__sweep *w)
{
	struct loom__sweep_session *s = arg;
	uint64_t now = loom__now_ns(), left = loom__sweep_left(w);
	char bar[LOOM__BAR], rest[64] = "";
	if (left)
		snprintf(rest, sizeof(rest), ", about %s left", LOOM__DURATION((double)left / 1e9));
	loom__bar(bar, w->taken, w->wanted);
	/* The samples run in random order, so a few of them give a fair estimate of all. */
	if (!s->params->quiet && !s->estimated && left && w->taken >= 3 && w->taken * 50 >= w->wanted) {
		s->estimated = 1;
		loom__say_estimate(s->cli, (double)left / 1e9, "this sweep");
	}
	if (!s->params->quiet && s->cli->err_is_tty && now - s->shown_ns > 50000000) {
		fprintf(stderr, "\r\033[K%s %zu of %zu samples%s", bar, w->taken, w->wanted,
			rest);
		s->shown_ns = now;
	} else if (!s->params->quiet && !s->cli->err_is_tty && now - s->shown_ns > 10000000000u) {
		fprintf(stderr, "gpuloom: %zu of %zu samples%s\n", w->taken, w->wanted, rest);
		s->shown_ns = now;
	}
	if (w->rounds)
		loom__sweep_check_metrics(s);
	return s->mistake.code || loom__stop_asked() > 0;
}

static void show_end(const struct loom__sweep_session *s)
{
	size_t done = 0, skipped = 0, failed = 0, elsewhere = 0;
	if (s->cli->err_is_tty && !s->params->quiet)
		fputs("\r\033[K", stderr);
	for (size_t i = 0; i < s->sweep.configs; i++) {
		const struct loom__sweep_config *c = &s->sweep.config[i];
		elsewhere += c->elsewhere != 0;
		if (c->elsewhere)
			continue;
		skipped += c->skipped != NULL;
		failed += c->failed;
		done += !c->skipped && !c->failed && c->have >= s->sweep.samples;
	}
	if (s->params->quiet)
		return;
	struct loom__text more = {0};
	if (elsewhere)
		loom__text_add(&more, "; %zu more configurations belong to other shards", elsewhere);
	if (loom__sweep_output(s))
		loom__text_add(&more, "; see `gpuloom report %s -o sweep.html`", loom__sweep_output(s));
	loom__say_note(s->cli, "%zu configurations: %zu complete, %zu skipped, %zu failed; %zu new samples%s",
		       s->sweep.configs - elsewhere, done, skipped, failed, s->sweep.taken,
		       loom__must_text(&more));
	loom__text_free(&more);
	if (s->sweep.out_of_budget && done + skipped + failed + elsewhere < s->sweep.configs)
		loom__say_warning(s->cli, "the budget is used up%s",
				  loom__sweep_output(s) ? "; --resume continues" : "");
}

/* ---- the file -------------------------------------------------------------------------------- */

static void add_factor(cJSON *list, const struct loom__factor *f)
{
	cJSON *item = loom__json_append_object(list), *sets;
	loom__json_add_text(item, "key", f->key);
	loom__json_add(item, "values",
			      cJSON_CreateStringArray((const char *const *)f->value, (int)f->values));
	if (!f->sets)
		return;
	sets = loom__json_add_object(item, "sets");
	for (size_t i = 0; i < f->values; i++) {
		cJSON *one = loom__json_add_array(sets, f->value[i]);
		for (char **set = f->sets[i]; *set; set++)
			loom__json_append_text(one, *set);
	}
}

void loom__sweep_report(const struct loom__sweep_opts *opts, cJSON *report)
{
	const char *const setting[][2] = {{"metric", opts->metric}, {"pareto", opts->pareto}, {"plot", opts->plot},
				       {"derive", opts->derive}, {"x", opts->x}, {"lines", opts->lines},
				       {"facet", opts->facet},
				       {"show", opts->show ? loom__show_name[opts->show] : ""},
				       {"axes", opts->axes ? loom__axes_name[opts->axes] : ""},
				       {"base", opts->base}, {"mean", opts->mean},
				       {"width", opts->width ? loom__width_name[opts->width] : ""}};
	for (size_t i = 0; i < LOOM__COUNT(setting); i++) {
		if (!*setting[i][1])
			continue;
		cJSON_DeleteItemFromObjectCaseSensitive(report, setting[i][0]);
		loom__json_add_text(report, setting[i][0], setting[i][1]);
	}
}

/* Returns the report options of the file. Report options of the conf override them. */
static cJSON *report_settings(const struct loom__sweep_session *s)
{
	cJSON *report = s->report ? cJSON_Duplicate(s->report, 1) : cJSON_CreateObject();
	loom__sweep_report(&s->spec->opts, report);
	return report;
}

/* Appends the report options to the file if a resumed sweep has changed them. */
static int record_report(struct loom__sweep_session *s, struct loom_error *err)
{
	cJSON *line = cJSON_CreateObject(), *report = report_settings(s);
	loom__json_add(line, "report", report);
	int rc = cJSON_Compare(report, s->report, 1) ? 0 : loom__journal_add(&s->journal, line, err);
	cJSON_Delete(line);
	return rc;
}

static cJSON *header(const struct loom__sweep_session *s)
{
	const struct loom__sweep_spec *spec = s->spec;
	cJSON *o = cJSON_CreateObject(), *list, *item;
	loom__json_add_text(o, "schema", LOOM__SWEEP_SCHEMA);
	loom__json_add_text(o, "title", s->title ? s->title : "");
	loom__json_add_text(o, "workload", s->workload ? s->workload : "");
	list = loom__json_add_array(o, "factors");
	for (size_t f = 0; f < spec->factors; f++)
		add_factor(list, &spec->factor[f]);
	list = loom__json_add_array(o, "constraints");
	for (size_t i = 0; i < spec->constraints; i++) {
		loom__json_append(list, item = cJSON_CreateObject());
		loom__json_add_text(item, spec->constraint[i].only ? "only" : "skip",
					spec->constraint[i].text);
	}
	loom__json_add(o, "report", report_settings(s));
	if (s->paper)
		loom__json_add_copy(o, "paper", s->paper);
	loom__json_add_number(o, "configurations", (double)s->sweep.configs);
	loom__json_add_number(o, "samples", s->sweep.samples);
	loom__json_add_number(o, "seed", (double)spec->opts.seed);
	loom__command_line(o, s->cli->argc, s->cli->argv);
	loom__json_add_time(o, "started", time(NULL));
	item = loom__json_add_object(o, "gpuloom");
	loom__json_add_text(item, "version", loom_version());
	loom__build_revision(item);
	return o;
}

/* Appends {ended, status, environment}, with the environment at the end. */
static int add_end(struct loom__sweep_session *s, int rc, struct loom_error *err)
{
	cJSON *line = cJSON_CreateObject(), *facts = loom__environment();
	loom__json_add_time(line, "ended", time(NULL));
	loom__json_add_text(line, "status", loom__status_name(rc));
	loom__json_add(line, "environment", facts);
	int failed = loom__journal_add(&s->journal, line, err);
	cJSON_Delete(line);
	return failed;
}

/* ---- the table and the report ---------------------------------------------------------------- */

static int show(const struct loom__sweep_session *s)
{
	const struct loom__sweep_opts *o = &s->spec->opts;
	const struct loom__report_args args = {.output = o->report}; /* the file has the other options */
	int table = !s->params->quiet && !s->params->lines;
	struct loom__doc doc = {0};
	struct loom__view view;
	struct loom__report_settings params;
	struct loom_error err;
	if (!table && !*o->report && !s->params->done)
		return LOOM_EXIT_OK;
	if (loom__journal_read(&s->journal, &doc, &err))
		return loom__refuse(s->cli, LOOM_EXIT_FAILURE, "%s", err.text);
	if (s->params->done) {
		int done = s->params->done(s->params->arg, &doc);
		loom__doc_free(&doc);
		return done;
	}
	int status = loom__report_view(s->cli, &args, &doc, 1, &view, &params);
	if (!status) {
		struct loom__text text = {0};
		struct loom__report_settings shown = params;
		cJSON *asked = report_settings(s);
		/* The terminal shows a Pareto front only if the user asked for one. */
		if (!*loom__json_text(asked, "pareto") || s->mistake.code)
			shown.x = LOOM__NO_NAME;
		cJSON_Delete(asked);
		if (table)
			loom__table_sweep(&view, &shown, &text);
		if (*loom__must_text(&text))
			loom__put_table(s->cli, &text);
		loom__text_free(&text);
		if (*o->report && !s->mistake.code)
			status = loom__report_write(s->cli, &args, &view, &params);
		if (*o->report && !status && !s->params->quiet)
			loom__say_note(s->cli, "wrote '%s'", o->report);
		loom__view_free(&view);
	}
	loom__doc_free(&doc);
	return status;
}

/* ---- command --------------------------------------------------------------------------------- */

static int open_journal(struct loom__sweep_session *s, struct loom_error *err)
{
	const struct loom__sweep_params *w = s->params;
	cJSON *head = header(s);
	int rc = loom__journal_open(loom__sweep_output(s), w->lines ? s->cli->out : NULL,
				    w->resume ? LOOM__JOURNAL_RESUME
				    : w->restart ? LOOM__JOURNAL_RESTART
					      : LOOM__JOURNAL_NEW,
				    &s->journal, err);
	s->sweep.journal = &s->journal;
	if (!rc && s->journal.before.root) {
		loom__sweep_note_line(s, s->journal.before.root);
		rc = loom__sweep_resume(&s->sweep, head, err);
		rc = rc ? rc : record_report(s, err);
	} else if (!rc) {
		rc = loom__journal_add(&s->journal, head, err);
	}
	loom__doc_free(&s->journal.before);
	cJSON_Delete(head);
	return rc;
}

static int run(struct loom__sweep_session *s)
{
	struct loom_error err = {0};
	int rc = open_journal(s, &err);
	if (rc) {
		if (!loom__stdout_unread(s->cli))
			loom__say_error(s->cli, "%s", err.text);
		loom__journal_close(&s->journal);
		return loom__exit_of(rc);
	}
	if (s->journal.unlocked)
		loom__say_warning(s->cli,
				  "the file system of '%s' has no locks: let no other gpuloom write to this file",
				  loom__sweep_output(s));
	s->shown_ns = loom__now_ns();
	rc = loom__sweep_run(&s->sweep, &err);
	struct loom_error unended;
	int failed = s->about_written ? add_end(s, rc, &unended) : 0;
	if (failed && !rc) {
		rc = failed;
		err = unended;
	}
	show_end(s);
	if (!rc && !s->sweep.out_of_budget)
		loom__sweep_check_metrics(s);
	int status = loom__exit_of(rc), any = 0;
	if (s->mistake.code) {
		loom__say_error(s->cli, "%s", s->mistake.text);
		status = LOOM_EXIT_USAGE;
	} else if (rc && !loom__stdout_unread(s->cli)) {
		loom__say_error(s->cli, "%s%s", err.text,
				rc == LOOM_EINTR && loom__sweep_output(s) ? "; --resume continues" : "");
	}
	for (size_t i = 0; i < s->sweep.configs; i++)
		any |= s->sweep.config[i].have > 0;
	int shown = any && (!rc || rc == LOOM_EINTR) ? show(s) : 0;
	int none = s->sweep.failures && !any;
	if (none)
		loom__say_error(s->cli, "no configuration could run: see the warnings above");
	status = status		     ? status
		 : s->sweep.wrong    ? LOOM_EXIT_WRONG
		 : none		     ? (int)loom__exit_of(s->sweep.last_error) /* likely the common cause */
		 : s->sweep.failures ? LOOM_EXIT_FAILURE
				     : shown;
	if (any || s->sweep.wrong)
		loom__journal_close(&s->journal);
	else
		loom__journal_drop(&s->journal); /* this file has no samples, and would make the next try fail */
	return status;
}

static void list_configs(const struct loom__sweep_session *s)
{
	for (size_t i = 0; i < s->sweep.configs; i++) {
		const struct loom__sweep_config *c = &s->sweep.config[i];
		const size_t *pick = s->configs.pick + i * s->configs.factors;
		loom__print(s->cli->out, "%-8s", c->skipped ? "skip" : c->elsewhere ? "other" : "run");
		for (size_t f = 0; f < s->spec->factors; f++) {
			const struct loom__factor *factor = &s->spec->factor[f];
			loom__print(s->cli->out, " %s=%s", factor->key, factor->value[pick[f]]);
			for (char **set = factor->sets ? factor->sets[pick[f]] : NULL; set && *set; set++)
				loom__print(s->cli->out, "%s%s", set == factor->sets[pick[f]] ? " (" : ", ", *set);
			if (factor->sets && *factor->sets[pick[f]])
				fputc(')', s->cli->out);
		}
		loom__print(s->cli->out, "%s%s\n", c->skipped ? ": " : "", c->skipped ? c->skipped : "");
	}
}

static int prepare(struct loom__sweep_session *s)
{
	const struct loom__sweep_spec *spec = s->spec;
	struct loom_error err;
	size_t runnable = 0;
	const char *output = s->params->dry_run ? NULL : loom__sweep_output(s);
	int rc = output ? loom__file_writes(s->cli, s->params->output ? "--json" : "sweep.output", output,
					    LOOM__WRITES_SWEEP, &err)
			: 0;
	if (!rc && *spec->opts.report && !s->params->dry_run)
		rc = loom__file_writes(s->cli, "sweep.report", spec->opts.report, LOOM__WRITES_RESULT, &err);
	if (rc)
		return loom__refuse(s->cli, LOOM_EXIT_USAGE, "sweep: %s", err.text);
	if (s->params->resume && !loom__sweep_output(s))
		return loom__refuse(s->cli, LOOM_EXIT_USAGE, "--resume needs the file of samples: set sweep.output");
	if (loom__configs_make(spec->factor, spec->factors, &s->configs, &err))
		return loom__refuse(s->cli, LOOM_EXIT_USAGE, "sweep: %s", err.text);
	int status = loom__sweep_resolve(s);
	for (size_t i = 0; i < s->sweep.configs; i++)
		runnable += !s->sweep.config[i].skipped && !s->sweep.config[i].elsewhere;
	if (status || s->params->dry_run)
		return status;
	/* missing input files were found before a stack was opened, because opening takes seconds */
	if (s->missing.code && !s->ready)
		return loom__refuse(s->cli, loom__exit_of(s->missing.code), "%s; no configuration can run",
				    s->missing.text);
	if (runnable)
		return status;
	return loom__refuse(s->cli, LOOM_EXIT_USAGE, "no configuration can run: the constraints%s leave none",
			    s->params->shards ? " and the shard" : "");
}

static void end(struct loom__sweep_session *s)
{
	loom__sweep_free(&s->sweep);
	loom__configs_free(&s->configs);
	loom__arena_free(&s->arena);
	loom__text_free(&s->said);
	cJSON_Delete(s->report);
	cJSON_Delete(s->paper);
	free(s->title);
	free(s->workload);
}

int loom__sweep_conf(const struct loom__cli *cli, const struct loom__conf_args *conf,
		     const struct loom__sweep_spec *spec, const struct loom__sweep_params *params)
{
	struct loom__sweep_session s = {.cli = cli, .conf = conf, .spec = spec, .params = params};
	s.sweep = (struct loom__sweep){.seed = spec->opts.seed,
				       .budget_ns = spec->opts.budget,
				       .ops = &loom__sweep_stack_ops,
				       .arg = &s,
				       .progress = show_progress};
	s.journal.fd = -1;
	int status = prepare(&s);
	if (!status && params->dry_run)
		list_configs(&s);
	else if (!status)
		status = run(&s);
	end(&s);
	return status;
}

int loom__sweep_check(const struct loom__cli *cli, const struct loom__conf_args *conf,
		      const struct loom__sweep_spec *spec)
{
	const struct loom__sweep_params params = {.dry_run = 1};
	struct loom__sweep_session s = {.cli = cli, .conf = conf, .spec = spec, .params = &params};
	int status = prepare(&s);
	end(&s);
	return status;
}
