/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the metrics that a program prints. They are in the last line of its output that starts with '{'. This line
 * must be a JSON object, as in
 *   {"tasks_per_s": 1.5e6, "wait": {"value": 12, "unit": "ns", "better": "less"}}
 *
 * Any fault in the line is an error. Otherwise the wall time would silently replace a metric that is missing. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "lib/number.h"

void tail_text(char *out, size_t room, const char *bytes, size_t size, uint64_t total)
{
	size_t kept = total < size ? (size_t)total : size;
	kept = kept < room - 1 ? kept : room - 1;
	for (size_t i = 0; i < kept; i++)
		out[i] = bytes[(total - kept + i) % size];
	out[kept] = 0;
}

/* The last line whose first character after blanks is '{'. */
struct line {
	char *text;    /* NULL: no line starts with '{' */
	size_t number; /* line number from 1; 0: unknown, because the beginning was not kept */
	int part;      /* 1: the line is a part of a JSON text of several lines */
	int cut;       /* 1: only a truncated line is kept, which may be the JSON line */
};

static int is_object(const char *text)
{
	const char *end;
	cJSON *o = cJSON_ParseWithOpts(text, &end, 1);
	int object = cJSON_IsObject(o);
	cJSON_Delete(o);
	return object;
}

static struct line last_line(char *text, int whole)
{
	struct line found = {0};
	size_t number = 0, n = strlen(text);
	int open = 0; /* 1: an earlier line opened an object and did not close it */
	if (!whole) { /* the first kept line is truncated */
		while (n && strchr("\n\r\t ", text[n - 1]))
			n--;
		found.cut = n && text[n - 1] == '}' && !memchr(text, '\n', n);
		text += strcspn(text, "\n");
	}
	for (char *at = text, *next; *at; at = next) {
		n = strcspn(at, "\n");
		next = at + n + (at[n] == '\n');
		at[n] = 0;
		number++;
		at += strspn(at, " \t");
		if (*at == '{') {
			open |= found.text && !is_object(found.text);
			found = (struct line){.text = at, .number = whole ? number : 0};
		} else if (*at == '}' || *at == ']') {
			found.part |= open;
		}
	}
	return found;
}

/* Returns the name of the line for messages, such as "line 3 of its output". */
static const char *place(const struct line *l, char text[48])
{
	if (l->number)
		snprintf(text, 48, "line %zu of its output", l->number);
	else
		snprintf(text, 48, "the last line that begins with {");
	return text;
}

/* Returns the object in line `l`, or NULL. NULL without an error in *code means that the program prints no metrics. */
static cJSON *read_line(const struct instance *x, const struct line *l, struct loom_error *err, int *code)
{
	const char *end = NULL, *why;
	char where[48];
	if (l->cut)
		*code = LOOM_FAIL(x->host, err, LOOM_EWRONG,
				  "exec: %s: the last line of its output is longer than %d bytes: print the metrics in "
				  "a shorter line",
				  x->request->path, EXEC_OUT);
	if (!l->text)
		return NULL;
	cJSON *o = cJSON_ParseWithOpts(l->text, &end, 1);
	if (cJSON_IsObject(o) && !l->part)
		return o;
	cJSON_Delete(o);
	if (l->part || !strchr(l->text, '}'))
		why = "the metrics must be in one line: print the JSON without line ends in it";
	else if (strstr(l->text, "NaN") || strstr(l->text, "Infinity") || strstr(l->text, "nan") ||
		 strstr(l->text, "inf"))
		why = "NaN and Infinity are not numbers of JSON: leave such a metric out, or end with an error";
	else
		why = "fix it, or let no other line start with {";
	*code = LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s: %s is not one JSON object%s: '%.120s'; %s",
			  x->request->path, place(l, where), l->part ? ", but a part of one" : "", l->text, why);
	return NULL;
}

/* Returns 1 if the item is a number, or {"value": number, ...}; else 0. */
static int is_number(const cJSON *item, double *value)
{
	if (cJSON_IsObject(item))
		item = cJSON_GetObjectItemCaseSensitive(item, "value");
	if (!cJSON_IsNumber(item))
		return 0;
	*value = item->valuedouble;
	return 1;
}

static int is_ours(const char *name)
{
	static const char *const ours[] = {"wall_seconds", "user_seconds", "system_seconds", "peak_bytes"};
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i], name))
			return 1;
	return 0;
}

/* Returns 1 for names that a table of samples uses for its own columns: the columns of gpuloom, and options, whose
 * names begin with a section of the conf. A metric of such a name would take the place of the column. */
static int is_column(const char *name)
{
	static const char *const column[] = {"variant", "configuration", "point", "sample", "order", "start_ns"};
	static const char *const section[] = {"run.",         "workload.", "device.",  "transport.", "scheduler.",
					      "termination.", "sync.",     "barrier.", "trigger.",   "qos."};
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++)
		if (!strcmp(column[i], name))
			return 1;
	for (size_t i = 0; i < sizeof(section) / sizeof(section[0]); i++)
		if (!strncmp(section[i], name, strlen(section[i])))
			return 1;
	return 0;
}

static int direction(const char *word, enum loom_better *better)
{
	*better = !strcmp(word, "more")   ? LOOM_BETTER_MORE
		  : !strcmp(word, "less") ? LOOM_BETTER_LESS
					  : LOOM_BETTER_NONE;
	return *better || !*word;
}

/* One item of option `metrics`: "name:more:unit". */
struct metric {
	char name[48], unit[16];
	enum loom_better better;
};

/* Reads the item of `metrics` at *at, and moves *at behind it. Returns 1 if there is an item, 0 at the end, or an
 * error. */
static int next_metric(const struct instance *x, const char **at, struct metric *p, struct loom_error *err)
{
	char text[128], *word = NULL, *unit = NULL;
	*at += strspn(*at ? *at : "", " \t,");
	size_t n = strcspn(*at, " \t,");
	if (!n)
		return 0;
	int fits = n < sizeof(text);
	snprintf(text, sizeof(text), "%.*s", fits ? (int)n : 100, *at);
	*at += n;
	if ((word = strchr(text, ':'))) {
		*word++ = 0;
		if ((unit = strchr(word, ':')))
			*unit++ = 0;
	}
	if (fits && *text && strlen(text) < sizeof(p->name) && direction(word ? word : "", &p->better) &&
	    strlen(unit ? unit : "") < sizeof(p->unit)) {
		snprintf(p->name, sizeof(p->name), "%.47s", text);
		snprintf(p->unit, sizeof(p->unit), "%.15s", unit ? unit : "");
		return 1;
	}
	return LOOM_REFUSE(
	    x->host, err, "metrics",
	    "metrics: '%.*s' is not of the form name:more:unit or name:less:unit, with at most 47 and 15 "
	    "bytes of name and unit",
	    (int)n, *at - n);
}

/* Gets the direction and the unit of a metric from the program's output or from the option `metrics`. If both give
 * them, they must agree. */
static int meaning(const struct instance *x, const cJSON *item, struct metric *p, struct loom_error *err)
{
	const cJSON *better = cJSON_GetObjectItemCaseSensitive(item, "better");
	const cJSON *unit = cJSON_GetObjectItemCaseSensitive(item, "unit");
	const char *list = x->options->metrics ? x->options->metrics : "", *said = cJSON_GetStringValue(unit);
	const char *expect = x->options->expect ? x->options->expect : "", *at = strstr(expect, item->string);
	size_t length = strlen(item->string);
	struct metric one;
	*p = (struct metric){.better = LOOM_BETTER_NONE};
	if (better && (!cJSON_IsString(better) || !direction(better->valuestring, &p->better)))
		return LOOM_FAIL(x->host, err, LOOM_EWRONG,
				 "exec: %s prints '%s' with \"better\" that is neither \"more\" nor \"less\"",
				 x->request->path, item->string);
	if (unit && (!said || strlen(said) >= sizeof(p->unit)))
		return LOOM_FAIL(x->host, err, LOOM_EWRONG,
				 "exec: %s prints '%s' with a \"unit\" that is no text of at most 15 bytes",
				 x->request->path, item->string);
	snprintf(p->unit, sizeof(p->unit), "%s", said ? said : "");
	while (next_metric(x, &list, &one, err) == 1) {
		if (strcmp(one.name, item->string))
			continue;
		if ((*one.unit && *p->unit && strcmp(one.unit, p->unit)) ||
		    (one.better && p->better && one.better != p->better))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints '%s' with another unit or direction than [workload.exec] "
					 "metrics gives it: "
					 "change one of them",
					 x->request->path, item->string);
		p->better = p->better ? p->better : one.better;
		if (!*p->unit)
			memcpy(p->unit, one.unit, sizeof(p->unit));
	}
	/* A metric with an expected value, but without a direction, is part of the answer. */
	for (; at && !p->better; at = strstr(at + 1, item->string))
		if ((at == expect || strchr(" \t,", at[-1])) && at[length] == '=')
			p->better = LOOM_BETTER_SAME;
	return 0;
}

/* Checks that each item of `metrics` is printed as a number. */
static int check_metrics(const struct instance *x, const struct line *l, const cJSON *values, struct loom_error *err)
{
	const char *list = x->options->metrics ? x->options->metrics : "";
	char where[48];
	struct metric p;
	double value;
	int more;
	while ((more = next_metric(x, &list, &p, err)) == 1) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(values, p.name);
		if ((item && is_number(item, &value)) || (!item && is_ours(p.name)))
			continue;
		return LOOM_FAIL(x->host, err, LOOM_EWRONG,
				 item ? "exec: %s: '%s', which [workload.exec] metrics names, is no number in %s"
				      : "exec: %s did not print '%s', which [workload.exec] metrics names%s%s",
				 x->request->path, p.name,
				 item     ? place(l, where)
				 : values ? ", in "
					  : ": no line of its output begins with {",
				 item || !values ? "" : place(l, where));
	}
	return more;
}

/* Checks items such as "matches=412 words=9": the program must have printed each name with this value. If `printed`
 * is 0, checks only the syntax. */
static int expected(const struct instance *x, int printed, const cJSON *values, struct loom_error *err)
{
	char text[1024], *rest = NULL;
	if (snprintf(text, sizeof(text), "%s", x->options->expect ? x->options->expect : "") >= (int)sizeof(text))
		return LOOM_REFUSE(x->host, err, "expect", "expect: over 1023 bytes");
	for (char *one = strtok_r(text, " \t,", &rest); one; one = strtok_r(NULL, " \t,", &rest)) {
		char *equals = strchr(one, '='), *end = NULL;
		double want = equals ? number_read(equals + 1, &end) : 0, found;
		if (!equals || end == equals + 1 || *end)
			return LOOM_REFUSE(x->host, err, "expect", "expect: '%s' is not of the form name=number", one);
		if (!printed)
			continue;
		*equals = 0;
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(values, one);
		if (!item || !is_number(item, &found))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s did not print '%s'", x->request->path,
					 one);
		if (found != want)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s found %s = %.15g, expected is %.15g",
					 x->request->path, one, found, want);
	}
	return 0;
}

int output_check(const struct instance *x, struct loom_error *err)
{
	const char *list = x->options->metrics ? x->options->metrics : "";
	struct metric p;
	int more = 1;
	while (more == 1)
		more = next_metric(x, &list, &p, err);
	return more ? more : expected(x, 0, NULL, err);
}

/* Adds all numbers to the report. Ignores other values, except those that must be numbers. */
static int add_own(const struct instance *x, const struct line *l, const cJSON *values, struct loom_report *report,
		   struct loom_error *err)
{
	const cJSON *item;
	char where[48];
	cJSON_ArrayForEach(item, values)
	{
		struct metric p;
		double value;
		int number = is_number(item, &value), due = !strcmp(item->string, "seconds");
		due |=
		    cJSON_IsObject(item) && (cJSON_HasObjectItem(item, "value") || cJSON_HasObjectItem(item, "unit") ||
					     cJSON_HasObjectItem(item, "better"));
		if (!number && !due)
			continue;
		if (!number || !isfinite(value))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s: '%s' is no %snumber in %s",
					 x->request->path, item->string, number ? "finite " : "", place(l, where));
		if (strlen(item->string) > 47 || !*item->string)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints a metric whose name is empty or longer than 47 bytes",
					 x->request->path);
		if (is_column(item->string))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints a metric '%s', which is the name of %s in tables of results: "
					 "give it another name",
					 x->request->path, item->string,
					 strchr(item->string, '.') ? "an option" : "a column");
		if (!strcmp(item->string, "seconds") && !(value > 0))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s prints seconds = %g", x->request->path,
					 value);
		int code = meaning(x, item, &p, err);
		if (code)
			return code;
		if (x->host->metric(x->host, report, item->string, p.unit, p.better, value))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints '%s' twice, or a name that gpuloom uses", x->request->path,
					 item->string);
	}
	return check_metrics(x, l, values, err);
}

int output_add(const struct instance *x, const struct answer *a, struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = x->host;
	char *text = host->alloc(host, sizeof(a->out) + 1);
	if (!text)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "exec: out of memory");
	tail_text(text, sizeof(a->out) + 1, a->out, sizeof(a->out), a->out_total);
	int code = 0, whole = a->out_total <= sizeof(a->out);
	struct line line = last_line(text, whole);
	cJSON *values = read_line(x, &line, err, &code);
	if (!code)
		code = expected(x, 1, values, err);
	if (!code)
		code = add_own(x, &line, values, report, err);
	host->free(host, text);
	/* These are added last, so that metrics of the program with the same names take precedence. */
	if (!code) {
		host->metric(host, report, "wall_seconds", "s", LOOM_BETTER_LESS, (double)a->wall_ns / 1e9);
		host->metric(host, report, "user_seconds", "s", LOOM_BETTER_LESS, (double)a->user_us / 1e6);
		host->metric(host, report, "system_seconds", "s", LOOM_BETTER_LESS, (double)a->system_us / 1e6);
		host->metric(host, report, "peak_bytes", "B", LOOM_BETTER_LESS, (double)a->peak_bytes);
	}
	cJSON_Delete(values);
	return code;
}
