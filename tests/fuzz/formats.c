/* SPDX-License-Identifier: Apache-2.0 */
#include "formats.h"

#include <ctype.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "cli/cli.h"
#include "input.h"

void fuzz_say(const char *sentence)
{
	const struct loom__cli cli = {.out = stderr};
	fuzz_stderr_begin();
	loom__say_error(&cli, "%s", sentence);
	fuzz_stderr_end();
}

void fuzz_is_text(const char *text, size_t n)
{
	fuzz_printable("report", text, n);
}

/* Returns the end of a tag whose '<' is at s. Checks that attributes are quoted and run no script. */
static const char *tag(const char *s)
{
	static const char *const none[] = {"<iframe", "<object", "<embed", "<img",
					   "<link",   "<form",   "<base",  "<foreignobject"};
	for (size_t i = 0; i < LOOM__COUNT(none); i++)
		FUZZ_CHECK(strncasecmp(s, none[i], strlen(none[i])));
	char quote = 0;
	for (const char *at = s + 1; *at; at++) {
		FUZZ_CHECK(*at != '<');
		if (quote ? *at == quote : *at == '"' || *at == '\'')
			quote = quote ? 0 : *at;
		else if (!quote && *at == '>')
			return at;
		else if (!quote && *at == ' ')
			FUZZ_CHECK(strncasecmp(at, " on", 3) && strncasecmp(at, " href=\"javascript:", 18));
	}
	fuzz_fail(__FILE__, __LINE__, "a tag has an end");
}

void fuzz_is_html(const char *text, size_t n)
{
	static const char of_data[] = "<script class=\"data\" type=\"application/json\" ";
	size_t scripts = 0;
	fuzz_printable("page", text, n);
	for (const char *s = strchr(text, '<'); s; s = strchr(s, '<')) {
		int script = !strncasecmp(s, "<script", 7), data = !strncmp(s, of_data, sizeof(of_data) - 1);
		s = tag(s);
		scripts += (size_t)(script && !data);
		if (data)
			FUZZ_CHECK(!strncmp(s + strcspn(s, "<"), "</script>", 9)); /* the data contain no '<' */
		else if (script)
			FUZZ_CHECK((s = strstr(s, "</script>")));
	}
	FUZZ_CHECK(scripts == 1); /* only the page's own script, whose hash the page names */
}

void fuzz_is_svg(const char *text, size_t n)
{
	const char *open[64];
	size_t depth = 0;
	fuzz_printable("plot", text, n);
	FUZZ_CHECK(!strcasestr(text, "<script"));
	for (const char *s = strchr(text, '<'), *end; s; s = strchr(end, '<')) {
		end = tag(s);
		if (s[1] == '?' || s[1] == '!' || end[-1] == '/')
			continue;
		if (s[1] != '/') {
			FUZZ_CHECK(depth < LOOM__COUNT(open));
			open[depth++] = s + 1;
			continue;
		}
		size_t length = strcspn(s + 2, ">");
		FUZZ_CHECK(depth && !strncmp(open[depth - 1], s + 2, length) &&
			   !isalnum((unsigned char)open[depth - 1][length]));
		depth--;
	}
	FUZZ_CHECK(!depth);
}

void fuzz_is_csv(const char *text, size_t n)
{
	size_t fields = 0, row = 1;
	fuzz_printable("table", text, n);
	for (const char *s = text; *s;) {
		const char *begin = s, *body = s + (*s == '"');
		double v;
		if (*s == '"') {
			for (s++; *s && (*s != '"' || s[1] == '"'); s++)
				s += *s == '"';
			FUZZ_CHECK(*s++ == '"');
		} else {
			s += strcspn(s, ",\n");
			FUZZ_CHECK(!memchr(begin, '"', (size_t)(s - begin)));
		}
		FUZZ_CHECK(*s == ',' || *s == '\n');
		if (*body && strchr("=+-@", *body)) {
			const char *end;
			FUZZ_CHECK(!loom__read_double(body, &end, &v) && end == s - (*begin == '"'));
		}
		if (*s++ == ',') {
			row++;
			continue;
		}
		fields = fields ? fields : row;
		FUZZ_CHECK(row == fields);
		row = 1;
	}
}

/* Decoded escapes such as \u001b must not be control characters either. */
static void strings(const cJSON *o)
{
	if (o->string)
		fuzz_printable("name", o->string, strlen(o->string));
	if (cJSON_IsString(o))
		fuzz_printable("string", o->valuestring, strlen(o->valuestring));
	for (const cJSON *part = o->child; part; part = part->next)
		strings(part);
}

void fuzz_is_json(const char *text, size_t n)
{
	const char *end = NULL;
	fuzz_printable("summary", text, n);
	cJSON *o = cJSON_ParseWithOpts(text, &end, 0);
	FUZZ_CHECK(o && !end[strspn(end, " \n")]);
	strings(o);
	char *again = cJSON_Print(o);
	size_t length = strlen(again);
	FUZZ_CHECK(!strncmp(again, text, length) && !text[length + strspn(text + length, " \n")]);
	free(again);
	cJSON_Delete(o);
}
