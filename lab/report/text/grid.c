/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "report/plot/plot.h"

void loom__grid_column(struct loom__grid *g, unsigned flags, const char *name)
{
	g->column = loom__must(realloc(g->column, (g->columns + 1) * sizeof(*g->column)));
	g->column[g->columns++] = (struct loom__grid_column){loom__arena_copy(&g->arena, name), flags};
}

void loom__grid_columns(struct loom__grid *g, const char *names)
{
	for (size_t n; *names; names += n + (names[n] == '|')) {
		unsigned flags = *names == '#' ? LOOM__CELL_NUMBER : 0;
		names += flags != 0;
		n = strcspn(names, "|");
		char *name = loom__must(strndup(names, n));
		loom__grid_column(g, flags, name);
		free(name);
	}
}

static void add_cell(struct loom__grid *g, unsigned flags, const char *text)
{
	if ((g->cells & (g->cells - 1)) == 0) /* the array grows when `cells` is a power of two */
		g->cell = loom__must(realloc(g->cell, (2 * g->cells + 1) * sizeof(*g->cell)));
	g->cell[g->cells++] = (struct loom__grid_cell){loom__arena_copy(&g->arena, text), flags};
}

void loom__grid_cell(struct loom__grid *g, unsigned flags, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		loom__must(NULL);
	va_end(args);
	add_cell(g, flags, text);
	free(text);
}

void loom__grid_markup(struct loom__grid *g, struct loom__text *html)
{
	add_cell(g, LOOM__CELL_MARKUP, loom__must_text(html));
	loom__text_free(html);
}

void loom__grid_free(struct loom__grid *g)
{
	free(g->column);
	free(g->cell);
	loom__arena_free(&g->arena);
	*g = (struct loom__grid){0};
}

/* ---- text ----------------------------------------------------------------------------------------- */

char *loom__ascii(char *text)
{
	static const struct {
		const char *sign, *ascii;
	} list[] = {{"\xe2\x88\x92", "-"}, {"\xe2\x80\x93", "-"},   {"\xc3\x97", "x"},
		    {"\xc3\xb7", "/"},	   {"\xe2\x80\xa6", ".."}, {"\xe2\x88\x9e", "inf"}};
	char *to = text;
	for (const char *from = text; *from;) {
		size_t i = 0;
		while (i < LOOM__COUNT(list) && strncmp(from, list[i].sign, strlen(list[i].sign)))
			i++;
		if (i == LOOM__COUNT(list)) {
			*to++ = *from++;
			continue;
		}
		from += strlen(list[i].sign);
		to = stpcpy(to, list[i].ascii);
	}
	*to = 0;
	return text;
}

static void put_padded(struct loom__text *out, const char *text, size_t width, int right, int last)
{
	size_t have = loom__markup_width(text);
	int blanks = have < width ? (int)(width - have) : 0;
	loom__text_add(out, "%*s", right ? blanks : 0, "");
	loom__line_add(out, "%s%*s", text, last ? 0 : right ? 2 : blanks + 2, "");
}

void loom__grid_text(struct loom__grid *g, struct loom__text *out, int indent)
{
	size_t *width = loom__must(calloc(g->columns + 1, sizeof(*width)));
	for (size_t i = 0; i < g->columns + g->cells; i++) {
		size_t c = i % g->columns;
		char *text = (char *)(uintptr_t)(i < g->columns ? g->column[c].name : g->cell[i - g->columns].text);
		size_t have = loom__markup_width(loom__ascii(text));
		width[c] = have > width[c] ? have : width[c];
	}
	for (size_t i = 0; i < g->columns + g->cells; i++) {
		size_t c = i % g->columns;
		unsigned flags = g->column[c].flags | (i < g->columns ? 0 : g->cell[i - g->columns].flags);
		if (!c)
			loom__text_add(out, "%*s", indent, "");
		put_padded(out, i < g->columns ? g->column[c].name : g->cell[i - g->columns].text, width[c],
			   flags & LOOM__CELL_NUMBER, c + 1 == g->columns);
		if (c + 1 == g->columns) {
			while (out->length && out->at[out->length - 1] == ' ')
				out->at[--out->length] = 0;
			loom__text_add(out, "\n");
		}
	}
	free(width);
	loom__grid_free(g);
}

size_t loom__text_widest(const struct loom__text *text, size_t from)
{
	size_t most = 0;
	if (!loom__text_ok(text))
		return 0;
	for (const char *line = text->at + from; *line;) {
		size_t n = strcspn(line, "\n");
		char *one = loom__must(strndup(line, n));
		size_t width = loom__markup_width(one);
		most = width > most ? width : most;
		free(one);
		line += n + (line[n] == '\n');
	}
	return most;
}

/* ---- Markdown ------------------------------------------------------------------------------------- */

void loom__markdown_put(struct loom__text *out, const char *text, size_t most)
{
	struct loom__text safe = {0};
	loom__markup_cut(&safe, text, most);
	for (const char *s = loom__must_text(&safe); *s; s++) {
		if (!strncmp(s, "&#39;", 5)) /* in Markdown, an apostrophe needs no escape */
			loom__text_add(out, "'"), s += 4;
		else if (strchr("\\`*_{}[]|!~", *s))
			loom__text_add(out, "\\%c", *s);
		else if (*s == '@')
			loom__text_add(out, "&#64;");
		else if (*s == '#' && (s == safe.at || s[-1] != '&'))
			loom__text_add(out, "&#35;");
		else if (*s == ':' && s[1] == '/')
			loom__text_add(out, "&#58;");
		else if (*s == '\n' || *s == '\t')
			loom__text_add(out, " ");
		else
			loom__text_put(out, s, 1);
	}
	loom__text_free(&safe);
}

void loom__grid_markdown(struct loom__grid *g, struct loom__text *out)
{
	for (size_t c = 0; c < g->columns; c++)
		loom__markdown_add(out, c ? " | %s" : "| %s", g->column[c].name);
	loom__text_add(out, " |\n|");
	for (size_t c = 0; c < g->columns; c++)
		loom__text_add(out, g->column[c].flags & LOOM__CELL_NUMBER ? "---:|" : "---|");
	loom__text_add(out, "\n");
	for (size_t i = 0; i < g->cells; i++) {
		const struct loom__grid_cell *cell = &g->cell[i];
		const char *sign = cell->flags & LOOM__CELL_VERDICT ? loom__verdict_sign[cell->flags >> 8] : "";
		loom__text_add(out, i % g->columns ? " | " : "| ");
		if (cell->flags & LOOM__CELL_VERDICT)
			loom__markdown_add(out, "**%s%s%s**", sign, *sign ? " " : "", cell->text);
		else
			loom__markdown_add(out, "%s", cell->text);
		loom__text_add(out, (i + 1) % g->columns ? "" : " |\n");
	}
	loom__grid_free(g);
}

/* ---- LaTeX ---------------------------------------------------------------------------------------- */

void loom__latex_put(struct loom__text *out, const char *text, size_t most)
{
	static const struct {
		const char *sign, *latex;
	} list[] = {{"\\", "\\textbackslash{}"}, {"{", "\\{"}, {"}", "\\}"}, {"$", "\\$"}, {"&", "\\&"}, {"%", "\\%"},
		    {"#", "\\#"}, {"_", "\\_"}, {"~", "\\textasciitilde{}"}, {"^", "\\textasciicircum{}"}, {"<", "$<$"},
		    {">", "$>$"}, {"\xe2\x88\x92", "$-$"}, {"\xe2\x80\x93", "--"}, {"\xc3\x97", "$\\times$"},
		    {"\xc3\xb7", "$\\div$"}, {"\xe2\x80\xa6", "\\ldots{}"}, {"\xe2\x88\x9e", "$\\infty$"}};
	struct loom__text line = {0};
	loom__put_line(&line, text, most);
	for (const char *s = loom__must_text(&line); *s;) {
		size_t i = 0, n;
		while (i < LOOM__COUNT(list) && strncmp(s, list[i].sign, strlen(list[i].sign)))
			i++;
		n = i < LOOM__COUNT(list) ? strlen(list[i].sign) : 1;
		loom__text_put(out, i < LOOM__COUNT(list) ? list[i].latex : s, i < LOOM__COUNT(list) ? strlen(list[i].latex) : n);
		s += n;
	}
	loom__text_free(&line);
}

void loom__grid_latex(struct loom__grid *g, struct loom__text *out)
{
	loom__text_add(out, "\\begin{tabular}{");
	for (size_t c = 0; c < g->columns; c++)
		loom__text_add(out, g->column[c].flags & LOOM__CELL_NUMBER ? "r" : "l");
	loom__text_add(out, "}\n\\toprule\n");
	for (size_t i = 0; i < g->columns + g->cells; i++) {
		loom__text_with(out, loom__latex_put, i % g->columns ? " & %s" : "%s",
				i < g->columns ? g->column[i].name : g->cell[i - g->columns].text);
		if ((i + 1) % g->columns == 0)
			loom__text_add(out, i < g->columns ? " \\\\\n\\midrule\n" : " \\\\\n");
	}
	loom__text_add(out, "\\bottomrule\n\\end{tabular}\n");
	loom__grid_free(g);
}

/* ---- HTML ----------------------------------------------------------------------------------------- */

/* Appends the heading of a column. A key of an option may be wrapped after each dot. */
static void html_heading(struct loom__text *out, const struct loom__grid_column *c)
{
	const char *key = c->name;
	loom__text_add(out, "<th scope=\"col\" class=\"%s%s\">", c->flags & LOOM__CELL_NUMBER ? "n" : "",
		       strchr(key, '.') ? " keyed" : "");
	for (size_t n; (n = strcspn(key, "."), key[n]); key += n + 1) {
		char *part = loom__must(strndup(key, n)); /* a precision would end the part with an ellipsis */
		loom__markup_add(out, "%s.<wbr>", part);
		free(part);
	}
	loom__markup_add(out, "%s</th>", key);
}

static void html_cell(struct loom__text *out, const struct loom__grid_column *c, const struct loom__grid_cell *cell,
		      int is_header)
{
	unsigned flags = c->flags | cell->flags;
	loom__markup_add(out, is_header ? "<th scope=\"row\" data-label=\"%s\"" : "<td data-label=\"%s\"", c->name);
	loom__text_add(out, " class=\"%s%s%s\">", flags & LOOM__CELL_NUMBER ? "n" : "",
		       flags & LOOM__CELL_SOFT ? " soft" : "", flags & LOOM__CELL_NOWRAP ? " nw" : "");
	if (flags & LOOM__CELL_VERDICT)
		loom__markup_add(out, "<span class=\"verdict %s\" data-sign=\"%s\">%s</span>",
				 loom__verdict_style[cell->flags >> 8], loom__verdict_sign[cell->flags >> 8],
				 cell->text);
	else if (flags & LOOM__CELL_MARKUP)
		loom__text_put(out, cell->text, strlen(cell->text));
	else
		loom__markup_add(out, flags & LOOM__CELL_CODE ? "<code>%s</code>" : "%s", cell->text);
	loom__text_add(out, is_header ? "</th>" : "</td>");
}

void loom__grid_html(struct loom__grid *g, struct loom__text *out, const char *style, const char *caption)
{
	size_t header = 0;
	while (header + 1 < g->columns && g->column[header].flags & LOOM__CELL_NUMBER)
		header++;
	/* A wide table scrolls by itself. The tab index lets the keyboard scroll it. */
	if (g->cells)
		loom__markup_add(out,
				 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
				 "<table class=\"%s\">\n<caption>%s</caption>\n<thead><tr>",
				 caption, style, caption);
	for (size_t c = 0; g->cells && c < g->columns; c++)
		html_heading(out, &g->column[c]);
	for (size_t i = 0; i < g->cells; i++) {
		size_t c = i % g->columns;
		loom__text_add(out, c ? "" : i ? "</tr>\n<tr>" : "</tr></thead>\n<tbody>\n<tr>");
		html_cell(out, &g->column[c], &g->cell[i], c == header);
	}
	loom__text_add(out, g->cells ? "</tr>\n</tbody>\n</table>\n</div>\n" : "");
	loom__grid_free(g);
}
