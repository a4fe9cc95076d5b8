/* SPDX-License-Identifier: Apache-2.0 */
/* The elements that the sections of a page are made of. */
#include <string.h>

#include "report/html.h"
#include "facts/must.h"

void loom__html_section(struct loom__text *out, const char *id, const char *title, const char *lead)
{
	loom__text_add(out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
	if (*lead)
		loom__text_add(out, "<p class=\"lead\">%s</p>\n", lead);
}

void loom__html_section_of(struct loom__text *out, const char *id, const char *title, const char *lead,
			   struct loom__text *body)
{
	if (*loom__must_text(body)) {
		loom__html_section(out, id, title, lead);
		loom__text_add(body, "</section>\n");
	}
	loom__markup_move(out, body);
}

void loom__html_columns(struct loom__text *out, const char *columns)
{
	for (size_t n; *columns; columns += n + (columns[n] == '|')) {
		int figures = *columns == '#';
		columns += figures;
		n = strcspn(columns, "|");
		loom__text_add(out, "<th scope=\"col\"%s>%.*s</th>", figures ? " class=\"n\"" : "", (int)n, columns);
	}
}

/* A table scrolls by itself where it is too wide; the focus makes that possible from the keyboard. */
void loom__html_table(struct loom__text *out, const char *style, const char *caption, const char *columns)
{
	loom__markup_add(out,
			 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
			 "<table class=\"%s\">\n<caption>%s</caption>\n<thead><tr>",
			 caption, style, caption);
	if (!columns)
		return;
	loom__html_columns(out, columns);
	loom__text_add(out, LOOM__HTML_BODY);
}

void loom__html_table_end(struct loom__text *out)
{
	loom__text_add(out, "</tbody>\n</table>\n</div>\n");
}
