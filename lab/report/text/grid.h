/* SPDX-License-Identifier: Apache-2.0 */
/* A table made of columns and cells, which is rendered as text for terminals, as Markdown or as HTML. */
#ifndef LOOM_GRID_H
#define LOOM_GRID_H

#include "report/text/markup.h"
#include "report/view/arena.h"

enum {
	LOOM__CELL_NUMBER = 1, /* right-aligned; may also be a flag of a column */
	LOOM__CELL_CODE = 2,
	LOOM__CELL_SOFT = 4,
	LOOM__CELL_NOWRAP = 8,
	LOOM__CELL_MARKUP = 16, /* the text is HTML, and is not escaped */
	LOOM__CELL_VERDICT = 32, /* combined with enum loom__verdict << 8 */
};

/* A table. Zero-initialise it, and free it with loom__grid_free(). */
struct loom__grid {
	struct loom__arena arena;
	struct loom__grid_column {
		const char *name;
		unsigned flags;
	} *column;
	struct loom__grid_cell {
		const char *text;
		unsigned flags;
	} *cell; /* row by row */
	size_t columns, cells;
};

/* Appends columns, as in "a|b|#c"; '#' marks a column of numbers. */
void loom__grid_columns(struct loom__grid *g, const char *names);
void loom__grid_column(struct loom__grid *g, unsigned flags, const char *name);
/* Appends a cell. When a row has as many cells as there are columns, the next cell begins a row. */
void loom__grid_cell(struct loom__grid *g, unsigned flags, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Appends a cell with HTML, and frees `html`. */
void loom__grid_markup(struct loom__grid *g, struct loom__text *html);
void loom__grid_free(struct loom__grid *g);

/* Each of the next four functions renders the table and frees it. */
/* Renders as text. Columns are as wide as their content, and `indent` blanks precede each line. Everything but the text
 * of cells is ASCII. */
void loom__grid_text(struct loom__grid *g, struct loom__text *out, int indent);
/* Returns the number of columns of the widest line of `text` from position `from` on. */
size_t loom__text_widest(const struct loom__text *text, size_t from);
void loom__grid_markdown(struct loom__grid *g, struct loom__text *out);
/* Renders as a tabular of LaTeX, for which the document needs the package booktabs. */
void loom__grid_latex(struct loom__grid *g, struct loom__text *out);
/* Renders as HTML. `style` has the classes of the table. Without cells there is no output. */
void loom__grid_html(struct loom__grid *g, struct loom__text *out, const char *style, const char *caption);

/* Escapes text for Markdown, so that it contains no markup, no link, and no mention of a user or an issue. */
loom__put_fn loom__markdown_put;
#define loom__markdown_add(out, ...) loom__text_with(out, loom__markdown_put, __VA_ARGS__)
/* Escapes text for LaTeX, as one line. */
loom__put_fn loom__latex_put;
/* Replaces the typographic signs of loom__change() and similar functions by ASCII, in place. Returns `text`. */
char *loom__ascii(char *text);

#endif
