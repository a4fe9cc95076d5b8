/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that append the beginning, the end or the whole of a section of a page. */
#include <string.h>

#include "report/page/html.h"
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
