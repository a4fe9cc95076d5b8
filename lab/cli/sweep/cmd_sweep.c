/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom sweep: adds the options of the command line to the conf, and runs the sweep of the conf. */
#include <math.h>
#include <string.h>

#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "facts/write.h"
#include "ranks/boot.h"

struct sweep_args {
	struct loom__conf_args conf;
	struct loom__sweep_params sweep;
	uint32_t log;
};

static int is_assignment(const char *option, const char *text, struct loom_error *err)
{
	const char *equals = strchr(text, '='), *dot = strchr(text, '.');
	if (equals && dot && dot < equals)
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "--%s %s: not of the form section.key=value,value", option, text);
}

static int take_vary(void *args, const char *text, struct loom_error *err)
{
	(void)args;
	return is_assignment("vary", text, err);
}

static int take_shard(void *args, const char *text, struct loom_error *err)
{
	struct sweep_args *a = args;
	const char *end;
	double part, of;
	if (loom__read_double(text, &end, &part) || *end != '/' || loom__read_double(end + 1, &end, &of) || *end ||
	    part != floor(part) || of != floor(of) || part < 1 || part > of || of > 1e6)
		return LOOM__FAIL(err, LOOM_EINVAL, "--shard %s: not of the form K/N, as in 1/4 to 4/4", text);
	a->sweep.shard = (uint32_t)part - 1;
	a->sweep.shards = (uint32_t)of;
	return 0;
}

static int take_point(void *args, const char *text, struct loom_error *err)
{
	const char *equals = strchr(text, '=');
	(void)args;
	if (equals && equals > text && !memchr(text, '.', (size_t)(equals - text)))
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "--point %s: not of the form NAME=section.key=value,section.key=value",
			  text);
}

#define SETS(before) .sets = before, .offset = offsetof(struct sweep_args, conf.set)
#define ROW(name, value) {name, value, .rows = loom__sweep_rows, SETS("sweep." name "=")}
static const struct loom__option options[] = {
    {"vary", "KEY=A,B,...",
     "vary one option; may be repeated. Quotes protect a comma: '\"a,b\"'", .take = take_vary, SETS("sweep.")},
    {"point", "NAME=KEY=A,KEY2=B", "add a point that sets several options; may be repeated",
     .take = take_point, SETS("sweep.points.")},
    {"skip", "'K=A|B,K2=C: REASON'", "skip the configurations for which all terms hold",
     SETS("sweep.skip.#=")},
    {"only", "'K=A|B,K2=C: REASON'", "skip all other configurations", SETS("sweep.only.#=")},
    LOOM__OPTION_SAMPLES(struct sweep_args),
    ROW("budget", "TIME"),
    {"output", "FILE", .rows = loom__sweep_rows, SETS("sweep.output="), .letter = 'o'},
    {"shard", "K/N", "run part K of N of the configurations, on one of N machines; `gpuloom report` merges their files",
     .take = take_shard},
    LOOM__OPTIONS_SWEEP(struct sweep_args),
    ROW("report", "FILE"),
    ROW("metric", "NAME[,NAME]"),
    ROW("derive", "'NAME = EXPRESSION [UNIT, more]'"),
    ROW("pareto", "X,Y"),
    ROW("plot", "NAME[,NAME]"),
    ROW("x", "SECTION.KEY"),
    ROW("lines", "SECTION.KEY"),
    ROW("facet", "SECTION.KEY"),
    ROW("show", NULL),
    ROW("base", "LEVEL"),
    ROW("mean", "SECTION.KEY"),
    ROW("width", NULL),
    ROW("axes", NULL),
    LOOM__OPTION_SET(struct sweep_args),
    LOOM__OPTION_TRUST(struct sweep_args),
    ROW("seed", "N"),
    {"quiet", NULL, "no table, no progress", LOOM__AT(struct sweep_args, sweep.quiet, BOOL)},
    LOOM__OPTION_LOG(struct sweep_args),
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__sweep_usage = {
    .command = "sweep",
    .synopsis = "CONF... [--vary SECTION.KEY=VALUE,VALUE...] [-o FILE.jsonl] [options]",
    .about = "Runs the workload in many configurations: those of the conf's [sweep] sections, of --vary\n"
	     "and of --point. With -o the samples go to that file and a table to standard output; without it the\n"
	     "samples go to standard output, one JSON line each. `gpuloom report FILE.jsonl -o FILE.html` creates a\n"
	     "page from the file.\n",
    .notes =
	"Configurations run in random order and their samples in rounds over all configurations, so that drift of the\n"
	"machine spreads over all of them. A configuration that cannot run gets a line with the reason.\n\n"
	     "Exit: 0 ok, 1 a configuration failed while running, 2 usage or conf, 3 a wrong result, 4 no configuration is\n"
	"available here, 130 interrupted.\n",
    .options = options,
    .examples = "sweep uts --vary device.cpu.workers=1,2 -o s.jsonl\ttwo configurations\n"
		"sweep uts --vary device.cpu.workers=1,2 -o s.jsonl --report s.html\twith a page\n"
		"sweep uts --vary device.cpu.workers=1,2 -o s.jsonl --resume\tcontinues after Ctrl-C\n",
    .page = "docs/sweeps.md",
    .inputs = 1,
    LOOM__REQUEST(struct sweep_args, conf.file, run)};

static int run(struct loom__cli *cli, void *args)
{
	struct sweep_args *a = args;
	struct loom_config *cfg = NULL;
	struct loom__sweep_spec spec;
	struct loom_error err;
	if (!a->sweep.shards && loom__boot_alone("sweep", &err))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "%s; or give each --shard K/N", err.text);
	if (!a->conf.file.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "sweep: no conf given: try `gpuloom sweep conf/contains.ini --vary "
				    "scheduler.use=mgws,static`");
	loom__catch_signals();
	int status = loom__conf_load(cli, &a->conf, &cfg);
	if (!status)
		status = loom__conf_sweep(cfg, &spec);
	if (!status && !spec.factors) {
		loom__say_error(cli, "sweep: no factor given: try --vary scheduler.use=mgws,static");
		status = LOOM_EXIT_USAGE;
	} else if (!status) {
		a->sweep.lines = !*spec.opts.output || loom__names_stdout(spec.opts.output);
		a->sweep.log = a->log;
		status = loom__check_stdout(cli, spec.opts.output, 0);
		status = status ? status : loom__sweep_conf(cli, &a->conf, &spec, &a->sweep);
		loom__sweep_spec_free(&spec);
	}
	loom_config_destroy(cfg);
	return status;
}
