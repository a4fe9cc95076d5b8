/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom validate PLUGIN: runs the conformance suite, for authors of plug-ins. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf/conf.h"
#include "cli/conf/named.h"
#include "cli/base/options.h"
#include "config/config.h"
#include "inspect/probe.h"
#include "conform/validate.h"
#include "facts/must.h"

struct request {
	struct loom__words word, only, skip, set;
	uint32_t level, jobs;
	uint64_t seed, fuzz, timeout;
	const char *with;
	uint8_t json, list, quiet;
	const struct loom__cli *cli;
};

static const struct loom__option options[] = {
    {"level", "N", "1 ABI, 2 life cycle, 3 semantics, 4 concurrency, 5 fuzz", LOOM__AT(struct request, level, U32),
     .dflt = "3", .max = LOOM__LEVEL_MOST},
    {"only", "TEST", "run only these tests, whatever their level; may be repeated",
     LOOM__AT(struct request, only, NONE)},
    {"skip", "TEST", "skip these tests; 'sched' means all that start with 'sched.'",
     LOOM__AT(struct request, skip, NONE)},
    {"set", "OPTION=VALUE", "set an option of the plug-in; may be repeated", LOOM__AT(struct request, set, NONE)},
    {"with", "CONF", "take options from [kind.name] of a conf, and also run the stack that it selects",
     LOOM__AT(struct request, with, STR)},
    {"fuzz", "TIME", "how long the fuzz test runs, as in 10m (level 5: 10s)", LOOM__AT(struct request, fuzz, TIME),
     .min = 1e6, .max = 86400e9},
    {"seed", "N", "seed of random choices; failures print it", LOOM__AT(struct request, seed, U64), .dflt = "1"},
    {"jobs", "N", "number of tests to run in parallel", LOOM__AT(struct request, jobs, U32), .dflt = "1", .max = 64},
    {"timeout", "TIME", "time limit of each test, instead of its own", LOOM__AT(struct request, timeout, TIME),
     .min = 1e6, .max = 86400e9},
    {"json", NULL, "print the verdicts as JSON", LOOM__AT(struct request, json, BOOL)},
    {"list", NULL, "list the tests and their purpose", LOOM__AT(struct request, list, BOOL)},
    {"quiet", NULL, "print only failures and notes", LOOM__AT(struct request, quiet, BOOL)},
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__validate_usage = {
    .command = "validate",
    .synopsis = "PLUGIN.so|NAME [options]",
    .about = "Runs the conformance suite on a plug-in, each test in its own process.\n",
    .notes = "Exit: 0 conforming, 2 usage, 4 nothing could be tested here, 5 a test failed.\n"
	     "docs/validate.md and docs/kinds explain each test and how to fix failures.\n",
    .options = options,
    .examples = "validate ./sched_mine.so\ta plug-in of your own\n"
		"validate mgws --only sched.stop\tone test\n",
    .page = "docs/validate.md",
    LOOM__REQUEST(struct request, word, run)};

static const char *name_of(const struct request *r)
{
	return r->word.n ? r->word.at[0] : NULL;
}

static int find(const struct request *r, char **path)
{
	struct loom_error err;
	int rc = loom__plugin_named(name_of(r), NULL, path, &err);
	if (rc)
		loom__say_error(r->cli, "validate: %s", err.text);
	return rc ? LOOM_EXIT_USAGE : 0;
}

/* ---- text output ----------------------------------------------------------------------------- */

static void show(void *arg, const struct loom__outcome *o)
{
	const struct request *r = arg;
	int good = o->ending == LOOM__PASSED || o->ending == LOOM__SKIPPED;
	if (r->json || (r->quiet && good && !o->why[0]) || (r->quiet && o->ending == LOOM__SKIPPED))
		return;
	const char *name = loom__ending_name(o->ending);
	const char *colour = !r->cli->out_is_tty || !r->cli->colour ? NULL
			     : o->ending == LOOM__PASSED            ? "32"
			     : o->ending == LOOM__SKIPPED           ? "33"
								    : "1;31";
	fprintf(r->cli->out, "  %s%s%s%-8s%s %-24s %6.2f s  %s\n", colour ? "\033[" : "", colour ? colour : "",
		colour ? "m" : "", name, colour ? "\033[0m" : "", o->test, o->seconds, o->what);
	if (o->why[0])
		fprintf(r->cli->out, "           %s\n", o->why);
	if (!good && o->level >= 4)
		fprintf(r->cli->out, "           repeat with --only %s --seed %llu\n", o->test,
			(unsigned long long)o->seed);
	fflush(r->cli->out);
}

static void list_one(void *arg, const char *name, const char *what, int level)
{
	fprintf(arg, "%d  %-24s %s\n", level, name, what);
}

/* ---- command --------------------------------------------------------------------------------- */

/* Returns 1 for a plug-in with device code that was compiled without LOOM_PERTURB, which would define the hook. */
static int needs_perturbed_copy(const struct loom__verdicts *v)
{
	static const char hook[] = "loom_cpu_yield_hook";
	struct loom_error err;
	char *bytes = NULL;
	size_t length = 0;
	if (v->kind == LOOM_DEVICE || v->kind == LOOM_TRANSPORT || v->kind == LOOM_QOS ||
	    loom__read_file(v->path, SIZE_MAX / 2, &bytes, &length, &err))
		return 0;
	int plain = !memmem(bytes, length, hook, sizeof(hook));
	free(bytes);
	return plain;
}

static int report(const struct request *r, const struct loom__verdicts *v)
{
	size_t passed = loom__validate_count(v, LOOM__PASSED);
	size_t skipped = loom__validate_count(v, LOOM__SKIPPED), bad = v->n - passed - skipped;
	if (r->json) {
		char *json = loom__validate_json(v);
		fprintf(r->cli->out, "%s\n", json ? json : "{}");
		free(json);
	} else {
		fprintf(r->cli->out, "%s %s, level %d: %zu passed, %zu failed, %zu skipped\n", v->name, v->version,
			v->level, passed, bad, skipped);
		if (bad && v->kind)
			fprintf(r->cli->out, "how to fix failures: docs/kinds/%s.md, docs/validate.md\n",
				loom__kind_name(v->kind));
		if (!bad && passed && v->level >= 3 && !r->only.n && !r->quiet && needs_perturbed_copy(v))
			fprintf(r->cli->out,
				"not tested: other workers between single accesses of its device code. Validate a "
				"copy that is compiled with -DLOOM_PERTURB, too: docs/validate.md\n");
	}
	if (bad)
		return LOOM_EXIT_GATE;
	return passed ? LOOM_EXIT_OK : LOOM_EXIT_UNAVAILABLE;
}

/* Refuses options that the plug-in lacks. A plug-in that fails to load is left to the suite. */
static int check_set(const struct request *r, const char *path)
{
	const struct loom_plugin *p;
	struct loom_error err;
	if (!r->set.n || loom__plugin_load(path, LOOM_KIND_NONE, &p, &err) ||
	    !loom__validate_set(p, r->set.at, r->set.n, &err))
		return 0;
	loom__say_error(r->cli, "validate: %s", err.text);
	return LOOM_EXIT_USAGE;
}

static int validate(struct request *r)
{
	static const char *const load_alone[] = {"abi.load"};
	struct loom__probed probed;
	struct loom_error err;
	struct loom__outcome *list = NULL;
	char *path = NULL, *with = NULL;
	size_t n = 0;
	int status = find(r, &path);
	if (!status && r->with && loom__conf_named(r->cli, r->with, &with, &err)) {
		loom__say_error(r->cli, "validate: %s", err.text);
		status = LOOM_EXIT_USAGE;
	}
	if (status) {
		free(path);
		return status;
	}
	struct loom__validation plan = {.path = path,
					.self = r->cli->self,
					.with = with,
					.only = r->only.at,
					.onlys = r->only.n,
					.skip = r->skip.at,
					.skips = r->skip.n,
					.set = r->set.at,
					.sets = r->set.n,
					.level = (int)r->level,
					.jobs = r->jobs,
					.seed = r->seed,
					.fuzz_ns = r->fuzz,
					.limit_ms = (unsigned)(r->timeout / 1000000),
					.ended = show,
					.arg = r};
	struct loom__verdicts v = {.path = path, .level = plan.level, .seed = plan.seed};
	if (loom__plugin_examine(r->cli->self, path, LOOM__PROBE_MS, &probed, &err)) {
		/* For a plug-in that fails to load, only one test runs, which reports the reason. */
		memset(&probed, 0, sizeof(probed));
		plan.only = load_alone;
		plan.onlys = 1;
	} else if ((status = check_set(r, path))) {
		free(with);
		free(path);
		return status;
	}
	v.kind = (enum loom_kind)probed.identity.kind;
	v.name = probed.identity.name[0] ? probed.identity.name : "(no plug-in)";
	v.version = probed.identity.version;
	if (loom__validate(&plan, v.kind, &list, &n, &err)) {
		loom__say_error(r->cli, "%s", err.text);
		status = LOOM_EXIT_FAILURE;
	} else if (!n) {
		loom__say_error(r->cli, "validate: %s has no such test: see `gpuloom validate --list %s`", v.name,
				name_of(r));
		status = LOOM_EXIT_USAGE;
	} else {
		v.list = list;
		v.n = n;
		status = report(r, &v);
	}
	free(list);
	free(with);
	free(path);
	return status;
}

static int list(const struct request *r)
{
	struct loom_manifest m = {.kind = LOOM_KIND_NONE};
	struct loom_error err;
	char *path = NULL;
	if (r->word.n) {
		int status = find(r, &path);
		if (!status && loom__manifest_read(path, &m, &err)) {
			loom__say_error(r->cli, "%s", err.text);
			status = LOOM_EXIT_USAGE;
		}
		free(path);
		if (status)
			return status;
	}
	loom__validate_each((enum loom_kind)m.kind, list_one, r->cli->out);
	return LOOM_EXIT_OK;
}

static int run(struct loom__cli *cli, void *args)
{
	struct request *r = args;
	r->cli = cli;
	if (r->word.n == 1 || (!r->word.n && r->list))
		return r->list ? list(r) : validate(r);
	return loom__refuse(cli, LOOM_EXIT_USAGE,
			    "validate: name one plug-in, as in: gpuloom validate ./sched_mine.so");
}

/* Hidden command: runs one test of the suite in a process of its own. First, this process executes its own program
 * again with an allocator without per-thread caches, because memory blocks in such caches would look like leaks. */
int loom__cmd_validate_test(struct loom__cli *cli, int argc, char **argv)
{
	static const char tunables[] = "GLIBC_TUNABLES";
	const char *was = getenv(tunables);
	const char **again = loom__must(calloc((size_t)argc + 2, sizeof(*again)));
	if (again && (!was || !strstr(was, "tcache_count=0"))) {
		setenv(tunables, "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
		again[0] = cli->self;
		for (int i = 0; i < argc; i++)
			again[i + 1] = argv[i];
		execv(cli->self, (char *const *)(uintptr_t)again);
	}
	free(again);
	loom__validate_test_command(cli->self, argc, argv);
	loom__say_error(cli, "validate-test is an internal command of gpuloom: use `gpuloom validate PLUGIN.so`");
	return LOOM_EXIT_USAGE;
}
