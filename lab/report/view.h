/* SPDX-License-Identifier: Apache-2.0 */
/* What all reports show, whichever schema it came from: variants with their samples, comparisons of
 * them, factors that were varied. Checked and finite; strings are still untrusted text. */
#ifndef LOOM_VIEW_H
#define LOOM_VIEW_H

#include "run/result.h"
#include "report/document.h"
#include "report/pool.h"
#include "stats/stats.h"

struct loom__view_metric {
	const char *name, *unit, *unit_of; /* unit_of: where it was first said */
	enum loom_better better;
	int shown; /* some sample is not 0: a mechanism that took no part is not listed */
};

/* One metric of one variant. */
struct loom__series {
	double *value;  /* [rows] in run order, NaN: this sample has none */
	size_t rows;    /* at most variant->rows */
	double *sorted; /* [n], the finite ones */
	size_t n;
	struct loom__stats_interval median; /* at 95 %; valid when n > 0 */
};

/* A configuration that was run: a result, one side of a comparison, a cell of a sweep. */
struct loom__variant {
	const char *label;   /* short; not empty */
	const char *name;    /* in full: the values that were varied, or the file */
	const char *status;  /* "ok", ..., "skipped" */
	const char *note;    /* the error or the reason for skipping, "" for none */
	const char **level;  /* [factors] the factor's value as text; NULL: not given */
	const cJSON *result; /* its gpuloom.result/1, or NULL */
	size_t rows;
	double *order, *start_ns;    /* [rows] place in the run order from 0; start may be NaN */
	struct loom__series *series; /* [metrics] */
	size_t warmups;              /* executions that do not count */
};

enum loom__verdict {
	LOOM__V_FASTER,
	LOOM__V_SLOWER,
	LOOM__V_EQUIVALENT,
	LOOM__V_TRIVIAL,
	LOOM__V_INCONCLUSIVE,
	LOOM__V_OTHER, /* a word that this version does not know */
};

struct loom__compared {
	size_t metric; /* LOOM__NO_NAME: no sample has it */
	const char *name, *unit;
	enum loom_better better;
	size_t baseline, variant; /* always valid */
	double effect, low, high; /* ratio to the baseline; NaN: not known or not bounded */
	double p, p_holm, margin, blocks, more_blocks;
	enum loom__verdict verdict;
	const char *word, *notes;
	double *ratio; /* per block, NaN where missing */
	size_t ratios;
};

struct loom__view {
	struct loom__pool pool;
	enum loom__doc_kind kind;
	const struct loom__doc *doc; /* [docs], the caller's */
	size_t docs;
	const cJSON *head; /* command, environment, warnings ...: of the first document */
	cJSON *own;        /* the head of a sweep, put together from its lines; or NULL */
	const char *title;
	struct loom__names metric_names, factor_names;
	struct loom__view_metric *metric; /* [metrics] */
	size_t metrics, metrics_left_out;
	const char **factor; /* [factors] */
	size_t factors;
	struct loom__variant *variant; /* [variants] */
	size_t variants;
	struct loom__compared *compared;
	size_t comparisons;
	size_t values; /* taken so far, of LOOM__VIEW_VALUES */
	int too_large; /* there were more */
	const char *clash; /* a metric has two units or directions, in words; or NULL */
};

/* Metrics beyond these are counted, not read: a page with more is of no use to anybody. */
#define LOOM__VIEW_METRICS 200
#define LOOM__VIEW_FACTORS 32
/* Samples times metrics, and what each metric of each variant takes: a bound on memory. */
#define LOOM__VIEW_VALUES ((size_t)1 << 25)

/* Documents (one comparison, one sweep or its shards, or any number of results) as a view that points into them.
 */
int loom__view_create(const struct loom__doc *doc, size_t docs, struct loom__view *view,
		      struct loom_error *err);
void loom__view_free(struct loom__view *view);

/* The values of a factor as a sweep's head lists them; NULL: it does not. */
const cJSON *loom__view_values(const struct loom__view *view, size_t factor);

double loom__view_value(const struct loom__variant *v, size_t metric, size_t row);

/* The metric that leads: the first with a direction, `name` when not NULL. LOOM__NO_NAME: none. */
size_t loom__view_leading(const struct loom__view *view, const char *name);
/* Two metrics worth trading against each other. 0: there are none. */
int loom__view_pair(const struct loom__view *view, size_t *x, size_t *y);
/* How each variant stands to the Pareto front of two metrics. `front` is [variants]; variants without both are
 * OFF. 0, or an error of loom__stats_pareto(). */
enum loom__front {
	LOOM__FRONT_OFF,  /* another is surely better, interval against interval */
	LOOM__FRONT_NEAR, /* another has better medians, but not surely */
	LOOM__FRONT_ON,	  /* no other has better medians in both */
};
int loom__view_front(const struct loom__view *view, size_t x, size_t y, unsigned char *front);
int loom__view_more(const struct loom__view *view, size_t metric); /* is better */
enum loom_better loom__better_named(const char *word);
/* The variants that have the metric, the best ones first if `sorted`; free(). */
size_t *loom__view_order(const struct loom__view *view, size_t metric, int sorted, size_t *n);
/* The number of a factor or metric by the name of a member; LOOM__NO_NAME: there is none. */
size_t loom__view_number(const struct loom__names *names, const cJSON *member);
void loom__view_name_factor(struct loom__view *view, const char *name);
/* Those of the members of an object. */
void loom__view_name_factors(struct loom__view *view, const cJSON *values);

/* The counters of a run's worker `w` at a counted sample: NaN when not there. */
double loom__view_counter(const cJSON *worker, const char *counter, size_t row);
/* The counted sample whose time is nearest to the median; SIZE_MAX: none. */
size_t loom__view_typical(const struct loom__view *view, const struct loom__variant *v);

/* view_*.c: one reader per schema. */
void loom__view_add_results(struct loom__view *view);
void loom__view_add_compare(struct loom__view *view);
void loom__view_add_sweep(struct loom__view *view);
/* For the readers: metric by name. Its unit and its direction, NULL where they are not said, must be the same in all of
 * a view; `where` says of what in the document it is (name, else the values of a cell). */
struct loom__where {
	const char *name;
	const cJSON *values;
};
size_t loom__view_metric(struct loom__view *view, const char *name, const char *unit, const char *better,
			 const struct loom__where *where);
/* Gives v its rows and empty series; a series its values, all NaN. Above the bound the view is marked as too large. */
void loom__view_rows(struct loom__view *view, struct loom__variant *v, size_t rows);
void loom__view_room(struct loom__view *view, struct loom__series *s, size_t rows);
/* Sorts the values of a metric, once all are there. */
void loom__view_finish(struct loom__view *view, size_t metric);
double *loom__view_numbers(struct loom__view *view, size_t n); /* n times NaN; NULL above the bound */
/* Names the metrics of a gpuloom.result/1, and fills a variant from it. */
void loom__view_name_metrics(struct loom__view *view, const cJSON *result, const char *where);
void loom__view_fill(struct loom__view *view, struct loom__variant *v, const cJSON *result);
/* A scalar as text in the pool; NULL for lists and objects. */
const char *loom__view_scalar(struct loom__view *view, const cJSON *item);
/* "a, b" of the factor levels, in the pool. */
const char *loom__view_levels(struct loom__view *view, const struct loom__variant *v,
			      int with_keys);

#endif
