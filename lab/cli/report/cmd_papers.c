/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom papers: lists the figures and tables of papers, runs their confs, and judges the papers' claims. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf/conf.h"
#include "cli/base/files.h"
#include "cli/report/report.h"
#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "facts/must.h"
#include "facts/token.h"
#include "facts/write.h"
#include "inspect/candidates.h"
#include "inspect/probe.h"
#include "papers/papers.h"

struct papers_args {
	struct loom__conf_args conf; /* the words are PAPER and FIGURE */
	const char *json, *from, *width;
	struct loom__words output;
	struct loom__sweep_params sweep;
	uint8_t kept, small, cpu;
};

static const struct loom__option options[] = {
    LOOM__OPTION_SET(struct papers_args),
    LOOM__OPTION_SAMPLES(struct papers_args),
    {"small", NULL, "run one sample with the settings that the conf has for tests, else for a second",
     LOOM__AT(struct papers_args, small, BOOL)},
    {"cpu", NULL, "run on a CPU what needs a GPU, with the settings that the conf has for it",
     LOOM__AT(struct papers_args, cpu, BOOL)},
    {"kept", NULL, "judge the kept result, and run nothing", LOOM__AT(struct papers_args, kept, BOOL)},
    {"from", "FILE.jsonl", "judge the samples in this file of `gpuloom run` or `gpuloom sweep`, and run nothing",
     LOOM__AT(struct papers_args, from, STR)},
    {"output", "FILE",
     "also write a report, named " LOOM__REPORT_SUFFIXES " or .json, or the samples, named .jsonl; may be repeated",
     LOOM__AT(struct papers_args, output, NONE), .letter = 'o'},
    {"width", "page|column", .rows = loom__sweep_rows, LOOM__AT(struct papers_args, width, STR)},
    {"json", "FILE|-", "write the rows and their claims as JSON; '-' is standard output, instead of the table",
     LOOM__AT(struct papers_args, json, STR), .writes = LOOM__WRITES_RESULT},
    {"quiet", NULL, "no table, no progress: only errors", LOOM__AT(struct papers_args, sweep.quiet, BOOL)},
    LOOM__OPTIONS_SWEEP(struct papers_args),
    {"log", NULL, "minimum severity of messages on stderr", LOOM__AT(struct papers_args, sweep.log, ENUM),
     .choices = loom__log_levels, .dflt = "warn"},
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__papers_usage = {
    .command = "papers",
    .synopsis = "[PAPER [FIGURE]] [options]",
    .about =
	"Without FIGURE lists figures and tables: whether the claims of the paper hold, by the results that are kept\n"
	"with the source; whether this machine can run them, and how long that takes. With FIGURE, as in\n"
	"`gpuloom papers gputn 8`, runs the conf of this figure and judges its claims: the paper's value, the value\n"
	"here with its interval, the verdict, where the paper says it, and the reason of a difference. FIGURE is a\n"
	"number, table-N, N-PART where a figure has several confs, or all. After Ctrl-C, what was measured is "
	"judged.\n",
    .notes = "[x-paper] of a conf has its claims: docs/papers.md, docs/report.md.\n\n"
	     "Exit: as of `gpuloom run`.\n",
    .options = options,
    .examples = "papers\tall figures and tables\n"
		"papers gputn 8\truns figure 8, and judges its claims\n"
		"papers mgws 17 --cpu\twithout a GPU\n"
		"papers gputn 11 -o f.pdf -o f.jsonl --width column\ta picture for a paper, and the samples\n",
    .page = "docs/papers.md",
    LOOM__REQUEST(struct papers_args, conf.file, run)};

/* ---- the rows ------------------------------------------------------------------------------------- */

/* One conf with its figure and result. It owns the memory that a row points to. */
struct source {
	char *conf, *path, *file;
	struct loom_config *cfg;
	struct loom__sweep_spec spec;
	struct loom__figure figure;
	struct loom__doc doc;
	struct loom__view view;
	int has_view;
	int cpu; /* cfg, spec and figure also come from the conf that the figure's `cpu` names */
};

struct papers {
	const struct loom__cli *cli;
	const struct papers_args *args;
	char *root; /* the folder that contains conf and results */
	struct loom__catalogue catalogue;
	struct source **source; /* [sources] one per conf */
	size_t sources;
	struct loom__paper_row *row;
	size_t rows;
};

static struct source *new_source(struct papers *p)
{
	p->source = loom__must(realloc(p->source, (p->sources + 1) * sizeof(*p->source)));
	return p->source[p->sources++] = loom__must(calloc(1, sizeof(struct source)));
}

static struct loom__paper_row *new_row(struct papers *p)
{
	p->row = loom__must(realloc(p->row, (p->rows + 1) * sizeof(*p->row)));
	return &p->row[p->rows++];
}

static void close_view(struct source *s)
{
	if (s->has_view)
		loom__view_free(&s->view);
	loom__doc_free(&s->doc);
	s->has_view = 0;
}

/* Reads the figure of a source, in place of an earlier one: the file `cpu` of a figure says how a run on CPUs differs, and why it
 * does not measure what the paper's does. Returns an exit code, and leaves the source as it was if that is an error. */
static int read_figure(struct papers *p, struct source *s, const struct loom__conf_args *conf)
{
	struct loom__diag diag = {0};
	struct source read = {.cpu = conf->file.n > 1}, old = *s;
	int status = loom__conf_load(p->cli, conf, &read.cfg);
	status = status ? status : loom__conf_sweep(read.cfg, &read.spec);
	if (!status) {
		loom__figure_read(read.cfg, &read.spec, &read.figure, &diag);
		status = loom__say_mistakes(&diag);
	}
	if (!status) {
		s->cfg = read.cfg, s->spec = read.spec, s->figure = read.figure, s->cpu = read.cpu;
		read = old;
	}
	loom__figure_free(&read.figure);
	loom__sweep_spec_free(&read.spec);
	loom_config_destroy(read.cfg);
	return status;
}

/* Returns whether CPUs took the role of GPUs in the source's result. */
static int is_by_cpu(const struct source *s)
{
	const cJSON *d, *devices = loom__json_list(s->view.head, "devices");
	int others = 0;
	cJSON_ArrayForEach(d, devices) others += strncmp(loom__json_text(d, "name"), "cpu", 3) != 0;
	return *s->figure.cpu && strstr(s->figure.needs, "gpu") && loom__json_length(devices) && !others;
}

/* Makes a view of a result, and takes ownership of the document. */
static int open_view(struct papers *p, struct source *s, const struct loom__doc *doc)
{
	struct loom_error err;
	close_view(s);
	s->doc = *doc;
	/* The figure and the report options come from the conf as it is, and not from the document, which may be older.
	 * Derived metrics are already stored with the samples. */
	for (;;) {
		cJSON *report = cJSON_CreateObject();
		loom__sweep_report(&s->spec.opts, report);
		cJSON_DeleteItemFromObjectCaseSensitive(report, "derive");
		cJSON_DeleteItemFromObjectCaseSensitive(s->doc.root, "report");
		cJSON_DeleteItemFromObjectCaseSensitive(s->doc.root, "paper");
		loom__json_add(s->doc.root, "report", report);
		loom__json_add(s->doc.root, "paper", loom__figure_json(&s->figure));
		if (loom__view_create(&s->doc, 1, &s->view, &err)) {
			loom__say_warning(p->cli, "%s", err.text);
			break;
		}
		s->has_view = 1;
		if (s->cpu || !is_by_cpu(s))
			return 0;
		const char *file[] = {s->path, s->figure.cpu};
		const struct loom__conf_args conf = {.file = {file, 2}};
		loom__view_free(&s->view);
		s->has_view = 0;
		if (read_figure(p, s, &conf))
			break;
	}
	loom__doc_free(&s->doc);
	return -1;
}

/* Opens the kept result results/NAME.jsonl or NAME.jsonl.gz. If there is none, s->file stays "". */
static void find_kept(struct papers *p, struct source *s)
{
	struct loom__text name = {0}, path = {0};
	struct loom__doc doc;
	struct loom_error err;
	loom__figure_file(&s->figure, &name);
	for (int zipped = 0; zipped < 2 && !s->has_view; zipped++) {
		path.length = 0;
		loom__text_add(&path, "%s/results/%s.jsonl%s", p->root, loom__must_text(&name), zipped ? ".gz" : "");
		if (access(loom__must_text(&path), F_OK))
			continue;
		free(s->file);
		s->file = loom__must(strdup(path.at));
		if (loom__kept_read(s->file, &doc, &err))
			loom__say_warning(p->cli, "%s", err.text);
		else
			open_view(p, s, &doc);
	}
	loom__text_free(&name);
	loom__text_free(&path);
}

static void add_figure(struct papers *p, struct source *s, size_t paper)
{
	struct loom__text label = {0}, shows = {0}, takes = {0};
	struct loom__paper_row *r = new_row(p);
	*r = (struct loom__paper_row){.paper = paper, .table = s->figure.table, .conf = s->conf, .figure = &s->figure, .file = ""};
	r->number = (unsigned)strtoul(s->figure.number[0], NULL, 10);
	find_kept(p, s);
	r->claim = loom__must(calloc(s->figure.claims + 1, sizeof(*r->claim)));
	loom__figure_name(&s->figure, &label);
	snprintf(r->label, sizeof(r->label), "%s", loom__must_text(&label));
	loom__conf_summary(s->path, &shows, &takes);
	snprintf(r->takes, sizeof(r->takes), "%s", loom__must_text(&takes));
	loom__text_free(&label);
	loom__text_free(&shows);
	loom__text_free(&takes);
	if (s->has_view) {
		r->view = &s->view;
		r->file = s->file + strlen(p->root) + 1;
	}
	loom__paper_judge(r);
}

/* Reads a conf, and adds its figure as a row. Skips a conf without a figure. Returns an exit code. */
static int read_conf(struct papers *p, const struct loom__shipped *shipped)
{
	const char *word = shipped->path;
	struct loom__conf_args args = {.file = {&word, 1}};
	struct source *s = new_source(p);
	s->conf = loom__must(strdup(shipped->name));
	s->path = loom__must(strdup(shipped->path));
	int status = read_figure(p, s, &args);
	/* The figure may belong to an included file instead of this conf. */
	if (status || !s->figure.entry || strcmp(s->figure.entry->file, s->path))
		return status;
	size_t paper = loom__catalogue_find(&p->catalogue, s->figure.of);
	if (paper != SIZE_MAX) {
		add_figure(p, s, paper);
		return 0;
	}
	const struct loom__entry *of = loom__config_get(s->cfg, LOOM__PAPER_SECTION, "of");
	struct loom__near near = {.word = s->figure.of};
	for (size_t i = 0; i < p->catalogue.papers; i++)
		loom__nearer(&near, p->catalogue.paper[i].id);
	fprintf(stderr, "%s:%d:%d: error: no paper '%s' in results/papers.ini%s%s%s\n", of->file, of->line,
		of->value_column, s->figure.of, LOOM__MEANT(near.name));
	return LOOM_EXIT_USAGE;
}

static void add_reason(struct papers *p, const struct loom__reason *reason)
{
	struct loom__paper_row *r = new_row(p);
	*r = (struct loom__paper_row){.table = reason->table, .reason = reason->text, .file = ""};
	r->paper = loom__catalogue_find(&p->catalogue, reason->of);
	r->number = (unsigned)strtoul(reason->number, NULL, 10);
	snprintf(r->label, sizeof(r->label), "%s %s", reason->table ? "table" : "figure", reason->number);
}

static int in_order(const void *a, const void *b)
{
	const struct loom__paper_row *x = a, *y = b;
	if (x->paper != y->paper)
		return x->paper < y->paper ? -1 : 1;
	if (x->table != y->table)
		return x->table - y->table;
	return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->label, y->label);
}

static int read_all(struct papers *p)
{
	struct loom__confs confs;
	struct loom__diag diag = {0};
	char *file = loom__shipped_file(p->cli, "results/papers.ini");
	if (!file)
		return loom__refuse(p->cli, LOOM_EXIT_UNAVAILABLE, "papers: there is no folder of shipped confs");
	loom__catalogue_read(file, &p->catalogue, &diag);
	int status = loom__say_mistakes(&diag);
	p->root = file; /* the folder that contains results/papers.ini is two levels up */
	for (int i = 0; i < 2; i++)
		*strrchr(p->root, '/') = 0;
	loom__confs_list(p->cli, &confs);
	for (size_t i = 0; i < confs.n && p->catalogue.papers; i++) {
		int one = read_conf(p, &confs.at[i]);
		status = status ? status : one;
	}
	loom__confs_free(&confs);
	for (size_t i = 0; i < p->catalogue.reasons; i++)
		add_reason(p, &p->catalogue.reason[i]);
	if (p->rows)
		qsort(p->row, p->rows, sizeof(*p->row), in_order);
	return status;
}

static void end(struct papers *p)
{
	for (size_t i = 0; i < p->rows; i++)
		free(p->row[i].claim);
	for (size_t i = 0; i < p->sources; i++) {
		struct source *s = p->source[i];
		close_view(s);
		loom__figure_free(&s->figure);
		loom__sweep_spec_free(&s->spec);
		loom_config_destroy(s->cfg);
		free(s->conf);
		free(s->path);
		free(s->file);
		free(s);
	}
	free(p->source);
	free(p->row);
	loom__catalogue_free(&p->catalogue);
	free(p->root);
}

/* ---- a run -------------------------------------------------------------------------------------------- */

struct one {
	struct papers *p;
	struct loom__paper_row *row;
	struct source *source;
};

static int is_samples(const char *output)
{
	const char *dot = strrchr(output, '.');
	return dot && !strcmp(dot, ".jsonl");
}

/* Appends the name of a file that --output names. If the command writes those of several rows, the name of the row
 * precedes the suffix, as in FILE-hiss-figure-4-interrupts.svg. */
static void output_name(const struct one *o, const char *output, struct loom__text *name)
{
	const char *dot = strrchr(output, '.');
	size_t drawn = 0;
	for (size_t i = 0; i < o->p->rows; i++)
		drawn += o->p->row[i].figure != NULL;
	int n = drawn > 1 && dot ? (int)(dot - output) : (int)strlen(output);
	loom__text_add(name, "%.*s", n, output);
	if (output[n]) {
		loom__text_add(name, "-");
		loom__figure_file(o->row->figure, name);
		loom__text_add(name, "%s", dot);
	}
}

static int report(const struct one *o, const char *output)
{
	struct loom__text name = {0};
	output_name(o, output, &name);
	const struct loom__report_args args = {.output = loom__must_text(&name), .width = o->p->args->width};
	int status = loom__report(o->p->cli, &args, &o->source->doc, 1);
	loom__text_free(&name);
	return status;
}

/* Judges the result of a source, and draws it (--output). Returns an exit code. */
static int use(struct one *o)
{
	const struct papers_args *a = o->p->args;
	struct loom__text text = {0};
	o->row->view = o->source->has_view ? &o->source->view : NULL;
	loom__paper_judge(o->row);
	loom__papers_claims(o->row, &text);
	if (!a->sweep.quiet && !(a->json && loom__names_stdout(a->json)))
		loom__put_table(o->p->cli, &text);
	loom__text_free(&text);
	int status = LOOM_EXIT_OK;
	for (size_t i = 0; i < a->output.n && !status; i++)
		if (!o->row->view)
			status = loom__refuse(o->p->cli, LOOM_EXIT_UNAVAILABLE,
					      "papers: %s, %s has no kept result; '%s' was not written",
					      o->row->figure->of, o->row->label, a->output.at[i]);
		else if (!is_samples(a->output.at[i]))
			status = report(o, a->output.at[i]);
	return status;
}

static int done(void *arg, struct loom__doc *doc)
{
	struct one *o = arg;
	struct loom__doc taken = *doc;
	*doc = (struct loom__doc){0};
	taken.path = o->source->path;
	return open_view(o->p, o->source, &taken) ? LOOM_EXIT_FAILURE : use(o);
}

static void add_setting(struct loom__settings *set, const char *value)
{
	set->at = loom__must(realloc(set->at, (set->n + 1) * sizeof(*set->at)));
	set->at[set->n++] = (struct loom__setting){.option = "set", .before = "", .value = value};
}

/* Returns the settings of `small`, followed by the settings of the command line. The settings of `small` point into
 * *words, which the caller frees. */
static struct loom__settings settings_of(const struct one *o, char **words)
{
	const struct papers_args *a = o->p->args;
	struct loom__settings set = {0};
	char *rest = *words = loom__must(strdup(o->row->figure->small)), *word;
	while (a->small && (word = loom__word(&rest, " \t")))
		add_setting(&set, word);
	if (a->small && !set.n) /* if `small` has no settings, runs as many configurations as one second allows */
		add_setting(&set, "sweep.budget=1s");
	if (a->small)
		add_setting(&set, "run.samples=1");
	set.at = loom__must(realloc(set.at, (set.n + a->conf.set.n + 1) * sizeof(*set.at)));
	memcpy(set.at + set.n, a->conf.set.at, a->conf.set.n * sizeof(*set.at));
	set.n += a->conf.set.n;
	return set;
}

static void count_gpu(void *arg, const char *topic, const char *state, const char *found, const char *fix)
{
	const char *number = strstr(topic, ": GPU ");
	(void)found;
	(void)fix;
	*(int *)arg += number && !strchr(number + strlen(": GPU "), ' ') && strcmp(state, "no") != 0;
}

/* Returns the number of GPUs of this machine. The plug-ins of devices report them, each in a child process. */
static int count_gpus(const struct loom__cli *cli)
{
	struct loom__search search = {0};
	struct loom__candidates all;
	struct loom_error err;
	int gpus = 0;
	if (!loom__search_create(NULL, &search, &err) && !loom__candidates_scan(&search, &all, &err)) {
		for (size_t i = 0; i < all.count; i++)
			if (all.list[i].has_manifest && all.list[i].manifest.kind == LOOM_DEVICE)
				loom__ask_rows(cli->self, "doctor", all.list[i].path, LOOM__PROBE_MS, count_gpu, &gpus, &err);
		loom__candidates_free(&all);
	}
	loom__search_free(&search);
	return gpus;
}

/* Prints what is run, what it needs, and how long it takes. Returns LOOM_EXIT_UNAVAILABLE if the machine lacks GPUs. */
static int announce(const struct one *o)
{
	const struct papers_args *a = o->p->args;
	const struct loom__paper_row *r = o->row;
	int needs = a->cpu ? 0 : loom__paper_gpus(r), gpus = needs && !a->sweep.dry_run ? count_gpus(o->p->cli) : needs;
	const char *plural = needs > 1 ? "s" : "";
	if (gpus < needs)
		return loom__refuse(o->p->cli, LOOM_EXIT_UNAVAILABLE,
				    "papers: %s, %s needs %d GPU%s, and this machine has %d (`gpuloom doctor`)%s",
				    r->figure->of, r->label, needs, plural, gpus,
				    *r->figure->cpu ? "; --cpu runs it on the CPU, with less work" : "");
	if (a->sweep.quiet)
		return LOOM_EXIT_OK;
	char need[32] = "no GPU";
	if (needs)
		snprintf(need, sizeof(need), "%d GPU%s", needs, plural);
	loom__say_note(o->p->cli, "%s, %s: gpuloom run %s; needs %s%s%s", r->figure->of, r->label, o->source->conf,
		       need, *r->takes && !a->cpu && !a->small ? "; takes " : "", a->cpu || a->small ? "" : r->takes);
	return LOOM_EXIT_OK;
}

/* Runs the conf of a row with the options of the command line. Returns an exit code. */
static int run_conf(struct one *o)
{
	const struct papers_args *a = o->p->args;
	const char *file[] = {o->source->path, o->row->figure->cpu};
	char *words;
	if (a->cpu && !*file[1] && loom__paper_gpus(o->row))
		return loom__refuse(o->p->cli, LOOM_EXIT_USAGE, "papers: --cpu: %s has no settings for a CPU: it needs a GPU",
				    o->source->conf);
	struct loom__conf_args conf = {.file = {file, a->cpu && *file[1] ? 2 : 1}, .set = settings_of(o, &words)};
	struct loom__sweep_params params = a->sweep;
	struct loom__text samples = {0};
	for (size_t i = 0; i < a->output.n && !samples.length; i++)
		if (is_samples(a->output.at[i]))
			output_name(o, a->output.at[i], &samples);
	params.output = loom__must_text(&samples);
	params.done = done;
	params.arg = o;
	int status = announce(o);
	status = status ? status : read_figure(o->p, o->source, &conf);
	file[1] = o->source->figure.cpu; /* the figure owns this text */
	o->source->spec.opts.report = "";
	status = status ? status : loom__sweep_conf(o->p->cli, &conf, &o->source->spec, &params);
	loom__text_free(&samples);
	free(conf.set.at);
	free(words);
	return status;
}

/* Records the files that a row reads and writes. Returns an exit code. */
static int use_files(const struct one *o)
{
	const struct papers_args *a = o->p->args;
	struct loom_error err;
	int rc = a->from ? loom__file_reads(o->p->cli, a->from, &err) : 0;
	for (size_t i = 0; i < a->output.n && !rc; i++) {
		struct loom__text name = {0};
		output_name(o, a->output.at[i], &name);
		const char *file = loom__must_text(&name);
		if (!is_samples(file)) /* the sweep records its own file */
			rc = loom__file_writes(o->p->cli, "--output", file, LOOM__WRITES_RESULT, &err);
		else if (a->kept || a->from)
			rc = LOOM__FAIL(&err, LOOM_EINVAL, "--output %.200s: no samples are measured", file);
		loom__text_free(&name);
	}
	return rc ? loom__refuse(o->p->cli, LOOM_EXIT_USAGE, "papers: %s", err.text) : LOOM_EXIT_OK;
}

static int run_row(struct papers *p, struct loom__paper_row *r)
{
	struct one o = {.p = p, .row = r};
	struct loom_error err;
	struct loom__doc doc;
	for (size_t i = 0; i < p->sources; i++)
		if (&p->source[i]->figure == r->figure)
			o.source = p->source[i];
	int status = use_files(&o);
	if (status)
		return status;
	if (p->args->from) {
		if (loom__kept_read(p->args->from, &doc, &err))
			return loom__refuse(p->cli, LOOM_EXIT_USAGE, "%s", err.text);
		return open_view(p, o.source, &doc) ? LOOM_EXIT_FAILURE : use(&o);
	}
	return p->args->kept ? use(&o) : run_conf(&o);
}

/* ---- selection ---------------------------------------------------------------------------------------- */

/* Returns 1 if a word of the command line selects the row: "8", "12a", "figure-8", "table-5", "8-gpu" or "all". */
static int is_chosen(const struct loom__paper_row *r, const char *word)
{
	int table = !strncmp(word, "table-", 6), figure = !strncmp(word, "figure-", 7);
	if (!strcmp(word, "all"))
		return r->figure != NULL;
	word += table ? 6 : figure ? 7 : 0;
	word += strspn(word, "0"); /* file names have leading zeros, as in figure-08.ini */
	if (r->table != table)
		return 0;
	size_t n = strcspn(word, "-");
	if (!r->figure)
		return strlen(r->label) > n && !strcmp(strchr(r->label, ' ') + 1, word);
	if (word[n] && strcmp(word + n + 1, r->figure->part))
		return 0;
	for (size_t i = 0; i < r->figure->numbers; i++) {
		const char *number = r->figure->number[i];
		if (!strncmp(number, word, n) &&
		    (!number[n] || (isalpha((unsigned char)number[n]) && n && isdigit((unsigned char)word[n - 1]))))
			return 1;
	}
	return 0;
}

static int no_paper(const struct papers *p, const char *word)
{
	struct loom__near near = {.word = word};
	struct loom__text all = {0};
	for (size_t i = 0; i < p->catalogue.papers; i++) {
		loom__nearer(&near, p->catalogue.paper[i].id);
		loom__text_add(&all, "%s%s", i ? ", " : "", p->catalogue.paper[i].id);
	}
	loom__say_error(p->cli, "papers: no paper '%s'%s%s%s; there are %s", word, LOOM__MEANT(near.name),
			loom__must_text(&all));
	loom__text_free(&all);
	return LOOM_EXIT_USAGE;
}

/* Keeps the rows of the paper, or only those that `figure` selects. Returns an exit code. */
static int choose(struct papers *p, const char *paper, const char *figure)
{
	size_t at = loom__catalogue_find(&p->catalogue, paper), n = 0;
	if (at == SIZE_MAX)
		return no_paper(p, paper);
	for (size_t i = 0; i < p->rows; i++)
		if (p->row[i].paper == at && (!figure || is_chosen(&p->row[i], figure))) {
			struct loom__paper_row t = p->row[n];
			p->row[n++] = p->row[i];
			p->row[i] = t;
		}
	for (size_t i = n; i < p->rows; i++)
		free(p->row[i].claim);
	p->rows = n;
	return n ? LOOM_EXIT_OK
		 : loom__refuse(p->cli, LOOM_EXIT_USAGE, "papers: %s has no figure or table '%s': see `gpuloom papers %s`",
				paper, figure, paper);
}

static int run_chosen(struct papers *p)
{
	int status = LOOM_EXIT_OK, confs = 0;
	for (size_t i = 0; i < p->rows && !loom__stop_asked(); i++) {
		if (!p->row[i].figure)
			continue;
		confs++;
		int one = run_row(p, &p->row[i]);
		status = status ? status : one;
	}
	if (loom__stop_asked())
		return LOOM_EXIT_INTERRUPTED;
	if (confs)
		return status;
	return loom__refuse(p->cli, LOOM_EXIT_UNAVAILABLE, "papers: %s of %s: %s", p->row[0].label,
			    p->catalogue.paper[p->row[0].paper].id, p->row[0].reason);
}

static int show(const struct papers *p)
{
	const struct papers_args *a = p->args;
	struct loom__text text = {0};
	int there = 0, status = LOOM_EXIT_OK;
	if (a->json) {
		cJSON *doc = loom__papers_json(&p->catalogue, p->row, p->rows);
		char *json = loom__must(loom__json_print(doc, 1));
		status = loom__put_result(p->cli, a->json, json, &there);
		free(json);
		cJSON_Delete(doc);
	}
	if (!there && !a->sweep.quiet && a->conf.file.n < 2) {
		loom__papers_list(&p->catalogue, p->row, p->rows, count_gpus(p->cli), &text);
		loom__put_table(p->cli, &text);
	}
	loom__text_free(&text);
	return status;
}

static int run(struct loom__cli *cli, void *args)
{
	struct papers_args *a = args;
	struct papers p = {.cli = cli, .args = a};
	const char *paper = a->conf.file.n ? a->conf.file.at[0] : NULL;
	const char *figure = a->conf.file.n > 1 ? a->conf.file.at[1] : NULL;
	if (a->conf.file.n > 2)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "papers: too many words: PAPER and FIGURE");
	if (!figure && (a->conf.set.n || a->from || a->kept || a->small || a->cpu || a->output.n))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "papers: --%s needs PAPER and FIGURE",
				    a->conf.set.n ? a->conf.set.at[0].option : a->from ? "from" : a->kept ? "kept"
				    : a->small ? "small" : a->cpu ? "cpu" : "output");
	if (a->cpu && (a->kept || a->from))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "papers: --cpu runs a figure, and judges no result");
	loom__catch_signals();
	int status = read_all(&p);
	if (!status && paper)
		status = choose(&p, paper, figure);
	status = status || !figure ? status : run_chosen(&p);
	if (p.rows && (!status || figure)) {
		int shown = show(&p);
		status = status ? status : shown;
	}
	end(&p);
	return status;
}
