/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuloom/gpuloom.h>

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "facts/must.h"
#include "facts/text.h"
#include "report/text/markup.h"
#include "report/text/table.h"

/* Appends the lines of t. Indents all lines but the first, so that quoted text cannot look like a message of gpuloom.
 */
static void add_lines(const struct loom__text *t, struct loom__text *out)
{
	for (const char *line = loom__must_text(t), *end; *line; line = end) {
		end = strchrnul(line, '\n');
		end += *end == '\n';
		if (line > t->at && *line != ' ' && *line != '\n')
			loom__text_add(out, "  ");
		loom__text_put(out, line, (size_t)(end - line));
	}
}

/* Writes each message by one write(), so that messages of several ranks do not run into each other. */
static void say(const struct loom__cli *cli, const char *what, int colour, const char *fmt, va_list args)
{
	struct loom__text text = {0}, all = {0};
	char *said = NULL;
	if (vasprintf(&said, fmt, args) < 0)
		said = loom__must(NULL);
	loom__text_add(&text, "%s", said);
	loom__text_clean(&text, 0, "\n\t");
	if (cli->colour && *what)
		loom__text_add(&all, "gpuloom: \033[1;%dm%s:\033[0m ", colour, what);
	else
		loom__text_add(&all, "gpuloom: %s%s", what, *what ? ": " : "");
	add_lines(&text, &all);
	loom__text_add(&all, "\n");
	fputs(loom__must_text(&all), stderr);
	loom__text_free(&text);
	loom__text_free(&all);
	free(said);
}

void loom__say_note(const struct loom__cli *cli, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(cli, "", 0, fmt, args);
	va_end(args);
}

void loom__print(FILE *to, const char *fmt, ...)
{
	struct loom__text text = {0};
	va_list args;
	va_start(args, fmt);
	loom__text_vwith(&text, loom__put_line, fmt, args);
	va_end(args);
	fputs(loom__must_text(&text), to);
	loom__text_free(&text);
}

void loom__say_error(const struct loom__cli *cli, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(cli, "error", 31, fmt, args);
	va_end(args);
}

int loom__refuse(const struct loom__cli *cli, enum loom__exit status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(cli, "error", 31, fmt, args);
	va_end(args);
	return (int)status;
}

void loom__say_warning(const struct loom__cli *cli, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(cli, "warning", 33, fmt, args);
	va_end(args);
}

enum loom__exit loom__exit_of(int code)
{
	switch (code) {
	case LOOM_OK:
		return LOOM_EXIT_OK;
	case LOOM_EINVAL:
	case LOOM_ENOENT:
	case LOOM_EABI:
	case LOOM_EPLUGIN:
		return LOOM_EXIT_USAGE;
	case LOOM_EWRONG:
		return LOOM_EXIT_WRONG;
	case LOOM_EUNAVAIL:
	case LOOM_ENOTSUP:
		return LOOM_EXIT_UNAVAILABLE;
	case LOOM_ETIMEDOUT:
		return LOOM_EXIT_TIMEOUT;
	case LOOM_EINTR:
		return LOOM_EXIT_INTERRUPTED;
	default:
		return LOOM_EXIT_FAILURE;
	}
}

void loom__print_json(const struct loom__cli *cli, cJSON *document)
{
	char *text = loom__json_print(document, 1);
	cJSON_Delete(document);
	fprintf(cli->out, "%s\n", text);
	free(text);
}

/* Returns the width of the terminal. Returns 0 if `out` is not a terminal, or if its width is not known or below 40. */
static size_t columns(FILE *out)
{
	struct winsize w;
	return isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &w) && w.ws_col >= 40 ? w.ws_col : 0;
}

/* Returns the colour of a verdict, as an escape code, or NULL for other words. */
static const char *colour_of(const char *word, size_t n)
{
	static const struct {
		const char *word, *colour;
	} list[] = {
	    {"FASTER", "1;32"}, {"SLOWER", "1;31"}, {"EQUIVALENT", "1;34"}, {"FAILED:", "1;31"}, {"short", "1;31"}};
	for (size_t i = 0; i < LOOM__COUNT(list); i++)
		if (strlen(list[i].word) == n && !strncmp(list[i].word, word, n))
			return list[i].colour;
	return NULL;
}

/* Returns the indentation of what follows the first `room` columns of a line. The last column of a table continues below
 * itself: it begins after the last two blanks. Other text is indented by four more blanks. */
static size_t hanging(const char *line, size_t n, size_t room)
{
	size_t indent = strspn(line, " "), at = indent + 4;
	for (size_t i = indent; i + 2 < n; i++)
		if (line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] != ' ') {
			char *before = loom__must(strndup(line, i + 2));
			at = loom__markup_width(before);
			free(before);
		}
	return at < room * 3 / 4 ? at : indent + 4 < room / 2 ? indent + 4 : 4;
}

/* Prints one line of n bytes. If it is wider than `room` columns, wraps it at blanks. */
static void put_line(const struct loom__cli *cli, const char *line, size_t n, size_t room)
{
	size_t at = 0, column = 0;
	while (at < n) {
		size_t blanks = strspn(line + at, " "), word = strcspn(line + at + blanks, " \n");
		char *text = loom__must(strndup(line + at + blanks, word));
		size_t width = loom__markup_width(text);
		if (room && at && column + blanks + width > room) {
			blanks = hanging(line, n, room);
			fputc('\n', cli->out);
			column = 0;
		}
		const char *colour = cli->out_colour ? colour_of(text, strcspn(text, ",")) : NULL;
		fprintf(cli->out, "%*s%s%s%s%s%s", (int)blanks, "", colour ? "\033[" : "", colour ? colour : "",
			colour ? "m" : "", text, colour ? "\033[0m" : "");
		column += blanks + width;
		at += strspn(line + at, " ") + word;
		free(text);
	}
	fputc('\n', cli->out);
}

void loom__put_table(const struct loom__cli *cli, const struct loom__text *table)
{
	size_t room = columns(cli->out);
	for (const char *line = loom__must_text(table); *line;) {
		size_t n = strcspn(line, "\n");
		while (n && line[n - 1] == ' ')
			n--;
		put_line(cli, line, n, room);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
}

int loom__stdout_unread(const struct loom__cli *cli)
{
	struct pollfd on = {.fd = fileno(cli->out)};
	return poll(&on, 1, 0) == 1 && on.revents & POLLERR;
}

void loom__bar(char text[LOOM__BAR], size_t done, size_t all)
{
	size_t cells = LOOM__BAR - 3, full = all && done < all ? cells * done / all : cells;
	text[0] = '[';
	memset(text + 1, '#', full);
	memset(text + 1 + full, '.', cells - full);
	memcpy(text + 1 + cells, "]", 2);
}

void loom__say_estimate(const struct loom__cli *cli, double seconds, const char *what)
{
	if (seconds < 60)
		return;
	if (cli->err_is_tty)
		fputs("\r\033[K", stderr); /* the line of the progress */
	loom__say_note(cli, "%s will take about %s; Ctrl-C ends it and keeps what is complete, --budget limits it", what,
		       LOOM__DURATION(seconds));
}
