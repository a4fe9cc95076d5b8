/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom history: shows the results of one job over time, and marks changes. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/files.h"
#include "facts/must.h"
#include "lib/hash.h"
#include "report/document.h"
#include "report/grid.h"
#include "report/pool.h"
#include "report/table.h"
#include "stats/stats.h"

struct history_args {
	struct loom__words file;
	const char *metric;
	double margin, confidence;
	uint8_t json;
};

#define AT(field, type) LOOM__AT(struct history_args, field, type)
static const struct loom__option options[] = {
    {"metric", "NAME[,NAME]", "which metrics", AT(metric, STR), .dflt = "seconds"},
    {"margin", "SHARE", "ignore changes smaller than this", AT(margin, SHARE), .dflt = "1%", .max = 1},
    {"confidence", "SHARE", "confidence that a history has no false change", AT(confidence, SHARE), .dflt = "95%",
     .min = 0.5, .max = 0.9999},
    {"json", NULL, "as JSON", AT(json, BOOL)},
    {0}};
#undef AT

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__history_usage = {
    .command = "history",
    .synopsis = "DIR|RESULT.json... [options]",
    .about = "Sorts results of `gpuloom run --json` by their start, in a list for each job and its options, and marks\n"
	     "significant changes. Each result is compared with all results since the last change.\n",
    .notes = "Runs are not interleaved, so the machine may cause a change.\n\n"
	     "Exit: 0 ok, 2 usage.\n",
    .options = options,
    .examples = "history results/\tall results of a folder\n"
		"history results/ --metric nodes_per_s\tanother metric\n",
    .page = "docs/results.md",
    .inputs = 1,
    LOOM__REQUEST(struct history_args, file, run)};

struct entry {
	struct loom__doc doc;
	char *path;
	char *job; /* text that is the same for all results of a job: workload, devices and options */
};

struct list {
	struct entry *at;
	size_t n, left_out, repeated; /* files that are no results; results that were there before */
	struct loom__pool pool;
	struct loom__names content; /* hashes of the samples */
};

/* Returns 0 for options that affect only how often or under which title a job runs. */
static int is_identity(const char *key)
{
	static const char *const other[] = {"run.samples", "run.title", "run.time_limit", "run.warmup"};
	for (size_t i = 0; i < LOOM__COUNT(other); i++)
		if (!strcmp(key, other[i]))
			return 0;
	return strncmp(key, "gpuloom.", 8) != 0;
}

static char *job_of(const cJSON *result)
{
	struct loom__text t = {0};
	const cJSON *o;
	loom__text_add(&t, "%s", loom__json_text(result, "workload"));
	cJSON_ArrayForEach(o, loom__json_object(result, "config"))
	{
		if (o->string && is_identity(o->string) && strcmp(loom__json_text(o, "source"), "default"))
			loom__text_add(&t, "\n%s=%s", o->string, loom__json_text(o, "value"));
	}
	loom__must_text(&t);
	return t.at;
}

/* Returns 1 if the list has a result with the same samples, such as a copy of the file. The samples must not count
 * twice. */
static int is_copy(struct list *l, const cJSON *result)
{
	static const char *const key[] = {"started", "samples", "metrics"};
	uint64_t hash = LOOM__FNV1A;
	char name[20];
	size_t known = l->content.count;
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		hash = loom__json_hash(hash, cJSON_GetObjectItemCaseSensitive(result, key[i]));
	snprintf(name, sizeof(name), "%llx", (unsigned long long)hash);
	loom__names_add(&l->pool, &l->content, name);
	return l->content.count == known;
}

static int add(const struct loom__cli *cli, struct list *l, const char *path, struct loom_error *err)
{
	const char *before;
	if (loom__file_again(cli, path, &before)) {
		l->repeated++;
		return 0;
	}
	struct entry e = {.path = loom__must(strdup(path))};
	int rc = loom__file_reads(cli, path, err);
	rc = rc ? rc : loom__doc_read(e.path, &e.doc, err);
	if (rc || e.doc.kind != LOOM__DOC_RESULT) {
		if (!rc) {
			loom__doc_free(&e.doc);
			rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not a result of `gpuloom run`", path);
		}
		free(e.path);
		return rc;
	}
	if (is_copy(l, e.doc.root)) {
		l->repeated++;
		loom__doc_free(&e.doc);
		free(e.path);
		return 0;
	}
	e.job = job_of(e.doc.root);
	l->at = loom__must(realloc(l->at, (l->n + 1) * sizeof(*l->at)));
	l->at[l->n++] = e;
	return 0;
}

/* Adds all results in a folder, and counts the files that are not results. */
static int add_folder(const struct loom__cli *cli, struct list *l, const char *path, struct loom_error *err)
{
	DIR *d = opendir(path);
	if (!d)
		return LOOM__FAIL(err, LOOM_EIO, "cannot read the folder '%s': %m", path);
	for (const struct dirent *f; (f = readdir(d));) {
		struct loom__text name = {0};
		struct loom_error unread;
		loom__text_add(&name, "%s/%s", path, f->d_name);
		if (loom__input_kind(loom__must_text(&name)) == LOOM__INPUT_DOCUMENT && add(cli, l, name.at, &unread))
			l->left_out++;
		loom__text_free(&name);
	}
	closedir(d);
	return 0;
}

static int by_job_and_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->job, y->job);
	order =
	    order ? order : strcmp(loom__json_text(x->doc.root, "started"), loom__json_text(y->doc.root, "started"));
	return order ? order : strcmp(x->path, y->path);
}

static const cJSON *metric_of(const struct entry *e, const char *metric)
{
	return loom__json_object(loom__json_object(e->doc.root, "metrics"), metric);
}

/* Appends the samples of an entry to *x, which has n values. Returns the new number of values. */
static size_t take(const struct entry *e, const char *metric, double **x, size_t n)
{
	const cJSON *o, *list = loom__json_list(metric_of(e, metric), "samples");
	*x = loom__must(realloc(*x, (n + loom__json_length(list) + 1) * sizeof(**x)));
	cJSON_ArrayForEach(o, list)
	{
		(*x)[n++] = loom__json_double(o);
	}
	return n;
}

struct change {
	enum loom__stats_verdict verdict;
	double ratio;
	int known;
};

static struct change compare(const struct history_args *a, const struct entry *since, const struct entry *now,
			     const char *metric, size_t tests)
{
	double *x = NULL, *y = NULL, alpha = 1 - a->confidence;
	size_t n = 0, m = take(now, metric, &y, 0);
	struct change c = {.verdict = LOOM__STATS_INCONCLUSIVE};
	struct loom__stats_comparison s;
	for (const struct entry *e = since; e < now; e++)
		n = take(e, metric, &x, n);
	const char *better = loom__json_text(metric_of(now, metric), "better");
	/* Bonferroni correction, because each result of the history is a test that may claim a change by chance. */
	if (n && m && !loom__stats_compare_unpaired(x, n, y, m, 1 - alpha / (double)tests, &s)) {
		double p = fmin(1, s.test.p * (double)tests);
		c.known = 1;
		c.ratio = s.ratio.at;
		c.verdict = loom__stats_judge(&s, p, strcmp(better, "more") ? LOOM__STATS_LESS : LOOM__STATS_MORE,
					      a->margin, alpha);
	}
	free(x);
	free(y);
	return c;
}

static void add_run(const struct entry *e, const char *metric, const struct change *c, cJSON *runs,
		    struct loom__grid *g)
{
	const cJSON *m = metric_of(e, metric), *version = loom__json_object(e->doc.root, "gpuloom");
	const char *revision = loom__json_text(version, "revision");
	int changed = c->verdict == LOOM__STATS_FASTER || c->verdict == LOOM__STATS_SLOWER;
	double *sample = NULL, *sorted = NULL, median = loom__json_number(m, "median");
	size_t n = take(e, metric, &sample, 0);
	if (isnan(median) && !loom__stats_sorted(sample, n, &sorted))
		median = loom__stats_quantile(sorted, n, 0.5);
	free(sample);
	free(sorted);
	if (runs) {
		cJSON *o = loom__json_append_object(runs);
		loom__json_add_text(o, "file", e->path);
		loom__json_add_text(o, "started", loom__json_text(e->doc.root, "started"));
		loom__json_add_text(o, "version", loom__json_text(version, "version"));
		loom__json_add_text(o, "revision", revision);
		loom__json_add_number(o, "median", median);
		loom__json_add_number(o, "samples", (double)n);
		if (c->known)
			loom__json_add_number(o, "ratio", c->ratio);
		else
			loom__json_add_null(o, "ratio");
		loom__json_add_bool(o, "changed", changed);
		loom__json_add_text(o, "verdict", c->known ? loom__stats_verdict_name(c->verdict) : "");
		return;
	}
	loom__grid_cell(g, 0, "%.20s", loom__json_text(e->doc.root, "started"));
	loom__grid_cell(g, 0, "%.14s", *revision ? revision : loom__json_text(version, "version"));
	loom__grid_cell(g, 0, "%s", isnan(median) ? "" : LOOM__METRIC(median, m->string, loom__json_text(m, "unit")));
	loom__grid_cell(g, 0, "%s", c->known ? LOOM__CHANGE(c->ratio) : "");
	loom__grid_cell(g, 0, "%s%s", changed ? "<-- " : "", changed ? loom__stats_verdict_name(c->verdict) : "");
}

/* Rejects results in which the metric has different units or directions. Returns an exit code. */
static int check_units(const struct loom__cli *cli, const struct entry *from, const struct entry *to,
		       const char *metric)
{
	static const char *const key[] = {"unit", "better"};
	const struct entry *first = NULL;
	for (const struct entry *e = from; e < to; e++) {
		const cJSON *m = metric_of(e, metric), *was = first ? metric_of(first, metric) : NULL;
		for (size_t k = 0; m && was && k < LOOM__COUNT(key); k++) {
			const char *a = loom__json_text(was, key[k]), *b = loom__json_text(m, key[k]);
			if (strcmp(a, b))
				return loom__refuse(cli, LOOM_EXIT_USAGE,
						    "history: '%s' is %s %s in '%s' and %s %s in '%s': use one unit, "
						    "and move the other results to another folder",
						    metric, k ? "better when it is" : "in",
						    *a  ? a
						    : k ? "(not given)"
							: "no unit",
						    first->path, k ? "when it is" : "in",
						    *b  ? b
						    : k ? "(not given)"
							: "no unit",
						    e->path);
		}
		first = first ? first : m ? e : NULL;
	}
	return LOOM_EXIT_OK;
}

/* Prints the history of one job, whose results are the entries [from, to). If `all` is not NULL, adds the history to
 * this JSON list instead. */
static void history(const struct loom__cli *cli, const struct history_args *a, const struct entry *from,
		    const struct entry *to, const char *metric, cJSON *all)
{
	const struct entry *since = NULL;
	struct loom__grid g = {0};
	size_t tests = 0;
	for (const struct entry *e = from; e < to; e++)
		tests += metric_of(e, metric) != NULL;
	if (!tests)
		return;
	cJSON *runs = NULL;
	loom__grid_columns(&g, "started|version|#median|#change");
	loom__grid_column(&g, 0, "");
	const char *workload = loom__json_text(from->doc.root, "workload"),
		   *title = loom__json_text(from->doc.root, "title");
	if (all) {
		cJSON *o = loom__json_append_object(all);
		loom__json_add_text(o, "workload", workload);
		loom__json_add_text(o, "metric", metric);
		loom__json_add_text(o, "unit", loom__json_text(metric_of(from, metric), "unit"));
		runs = loom__json_add_array(o, "runs");
	} else {
		loom__print(cli->out, "%s, %s\n", *title ? title : workload, metric);
	}
	for (const struct entry *e = from; e < to; e++) {
		struct change c = {.verdict = LOOM__STATS_INCONCLUSIVE};
		if (!metric_of(e, metric))
			continue;
		if (since)
			c = compare(a, since, e, metric, tests > 1 ? tests - 1 : 1);
		if (!since || c.verdict == LOOM__STATS_FASTER || c.verdict == LOOM__STATS_SLOWER)
			since = e;
		add_run(e, metric, &c, runs, &g);
	}
	if (!all) {
		struct loom__text text = {0};
		loom__grid_text(&g, &text, 2);
		fprintf(cli->out, "%s\n", loom__must_text(&text));
		loom__text_free(&text);
	}
	loom__grid_free(&g);
}

static int print(const struct loom__cli *cli, const struct history_args *a, const struct list *l)
{
	int status = LOOM_EXIT_OK;
	cJSON *doc = a->json ? cJSON_CreateObject() : NULL, *all = NULL;
	if (doc) {
		loom__json_add_text(doc, "schema", "gpuloom.history/1");
		all = loom__json_add_array(doc, "histories");
	}
	for (size_t from = 0, to; from < l->n; from = to) {
		for (to = from + 1; to < l->n && !strcmp(l->at[to].job, l->at[from].job);)
			to++;
		char metric[64];
		for (const char *s = a->metric; *s;) {
			size_t n = strcspn(s, ", ");
			snprintf(metric, sizeof(metric), "%.*s", (int)n, s);
			s += n + strspn(s + n, ", ");
			int differ = check_units(cli, l->at + from, l->at + to, metric);
			if (!differ)
				history(cli, a, l->at + from, l->at + to, metric, all);
			status = status ? status : differ;
		}
	}
	if (doc)
		loom__print_json(cli, doc);
	return status;
}

static int run(struct loom__cli *cli, void *args)
{
	const struct history_args *a = args;
	struct list l = {0};
	struct loom_error err;
	int rc = 0;
	if (!a->file.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "history: no result given: try `gpuloom history results/`");
	for (size_t i = 0; i < a->file.n && !rc; i++) {
		struct stat st;
		int folder = !stat(a->file.at[i], &st) && S_ISDIR(st.st_mode);
		rc = folder ? add_folder(cli, &l, a->file.at[i], &err) : add(cli, &l, a->file.at[i], &err);
	}
	int status = rc ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
	if (rc)
		loom__say_error(cli, "%s", err.text);
	else if (!l.n)
		loom__say_warning(cli, "found no result of `gpuloom run`");
	if (l.left_out)
		loom__say_warning(cli, "%zu other file%s ignored: not a result of `gpuloom run`", l.left_out,
				  l.left_out == 1 ? " was" : "s were");
	if (l.repeated)
		loom__say_warning(cli, "%zu file%s left out: the list already has the same samples", l.repeated,
				  l.repeated == 1 ? " was" : "s were");
	if (!rc) {
		qsort(l.at, l.n, sizeof(*l.at), by_job_and_time);
		status = print(cli, a, &l);
	}
	for (size_t i = 0; i < l.n; i++) {
		loom__doc_free(&l.at[i].doc);
		free(l.at[i].path);
		free(l.at[i].job);
	}
	free(l.at);
	loom__pool_free(&l.pool);
	return status;
}
