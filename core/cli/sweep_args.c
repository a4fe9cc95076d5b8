/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpuloom sweep` was asked for. */
#include <stdlib.h>
#include <string.h>

#include "cli/session.h"
#include "cli/sweep.h"

static const char help[] =
    "usage: gpuloom sweep CONF... --vary SECTION.KEY=VALUE,VALUE... [-o FILE.jsonl] [options]\n\n"
    "Runs the workload in many configurations, and writes one JSON line per verified sample.\n"
    "`gpuloom report FILE.jsonl -o FILE.html` makes a page of it.\n\n"
    "  --vary KEY=A,B,...     vary one option; as often as you like. Quotes keep a comma: "
    "'\"a,b\"'\n"
    "  --design full          every combination (default)\n"
    "           one           the first values of all, and each other value on its own\n"
    "           pairwise      few cells in which every two values meet\n"
    "  --skip 'K=A|B,K2=C: REASON'  leave out the cells for which all of this holds\n"
    "  --only 'K=A|B,K2=C: REASON'  leave out the others\n"
    "  --samples N            of each cell; else [run] samples\n"
    "  --budget TIME          stop after that long, as in 90s, 10m, 2h; what was measured stays\n"
    "  -o, --output FILE      where the lines go; else to standard output\n"
    "  --resume               go on with FILE after Ctrl-C, a crash or the end of the budget; cells\n"
    "                         that failed are tried again, but for wrong results\n"
    "  --set SECTION.KEY=VALUE, --seed N, --log LEVEL, --quiet\n"
    "  --dry-run              list the cells, run nothing\n\n"
    "Cells run in random order and their samples in rounds over all cells, so that drift of the\n"
    "machine spreads over all of them. A cell that cannot be run is a line with the reason.\n"
    "Exit: 0 ok, 1 a cell failed while running, 2 usage or conf, 3 a wrong result, 4 no cell is\n"
    "available here, 130 interrupted.\n";

static const char *const options[] = {"--vary",   "--design", "--skip",    "--only", "--samples",
				      "--budget", "--output", "--resume",  "--set",  "--seed",
				      "--log",    "--quiet",  "--dry-run", "--help"};

struct raw {
	const char *design, *samples, *budget, *seed, *log;
	const char **rule; /* [rules] */
	unsigned char *only;
	size_t rules;
};

/* The value of an option in `--name value` or `--name=value`; *i moves. NULL: not this option. */
static const char *value_of(int argc, char **argv, int *i, const char *name, int *missing)
{
	size_t n = strlen(name);
	const char *arg = argv[*i];
	if (strncmp(arg, name, n) || (arg[n] && (arg[n] != '=' || n == 2)))
		return NULL;
	if (arg[n])
		return arg + n + 1;
	if (*i + 1 < argc)
		return argv[++*i];
	*missing = 1;
	return "";
}

static int number(const struct loom__cli *cli, const char *name, unsigned type, const char *text,
		  uint64_t least, uint64_t most, uint64_t *out)
{
	struct loom_error err;
	const struct loom_opt row = {.name = name, .type = (uint8_t)type, .size = sizeof(uint64_t)};
	if (loom__value_parse(&row, text, out, &err) || *out < least || *out > most) {
		loom__say_error(cli, "sweep: --%s '%s' is not %s", name, text,
				type == LOOM_OPT_TIME ? "a time, as in 90s or 10m"
						      : "a number of that kind");
		return LOOM_EXIT_USAGE;
	}
	return 0;
}

static int add_factor(const struct loom__cli *cli, struct loom__sweep_args *a, const char *text)
{
	struct loom_error err;
	if (loom__factor_parse(text, &a->factor[a->factors], &err)) {
		loom__say_error(cli, "sweep: %s", err.text);
		return LOOM_EXIT_USAGE;
	}
	for (size_t i = 0; i < a->factors; i++)
		if (loom__same(a->factor[i].key, a->factor[a->factors].key)) {
			loom__say_error(cli, "sweep: --vary %s twice: give all its values at once",
					a->factor[i].key);
			a->factors++;
			return LOOM_EXIT_USAGE;
		}
	a->factors++;
	return 0;
}

static int one_argument(const struct loom__cli *cli, int argc, char **argv, int *i,
			struct loom__sweep_args *a, struct raw *raw)
{
	const struct {
		const char *name;
		const char **value;
	} plain[] = {{"--design", &raw->design}, {"--samples", &raw->samples},
		     {"--budget", &raw->budget}, {"--seed", &raw->seed},
		     {"--log", &raw->log},       {"-o", &a->output},
		     {"--output", &a->output}};
	const char *arg = argv[*i], *value = NULL;
	int missing = 0, status = 0;
	if (!strcmp(arg, "--resume")) {
		a->resume = 1;
	} else if (!strcmp(arg, "--dry-run")) {
		a->dry_run = 1;
	} else if (!strcmp(arg, "--quiet")) {
		a->quiet = 1;
	} else if ((value = value_of(argc, argv, i, "--vary", &missing))) {
		status = missing ? 0 : add_factor(cli, a, value);
	} else if ((value = value_of(argc, argv, i, "--skip", &missing))) {
		raw->rule[raw->rules++] = value;
	} else if ((value = value_of(argc, argv, i, "--only", &missing))) {
		raw->only[raw->rules] = 1;
		raw->rule[raw->rules++] = value;
	} else {
		size_t k = 0;
		for (; k < LOOM__COUNT(plain) && !value; k++)
			if ((value = value_of(argc, argv, i, plain[k].name, &missing)))
				*plain[k].value = value;
		int used = value ? 1 : loom__conf_argument(&a->conf, argc, argv, *i);
		if (!used)
			return loom__bad_option(cli, "sweep", arg, options, LOOM__COUNT(options));
		*i += used - 1;
	}
	++*i;
	if (missing) {
		loom__say_error(cli, "sweep: %s needs a value", arg);
		return LOOM_EXIT_USAGE;
	}
	return status;
}

static int read_values(const struct loom__cli *cli, struct loom__sweep_args *a,
		       const struct raw *raw)
{
	uint64_t samples = 0;
	int status = 0;
	if (raw->samples)
		status = number(cli, "samples", LOOM_OPT_U64, raw->samples, 1, 1000000, &samples);
	if (!status && raw->budget)
		status = number(cli, "budget", LOOM_OPT_TIME, raw->budget, 1, UINT64_MAX / 2,
				&a->budget_ns);
	if (!status && raw->seed)
		status =
		    number(cli, "seed", LOOM_OPT_U64, raw->seed, 0, UINT64_C(1) << 53, &a->seed);
	a->samples = (uint32_t)samples;
	if (!status && raw->log && (a->log_level = loom__log_level(raw->log)) < 0) {
		loom__say_error(cli, "sweep: --log is error, warn, info or debug, not '%s'",
				raw->log);
		status = LOOM_EXIT_USAGE;
	}
	if (status || !raw->design)
		return status;
	for (int k = 0; loom__design_name[k]; k++)
		if (loom__same(loom__design_name[k], raw->design)) {
			a->design = (enum loom__design_kind)k;
			return 0;
		}
	loom__say_error(cli, "sweep: --design is full, one or pairwise, not '%s'", raw->design);
	return LOOM_EXIT_USAGE;
}

/* The constraints last: they speak of the factors, which may stand behind them. */
static int check(const struct loom__cli *cli, struct loom__sweep_args *a, const struct raw *raw)
{
	struct loom_error err;
	const char *fault =
	    !a->conf.files            ? "which conf? Try `gpuloom sweep conf/contains.ini --vary "
					"scheduler.use=mgws,static`"
	    : !a->factors             ? "what is to be varied? Try --vary scheduler.use=mgws,static"
	    : a->resume && !a->output ? "--resume needs the file: -o FILE.jsonl"
				      : NULL;
	if (fault) {
		loom__say_error(cli, "sweep: %s", fault);
		return LOOM_EXIT_USAGE;
	}
	for (size_t i = 0; i < raw->rules; i++) {
		if (loom__constraint_parse(raw->rule[i], raw->only[i], a->factor, a->factors,
					   &a->constraint[a->constraints], &err)) {
			loom__say_error(cli, "sweep: %s", err.text);
			return LOOM_EXIT_USAGE;
		}
		a->constraints++;
	}
	return 0;
}

int loom__sweep_parse(const struct loom__cli *cli, int argc, char **argv,
		      struct loom__sweep_args *a)
{
	size_t n = (size_t)argc + 1;
	struct raw raw = {.rule = calloc(n, sizeof(*raw.rule)), .only = calloc(n, 1)};
	a->factor = calloc(n, sizeof(*a->factor));
	a->constraint = calloc(n, sizeof(*a->constraint));
	int status = raw.rule && raw.only && a->factor && a->constraint ? 0 : LOOM_EXIT_FAILURE;
	for (int i = 1; i < argc && !status;) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, cli->out);
			status = -1;
		} else {
			status = one_argument(cli, argc, argv, &i, a, &raw);
		}
	}
	if (!status)
		status = read_values(cli, a, &raw);
	if (!status)
		status = check(cli, a, &raw);
	free(raw.rule);
	free(raw.only);
	return status;
}

void loom__sweep_args_free(struct loom__sweep_args *a)
{
	for (size_t i = 0; i < a->factors; i++)
		loom__factor_free(&a->factor[i]);
	for (size_t i = 0; i < a->constraints; i++)
		loom__constraint_free(&a->constraint[i]);
	free(a->factor);
	free(a->constraint);
	loom__conf_free(&a->conf);
}
