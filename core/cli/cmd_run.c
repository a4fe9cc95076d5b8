/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom run: a conf, its samples, a table or JSON; Ctrl-C keeps what was measured. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf.h"
#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/sweep.h"
#include "cli/watch.h"
#include "report/table.h"
#include "run/engine.h"
#include "run/trace.h"

struct run_args {
	int argc; /* the command as it was given, for the result */
	char **argv;
	struct loom__conf_args conf;
	const char *json, *ranks, *metrics, *trace;
	uint32_t trace_every, log;
	uint8_t quiet, watch, no_sweep;
	struct loom__sweep_wish sweep;
};

static const struct loom__option options[] = {
	LOOM__OPTION_SET(struct run_args),
	LOOM__OPTION_SAMPLES(struct run_args),
	{"ranks", "N", "run one job in N processes, for workloads that use the network; mpirun and srun serve as well",
	 LOOM__AT(struct run_args, ranks, STR), .letter = 'n'},
	{"json", "FILE|-",
	 "write the result as JSON (of a sweep: one line per sample); '-' is standard output, in place of "
	 "the table",
	 LOOM__AT(struct run_args, json, STR), .writes = 1},
	{"metrics", "FILE", "write OpenMetrics text there after each sample",
	 LOOM__AT(struct run_args, metrics, STR), .writes = 1},
	{"watch", NULL, "show after each sample what every worker did",
	 LOOM__AT(struct run_args, watch, BOOL)},
	{"trace", "FILE",
	 "write the timeline of the last execution, for chrome://tracing or Perfetto: steals, idle times and "
	 "the like, and a sample of the tasks",
	 LOOM__AT(struct run_args, trace, STR), .writes = 1},
	{"trace-every", "N", "one of every N tasks is in the timeline; 0: none",
	 LOOM__AT(struct run_args, trace_every, U32), .dflt = "100", .max = 1u << 30},
	LOOM__OPTIONS_SWEEP(struct run_args),
	{"no-sweep", NULL, "run once with the conf's own values, whatever its [sweep] says",
	 LOOM__AT(struct run_args, no_sweep, BOOL)},
	{"quiet", NULL, "no table, no progress: only errors", LOOM__AT(struct run_args, quiet, BOOL)},
	LOOM__OPTION_LOG(struct run_args),
	{0}};

const struct loom__usage loom__run_usage = {
	.command = "run",
	.synopsis = "CONF... [options]",
	.about = "Runs the workload that the conf files select, verifies every result, and prints a table.\n"
		 "Later files override earlier ones, and --set overrides files. A conf with [sweep] sections is\n"
		 "run in all its configurations, as by `gpuloom sweep`.\n",
	.notes = "Ctrl-C ends after the sample in progress and keeps the results; a second one ends at once.\n"
		 "Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 124 timeout,\n"
		 "130 interrupted.\n",
	.options = options,
	.words = offsetof(struct run_args, conf.file)};

static void stop(void *arg)
{
	loom_stack_stop(arg);
}

static int parse(const struct loom__cli *cli, int argc, char **argv, struct run_args *a)
{
	int status = loom__options_read(cli, &loom__run_usage, argc, argv, a);
	if (status || a->conf.file.n)
		return status;
	loom__say_error(cli, "run: which conf? Try `gpuloom run conf/contains.ini`");
	return LOOM_EXIT_USAGE;
}

static int print(const struct loom__cli *cli, const struct run_args *a, const struct loom_result *r)
{
	cJSON *doc = loom__result_document(r);
	cJSON *command = doc ? cJSON_AddArrayToObject(doc, "command") : NULL;
	cJSON_AddItemToArray(command, cJSON_CreateString("gpuloom"));
	for (int i = 0; i < a->argc; i++)
		cJSON_AddItemToArray(command, cJSON_CreateString(a->argv[i]));
	char *json = doc && a->json ? cJSON_Print(doc) : NULL;
	int status = LOOM_EXIT_OK;
	if (!doc || (a->json && !json)) {
		loom__say_error(cli, "out of memory for the result");
		status = LOOM_EXIT_FAILURE;
	} else {
		struct loom__text text = {0};
		int there = 0;
		if (a->json)
			status = loom__put_result(cli, a->json, json, &there);
		loom__table_result(doc, &text);
		if (!there && !a->quiet && text.at)
			fputs(text.at, cli->out);
		loom__text_free(&text);
	}
	free(json);
	cJSON_Delete(doc);
	return status;
}

#define TRACE_ROOM 65536 /* events per worker: 2 MiB */

static int write_trace(const struct loom__cli *cli, const struct run_args *a, struct loom_stack *stack)
{
	struct loom_error err;
	uint64_t lost;
	if (loom__trace_write(stack, a->trace, &lost, &err)) {
		loom__say_error(cli, "%s", err.text);
		return LOOM_EXIT_FAILURE;
	}
	if (lost && !a->quiet)
		fprintf(stderr, "gpuloom: the trace lacks its last %llu events: raise --trace-every\n",
			(unsigned long long)lost);
	return LOOM_EXIT_OK;
}

static int run_plan(const struct loom__cli *cli, const struct run_args *a, struct loom__plan *plan,
		    const struct loom_ranks *ranks, struct loom_error *err)
{
	struct loom_stack_params params = {
		.size = sizeof(params), .log = loom__log_line, .log_level = (int)a->log, .ranks = ranks};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	int first = !ranks || !ranks->rank; /* it speaks for all */
	struct loom__watch watch = {.cli = cli,
				    .line = cli->err_is_tty && !a->quiet && first,
				    .workers = a->watch && first,
				    .metrics = first ? a->metrics : NULL};
	struct loom__run_hooks hooks = {
		.sample = loom__watch_sample, .beat = loom__watch_beat, .arg = &watch};
	if (!*plan->run.workload) {
		loom__say_error(cli, "the conf names no job: add 'workload = NAME' to [run] "
				     "(`gpuloom list workload` shows what there is)");
		loom__plan_free(plan);
		return LOOM_EXIT_USAGE;
	}
	if (ranks && first && !loom__plan_get(plan, LOOM_TRIGGER))
		loom__say_warning(cli, "the conf has no [trigger], so the ranks do not work together: each of the %u runs "
				       "the whole job", ranks->ranks);
	int rc = loom__stack_open(plan, &params, &stack, err);
	if (!rc) {
		loom__on_stop(stop, stack,
			      first ? "gpuloom: stopping after this sample; again to stop now\n" : NULL);
		if (loom__stop_asked()) /* while the plug-ins were opened */
			loom_stack_stop(stack);
		if (a->trace && first)
			loom__trace_want(stack, TRACE_ROOM, a->trace_every);
		rc = loom__stack_run(stack, &hooks, &result, err);
		loom__on_stop(NULL, NULL, NULL);
	}
	loom__watch_end(&watch);
	int status = loom__exit_of(rc);
	if (result && first) {
		int printed = print(cli, a, result);
		status = status ? status : printed;
	}
	if (!rc && !status && a->trace && first)
		status = write_trace(cli, a, stack);
	err->code = rc;
	loom_result_destroy(result);
	loom_stack_close(stack);
	return status;
}

/* What a sweep has no place for. */
static int check_sweep(const struct loom__cli *cli, const struct run_args *a)
{
	const char *option = a->ranks ? "--ranks" : a->trace ? "--trace" : a->metrics ? "--metrics" : a->watch ? "--watch" : NULL;
	struct loom__boot_plan plan;
	struct loom_error err;
	if (!option && (loom__boot_plan(0, &plan, &err) || plan.how != LOOM__BOOT_ALONE))
		option = "a launcher of several ranks";
	if (!option)
		return 0;
	loom__say_error(cli, "run: %s is for a single run, and '%s' has [sweep]: add --no-sweep", option,
			a->conf.file.at[0]);
	return LOOM_EXIT_USAGE;
}

static int run_sweep(const struct loom__cli *cli, struct run_args *a, const struct loom__sweep_spec *spec)
{
	struct loom__sweep_wish *w = &a->sweep;
	int status = check_sweep(cli, a);
	w->output = a->json;
	w->lines = !strcmp(a->json ? a->json : spec->opts.output, "-");
	w->quiet = a->quiet;
	w->log = a->log;
	w->argc = a->argc;
	w->argv = a->argv;
	return status ? status : loom__sweep_conf(cli, &a->conf, spec, w);
}

static int run_once(struct loom__cli *cli, struct run_args *a, struct loom_config *cfg)
{
	struct loom__plan plan;
	struct loom__boot boot;
	struct loom_error err = {0};
	if (a->sweep.resume || a->sweep.anew) {
		loom__say_error(cli, "run: --%s is for a conf with [sweep]", a->sweep.resume ? "resume" : "anew");
		return LOOM_EXIT_USAGE;
	}
	int status = loom__conf_plan(cli, cfg, &plan);
	if (status)
		return status;
	if (a->sweep.dry_run) {
		fprintf(cli->out, "run      %s: %u samples\n", plan.run.workload, plan.run.samples);
		loom__plan_free(&plan);
		return LOOM_EXIT_OK;
	}
	/* forks ranks once the conf is known to be good */
	if (!loom__ranks_begin(cli, a->ranks, &boot, &status)) {
		loom__plan_free(&plan);
		return status;
	}
	status = run_plan(cli, a, &plan, boot.ranks.ranks > 1 ? &boot.ranks : NULL, &err);
	return loom__ranks_end(cli, &boot, status, &err);
}

int loom__cmd_run(struct loom__cli *cli, int argc, char **argv)
{
	struct run_args a = {.argc = argc, .argv = argv};
	struct loom_config *cfg = NULL;
	struct loom__sweep_spec spec = {0};
	int status = parse(cli, argc, argv, &a);
	if (!status) {
		loom__catch_signals();
		status = loom__conf_load(cli, &a.conf, &cfg);
	}
	if (!status && !a.no_sweep)
		status = loom__conf_sweep(cfg, &spec);
	if (!status)
		status = spec.factors ? run_sweep(cli, &a, &spec) : run_once(cli, &a, cfg);
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
	loom__options_free(&loom__run_usage, &a);
	return status < 0 ? LOOM_EXIT_OK : status;
}
