/* SPDX-License-Identifier: Apache-2.0 */
/* Results of other benchmark programs: hyperfine, Google Benchmark, nvbench, nccl-tests, OSU micro-benchmarks.
 *
 * A reader turns a file into a gpuloom.compare/1 document without comparisons, in which each benchmark is a variant with
 * a gpuloom.result/1. All times become seconds, and all rates bytes/s or the like, so that files in different units can
 * be compared. loom__foreign_settle() then chooses the form that the caller needs. */
#ifndef LOOM_FOREIGN_H
#define LOOM_FOREIGN_H

#include "report/document.h"

/* Return 0 if the file is of a known program; doc->root, doc->kind and doc->tool are then set. Return LOOM_ENOENT, and
 * write no message, if it is of another program. Other errors have a message with the place in the file.
 * loom__foreign_json() takes the parsed file from doc->root; loom__foreign_text() reads doc->bytes. */
int loom__foreign_json(struct loom__doc *doc, struct loom_error *err);
int loom__foreign_text(struct loom__doc *doc, struct loom_error *err);

/* Gives each document of another program the form in which `docs` documents can be compared or reported together. A
 * single document with several benchmarks keeps a variant per benchmark. Otherwise each document becomes one
 * gpuloom.result/1. If any document has several benchmarks, the names of metrics begin with the benchmark. Other
 * documents are left unchanged. */
void loom__foreign_settle(struct loom__doc *doc, size_t docs);

/* ---- foreign.c, for the readers --------------------------------------------------------------- */

#define LOOM__FOREIGN_BENCHMARKS 2000 /* largest number of benchmarks in a file */
#define LOOM__FOREIGN_METRICS	 100  /* largest number of metrics of a benchmark; more are dropped */

struct loom__foreign {
	const struct loom__doc *doc;
	const char *tool;
	cJSON *root, *variants;
	cJSON *choices; /* versions and devices, as strings; each result gets a copy */
	cJSON *before;  /* facts of the environment; each result gets a copy */
	size_t benchmarks;
};
void loom__foreign_begin(struct loom__foreign *f, const struct loom__doc *doc, const char *tool);
/* Returns the variant of a benchmark. If there is one of this name, `again` decides: 1 returns it, so that its samples
 * are added; 0 adds another one, whose name ends in its number. Returns NULL, with an error, if there are too many. */
cJSON *loom__foreign_benchmark(struct loom__foreign *f, const char *name, int again, struct loom_error *err);
/* Adds a sample. unit_ and better are those of the first sample of the metric. better: "less", "more" or "". */
void loom__foreign_value(cJSON *benchmark, const char *metric, const char *unit, const char *better, double value);
/* Marks a metric that is judged by default. The first one that is marked stands for the benchmark. */
void loom__foreign_lead(cJSON *benchmark, const char *metric);
/* Records a value of a factor: a parameter of the benchmark. */
void loom__foreign_level(cJSON *benchmark, const char *factor, const char *level);
/* Marks a benchmark whose program reported a failure. status: "wrong" or "failed". */
void loom__foreign_failed(cJSON *benchmark, const char *status, const char *text);
void loom__foreign_warn(struct loom__foreign *f, const char *id, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Completes the document and moves it to doc. If rc is not 0, or if there is no sample, frees it and returns an error. */
int loom__foreign_end(struct loom__foreign *f, int rc, struct loom__doc *doc, struct loom_error *err);
/* If `unit` is a unit of time ("ns", "us", "ms", "s", "sec"), sets *seconds to its length and returns 1. */
int loom__foreign_time(const char *unit, double *seconds);

#endif
