/* SPDX-License-Identifier: Apache-2.0 */
/* A table as columns and cells, rendered as text for terminals, as Markdown or as HTML. */
#ifndef LOOM_GRID_H
#define LOOM_GRID_H

#include "report/markup.h"
#include "report/pool.h"

enum {
	LOOM__CELL_NUMBER = 1, /* right-aligned; also a flag of columns */
	LOOM__CELL_CODE = 2,
	LOOM__CELL_SOFT = 4,
	LOOM__CELL_NOWRAP = 8,
	LOOM__CELL_MARKUP = 16, /* HTML, which is not escaped */
	LOOM__CELL_VERDICT = 32, /* combined with enum loom__verdict << 8 */
};

/* Zero-initialise it, and free it by loom__grid_free(). */
struct loom__grid {
	struct loom__pool pool;
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

/* Appends the columns "a|b|#c"; '#' marks a column of numbers. */
void loom__grid_columns(struct loom__grid *g, const char *names);
void loom__grid_column(struct loom__grid *g, unsigned flags, const char *name);
/* Appends a cell. A row has as many cells as there are columns. */
void loom__grid_cell(struct loom__grid *g, unsigned flags, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Appends a cell with HTML, and frees the text. */
void loom__grid_markup(struct loom__grid *g, struct loom__text *html);
void loom__grid_free(struct loom__grid *g);

/* Each of these renders the table and frees it. */
/* Columns are as wide as their content, with `indent` blanks before each line. All but the cells is ASCII. */
void loom__grid_text(struct loom__grid *g, struct loom__text *out, int indent);
void loom__grid_markdown(struct loom__grid *g, struct loom__text *out);
/* `style`: classes of the table. Without rows there is no output. */
void loom__grid_html(struct loom__grid *g, struct loom__text *out, const char *style, const char *caption);

/* Escapes text for Markdown, so that it contains no markup, link, or mention of a user or an issue. */
loom__put_fn loom__markdown_put;
#define loom__markdown_add(out, ...) loom__text_with(out, loom__markdown_put, __VA_ARGS__)
/* Replaces the typographic signs of loom__change() and similar functions by ASCII, in place. */
char *loom__ascii(char *text);

#endif
