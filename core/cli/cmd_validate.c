/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom validate PLUGIN: the conformance suite, for those who write plug-ins. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config/config.h"
#include "plugin/probe.h"
#include "plugin/registry.h"
#include "validate/validate.h"

static const char usage[] =
    "usage: gpuloom validate PLUGIN.so|NAME [options]\n\n"
    "Runs the conformance suite on a plug-in, each test in a process of its own.\n\n"
    "  --level N           1 ABI, 2 life cycle, 3 semantics (default), 4 concurrency, 5 fuzz\n"
    "  --only TEST         these tests alone, whatever their level; as often as you like\n"
    "  --skip TEST         not these; 'sched' names all that begin with 'sched.'\n"
    "  --set OPTION=VALUE  an option of the plug-in, as often as you like\n"
    "  --with CONF         options from [kind.name] of a conf, and a run in the stack that it "
    "names\n"
    "  --fuzz TIME         how long the fuzz test runs, as in 10m (level 5: 10s)\n"
    "  --seed N            seed of all that is random; what failed says its seed\n"
    "  --jobs N            tests at a time (default 1)\n"
    "  --timeout TIME      limit of one test, in place of its own\n"
    "  --json, --junit     the verdicts as JSON, as JUnit XML\n"
    "  --list              the tests, with what they are about\n"
    "  --quiet             failures alone\n\n"
    "Exit: 0 it conforms, 2 usage, 4 nothing could be tested here, 5 a test failed.\n"
    "docs/validate.md says what each test means and what to do when it fails.\n";

struct request {
	struct loom__validation v;
	const char *name;
	enum { AS_TEXT, AS_JSON, AS_JUNIT } form;
	int list, quiet;
	const struct loom__cli *cli;
};

enum {
	LEVEL = 256,
	ONLY,
	SKIP,
	SET,
	WITH,
	FUZZ_TIME,
	SEED,
	JOBS,
	TIMEOUT,
	JSON,
	JUNIT,
	LIST,
	QUIET,
	HELP
};

static const struct option options[] = {
    {"level", 1, NULL, LEVEL}, {"only", 1, NULL, ONLY},   {"skip", 1, NULL, SKIP},
    {"set", 1, NULL, SET},     {"with", 1, NULL, WITH},   {"fuzz", 1, NULL, FUZZ_TIME},
    {"seed", 1, NULL, SEED},   {"jobs", 1, NULL, JOBS},   {"timeout", 1, NULL, TIMEOUT},
    {"json", 0, NULL, JSON},   {"junit", 0, NULL, JUNIT}, {"list", 0, NULL, LIST},
    {"quiet", 0, NULL, QUIET}, {"help", 0, NULL, HELP},   {0}};

static int whole(const struct request *r, const char *option, const char *text, double most,
		 uint64_t *value)
{
	const struct loom_opt row = {.name = option, .type = LOOM_OPT_U64, .max = most};
	struct loom_error err;
	if (!loom__value_parse(&row, text, value, &err))
		return 0;
	loom__say_error(r->cli, "validate: --%s: %s", option, err.text);
	return LOOM_EXIT_USAGE;
}

static int duration(const struct request *r, const char *option, const char *text, uint64_t *ns)
{
	const struct loom_opt row = {
	    .name = option, .type = LOOM_OPT_TIME, .min = 1e6, .max = 86400e9};
	struct loom_error err;
	if (!loom__value_parse(&row, text, ns, &err))
		return 0;
	loom__say_error(r->cli, "validate: --%s: %s", option, err.text);
	return LOOM_EXIT_USAGE;
}

static int take(struct request *r, int option, const char **only, const char **skip,
		const char **set)
{
	uint64_t n = 0;
	int status = 0;
	switch (option) {
	case LEVEL:
		status = whole(r, "level", optarg, LOOM__LEVEL_MOST, &n);
		r->v.level = (int)n;
		break;
	case ONLY:
		only[r->v.onlys++] = optarg;
		break;
	case SKIP:
		skip[r->v.skips++] = optarg;
		break;
	case SET:
		set[r->v.sets++] = optarg;
		break;
	case WITH:
		r->v.with = optarg;
		break;
	case FUZZ_TIME:
		return duration(r, "fuzz", optarg, &r->v.fuzz_ns);
	case SEED:
		return whole(r, "seed", optarg, 0, &r->v.seed);
	case JOBS:
		status = whole(r, "jobs", optarg, 64, &n);
		r->v.jobs = (unsigned)n;
		break;
	case TIMEOUT:
		status = duration(r, "timeout", optarg, &n);
		r->v.limit_ms = (unsigned)(n / 1000000);
		break;
	case JSON:
		r->form = AS_JSON;
		break;
	case JUNIT:
		r->form = AS_JUNIT;
		break;
	case LIST:
		r->list = 1;
		break;
	case QUIET:
		r->quiet = 1;
		break;
	}
	return status;
}

static int parse(struct request *r, int argc, char **argv, const char **only, const char **skip,
		 const char **set)
{
	int c, status = 0;
	optind = 0;
	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == HELP || c == 'h') {
			fputs(usage, r->cli->out);
			return -1;
		}
		if (c == '?' || c == ':') {
			loom__say_error(r->cli, "validate: %s '%s'; see gpuloom validate --help",
					c == ':' ? "value missing after" : "unknown option",
					argv[optind - 1]);
			return LOOM_EXIT_USAGE;
		}
		status = take(r, c, only, skip, set);
	}
	if (status)
		return status;
	if (optind < argc)
		r->name = argv[optind];
	if (optind + 1 < argc || (!r->name && !r->list)) {
		loom__say_error(
		    r->cli, "validate: name one plug-in, as in: gpuloom validate ./sched_mine.so");
		return LOOM_EXIT_USAGE;
	}
	return 0;
}

/* A path, or the name of a plug-in in the folders: "sched_mgws". */
static int find(const struct request *r, char **path)
{
	struct loom__search search;
	struct loom__candidates all = {0};
	struct loom_error err;
	size_t n = strlen(r->name);
	*path = NULL;
	if (strchr(r->name, '/') || (n > 3 && !strcmp(r->name + n - 3, ".so"))) {
		*path = realpath(r->name, NULL);
		if (!*path)
			loom__say_error(r->cli, "validate: %s: no such file", r->name);
		return *path ? 0 : LOOM_EXIT_USAGE;
	}
	if (!loom__search_create(NULL, &search, &err)) {
		if (!loom__candidates_scan(&search, &all, &err))
			for (size_t i = 0; i < all.count && !*path; i++)
				if (!strcmp(all.list[i].manifest.name, r->name))
					*path = strdup(all.list[i].path);
		loom__candidates_free(&all);
		loom__search_free(&search);
	}
	if (!*path)
		loom__say_error(
		    r->cli,
		    "validate: no plug-in '%s' in the plug-in folders; give a path, or a "
		    "whole name as `gpuloom list` shows it",
		    r->name);
	return *path ? 0 : LOOM_EXIT_USAGE;
}

/* ---- for people ---------------------------------------------------------------------------------
 */

static void show(void *arg, const struct loom__outcome *o)
{
	const struct request *r = arg;
	int good = o->ending == LOOM__PASSED || o->ending == LOOM__SKIPPED;
	if (r->form != AS_TEXT || (r->quiet && good))
		return;
	const char *name = loom__ending_name(o->ending);
	const char *colour = !r->cli->out_is_tty || !r->cli->colour ? NULL
			     : o->ending == LOOM__PASSED            ? "32"
			     : o->ending == LOOM__SKIPPED           ? "33"
								    : "1;31";
	fprintf(r->cli->out, "  %s%s%s%-8s%s %-24s %6.2f s  %s\n", colour ? "\033[" : "",
		colour ? colour : "", colour ? "m" : "", name, colour ? "\033[0m" : "", o->test,
		o->seconds, o->what);
	if (o->why[0] && !(r->quiet && good))
		fprintf(r->cli->out, "           %s\n", o->why);
	if (!good && o->level >= 4)
		fprintf(r->cli->out, "           again with --only %s --seed %llu\n", o->test,
			(unsigned long long)o->seed);
	fflush(r->cli->out);
}

static void list_one(void *arg, const char *name, const char *what, int level)
{
	fprintf(arg, "%d  %-24s %s\n", level, name, what);
}

/* ---- all ----------------------------------------------------------------------------------------
 */

static int report(const struct request *r, const struct loom__verdicts *v)
{
	size_t passed = loom__validate_count(v, LOOM__PASSED);
	size_t skipped = loom__validate_count(v, LOOM__SKIPPED), bad = v->n - passed - skipped;
	if (r->form == AS_JSON) {
		char *json = loom__validate_json(v);
		fprintf(r->cli->out, "%s\n", json ? json : "{}");
		free(json);
	} else if (r->form == AS_JUNIT) {
		struct loom__text text = {0};
		loom__validate_junit(v, &text);
		fputs(text.at ? text.at : "", r->cli->out);
		loom__text_free(&text);
	} else {
		fprintf(r->cli->out, "%s %s, level %d: %zu passed, %zu failed, %zu skipped\n",
			v->name, v->version, v->level, passed, bad, skipped);
	}
	if (bad)
		return LOOM_EXIT_GATE;
	return passed ? LOOM_EXIT_OK : LOOM_EXIT_UNAVAILABLE;
}

static int validate(struct request *r)
{
	static const char *const load_alone[] = {"abi.load"};
	struct loom__probed probed;
	struct loom_error err;
	struct loom__outcome *list = NULL;
	char *path = NULL;
	size_t n = 0;
	int status = find(r, &path);
	if (status)
		return status;
	r->v.path = path;
	r->v.self = r->cli->self;
	r->v.ended = show;
	r->v.arg = r;
	struct loom__verdicts v = {.path = path, .level = r->v.level, .seed = r->v.seed};
	if (loom__plugin_examine(r->cli->self, path, LOOM__PROBE_MS, &probed, &err)) {
		/* What cannot be loaded cannot be tested: one test says why. */
		memset(&probed, 0, sizeof(probed));
		r->v.only = load_alone;
		r->v.onlys = 1;
	}
	v.kind = (enum loom_kind)probed.identity.kind;
	v.name = probed.identity.name[0] ? probed.identity.name : "(no plug-in)";
	v.version = probed.identity.version;
	if (loom__validate(&r->v, v.kind, &list, &n, &err)) {
		loom__say_error(r->cli, "%s", err.text);
		status = LOOM_EXIT_FAILURE;
	} else if (!n) {
		loom__say_error(
		    r->cli,
		    "validate: no test of %s has such a name; see gpuloom validate --list %s",
		    v.name, r->name);
		status = LOOM_EXIT_USAGE;
	} else {
		v.list = list;
		v.n = n;
		status = report(r, &v);
	}
	free(list);
	free(path);
	return status;
}

static int list(const struct request *r)
{
	struct loom_manifest m = {.kind = LOOM_KIND_NONE};
	struct loom_error err;
	char *path = NULL;
	if (r->name) {
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

int loom__cmd_validate(struct loom__cli *cli, int argc, char **argv)
{
	struct request r = {.cli = cli, .v = {.level = 3, .jobs = 1, .seed = 1}};
	const char **names = calloc(3 * (size_t)argc + 3, sizeof(*names));
	if (!names)
		return LOOM_EXIT_FAILURE;
	r.v.only = names;
	r.v.skip = names + argc;
	r.v.set = names + 2 * (size_t)argc;
	int status = parse(&r, argc, argv, names, names + argc, names + 2 * (size_t)argc);
	if (!status)
		status = r.list ? list(&r) : validate(&r);
	free(names);
	return status < 0 ? LOOM_EXIT_OK : status;
}

/* Hidden: a test of the suite, in the process that the suite starts for it. Once more with an
 * allocator that keeps no crumbs for later: they would look like leaks. */
int loom__cmd_validate_test(struct loom__cli *cli, int argc, char **argv)
{
	static const char tunables[] = "GLIBC_TUNABLES";
	const char *was = getenv(tunables);
	const char **again = calloc((size_t)argc + 2, sizeof(*again));
	if (again && (!was || !strstr(was, "tcache_count=0"))) {
		setenv(tunables, "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
		again[0] = cli->self;
		for (int i = 0; i < argc; i++)
			again[i + 1] = argv[i];
		execv(cli->self, (char *const *)(uintptr_t)again);
	}
	free(again);
	loom__validate_test_command(cli->self, argc, argv);
	loom__say_error(
	    cli, "validate-test is what gpuloom runs itself; you want: gpuloom validate PLUGIN.so");
	return LOOM_EXIT_USAGE;
}
