/* SPDX-License-Identifier: Apache-2.0 */
/* Figures and tables of papers: which conf repeats a figure, what the paper claims about it, and what is measured here.
 * The conf of a figure is a sweep, and has a section [x-paper] with these keys:
 *
 *   of                    name of the paper
 *   figure or table       numbers of its figures or tables that the conf repeats: "14", "12a, 12b"
 *   part                  a word that distinguishes several confs of the same figure
 *   shows                 a sentence: what the figure shows
 *   says                  a sentence: what the paper claims by the first claim, for docs/papers.md
 *   unlike                a sentence: how the set-up differs from that of the paper
 *   needs                 sim, cpu, gpu or two-gpus
 *   lacks                 a sentence: what the machines at hand lack, so that there is no result
 *   claim.NAME            an expression over metrics of the sweep: at(METRIC, FACTOR=VALUE, ...), geomean(), ...
 *   paper.NAME            its value in the paper: "0.25", "0.25 +- 0.05", ">= 0.8", "<= 0.1", "1.04 .. 1.58"
 *   neutral.NAME          its value if there is no effect; the default for a ratio is 1
 *   place.NAME, why.NAME  where the paper says it; why the value here differs. Without .NAME: for all claims
 *   incomparable.NAME     why the value here does not measure what the paper's does, so that it is not judged. Without
 *                         .NAME: for all claims
 *   small                 settings SECTION.KEY=VALUE, separated by blanks, with which a test runs the conf
 *   cpu                   name of a conf in the same folder that, read after this one, needs no GPU. Its own keys
 *                         `unlike` and `incomparable` replace those of this one
 *
 * An included file may have of, needs, unlike, small, cpu, place, why and incomparable. The other keys must be in the
 * file that has `figure` or `table`. */
#ifndef LOOM_PAPERS_H
#define LOOM_PAPERS_H

#include "config/config.h"
#include "report/report.h"
#include "sweep/spec.h"

#define LOOM__PAPER_SECTION "x-paper"

enum loom__claim_verdict {
	LOOM__CLAIM_NOT_RUN, /* there is no value */
	LOOM__CLAIM_SAME,
	/* the effect is smaller than the effect in the paper; if there is no neutral value: the value is smaller */
	LOOM__CLAIM_SMALLER,
	LOOM__CLAIM_LARGER,
	LOOM__CLAIM_OPPOSITE, /* the value is on the other side of the neutral value */
	/* the interval reaches across an end of the paper's range or the neutral value, or there are too few samples */
	LOOM__CLAIM_UNDECIDED,
	LOOM__CLAIM_NOT_ALIKE,  /* the claim has the key `incomparable` */
	LOOM__CLAIM_VERDICTS,
};
extern const char *const loom__claim_verdict_name[];

struct loom__claim {
	const char *name, *text;
	const char *paper; /* the value in the paper, as text in the conf */
	double low, high;  /* the range of the paper's value, with its tolerance; an end without bound is infinite */
	double neutral;    /* the value that means no effect; NAN: none */
	const char *place, *why, *incomparable; /* "": none */
	const struct loom__entry *entry;        /* the entry that defines the claim, or NULL */
};

#define LOOM__CLAIM_SAMPLES 5 /* each configuration of a claim needs as many samples for a verdict */

/* The value of a claim here. After an error, at, low and high are NAN. */
struct loom__claim_value {
	double at, low, high;
	size_t
	    samples; /* the fewest samples of a configuration; SIZE_MAX in virtual time, where samples have no noise */
};

/* Parses the value of a paper: "0.25" (+- 10 %), "0.25 +- 0.05", "0.25 +- 20 %", ">= 0.8", "<= 0.1", "1.04 .. 1.58". */
int loom__claim_range(const char *text, double *low, double *high, struct loom_error *err);
/* Checks the expression of a claim. Metrics are not checked, because only a run shows which ones exist. */
int loom__claim_check(const struct loom__claim *c, const struct loom__factor *factor, size_t factors,
		      struct loom_error *err);
/* Computes the value of a claim in a sweep, and its 95 % interval by the bootstrap. Returns LOOM_EUNAVAIL if the
 * configurations have no samples, and LOOM_EINVAL if the claim names a metric or configuration that the sweep lacks. */
int loom__claim_value(const struct loom__claim *c, const struct loom__view *view, struct loom__claim_value *v,
		      struct loom_error *err);
enum loom__claim_verdict loom__claim_judge(const struct loom__claim *c, const struct loom__claim_value *v);

/* Adds the values of the paper to the plots as marks. This is possible for claims that are a single at() or geomean(),
 * a quotient of two, or 1 minus such a quotient. `paper` is the object "paper" in the head of a sweep, or NULL. The
 * marks are in the memory of view->arena. */
void loom__figure_marks(const cJSON *paper, struct loom__view *view, struct loom__report_settings *settings);

/* The section [x-paper] of one conf. */
struct loom__figure {
	const char *of, *shows, *says, *needs, *lacks, *unlike, *part, *small, *cpu;
	char *cpu_path; /* owned */
	int table;
	char **number; /* [numbers] such as "12a" */
	size_t numbers;
	struct loom__claim *claim;
	size_t claims;
	const struct loom__entry *entry; /* the entry `figure` or `table`, or NULL if the conf has none */
};
/* Reads the section, and reports errors in it to diag. *out points into cfg. Returns 0, or LOOM_EINVAL with an empty
 * *out. */
int loom__figure_read(const struct loom_config *cfg, const struct loom__sweep_spec *spec, struct loom__figure *out,
		      struct loom__diag *diag);
void loom__figure_free(struct loom__figure *f);
/* Appends the name of the figure in words: "figure 12a, 12b". */
void loom__figure_name(const struct loom__figure *f, struct loom__text *out);
/* Appends the name of the figure in the form of file names: "gputn-figure-8-gpu". */
void loom__figure_file(const struct loom__figure *f, struct loom__text *out);
/* Returns the section in the form that the head of a sweep has. */
cJSON *loom__figure_json(const struct loom__figure *f);

/* The papers, and the figures and tables that have no conf. Both come from results/papers.ini. */
struct loom__paper {
	const char *id, *title, *authors, *where, *url;
};
struct loom__reason {
	const char *of, *number, *text; /* text: "no experiment: ..." or "not here: ..." */
	int table;
	const struct loom__entry *entry;
};
struct loom__catalogue {
	struct loom_config *cfg; /* owned */
	struct loom__paper *paper;
	struct loom__reason *reason;
	size_t papers, reasons;
};
int loom__catalogue_read(const char *path, struct loom__catalogue *out, struct loom__diag *diag);
void loom__catalogue_free(struct loom__catalogue *c);
/* Returns the index of the paper `id`, or SIZE_MAX if there is none. */
size_t loom__catalogue_find(const struct loom__catalogue *c, const char *id);

/* Reads the file of a sweep, reduced or not. A reduced file may be compressed by gzip. */
int loom__kept_read(const char *path, struct loom__doc *doc, struct loom_error *err);

/* ---- what is listed ------------------------------------------------------------------------------- */

struct loom__paper_claim {
	const struct loom__claim *claim;
	struct loom__claim_value value;
	enum loom__claim_verdict verdict;
	char error[1024]; /* "" if there is no error */
};

/* A figure or table, which has either a conf or a reason. */
struct loom__paper_row {
	size_t paper; /* index of the paper in the catalogue */
	int table;
	/* number of the figure, by which rows are ordered; if the conf has several figures, the first number */
	unsigned number;
	char label[64];                  /* "figure 8" */
	const char *conf;                /* "sim/figure-08", or NULL */
	const char *reason;              /* why there is no conf; NULL if there is one */
	struct loom__figure *figure;     /* the figure as its conf describes it; NULL if there is no conf */
	struct loom__paper_claim *claim; /* [figure->claims] value and verdict of each claim */
	const struct loom__view *view;   /* the result, or NULL */
	const char *file;                /* file of the result: "results/gputn-figure-8.jsonl", or "" */
	char takes[24];                  /* how long the conf says that a run takes: "30 s", or "" */
};

enum loom__paper_state {
	LOOM__PAPER_REPRODUCED, /* the verdict on all claims that are judged is SAME */
	LOOM__PAPER_DIFFERENT,  /* a claim is SMALLER or LARGER */
	LOOM__PAPER_OPPOSITE,   /* a claim is OPPOSITE */
	LOOM__PAPER_UNDECIDED,  /* a claim is UNDECIDED */
	LOOM__PAPER_NOT_ALIKE,  /* all claims are NOT_ALIKE */
	LOOM__PAPER_NOT_RUN,    /* no result, or none for any claim */
	LOOM__PAPER_NOT_HERE, /* the experiment needs something that is not available here, as a reason or `lacks` says
			       */
	LOOM__PAPER_NO_EXPERIMENT,
	LOOM__PAPER_STATES,
};
extern const char *const loom__paper_state_name[LOOM__PAPER_STATES];
enum loom__paper_state loom__paper_state(const struct loom__paper_row *r);

/* Evaluates the claims of a row on r->view. */
void loom__paper_judge(struct loom__paper_row *r);

/* Appends a table of all rows, in order. `gpus` is the number of GPUs of this machine. */
void loom__papers_list(const struct loom__catalogue *c, const struct loom__paper_row *row, size_t rows, int gpus,
		       struct loom__text *out);
/* Returns the number of GPUs that a row needs. */
int loom__paper_gpus(const struct loom__paper_row *r);
/* Appends the claims of one row, each with place, reason and expression. */
void loom__papers_claims(const struct loom__paper_row *r, struct loom__text *out);
/* Returns all rows as a document of schema gpuloom.papers/1. */
cJSON *loom__papers_json(const struct loom__catalogue *c, const struct loom__paper_row *row, size_t rows);

#endif
