/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom run: a conf, its samples, a table or JSON; Ctrl-C keeps what was measured. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/conf.h"
#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/watch.h"
#include "report/table.h"
#include "run/engine.h"
#include "run/trace.h"

static const char help[] =
	"usage: gpuloom run CONF... [options]\n\n"
	"Runs the workload that the conf files select, verifies every result, and prints a table.\n"
	"Later files win over earlier ones, --set over files.\n\n"
	"  --set SECTION.KEY=VALUE  set one option, as often as you like\n"
	"  --samples N              the same as --set run.samples=N\n"
	"  -n RANKS                 as many processes, one job: for workloads over the network; also mpirun, srun\n"
	"  --json FILE|-            write the result as JSON; with '-' to standard output, instead of the table\n"
	"  --metrics FILE           write OpenMetrics text there after each sample\n"
	"  --watch                  show what each worker did, sample by sample\n"
	"  --trace FILE             write the timeline of the last execution (chrome://tracing, Perfetto):\n"
	"                           steals, idle times and the like, and one of every 100 tasks\n"
	"  --trace-every N          one of every N tasks instead; 0: no tasks\n"
	"  --quiet                  no table, no progress: only errors\n"
	"  --log LEVEL              error, warn (default), info or debug: what plug-ins say, on stderr\n\n"
	"Ctrl-C ends after the sample in progress and keeps the results; again ends at once.\n"
	"Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 124 timeout,\n"
	"130 interrupted.\n";

static const char *const options[] = {"--set", "--samples", "-n", "--json", "--metrics", "--watch",
				     "--quiet", "--log", "--trace", "--trace-every", "--help"};

struct run_args {
	int argc; /* the command as it was given, for the result */
	char **argv;
	struct loom__conf_args conf;
	const char *json, *ranks, *metrics, *trace;
	unsigned trace_every;
	int quiet, watch, log_level;
};

static void stop(void *arg)
{
	loom_stack_stop(arg);
}

static int parse(const struct loom__cli *cli, int argc, char **argv, struct run_args *a, char *samples)
{
	for (int i = 1; i < argc;) {
		const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			fputs(help, cli->out);
			return -1;
		}
		if (!strcmp(arg, "--quiet")) {
			a->quiet = 1;
			i++;
		} else if (!strcmp(arg, "--watch")) {
			a->watch = 1;
			i++;
		} else if (!strcmp(arg, "--json") || !strcmp(arg, "--samples") || !strcmp(arg, "--log") ||
			   !strcmp(arg, "-n") || !strcmp(arg, "--metrics") || !strcmp(arg, "--trace") ||
			   !strcmp(arg, "--trace-every")) {
			if (!value) {
				loom__say_error(cli, "run: %s needs a value", arg);
				return LOOM_EXIT_USAGE;
			}
			if (!strcmp(arg, "--json"))
				a->json = value;
			else if (!strcmp(arg, "--trace"))
				a->trace = value;
			else if (!strcmp(arg, "--trace-every")) {
				char *end;
				unsigned long every = strtoul(value, &end, 10);
				if (*end || end == value || *value == '-' || every > 1u << 30) {
					loom__say_error(cli, "run: --trace-every is a number of tasks, not '%s'",
							value);
					return LOOM_EXIT_USAGE;
				}
				a->trace_every = (unsigned)every;
			} else if (!strcmp(arg, "-n"))
				a->ranks = value;
			else if (!strcmp(arg, "--metrics"))
				a->metrics = value;
			else if (!strcmp(arg, "--samples"))
				snprintf(samples, 64, "run.samples=%s", value);
			else if ((a->log_level = loom__log_level(value)) < 0) {
				loom__say_error(cli, "run: --log is error, warn, info or debug, not '%s'",
						value);
				return LOOM_EXIT_USAGE;
			}
			i += 2;
		} else {
			int used = loom__conf_argument(&a->conf, argc, argv, i);
			if (!used)
				return loom__bad_option(cli, "run", arg, options, LOOM__COUNT(options));
			i += used;
		}
	}
	if (!a->conf.files) {
		loom__say_error(cli, "run: which conf? Try `gpuloom run conf/contains.ini`");
		return LOOM_EXIT_USAGE;
	}
	if (*samples)
		a->conf.set[a->conf.sets++] = samples;
	return 0;
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
	} else if (a->json && !strcmp(a->json, "-")) {
		fprintf(cli->out, "%s\n", json);
	} else {
		struct loom_error err;
		struct loom__text text = {0};
		if (a->json && loom__write_file(a->json, json, strlen(json), &err)) {
			loom__say_error(cli, "%s", err.text);
			status = LOOM_EXIT_FAILURE;
		}
		struct winsize size = {0};
		ioctl(fileno(cli->out), TIOCGWINSZ, &size);
		loom__table_result(doc, size.ws_col, &text);
		if (!a->quiet && text.at)
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
		.size = sizeof(params), .log = loom__log_line, .log_level = a->log_level, .ranks = ranks};
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

int loom__cmd_run(struct loom__cli *cli, int argc, char **argv)
{
	struct run_args a = {.argc = argc, .argv = argv, .log_level = 1, .trace_every = 100};
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	struct loom__boot boot;
	struct loom_error err = {0};
	char samples[64] = "";
	int status = parse(cli, argc, argv, &a, samples);
	if (!status) {
		loom__catch_signals();
		status = loom__conf_load(cli, &a.conf, &cfg);
	}
	if (!status)
		status = loom__conf_plan(cli, cfg, &plan);
	if (!status) { /* forks ranks once the conf is known to be good */
		if (loom__ranks_begin(cli, a.ranks, &boot, &status)) {
			const struct loom_ranks *ranks = boot.ranks.ranks > 1 ? &boot.ranks : NULL;
			status = run_plan(cli, &a, &plan, ranks, &err);
			status = loom__ranks_end(cli, &boot, status, &err);
		} else {
			loom__plan_free(&plan);
		}
	}
	loom_config_destroy(cfg);
	loom__conf_free(&a.conf);
	return status < 0 ? LOOM_EXIT_OK : status;
}
