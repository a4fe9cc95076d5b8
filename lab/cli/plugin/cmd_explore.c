/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom explore PLUGIN: runs its device code in many schedules on a machine with weak memory. Kernels of other people
 * are the subject of cli/explore. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/session.h"
#include "cli/conf/conf.h"
#include "cli/conf/named.h"
#include "cli/explore/explore_kernel.h"
#include "cli/run/run.h"
#include "facts/must.h"
#include "inspect/probe.h"

/* Seeds of setup k begin at k * SEEDS, so that a seed names its setup, too. */
enum { SEEDS = 1000000 };

struct request {
	struct loom__conf_args conf;
	uint64_t seeds, replay;
	struct loom__kernel_args kernel;
	const struct loom__cli *cli;
};

static const struct loom__option options[] = {
    {"seeds", "N", "number of schedules, of all setups together", LOOM__AT(struct request, seeds, U64), .dflt = "1000",
     .min = 1, .max = SEEDS},
    {"replay", "SEED", "run only the schedule with this seed", LOOM__AT(struct request, replay, U64)},
    {"harness", "FILE", "kernels: host code, compiled after the kernel's file", LOOM__AT(struct request, kernel.harness, STR)},
    {"ranks", "N", "kernels: ranks, with a GPU each", LOOM__AT(struct request, kernel.ranks, U64), .dflt = "1", .min = 1, .max = 8},
    {"grid", "N", "kernels: explore_grid_option of the harness", LOOM__AT(struct request, kernel.grid, U64)},
    {"block", "N", "kernels: explore_block_option of the harness", LOOM__AT(struct request, kernel.block, U64)},
    {"resident", "N", "kernels: blocks that a GPU runs at a time, instead of all", LOOM__AT(struct request, kernel.resident, U64)},
    {"define", "NAME", "kernels: a macro for the compiler, also NAME=VALUE", LOOM__AT(struct request, kernel.define, STR)},
    {"time", "S", "kernels: begin no schedule after so many seconds", LOOM__AT(struct request, kernel.seconds, U64), .dflt = "60", .min = 1, .max = 86400},
    LOOM__OPTION_SET(struct request),
    {0}};

static int run(struct loom__cli *cli, void *args);
static void begin(struct loom__cli *cli, void *args);

const struct loom__usage loom__explore_usage = {
    .command = "explore",
    .synopsis = "PLUGIN.so|NAME|CONF.ini|KERNEL.cu [options]",
    .about =
	"Runs the device code of a plug-in, of those that a conf selects, or a CUDA kernel, in many schedules on a machine\n"
	"with weak memory, without a GPU. Prints the first data race, wrong result or deadlock, with its places in the source and its seed.\n",
    .notes =
	"A plug-in runs in small jobs for its kind: schedulers, detectors, barriers, sync plug-ins and workloads of\n"
	"tasks. It needs device code for GPUs, and the machine a C++ compiler.\n"
	"Exit: 0 nothing found, 2 usage or an error of the compiler, 3 found, 4 cannot be explored here, 130 interrupted.\n",
    .options = options,
    .examples = "explore ./sched_mine.so --seeds 10000\ta plug-in of your own\n"
		"explore ./sched_mine.so --replay 42\tone schedule again\n"
		"explore kernel.cu --harness host.cpp --ranks 2\ta kernel of two GPUs\n"
		"explore job.ini --set device.sim.workers=4\ta conf whose devices are sim:0\n",
    .page = "docs/explore.md",
    .begin = begin,
    LOOM__REQUEST(struct request, conf.file, run)};

static void begin(struct loom__cli *cli, void *args)
{
	struct request *r = args;
	r->cli = cli;
	r->replay = UINT64_MAX;
}

/* ---- setups ---------------------------------------------------------------------------------- */

/* The options of all setups, of which later settings override earlier ones. */
static const char *const common[] = {"transport.use=host", "device.sim.workers=3", "run.devices=sim:0",
				     "device.sim.limit=500ms", NULL};
static const char *const on_two[] = {"run.devices=sim:0 sim:1", "device.sim.workers=2", NULL};
static const char *const spawn[] = {"run.workload=fib", "workload.fib.n=5", "scheduler.use=mgws",
				    "termination.use=counter", NULL};
static const char *const flat[] = {"run.workload=synthetic", "workload.synthetic.tasks=6", "workload.synthetic.depth=2",
				   "workload.synthetic.length=1", "scheduler.use=counter", "termination.use=counter", NULL};
static const char *const hcounter[] = {"termination.use=hcounter", NULL};
static const char *const tree[] = {"termination.use=tree", NULL}; /* it needs the schedulers' counts of stolen tasks */
static const char *const reduce[] = {"run.workload=reduce", "workload.reduce.floats=64", "workload.reduce.rounds=3",
				     NULL};
static const char *const rounds[] = {"run.workload=barrier",          "workload.barrier.few=2",
				     "workload.barrier.difference=2", "workload.barrier.parts=2",
				     "workload.barrier.checked=4",    NULL};
static const char *const items[] = {"run.workload=pattern", "workload.pattern.size=8", "workload.pattern.iterations=4",
				    "workload.pattern.model=multiple", NULL};
static const char *const stencil[] = {"run.workload=stn", "workload.stn.size=8", "workload.stn.iterations=4", NULL};
static const char *const one[] = {"scheduler.use=mgws", "termination.use=counter", NULL};

/* The lists of a setup, for the plug-ins of a kind. */
static const struct setup {
	enum loom_kind kind;
	const char *const *list[3];
} setups[] = {
    {LOOM_SCHED, {spawn}},        {LOOM_SCHED, {spawn, on_two, hcounter}},
    {LOOM_SCHED, {flat, on_two, tree}}, {LOOM_TERM, {spawn}},
    {LOOM_TERM, {flat, on_two}},  {LOOM_BARRIER, {reduce, on_two}},
    {LOOM_BARRIER, {rounds}},     {LOOM_BARRIER, {rounds, on_two}},
    {LOOM_SYNC, {items, on_two}}, {LOOM_SYNC, {stencil, on_two}},
    {LOOM_WORKLOAD, {one}},       {LOOM_WORKLOAD, {one, on_two}},
};

struct job {
	const struct request *r;
	const char *path;          /* of the plug-in */
	const struct setup *setup; /* NULL: the job is the conf of the request */
	uint64_t first, schedules, ran, began_ns;
};

static void set(struct loom__settings *to, const char *before, const char *value)
{
	to->at = loom__must(realloc(to->at, (to->n + 1) * sizeof(*to->at)));
	to->at[to->n++] = (struct loom__setting){.option = "set", .before = before, .value = value};
}

static void set_all(struct loom__settings *to, const char *const *list)
{
	for (; list && *list; list++)
		set(to, "", *list);
}

/* Makes the plan of a job. What the user sets overrides the setup, but not what this command needs. */
static int plan_job(const struct job *j, struct loom_config **cfg, struct loom__plan *plan)
{
	const struct request *r = j->r;
	struct loom__conf_args conf = {.file = r->conf.file};
	char schedule[64], samples[64], use[64];
	const struct loom__settings *user = &r->conf.set;
	if (j->setup) {
		conf.file.n = 0;
		set_all(&conf.set, common);
		for (size_t i = 0; i < LOOM__COUNT(j->setup->list); i++)
			set_all(&conf.set, j->setup->list[i]);
		snprintf(use, sizeof(use), "%s.use=", loom__kind_section(j->setup->kind));
		set(&conf.set, j->setup->kind == LOOM_WORKLOAD ? "run.workload=" : use, j->path);
	}
	for (size_t i = 0; i < user->n; i++) {
		set(&conf.set, "", "");
		conf.set.at[conf.set.n - 1] = user->at[i];
	}
	snprintf(schedule, sizeof(schedule), "%llu", (unsigned long long)j->first);
	snprintf(samples, sizeof(samples), "%llu", (unsigned long long)j->schedules);
	set(&conf.set, "device.sim.schedule=random:", schedule);
	set(&conf.set, "run.samples=", samples);
	set(&conf.set, "run.warmup=", "0");
	set(&conf.set, "device.sim.memory=", "weak");
	int status = loom__conf_load(r->cli, &conf, cfg);
	if (!status)
		status = loom__conf_plan(r->cli, *cfg, plan);
	free(conf.set.at);
	return status;
}

/* ---- a job ----------------------------------------------------------------------------------- */

static void started(void *arg, const struct loom_stack *s, struct loom_result *result)
{
	(void)s, (void)result;
	((struct job *)arg)->began_ns = loom__now_ns();
}

static int ended(void *arg, const struct loom_stack *s, struct loom_result *result, struct loom_error *err)
{
	(void)s, (void)result, (void)err;
	loom__measured();
	((struct job *)arg)->ran++;
	return 0;
}

/* Prints what was found, or how many schedules ran. */
static int tell(const struct job *j, const struct loom__run_opts *run, int rc, struct loom_error *err)
{
	FILE *out = j->r->cli->out;
	double seconds = (double)(loom__now_ns() - j->began_ns) / 1e9;
	loom__print(out, "%s on %s: %llu schedules", run->workload, run->devices, (unsigned long long)j->ran);
	if (!rc || rc == LOOM_EINTR) {
		fprintf(out, ", %.0f per second, nothing found%s\n", (double)j->ran / seconds,
			rc ? "; interrupted" : "");
		return rc ? LOOM_EXIT_INTERRUPTED : LOOM_EXIT_OK;
	}
	char *repeat = strstr(err->text, " ([device.sim]"); /* the same seed, for `gpuloom run` */
	if (repeat)
		*repeat = 0;
	if (rc == LOOM_ENOTSUP) {
		fputs("\n", out);
		return loom__refuse(j->r->cli, LOOM_EXIT_UNAVAILABLE, "explore: %s", err->text);
	}
	loom__print(out, " passed in %.2g s, then: %s\nagain: --replay %llu\n", seconds, err->text,
		    (unsigned long long)(j->first + j->ran));
	return LOOM_EXIT_WRONG;
}

static int run_stack(struct job *j, struct loom__plan *plan)
{
	const struct loom__cli *cli = j->r->cli;
	struct loom_stack_params params = {.size = sizeof(params), .log = loom__log_line, .log_level = LOOM_LOG_WARN};
	struct loom__run_hooks hooks = {.begin = started, .sample = ended, .arg = j};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	struct loom_error err = {0};
	const struct loom__run_opts run = plan->run; /* the plan belongs to the stack from here on */
	int rc = loom__stack_open(plan, &params, &stack, &err);
	if (!rc) {
		loom__rank_threads_on_stop(NULL, stack, "gpuloom: stopping after this schedule\n");
		if (loom__stop_asked())
			loom_stack_stop(stack);
		rc = loom__stack_run(stack, &hooks, &result, &err);
		loom__on_stop(NULL, NULL, NULL);
	}
	int status = j->began_ns ? tell(j, &run, rc, &err) : (int)loom__exit_of(rc);
	if (!j->began_ns && rc)
		loom__say_error(cli, "%s", err.text);
	loom_result_destroy(result);
	loom_stack_close(stack);
	return status;
}

static int run_job(struct job *j)
{
	struct loom_config *cfg = NULL;
	struct loom__plan plan;
	int status = plan_job(j, &cfg, &plan), simulated = 1;
	for (size_t i = 0; !status && i < plan.choices; i++)
		simulated &=
		    plan.choice[i].kind != LOOM_DEVICE || plan.choice[i].plugin->caps & LOOM_CAP_DEVICE_IS_VIRTUAL;
	if (!status && (!simulated || plan.run.ranks > 1)) {
		loom__plan_free(&plan);
		status = loom__refuse(j->r->cli, LOOM_EXIT_UNAVAILABLE,
				      "explore: only jobs of one rank on simulated devices are explored: add --set "
				      "run.ranks=1 --set run.devices=sim:0");
	} else if (!status) {
		status = run_stack(j, &plan); /* the stack frees the plan */
	}
	loom_config_destroy(cfg);
	return status;
}

/* ---- command --------------------------------------------------------------------------------- */

/* Runs the schedules of the setup `k` of `n`, or the conf of the request. */
static int run_part(struct job j, uint64_t k, uint64_t n)
{
	const struct request *r = j.r;
	j.first = k * SEEDS;
	j.schedules = r->seeds / n + (k < r->seeds % n);
	if (r->replay != UINT64_MAX) {
		j.schedules = !j.setup || r->replay / SEEDS == k;
		j.first = r->replay;
	}
	return j.schedules ? run_job(&j) : LOOM_EXIT_OK;
}

static int explore_plugin(const struct request *r)
{
	struct loom_manifest m;
	struct loom_error err;
	char *path = NULL;
	uint64_t n = 0, k = 0;
	int status = LOOM_EXIT_OK;
	if (loom__plugin_named(r->conf.file.at[0], NULL, &path, &err) || loom__manifest_read(path, &m, &err)) {
		free(path);
		return loom__refuse(r->cli, LOOM_EXIT_USAGE, "explore: %s", err.text);
	}
	enum loom_kind kind = (enum loom_kind)m.kind;
	for (size_t i = 0; i < LOOM__COUNT(setups); i++)
		n += setups[i].kind == kind;
	if (!n)
		status = loom__refuse(
		    r->cli, LOOM_EXIT_UNAVAILABLE,
		    "explore: there is no job for plug-ins of the kind %s: name a conf that selects this one",
		    loom__kind_name(kind));
	else if (r->replay != UINT64_MAX && r->replay / SEEDS >= n)
		status = loom__refuse(r->cli, LOOM_EXIT_USAGE, "explore: no schedule of this plug-in has the seed %llu",
				      (unsigned long long)r->replay);
	for (size_t i = 0; i < LOOM__COUNT(setups) && !status; i++)
		if (setups[i].kind == kind)
			status = run_part((struct job){.r = r, .path = path, .setup = &setups[i]}, k++, n);
	free(path);
	return status;
}

static int run(struct loom__cli *cli, void *args)
{
	const struct request *r = args;
	const char *name = r->conf.file.n == 1 ? r->conf.file.at[0] : NULL;
	size_t length = name ? strlen(name) : 0;
	if (!name)
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "explore: name a plug-in, a conf or a kernel, as in: gpuloom explore ./sched_mine.so");
	loom__catch_signals();
	if (loom__is_kernel(name) && r->conf.set.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "explore: --set is for confs and plug-ins; a kernel has --define");
	if (loom__is_kernel(name)) {
		int again = r->replay != UINT64_MAX;
		return loom__explore_kernel(cli, name, &r->kernel, again ? r->replay : 0, again ? 1 : r->seeds);
	}
	return length > 4 && !strcmp(name + length - 4, ".ini") ? run_part((struct job){.r = r}, 0, 1)
								: explore_plugin(r);
}
