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
#include "papers/papers.h"

struct papers_args {
	struct loom__conf_args conf; /* the words are PAPER and FIGURE */
	const char *json, *keep, *from, *output;
	uint8_t kept, small, cpu, quiet;
	uint32_t log;
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
    {"keep", "FOLDER",
     "write the result, reduced to the metrics of its claims and plots, into this folder: results of "
     "the source tree",
     LOOM__AT(struct papers_args, keep, STR)},
    {"output", "FILE", "also write a report, named " LOOM__REPORT_SUFFIXES " or .json",
     LOOM__AT(struct papers_args, output, STR), .letter = 'o', .writes = LOOM__WRITES_RESULT},
    {"json", "FILE|-", "write the rows and their claims as JSON; '-' is standard output, instead of the table",
     LOOM__AT(struct papers_args, json, STR), .writes = LOOM__WRITES_RESULT},
    {"quiet", NULL, "no table, no progress: only errors", LOOM__AT(struct papers_args, quiet, BOOL)},
    LOOM__OPTION_LOG(struct papers_args),
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__papers_usage = {
    .command = "papers",
    .synopsis = "[PAPER [FIGURE]] [options]",
    .about =
	"Without FIGURE lists figures and tables: what they show, and whether the claims of the paper hold here, by\n"
	"the results that are kept with the source; with PAPER also each of its claims. With FIGURE, as in\n"
	"`gpuloom papers gputn 8`, runs the conf of this figure and judges its claims: the paper's value, the value\n"
	"here, and the verdict same, smaller, larger or opposite. FIGURE is a number, table-N, N-PART where a figure\n"
	"has several confs, or all.\n",
    .notes = "[x-paper] of a conf has its claims: docs/papers.md, docs/report.md.\n\n"
	     "Exit: as of `gpuloom run`.\n",
    .options = options,
    .examples = "papers\tall figures and tables\n"
		"papers gputn 8\truns figure 8, and judges its claims\n"
		"papers mgws 17 --cpu\twithout a GPU\n",
    .page = "docs/papers.md",
    LOOM__REQUEST(struct papers_args, conf.file, run)};

/* ---- the rows ------------------------------------------------------------------------------------- */

/* One conf with its figure and result. It owns the memory that a row points to. */
struct source {
	char *conf, *path, *label, *file;
	struct loom_config *cfg;
	struct loom__sweep_spec spec;
	struct loom__figure figure;
	struct loom__doc doc;
	struct loom__view view;
	int has_view;
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

/* Makes a view of a result, and takes ownership of the document. */
static int open_view(struct papers *p, struct source *s, const struct loom__doc *doc)
{
	struct loom_error err;
	cJSON *report;
	close_view(s);
	s->doc = *doc;
	/* The figure and the report options come from the conf as it is, and not from the document, which may be older.
	 * If --cpu is given, the report options come from the document, because the run had two confs. Derived metrics
	 * are already stored with the samples. */
	report = p->args->cpu ? cJSON_Duplicate(loom__json_object(s->doc.root, "report"), 1) : NULL;
	if (!report) {
		report = cJSON_CreateObject();
		loom__sweep_report(&s->spec.opts, report);
	}
	cJSON_DeleteItemFromObjectCaseSensitive(report, "derive");
	cJSON_DeleteItemFromObjectCaseSensitive(s->doc.root, "report");
	cJSON_DeleteItemFromObjectCaseSensitive(s->doc.root, "paper");
	loom__json_add(s->doc.root, "report", report);
	loom__json_add(s->doc.root, "paper", loom__figure_json(&s->figure));
	if (loom__view_create(&s->doc, 1, &s->view, &err)) {
		loom__say_warning(p->cli, "%s", err.text);
		loom__doc_free(&s->doc);
		return -1;
	}
	s->has_view = 1;
	return 0;
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
	struct loom__text label = {0};
	struct loom__paper_row *r = new_row(p);
	loom__figure_name(&s->figure, &label);
	s->label = loom__must(strdup(loom__must_text(&label)));
	loom__text_free(&label);
	*r = (struct loom__paper_row){.paper = paper,
				      .table = s->figure.table,
				      .number = (unsigned)strtoul(s->figure.number[0], NULL, 10),
				      .label = s->label,
				      .conf = s->conf,
				      .figure = &s->figure,
				      .file = ""};
	r->claim = loom__must(calloc(s->figure.claims + 1, sizeof(*r->claim)));
	find_kept(p, s);
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
	struct loom__diag diag = {0};
	struct source *s = new_source(p);
	s->conf = loom__must(strdup(shipped->name));
	s->path = loom__must(strdup(shipped->path));
	int status = loom__conf_load(p->cli, &args, &s->cfg);
	status = status ? status : loom__conf_sweep(s->cfg, &s->spec);
	if (status)
		return status;
	loom__figure_read(s->cfg, &s->spec, &s->figure, &diag);
	status = loom__say_mistakes(&diag);
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
	struct source *s = new_source(p);
	struct loom__paper_row *r = new_row(p);
	struct loom__text label = {0};
	loom__text_add(&label, "%s %s", reason->table ? "table" : "figure", reason->number);
	s->label = loom__must(strdup(loom__must_text(&label)));
	loom__text_free(&label);
	*r = (struct loom__paper_row){.paper = loom__catalogue_find(&p->catalogue, reason->of),
				      .table = reason->table,
				      .number = (unsigned)strtoul(reason->number, NULL, 10),
				      .label = s->label,
				      .reason = reason->text,
				      .file = ""};
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
		free(s->label);
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
	uint64_t began_ns; /* when the run began; 0: nothing was run */
};

static void note_metric(void *arg, const char *metric)
{
	struct loom__arena *arena = ((void **)arg)[0];
	loom__names_add(arena, ((void **)arg)[1], metric);
}

static void note_list(void *both, const char *list)
{
	for (char name[80]; loom__take_name(&list, name, sizeof(name));)
		note_metric(both, name);
}

static void kept_name(const struct one *o, struct loom__text *path)
{
	loom__text_add(path, "%s/", o->p->args->keep);
	loom__figure_file(o->row->figure, path);
	loom__text_add(path, ".jsonl");
}

static int keep(const struct one *o)
{
	struct loom__arena arena = {0};
	struct loom__names names = {0};
	struct loom__text path = {0}, text = {0};
	struct loom_error err;
	void *both[] = {&arena, &names};
	const struct loom__figure *f = o->row->figure;
	for (size_t i = 0; i < f->claims; i++)
		loom__claim_metrics(&f->claim[i], &o->source->view, note_metric, both);
	note_list(both, o->source->spec.opts.metric);
	note_list(both, o->source->spec.opts.pareto);
	if (!names.count)
		note_metric(both, "seconds");
	kept_name(o, &path);
	double took = o->began_ns ? (double)(loom__now_ns() - o->began_ns) / 1e9 : NAN;
	int rc = loom__kept_write(&o->source->view, f, names.name, names.count, took, &text, &err);
	rc = rc ? rc : loom__write_file(loom__must_text(&path), loom__must_text(&text), text.length, &err);
	if (!rc && !o->p->args->quiet)
		loom__say_note(o->p->cli, "wrote '%s'", path.at);
	loom__text_free(&path);
	loom__text_free(&text);
	loom__arena_free(&arena);
	return rc ? loom__refuse(o->p->cli, LOOM_EXIT_FAILURE, "%s", err.text) : LOOM_EXIT_OK;
}

/* Appends the name of the report of a row. If the command draws several rows, the name of the row precedes the suffix,
 * as in FILE-hiss-figure-4-interrupts.svg. */
static void report_name(const struct one *o, struct loom__text *name)
{
	const char *output = o->p->args->output, *dot = strrchr(output, '.');
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

static int report(const struct one *o)
{
	struct loom__text name = {0};
	struct loom__view view;
	struct loom__report_settings settings;
	report_name(o, &name);
	const struct loom__report_args args = {.output = loom__must_text(&name)};
	int status = loom__report_view(o->p->cli, &args, &o->source->doc, 1, &view, &settings);
	if (!status) {
		status = loom__report_write(o->p->cli, &args, &view, &settings);
		loom__view_free(&view);
	}
	loom__text_free(&name);
	return status;
}

/* Judges the result of a source, stores it (--keep), and draws it (--output). Returns an exit code. */
static int use(struct one *o)
{
	const struct papers_args *a = o->p->args;
	struct loom__text text = {0};
	o->row->view = o->source->has_view ? &o->source->view : NULL;
	loom__paper_judge(o->row);
	for (size_t i = 0; a->cpu && i < o->row->figure->claims; i++) { /* without a GPU, no claim is judged */
		o->row->claim[i].verdict = LOOM__CLAIM_NOT_JUDGED;
		o->row->claim[i].unavailable = 1;
	}
	if (a->cpu && !a->quiet)
		loom__say_note(o->p->cli, "--cpu: no GPU takes part, so the claims are not judged");
	for (size_t i = 0; i < o->row->figure->claims; i++)
		if (*o->row->claim[i].error && !o->row->claim[i].unavailable)
			loom__say_warning(o->p->cli, "%s:%d: claim.%s: %s", o->row->claim[i].claim->entry->file,
					  o->row->claim[i].claim->entry->line, o->row->claim[i].claim->name,
					  o->row->claim[i].error);
	loom__papers_claims(o->row, &text);
	if (!a->quiet && !(a->json && loom__names_stdout(a->json)))
		loom__put_table(o->p->cli, &text);
	loom__text_free(&text);
	if (a->output && !o->row->view)
		return loom__refuse(o->p->cli, LOOM_EXIT_UNAVAILABLE, "papers: %s, %s has no kept result; '%s' was not written",
				    o->row->figure->of, o->row->label, a->output);
	int status = a->keep && o->row->view ? keep(o) : LOOM_EXIT_OK;
	return status || !a->output ? status : report(o);
}

static int done(void *arg, const struct loom__doc *doc)
{
	struct one *o = arg;
	struct loom__doc copy;
	struct loom_error err;
	char *bytes = loom__must(malloc(doc->length + 1));
	memcpy(bytes, doc->bytes, doc->length);
	bytes[doc->length] = 0;
	if (loom__doc_parse(o->source->path, bytes, doc->length, &copy, &err))
		return loom__refuse(o->p->cli, LOOM_EXIT_FAILURE, "%s", err.text);
	return open_view(o->p, o->source, &copy) ? LOOM_EXIT_FAILURE : use(o);
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

/* Prints what is run, and how long the kept result took, possibly on another machine. */
static void announce(const struct one *o)
{
	double took = o->source->has_view ? loom__json_number(o->source->view.head, "took_s") : NAN;
	char text[80] = "";
	if (took >= 0 && took < 1e6)
		snprintf(text, sizeof(text), "; the kept result took %.0f s", took);
	loom__say_note(o->p->cli, "%s, %s: gpuloom run %s%s", o->row->figure->of, o->row->label, o->source->conf, text);
}

/* Runs the conf of a row with the options of the command line. Returns an exit code. */
static int run_conf(struct one *o)
{
	const struct papers_args *a = o->p->args;
	const char *file[] = {o->source->path, o->row->figure->cpu};
	char *words;
	if (a->cpu && !*file[1])
		return loom__refuse(o->p->cli, LOOM_EXIT_USAGE, "papers: --cpu: %s has no `cpu`: %s", o->source->conf,
				    strcmp(o->row->figure->needs, "cpu") && strcmp(o->row->figure->needs, "sim")
					? "it needs a GPU"
					: "it needs no GPU anyway");
	struct loom__conf_args conf = {.file = {file, a->cpu ? 2 : 1}, .set = settings_of(o, &words)};
	if (a->cpu)
		o->source->figure.unlike = "Workers of a CPU take the part of the GPU, with less work.";
	struct loom__sweep_params params = {.quiet = a->quiet,
					    .log = a->log,
					    .output = "",
					    .done = done,
					    .arg = o};
	struct loom_config *cfg = NULL;
	struct loom__sweep_spec spec = {0};
	int status = loom__conf_load(o->p->cli, &conf, &cfg);
	status = status ? status : loom__conf_sweep(cfg, &spec);
	spec.opts.report = "";
	if (!status && !a->quiet)
		announce(o);
	o->began_ns = loom__now_ns();
	status = status ? status : loom__sweep_conf(o->p->cli, &conf, &spec, &params);
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
	free(conf.set.at);
	free(words);
	return status;
}

/* Records the files that a row reads and writes. Returns an exit code. */
static int use_files(const struct one *o)
{
	const struct papers_args *a = o->p->args;
	struct loom__text kept = {0}, drawn = {0};
	struct loom_error err;
	int rc = a->from ? loom__file_reads(o->p->cli, a->from, &err) : 0;
	if (a->keep && !rc) {
		kept_name(o, &kept);
		rc = loom__file_writes(o->p->cli, "--keep", loom__must_text(&kept), LOOM__WRITES_EITHER, &err);
	}
	if (a->output && !rc) {
		report_name(o, &drawn);
		rc = loom__file_writes(o->p->cli, "--output", loom__must_text(&drawn), LOOM__WRITES_RESULT, &err);
	}
	loom__text_free(&kept);
	loom__text_free(&drawn);
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
		 : loom__refuse(p->cli, LOOM_EXIT_USAGE,
				"papers: %s has no figure or table '%s': see `gpuloom papers %s`", paper, figure,
				paper);
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
	if (!there && !a->quiet && a->conf.file.n < 2) {
		loom__papers_list(&p->catalogue, p->row, p->rows, &text);
		if (a->conf.file.n == 1)
			loom__papers_verdicts(p->row, p->rows, &text);
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
	if (!figure && (a->conf.set.n || a->keep || a->from || a->kept || a->small || a->cpu || a->output))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "papers: --%s needs PAPER and FIGURE",
				    a->conf.set.n ? a->conf.set.at[0].option
				    : a->keep     ? "keep"
				    : a->from     ? "from"
				    : a->kept     ? "kept"
				    : a->small    ? "small"
				    : a->cpu      ? "cpu"
						  : "output");
	if (a->cpu && (a->keep || a->kept || a->from))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "papers: --cpu runs a figure, and keeps no result");
	loom__catch_signals();
	int status = read_all(&p);
	if (!status && paper)
		status = choose(&p, paper, figure);
	if (!status && figure)
		status = run_chosen(&p);
	if (p.rows && (!status || figure)) {
		int shown = show(&p);
		status = status ? status : shown;
	}
	end(&p);
	return status;
}
