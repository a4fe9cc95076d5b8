/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other benchmark programs. The Python program python/gpuloom/foreign.py converts them to documents of
 * gpuloom. */
#ifndef LOOM_FOREIGN_H
#define LOOM_FOREIGN_H

#include "report/view/document.h"

/* Reads the n files of one report or comparison into doc[n]. Files that are not of gpuloom are converted, all in one
 * child process, which may take up to two minutes. A single file with several benchmarks becomes a gpuloom.compare/1
 * with a variant for each; all others become gpuloom.result/1. converter: path of foreign.py; NULL if it was not found.
 * On failure the caller still frees the documents. */
int loom__docs_read(const char *converter, const char *const *path, size_t n, struct loom__doc *doc,
		    struct loom_error *err);

#endif
