/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpuloom sweep` was asked for. */
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"

/* A constraint speaks of the factors, which may stand behind it: read last. */
struct loom__rule_text {
	const char *text;
	int only;
};

static int take_vary(void *args, const char *value, struct loom_error *err)
{
	struct loom__sweep_args *a = args;
	return loom__factor_add(value, a->factor, &a->factors, err);
}

static int take_skip(void *args, const char *text, struct loom_error *err)
{
	struct loom__sweep_args *a = args;
	(void)err;
	a->rule[a->rules++] = (struct loom__rule_text){text, 0};
	return 0;
}

static int take_only(void *args, const char *text, struct loom_error *err)
{
	int rc = take_skip(args, text, err);
	struct loom__sweep_args *a = args;
	a->rule[a->rules - 1].only = 1;
	return rc;
}

#define AT(field, type) LOOM__AT(struct loom__sweep_args, field, type)
static const struct loom__option options[] = {
    {"vary", "KEY=A,B,...",
     "vary one option; as often as you like. Quotes keep a comma: '\"a,b\"'", .take = take_vary},
    {"design", NULL,
     "full: every combination; one: the first values of all, and each other value on its own; "
     "pairwise: few cells in which every two values meet",
     AT(design, ENUM), .choices = loom__design_name, .dflt = "full"},
    {"skip", "'K=A|B,K2=C: REASON'", "leave out the cells for which all of this holds",
     .take = take_skip},
    {"only", "'K=A|B,K2=C: REASON'", "leave out the others", .take = take_only},
    {"samples", "N", "of each cell; else [run] samples", AT(samples, U32), .min = 1, .max = 1e6},
    {"budget", "TIME", "stop after that long, as in 90s, 10m, 2h; what was measured stays",
     AT(budget, TIME), .min = 1, .max = 9e18},
    {"output", "FILE", "where the lines go; else to standard output", AT(output, STR),
     .letter = 'o'},
    {"resume", NULL,
     "go on with FILE after Ctrl-C, a crash or the end of the budget; cells that failed are tried "
     "again, but for wrong results",
     AT(resume, BOOL)},
    LOOM__OPTION_SET(struct loom__sweep_args),
    {"seed", "N", "of the order", AT(seed, U64), .dflt = "1", .max = 0x1p53},
    {"dry-run", NULL, "list the cells, run nothing", AT(dry_run, BOOL)},
    {"quiet", NULL, "no progress", AT(quiet, BOOL)},
    LOOM__OPTION_LOG(struct loom__sweep_args),
    {0}};
#undef AT

const struct loom__usage loom__sweep_usage = {
    .command = "sweep",
    .synopsis = "CONF... --vary SECTION.KEY=VALUE,VALUE... [-o FILE.jsonl] [options]",
    .about =
	"Runs the workload in many configurations, and writes one JSON line per verified sample.\n"
	"`gpuloom report FILE.jsonl -o FILE.html` makes a page of it.\n",
    .notes = "Cells run in random order and their samples in rounds over all cells, so that drift of the\n"
	     "machine spreads over all of them. A cell that cannot be run is a line with the reason.\n"
	     "Exit: 0 ok, 1 a cell failed while running, 2 usage or conf, 3 a wrong result, 4 no cell is\n"
	     "available here, 130 interrupted.\n",
    .options = options,
    .words = offsetof(struct loom__sweep_args, conf.file)};

static int check(const struct loom__cli *cli, struct loom__sweep_args *a)
{
	struct loom_error err;
	const char *fault =
	    !a->conf.file.n           ? "which conf? Try `gpuloom sweep conf/contains.ini --vary "
					"scheduler.use=mgws,static`"
	    : !a->factors             ? "what is to be varied? Try --vary scheduler.use=mgws,static"
	    : a->resume && !a->output ? "--resume needs the file: -o FILE.jsonl"
				      : NULL;
	if (fault) {
		loom__say_error(cli, "sweep: %s", fault);
		return LOOM_EXIT_USAGE;
	}
	for (size_t i = 0; i < a->rules; i++) {
		if (loom__constraint_parse(a->rule[i].text, a->rule[i].only, a->factor, a->factors,
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
	a->factor = calloc(n, sizeof(*a->factor));
	a->constraint = calloc(n, sizeof(*a->constraint));
	a->rule = calloc(n, sizeof(*a->rule));
	if (!a->factor || !a->constraint || !a->rule) {
		loom__say_error(cli, "out of memory");
		return LOOM_EXIT_FAILURE;
	}
	int status = loom__options_read(cli, &loom__sweep_usage, argc, argv, a);
	return status ? status : check(cli, a);
}

void loom__sweep_args_free(struct loom__sweep_args *a)
{
	for (size_t i = 0; i < a->factors; i++)
		loom__factor_free(&a->factor[i]);
	for (size_t i = 0; i < a->constraints; i++)
		loom__constraint_free(&a->constraint[i]);
	free(a->factor);
	free(a->constraint);
	free(a->rule);
	loom__options_free(&loom__sweep_usage, a);
}
