/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/conf/conf.h"
#include "cli/base/session.h"
#include "facts/must.h"
#include "run/result.h"
#include "stack/stack.h"

/* Settings of the run. --set overrides them. */
static const struct loom__setting job[] = {
	{"profile", "run.workload=", "costs"}, {"profile", "transport.use=", "p2p"}, {"profile", "run.samples=", "5"},
	{"profile", "run.devices=", NULL}, {"plugin-path", "gpuloom.plugin_path=", NULL},
};
enum { JOB = sizeof(job) / sizeof(job[0]) };

/* Prints the conf. The options of a simulated device have the same names as the metrics of the workload `costs`. */
static void print_conf(const struct loom__cli *cli, const char *devices, uint32_t workers,
		       const struct loom_result *result)
{
	static const char *const cost[] = {"load_local",	"load_host",    "load_peer",  "store_local", "store_host", "store_peer", "atomic_local",
					   "atomic_host", "atomic_peer", "fence_dev", "fence_sys",  "stream",	"task"};
	struct loom__text left = {0};
	loom__print(cli->out,
		"; Memory costs of %s, measured by `gpuloom doctor --profile '%s'`, gpuloom %s.\n"
		";   gpuloom run CONF THIS --set run.devices=sim:0\n"
		"[device.sim]\nworkers = %u\n",
		devices, devices, loom_version(), workers);
	for (size_t i = 0; i < sizeof(cost) / sizeof(cost[0]); i++) {
		double ns;
		if (loom_result_median(result, cost[i], &ns))
			loom__text_add(&left, ", %s", cost[i]);
		else
			fprintf(cli->out, "%s = %.0fns\n", cost[i], round(ns));
	}
	fprintf(cli->out, "; Not measured: launch_cost, teardown_cost%s.\n", left.at ? loom__must_text(&left) : "");
	loom__text_free(&left);
}

static int measure(const struct loom__cli *cli, const char *devices, struct loom__plan *plan)
{
	struct loom_stack_params params = {.size = sizeof(params), .log = loom__log_line, .log_level = LOOM_LOG_WARN};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	struct loom_error err;
	int code = loom__stack_open(plan, &params, &stack, &err);
	code = code ? code : loom_stack_run(stack, &result, &err);
	if (code)
		loom__say_error(cli, "%s", err.text);
	else
		print_conf(cli, devices, stack->layout.device[0].workers, result);
	loom_result_destroy(result);
	loom_stack_close(stack);
	return (int)loom__exit_of(code);
}

int loom__profile(const struct loom__cli *cli, const char *devices, const char *plugin_path,
		  const struct loom__settings *set)
{
	struct loom__conf_args conf = {.set.n = JOB + set->n};
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	conf.set.at = loom__must(calloc(conf.set.n, sizeof(*conf.set.at)));
	memcpy(conf.set.at, job, sizeof(job));
	conf.set.at[JOB - 2].value = devices;
	conf.set.at[JOB - 1].value = plugin_path ? plugin_path : "";
	if (set->n)
		memcpy(conf.set.at + JOB, set->at, set->n * sizeof(*set->at));
	int status = loom__conf_load(cli, &conf, &cfg);
	status = status ? status : loom__conf_plan(cli, cfg, &plan);
	status = status ? status : measure(cli, devices, &plan);
	loom_config_destroy(cfg);
	free(conf.set.at);
	return status;
}
