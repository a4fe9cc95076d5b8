/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom run: runs a conf, and prints a table or JSON. Ctrl-C ends the run and keeps the samples taken so far. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf/conf.h"
#include "cli/base/files.h"
#include "cli/run/run.h"
#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "cli/report/report.h"
#include "report/text/table.h"
#include "compare/compare.h"
#include "run/engine.h"
#include "facts/facts.h"
#include "facts/text.h"
#include "facts/trace.h"
#include "facts/must.h"
#include "facts/write.h"

struct run_args {
	struct loom__conf_args conf;
	const char *json, *ranks, *trace, *derive;
	struct loom__derived derived;
	uint32_t trace_every, log;
	uint8_t quiet, no_sweep, verbose, workers;
	struct loom__sweep_params sweep;
};

static const struct loom__option options[] = {
    LOOM__OPTION_SET(struct run_args),
    LOOM__OPTION_TRUST(struct run_args),
    LOOM__OPTION_SAMPLES(struct run_args),
    {"ranks", "N",
     "number of ranks of the job: processes, or threads on simulated devices; for workloads that use the network "
     "and for tasks that ranks share; mpirun and srun also work",
     LOOM__AT(struct run_args, ranks, STR), .letter = 'n'},
    {"json", "FILE|-",
     "write the result as JSON (a sweep: one line per sample); '-' is standard output, instead of "
     "the table",
     LOOM__AT(struct run_args, json, STR), .writes = LOOM__WRITES_EITHER},
    LOOM__OPTION_DERIVE(struct run_args),
    {"verbose", NULL,
     "also show metrics without a direction, the lowest, median and highest counters of the workers, and what plug-ins "
     "chose where the conf leaves a choice: providers, cores, etc.",
     LOOM__AT(struct run_args, verbose, BOOL), .letter = 'v'},
    {"workers", NULL, "show the counters of each worker", LOOM__AT(struct run_args, workers, BOOL)},
    {"trace", "FILE",
     "write the timeline of the last execution (steals, idle times, a sample of the tasks) for "
     "chrome://tracing or Perfetto",
     LOOM__AT(struct run_args, trace, STR), .writes = LOOM__WRITES_RESULT},
    {"trace-every", "N", "record one of every N tasks in the timeline; 0: none",
     LOOM__AT(struct run_args, trace_every, U32), .dflt = "100", .max = 1u << 30},
    LOOM__OPTIONS_SWEEP(struct run_args),
    {"no-sweep", NULL, "run once with the conf's own values, ignoring its [sweep]",
     LOOM__AT(struct run_args, no_sweep, BOOL)},
    {"quiet", NULL, "no table, no progress: only errors", LOOM__AT(struct run_args, quiet, BOOL)},
    LOOM__OPTION_LOG(struct run_args),
    {0}};

static int run(struct loom__cli *cli, void *args);
static int rerun(struct loom__cli *cli, void *args);

const struct loom__usage loom__run_usage = {
    .command = "run",
    .synopsis = "CONF... [options]",
    .about = "Runs the workload that the conf files select, verifies every result, and prints a table.\n"
	     "Later files override earlier ones, and --set overrides files. A conf with [sweep] sections is\n"
	     "run in all its configurations, as by `gpuloom sweep`.\n",
    .notes = "Ctrl-C ends after the sample in progress and keeps the results; a second one ends at once.\n\n"
	     "Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 124 timeout,\n"
	     "130 interrupted.\n",
    .options = options,
    .examples = "run contains\ta search through documents, on two CPU devices\n"
		"run contains --samples 20 --json r.json\tmore samples, and the result as a file\n"
		"run contains --set scheduler.use=static\tanother scheduler\n"
		"run -n 2 pingpong\tmessages between two ranks\n",
    .page = "docs/reading-output.md",
    .inputs = 1,
    LOOM__REQUEST(struct run_args, conf.file, run)};

const struct loom__usage loom__rerun_usage = {
    .command = "rerun",
    .synopsis = "RESULT.json [options]",
    .about =
	"Repeats the run recorded in RESULT.json with the same options and seed, then lists what differs: versions,\n"
	"builds of plug-ins, options, the machine. `--set` changes options. Exit codes: as of `gpuloom run`.\n",
    .options = options,
    .examples = "rerun r.json\tthe same run once more\n"
		"rerun r.json --set device.cpu.workers=1\tthe same with another option\n",
    .page = "docs/results.md",
    .inputs = 1,
    LOOM__REQUEST(struct run_args, conf.file, rerun)};

static int has_scheduler(const cJSON *doc)
{
	const cJSON *p;
	int has = 0;
	cJSON_ArrayForEach(p, loom__json_list(doc, "plugins"))
	{
		has |= !strncmp(loom__json_text(p, "name"), "sched_", 6);
	}
	return has;
}

static int print(const struct loom__cli *cli, const struct run_args *a, const struct loom_result *r)
{
	cJSON *doc = loom__must(loom__result_document(r));
	loom__command_line(doc, cli->argc, cli->argv);
	loom__result_warn(doc);
	if (a->conf.file.n == 1 && loom__input_kind(a->conf.file.at[0]) == LOOM__INPUT_DOCUMENT && !a->quiet)
		loom__rerun_tell(cli, a->conf.file.at[0], doc);
	char *json = a->json ? loom__must(loom__json_print(doc, 1)) : NULL;
	struct loom__text text = {0};
	int there = 0, status = json ? loom__put_result(cli, a->json, json, &there) : LOOM_EXIT_OK;
	loom__table_result(doc, (a->verbose ? LOOM__SHOW_ALL : 0) | (a->workers ? LOOM__SHOW_WORKERS : 0), &text);
	int whole = !a->verbose && !a->workers && !strcmp(loom__json_text(doc, "status"), "ok");
	whole &= !a->conf.set.n && !(loom__json_number(doc, "ranks") > 1); /* compare with this conf alone has the same job */
	if (whole && a->conf.file.n == 1 && loom__input_kind(a->conf.file.at[0]) == LOOM__INPUT_CONF)
		loom__line_add(&text, "  next: %s compare %s --vary %s\n", program_invocation_name, a->conf.file.at[0],
			       has_scheduler(doc) ? "scheduler.use=static,mgws" : "SECTION.KEY=VALUE,VALUE");
	if (!there && !a->quiet)
		loom__put_table(cli, &text);
	loom__text_free(&text);
	free(json);
	cJSON_Delete(doc);
	return status;
}

#define TRACE_ROOM 65536 /* number of events per worker, which need 2 MiB */

static int write_trace(const struct loom__cli *cli, const struct run_args *a, struct loom_stack *stack)
{
	struct loom_error err;
	struct loom__traced traced;
	if (loom__trace_write(stack, a->trace, &traced, &err))
		return loom__refuse(cli, LOOM_EXIT_FAILURE, "%s", err.text);
	if (traced.lost && !a->quiet)
		fprintf(stderr, "gpuloom: the trace lacks the last %llu events: increase --trace-every\n",
			(unsigned long long)traced.lost);
	if (!traced.tasks && a->trace_every && !a->quiet)
		loom__say_warning(cli, "the trace shows when workers were busy, but no tasks: the workers of this "
				       "workload do not use a scheduler");
	return LOOM_EXIT_OK;
}

/* Data of the callbacks during and after an execution. */
struct beside {
	struct loom__watch watch; /* the first member, because loom__watch_beat() receives the whole struct */
	const struct loom__derived *derived;
};

static int after_sample(void *arg, const struct loom_stack *s, struct loom_result *r, struct loom_error *err)
{
	struct beside *b = arg;
	loom__measured();
	loom__watch_sample(&b->watch, s, r);
	return loom__derived_sample(b->derived, &r->sample[r->samples - 1], err);
}

static void while_running(void *arg, const struct loom_stack *s, uint64_t since_ns)
{
	loom__measured();
	loom__watch_beat(arg, s, since_ns);
}

/* Runs the job of a plan. `others` are the other ranks if ranks are threads of this process, or NULL. */
static int run_plan(const struct loom__cli *cli, const struct run_args *a, struct loom__plan *plan,
		    const struct loom_ranks *ranks, struct loom__rank_threads *others, struct loom_error *err)
{
	struct loom_stack_params params = {
	    .size = sizeof(params), .log = loom__log_line, .log_level = (int)a->log, .ranks = ranks};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	int first = !ranks || !ranks->rank; /* rank 0 prints for all ranks */
	struct beside beside = {
	    .watch = {.cli = cli, .line = cli->err_is_tty && !a->quiet && first, .silent = a->quiet || !first},
	    .derived = &a->derived};
	struct loom__run_hooks hooks = {.begin = loom__facts_begin,
					.sample = after_sample,
					.beat = while_running,
					.progress = loom__watch_verifying,
					.arg = &beside};
	if (ranks && first && !loom__plan_get(plan, LOOM_TRIGGER))
		loom__say_warning(cli,
				  "the conf has no [trigger], so the ranks do not communicate: each of the %u runs "
				  "the whole job",
				  ranks->ranks);
	int rc = loom__stack_open(plan, &params, &stack, err);
	if (!rc) {
		loom__rank_threads_on_stop(others, stack,
					   first ? "gpuloom: stopping after this sample; again to stop now\n" : NULL);
		if (loom__stop_asked()) /* a signal may have come while plug-ins were opened */
			loom_stack_stop(stack);
		if (a->trace && first)
			loom__trace_want(stack, TRACE_ROOM, a->trace_every);
		rc = loom__stack_run(stack, &hooks, &result, err);
		loom__on_stop(NULL, NULL, NULL);
	}
	loom__watch_end(&beside.watch);
	rc = loom__rank_threads_finish(others, rc, err);
	if (result)
		loom__facts_end(stack, result);
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

/* Rejects options that a sweep does not support. */
static int check_sweep(const struct loom__cli *cli, const struct run_args *a)
{
	const char *option = a->ranks ? "--ranks" : a->trace ? "--trace" : a->derive ? "--derive" : NULL;
	struct loom__boot_plan plan;
	struct loom_error err;
	if (!option && (loom__boot_plan(0, &plan, &err) || plan.how != LOOM__BOOT_ALONE))
		option = "a launcher of several ranks";
	if (!option)
		return 0;
	return loom__refuse(cli, LOOM_EXIT_USAGE, "run: %s requires a single run, but '%s' has [sweep]: add --no-sweep",
			    option, a->conf.file.at[0]);
}

static int run_sweep(const struct loom__cli *cli, struct run_args *a, const struct loom__sweep_spec *spec)
{
	struct loom__sweep_params *w = &a->sweep;
	int status = check_sweep(cli, a);
	w->output = a->json;
	w->lines = loom__names_stdout(a->json ? a->json : spec->opts.output);
	w->quiet = a->quiet;
	w->log = a->log;
	return status ? status : loom__sweep_conf(cli, &a->conf, spec, w);
}

/* Runs all ranks as threads of this process. */
static int run_rank_threads(struct loom__cli *cli, struct run_args *a, struct loom_config *cfg, struct loom__plan *plan,
			    uint32_t ranks)
{
	struct loom__rank_threads *others;
	struct loom_error err = {0};
	int rc = loom__rank_threads_start(cfg, ranks, LOOM__RANK_THREADS_RUN, &others, &err);
	int status;
	if (rc) {
		status = loom__exit_of(rc);
		loom__plan_free(plan);
	} else {
		status = run_plan(cli, a, plan, loom__rank_threads_ranks(others), others, &err);
	}
	if (err.code)
		loom__say_error(cli, "%s", err.text);
	return status;
}

static int run_once(struct loom__cli *cli, struct run_args *a, struct loom_config *cfg)
{
	struct loom__plan plan;
	struct loom__boot boot;
	struct loom_error err = {0};
	if (a->sweep.resume || a->sweep.restart)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "run: --%s requires a conf with [sweep]",
				    a->sweep.resume ? "resume" : "restart");
	if (a->json && loom__file_keeps_sweep("--json", a->json, &err))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "run: %s", err.text);
	int status = loom__conf_plan(cli, cfg, &plan);
	if (status)
		return status;
	if (a->sweep.dry_run) {
		fprintf(cli->out, "run      %s: %u samples\n", plan.run.workload, plan.run.samples);
		loom__plan_free(&plan);
		return LOOM_EXIT_OK;
	}
	if (!*plan.run.workload) {
		loom__say_error(cli, "the conf selects no workload: add 'workload = NAME' to [run] "
				     "(see `gpuloom list workload`)");
		loom__plan_free(&plan);
		return LOOM_EXIT_USAGE;
	}
	uint32_t ranks = 1;
	int threads = loom__ranks_threads(cli, a->ranks, &plan, &ranks, &status);
	if (threads && !status)
		return run_rank_threads(cli, a, cfg, &plan, ranks);
	if (threads) {
		loom__plan_free(&plan);
		return status;
	}
	/* Ranks are forked here, after the conf has been checked, so that errors in the conf are printed only once. */
	if (!loom__ranks_begin(cli, a->ranks, plan.run.ranks, &boot, &status)) {
		loom__plan_free(&plan);
		return status;
	}
	status = run_plan(cli, a, &plan, boot.ranks.ranks > 1 ? &boot.ranks : NULL, NULL, &err);
	return loom__ranks_end(cli, &boot, status, &err);
}

static int run(struct loom__cli *cli, void *args)
{
	struct run_args *a = args;
	struct loom_config *cfg = NULL;
	struct loom__sweep_spec spec = {0};
	if (!a->conf.file.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "run: no conf given: try `gpuloom run contains`, or see `gpuloom list confs`");
	int status = loom__derive_option(cli, a->derive, &a->derived);
	if (status)
		return status;
	loom__catch_signals();
	status = loom__conf_load(cli, &a->conf, &cfg);
	if (!status && !a->no_sweep)
		status = loom__conf_sweep(cfg, &spec);
	if (!status)
		status = loom__check_stdout(cli, a->json ? a->json : spec.opts.output, a->quiet && !spec.factors);
	if (!status)
		status = spec.factors ? run_sweep(cli, a, &spec) : run_once(cli, a, cfg);
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
	return status;
}

static int rerun(struct loom__cli *cli, void *args)
{
	const struct run_args *a = args;
	if (a->conf.file.n == 1 && loom__input_kind(a->conf.file.at[0]) == LOOM__INPUT_DOCUMENT)
		return run(cli, args);
	return loom__refuse(cli, LOOM_EXIT_USAGE, "rerun: no result given: try `gpuloom run CONF --json r.json`, "
			"then `gpuloom rerun r.json`");
}
