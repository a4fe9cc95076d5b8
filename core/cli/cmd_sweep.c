/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom sweep: many configurations, one line per sample, to be resumed after anything. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/session.h"
#include "cli/sweep.h"
#include "run/environment.h"

/* ---- progress
 * ------------------------------------------------------------------------------------*/

static void show_time(char text[32], uint64_t ns)
{
	uint64_t s = (ns + 500000000) / 1000000000;
	if (s >= 3600)
		snprintf(text, 32, "%llu h %02llu min", (unsigned long long)(s / 3600),
			 (unsigned long long)(s / 60 % 60));
	else if (s >= 100)
		snprintf(text, 32, "%llu min", (unsigned long long)((s + 30) / 60));
	else
		snprintf(text, 32, "%llu s", (unsigned long long)s);
}

/* A bar that is redrawn, on a terminal only; else a line each ten seconds. */
static int show_progress(void *arg, const struct loom__sweep *w)
{
	struct loom__sweep_session *s = arg;
	uint64_t now = loom__now_ns(), left = loom__sweep_left(w);
	char bar[25] = "........................", rest[64] = "", time_left[32];
	if (left) {
		show_time(time_left, left);
		snprintf(rest, sizeof(rest), ", about %s left", time_left);
	}
	memset(bar, '#', w->wanted ? 24 * w->taken / w->wanted : 24);
	if (!s->args->quiet && s->cli->err_is_tty && now - s->shown_ns > 50000000) {
		fprintf(stderr, "\r\033[K[%s] %zu of %zu samples%s", bar, w->taken, w->wanted,
			rest);
		s->shown_ns = now;
	} else if (!s->args->quiet && !s->cli->err_is_tty && now - s->shown_ns > 10000000000u) {
		fprintf(stderr, "gpuloom: %zu of %zu samples%s\n", w->taken, w->wanted, rest);
		s->shown_ns = now;
	}
	return loom__stop_asked() > 0;
}

static void show_end(const struct loom__sweep_session *s)
{
	size_t done = 0, skipped = 0, failed = 0;
	if (s->cli->err_is_tty && !s->args->quiet)
		fputs("\r\033[K", stderr);
	for (size_t i = 0; i < s->sweep.cells; i++) {
		const struct loom__sweep_cell *c = &s->sweep.cell[i];
		skipped += c->skipped != NULL;
		failed += c->refused || c->failed;
		done += !c->skipped && !c->refused && !c->failed && c->have >= s->sweep.samples;
	}
	if (s->args->quiet)
		return;
	fprintf(stderr,
		"gpuloom: %zu cells: %zu complete, %zu skipped, %zu failed; %zu new samples",
		s->sweep.cells, done, skipped, failed, s->sweep.taken);
	if (s->args->output)
		fprintf(stderr, "; `gpuloom report %s -o sweep.html` shows them", s->args->output);
	fputs("\n", stderr);
	if (s->sweep.out_of_budget && done + skipped + failed < s->sweep.cells)
		loom__say_warning(s->cli, "the budget is used up; --resume goes on");
}

/* ---- the file
 * ------------------------------------------------------------------------------------*/

static void add_now(cJSON *o, const char *key)
{
	char when[32];
	time_t now = time(NULL);
	struct tm utc;
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	cJSON_AddStringToObject(o, key, when);
}

static cJSON *header(const struct loom__sweep_session *s, int argc, char **argv)
{
	const struct loom__sweep_args *a = s->args;
	cJSON *o = cJSON_CreateObject(), *list, *item;
	cJSON_AddStringToObject(o, "schema", LOOM__SWEEP_SCHEMA);
	cJSON_AddStringToObject(o, "design", loom__design_name[a->design]);
	cJSON_AddStringToObject(o, "title", s->title ? s->title : "");
	cJSON_AddStringToObject(o, "workload", s->workload ? s->workload : "");
	list = cJSON_AddArrayToObject(o, "factors");
	for (size_t f = 0; f < a->factors; f++) {
		cJSON_AddItemToArray(list, item = cJSON_CreateObject());
		cJSON_AddStringToObject(item, "key", a->factor[f].key);
		cJSON_AddItemToObject(
		    item, "values",
		    cJSON_CreateStringArray((const char *const *)a->factor[f].value,
					    (int)a->factor[f].values));
	}
	list = cJSON_AddArrayToObject(o, "constraints");
	for (size_t i = 0; i < a->constraints; i++) {
		cJSON_AddItemToArray(list, item = cJSON_CreateObject());
		cJSON_AddStringToObject(item, a->constraint[i].only ? "only" : "skip",
					a->constraint[i].text);
	}
	cJSON_AddNumberToObject(o, "cells", (double)s->sweep.cells);
	cJSON_AddNumberToObject(o, "samples", s->sweep.samples);
	cJSON_AddNumberToObject(o, "seed", (double)a->seed);
	list = cJSON_AddArrayToObject(o, "command");
	cJSON_AddItemToArray(list, cJSON_CreateString("gpuloom"));
	for (int i = 0; i < argc; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(argv[i]));
	add_now(o, "started");
	item = cJSON_AddObjectToObject(o, "gpuloom");
	cJSON_AddStringToObject(item, "version", loom_version());
	loom__build_revision(item);
	return o;
}

/* {ended, status, environment}: the machine as it is now. */
static void add_end(struct loom__sweep_session *s, int rc)
{
	struct loom_error err;
	cJSON *line = cJSON_CreateObject(), *facts = loom__environment();
	add_now(line, "ended");
	cJSON_AddStringToObject(line, "status", loom__status_name(rc));
	if (facts)
		cJSON_AddItemToObject(line, "environment", facts);
	loom__journal_add(&s->journal, line, &err);
	cJSON_Delete(line);
}

/* ---- all together
 * --------------------------------------------------------------------------------*/

static int run(struct loom__sweep_session *s, cJSON *head)
{
	struct loom_error err = {0};
	int rc =
	    loom__journal_open(s->args->output, s->cli->out, s->args->resume, &s->journal, &err);
	s->sweep.journal = &s->journal;
	if (!rc)
		rc = loom__sweep_resume(&s->sweep, head, &err);
	if (!rc && !s->journal.before.root)
		rc = loom__journal_add(&s->journal, head, &err);
	loom__doc_free(&s->journal.before);
	if (rc) {
		loom__say_error(s->cli, "%s", err.text);
		loom__journal_close(&s->journal);
		return loom__exit_of(rc);
	}
	s->shown_ns = loom__now_ns();
	rc = loom__sweep_run(&s->sweep, &err);
	if (s->told)
		add_end(s, rc);
	loom__journal_close(&s->journal);
	show_end(s);
	if (rc) {
		loom__say_error(s->cli, "%s%s", err.text,
				rc == LOOM_EINTR && s->args->output ? "; --resume goes on" : "");
		return loom__exit_of(rc);
	}
	return s->sweep.wrong      ? LOOM_EXIT_WRONG
	       : s->sweep.failures ? LOOM_EXIT_FAILURE
				   : LOOM_EXIT_OK;
}

static void list_cells(const struct loom__sweep_session *s)
{
	for (size_t i = 0; i < s->sweep.cells; i++) {
		const struct loom__sweep_cell *c = &s->sweep.cell[i];
		const char *why = c->skipped ? c->skipped : c->refused;
		const cJSON *v;
		fprintf(s->cli->out, "%-8s", c->skipped ? "skip" : c->refused ? "refused" : "run");
		cJSON_ArrayForEach(v, c->values)
		{
			fprintf(s->cli->out, " %s=%s", v->string, v->valuestring);
		}
		fprintf(s->cli->out, why ? ": %s\n" : "\n", why);
	}
}

static int prepare(struct loom__sweep_session *s)
{
	const struct loom__sweep_args *a = s->args;
	struct loom_error err;
	size_t runnable = 0;
	const char *why = NULL;
	if (loom__cells_make((enum loom__design_kind)a->design, a->factor, a->factors, a->constraint, a->constraints,
			     a->seed, &s->cells, &err)) {
		loom__say_error(s->cli, "sweep: %s", err.text);
		return LOOM_EXIT_USAGE;
	}
	if (s->cells.apart)
		loom__say_warning(s->cli,
				  "%zu pairs of values meet in no cell that the constraints allow",
				  s->cells.apart);
	int status = loom__sweep_resolve(s);
	for (size_t i = 0; i < s->sweep.cells; i++) {
		runnable += !s->sweep.cell[i].skipped && !s->sweep.cell[i].refused;
		why = why ? why : s->sweep.cell[i].refused;
	}
	if (status || runnable || a->dry_run)
		return status;
	loom__say_error(s->cli, "no cell can be run: %s", why ? why : "the constraints leave none");
	return s->reason ? s->reason : LOOM_EXIT_USAGE;
}

static int sweep(const struct loom__cli *cli, const struct loom__sweep_args *a, int argc,
		 char **argv)
{
	struct loom__sweep_session s = {.cli = cli, .args = a};
	s.sweep = (struct loom__sweep){.seed = a->seed,
				       .budget_ns = a->budget,
				       .ops = &loom__sweep_stack_ops,
				       .arg = &s,
				       .progress = show_progress};
	s.journal.fd = -1;
	int status = prepare(&s);
	if (!status && a->dry_run) {
		list_cells(&s);
	} else if (!status) {
		cJSON *head = header(&s, argc, argv);
		status = run(&s, head);
		cJSON_Delete(head);
	}
	loom__sweep_free(&s.sweep);
	loom__cells_free(&s.cells);
	loom__pool_free(&s.pool);
	free(s.title);
	free(s.workload);
	return status;
}

int loom__cmd_sweep(struct loom__cli *cli, int argc, char **argv)
{
	struct loom__sweep_args a = {0};
	int status = loom__sweep_parse(cli, argc, argv, &a);
	if (!status) {
		loom__catch_signals();
		status = sweep(cli, &a, argc, argv);
	}
	loom__sweep_args_free(&a);
	return status < 0 ? LOOM_EXIT_OK : status;
}
