/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page that say how values were measured: notices, the command, and the data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/html.h"

#define MOST_REMARKS 400
#define MOST_OPEN    3 /* number of remarks shown without a click */

static void notice(struct loom__text *out, const char *style, const char *before, const char *text)
{
	loom__markup_add(out, "<div class=\"notice%s\"><p>%s%s</p></div>\n", style, before, text);
}

static const char *text_of(const cJSON *item)
{
	return cJSON_IsObject(item) ? loom__json_text(item, "text") : loom__json_string(item);
}

static void noise(struct loom__text *out, const cJSON *list)
{
	const cJSON *o;
	int said = 0;
	cJSON_ArrayForEach(o, list)
	{
		double floor_at = loom__json_number(o, "floor");
		if (!(floor_at >= 0) || floor_at > 100 || said++ > 4)
			continue;
		loom__text_add(out, said == 1 ? "<div class=\"notice good\">" : "");
		loom__markup_add(out,
				 "<p>Noise floor of this machine: differences below %.2g %% in %s cannot be "
				 "detected.</p>\n",
				 floor_at * 100, loom__json_text(o, "metric"));
	}
	loom__text_add(out, said ? "</div>\n" : "");
}

/* Appends remarks. If there are many remarks, they are folded, so that the result stays visible. */
static void remarks(struct loom__text *out, const cJSON *list)
{
	struct loom__text all = {0};
	const cJSON *item;
	size_t n = 0;
	cJSON_ArrayForEach(item, list)
	{
		const char *text = text_of(item);
		if (*text && n++ < MOST_REMARKS)
			notice(&all, "", "", text);
	}
	if (n > MOST_OPEN)
		loom__text_add(
		    out, "<details class=\"print\"><summary>%zu remarks on the run and its samples</summary>\n", n);
	loom__markup_move(out, &all);
	loom__text_add(out, n > MOST_OPEN ? "</details>\n" : "");
}

void loom__html_notices(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *item, *quiet = loom__json_object(view->head, "quiet");
	const char *status = loom__json_text(view->head, "status");
	const char *error = loom__json_text(loom__json_object(view->head, "error"), "text");
	if (*status && strcmp(status, "ok"))
		notice(out, " bad",
		       *error ? "This run failed: "
			      : "This run failed; its status is ",
		       *error ? error : status);
	if (view->doc[0].torn)
		notice(out, "", "",
		       "The last line of the file is incomplete and was ignored: `gpuloom sweep --resume` "
		       "continues from there.");
	if (quiet && !loom__json_true(quiet, "quiet")) {
		cJSON_ArrayForEach(item, loom__json_list(quiet, "reasons"))
		{
			const char *text = text_of(item);
			if (*text)
				notice(out, "", "The machine was not quiet: ", text);
		}
	}
	cJSON_ArrayForEach(item, loom__json_list(view->head, "gate"))
	{
		const char *text = loom__json_text(item, "text");
		int failed = loom__json_true(item, "failed"), open = loom__json_true(item, "undecided");
		notice(out, failed ? " bad" : open ? "" : " good",
		       failed ? "Gate failed: " : open ? "Gate undecided: " : "Gate passed: ",
		       *text ? text : loom__json_text(item, "rule"));
	}
	remarks(out, loom__json_list(view->head, "warnings"));
	noise(out, loom__json_list(view->head, "noise"));
}

/* Appends a word, quoted for a shell. */
static void add_word(struct loom__text *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=/.,:@%";
	struct loom__text quoted = {0};
	if (!*word || word[strspn(word, plain)]) {
		loom__text_add(&quoted, "'");
		for (const char *s = word; *s; s++)
			if (*s == '\'')
				loom__text_add(&quoted, "'\\''");
			else
				loom__text_put(&quoted, s, 1);
		loom__text_add(&quoted, "'");
	}
	loom__markup_text(out, quoted.at ? quoted.at : word);
	loom__text_free(&quoted);
}

void loom__html_command(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *word;
	int any = 0;
	for (size_t i = 0; i < view->docs; i++) {
		const cJSON *command = loom__json_list(view->doc[i].root, "command");
		if (!command || !command->child)
			continue;
		if (!any++)
			loom__html_section(out, "command", "Command", "");
		loom__text_add(out, "<pre>");
		cJSON_ArrayForEach(word, command)
		{
			add_word(out, loom__json_string(word));
			loom__text_add(out, word->next ? " " : "");
		}
		loom__text_add(out, "</pre>\n");
	}
	loom__text_add(out, any ? "</section>\n" : "");
}

/* Appends the bytes of the file. '<' is escaped, so that the browser finds no end tag or comment in the data. In JSON
 * '<' occurs only in strings, so an escape does not change the data. Invalid text is replaced. */
static void add_data(struct loom__text *out, const struct loom__doc *doc)
{
	size_t from = out->length;
	const char *at = doc->bytes, *end = doc->bytes + doc->length;
	while (at < end) {
		const char *less = memchr(at, '<', (size_t)(end - at));
		size_t n = less ? (size_t)(less - at) : (size_t)(end - at);
		loom__text_put(out, at, n);
		if (less)
			loom__text_add(out, "\\u003c");
		at += n + (less != NULL);
	}
	loom__text_clean(out, from, "\n\t");
}

void loom__html_data(struct loom__text *out, const struct loom__view *view)
{
	loom__html_section(
	    out, "data", "Data",
	    "This page contains its data; without scripts they are "
	    "at the end of the page's source. <code>gpuloom report</code> creates tables "
	    "and plots in other formats from them.");
	loom__text_add(out, "<p id=\"downloads\"></p>\n</section>\n");
	for (size_t i = 0; i < view->docs; i++) {
		const char *slash = strrchr(view->doc[i].path, '/');
		loom__markup_add(out, "<script class=\"data\" type=\"application/json\" data-name=\"%s\">\n",
				 slash ? slash + 1 : view->doc[i].path);
		add_data(out, &view->doc[i]);
		loom__text_add(out, "\n</script>\n");
	}
}
