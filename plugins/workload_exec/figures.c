/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a program: the last line of its output that is a JSON object, as in
 *   {"tasks_per_s": 1.5e6, "wait": {"value": 12, "unit": "ns", "better": "less"}}  */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

void tail_text(char *out, size_t room, const char *bytes, size_t size, uint64_t total)
{
	size_t kept = total < size ? (size_t)total : size;
	kept = kept < room - 1 ? kept : room - 1;
	for (size_t i = 0; i < kept; i++)
		out[i] = bytes[(total - kept + i) % size];
	out[kept] = 0;
}

/* Cuts `text` from its end, line by line. */
static cJSON *last_object(char *text)
{
	for (size_t n = strlen(text); n > 0;) {
		while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
			n--;
		text[n] = 0;
		char *line = strrchr(text, '\n');
		line = line ? line + 1 : text;
		const char *end = NULL;
		cJSON *o = *line == '{' ? cJSON_ParseWithOpts(line, &end, 1) : NULL;
		if (cJSON_IsObject(o))
			return o;
		cJSON_Delete(o);
		n = (size_t)(line - text);
	}
	return NULL;
}

static int is_figure(const cJSON *item, double *value)
{
	if (cJSON_IsObject(item))
		item = cJSON_GetObjectItemCaseSensitive(item, "value");
	if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
		return 0;
	*value = item->valuedouble;
	return 1;
}

static enum loom_better direction(const char *word, size_t n)
{
	return n == 4 && !strncmp(word, "more", 4) ? LOOM_BETTER_MORE :
	       n == 4 && !strncmp(word, "less", 4) ? LOOM_BETTER_LESS :
						       LOOM_BETTER_NONE;
}

/* Direction and unit of `name`: from the program, else from "name:more:unit name:less". */
static enum loom_better meaning(const struct instance *x, const cJSON *item, char unit[16])
{
	const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "better"));
	const char *own_unit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "unit"));
	enum loom_better better = own ? direction(own, strlen(own)) : LOOM_BETTER_NONE;
	size_t length = strlen(item->string);
	snprintf(unit, 16, "%s", own_unit ? own_unit : "");
	for (const char *s = x->options->metrics; s && *s;) {
		size_t n = strcspn(s, " \t,");
		if (n > length && !strncmp(s, item->string, length) && s[length] == ':') {
			const char *word = s + length + 1, *end = s + n;
			size_t w = strcspn(word, ": \t,");
			if (!better)
				better = direction(word, w);
			if (word + w < end && !*unit)
				snprintf(unit, 16, "%.*s", (int)(end - word - w - 1), word + w + 1);
		}
		s += n + (s[n] != 0);
	}
	return better;
}

/* "matches=412 words=9": each must be there, and be that. Before something was printed: the form alone. */
static int expected(const struct instance *x, int printed, const cJSON *figures, struct loom_error *err)
{
	char text[1024], *rest = NULL;
	snprintf(text, sizeof(text), "%s", x->options->expect ? x->options->expect : "");
	for (char *one = strtok_r(text, " \t,", &rest); one; one = strtok_r(NULL, " \t,", &rest)) {
		char *equals = strchr(one, '='), *end = NULL;
		double want = equals ? strtod(equals + 1, &end) : 0, found;
		if (!equals || end == equals + 1 || *end)
			return LOOM_FAIL(x->host, err, LOOM_EINVAL,
					 "expect: '%s' is not of the form name=number",
					 one);
		if (!printed)
			continue;
		*equals = 0;
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(figures, one);
		if (!item || !is_figure(item, &found))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s did not print '%s'",
					 x->request->path, one);
		if (found != want)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s found %s = %.15g, expected is %.15g", x->request->path,
					 one, found, want);
	}
	return 0;
}

int figures_check(const struct instance *x, struct loom_error *err)
{
	return expected(x, 0, NULL, err);
}

static int add_own(const struct instance *x, const cJSON *figures, struct loom_report *report,
		   struct loom_error *err)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, figures)
	{
		char unit[16];
		double value;
		if (!is_figure(item, &value))
			continue;
		if (strlen(item->string) > 47 || !*item->string)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints a figure with a name of no or over 47 bytes",
					 x->request->path);
		if (!strcmp(item->string, "seconds") && !(value > 0))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "exec: %s prints seconds = %g",
					 x->request->path, value);
		enum loom_better better = meaning(x, item, unit);
		if (x->host->metric(x->host, report, item->string, unit, better, value))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "exec: %s prints '%s' twice, or a name that gpuloom uses",
					 x->request->path, item->string);
	}
	return 0;
}

int figures_add(const struct instance *x, const struct answer *a, struct loom_report *report,
		struct loom_error *err)
{
	const struct loom_host *host = x->host;
	char *text = host->alloc(host, sizeof(a->out) + 1);
	if (!text)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "exec: out of memory");
	tail_text(text, sizeof(a->out) + 1, a->out, sizeof(a->out), a->out_total);
	cJSON *figures = last_object(text);
	host->free(host, text);
	int code = expected(x, 1, figures, err);
	if (!code)
		code = add_own(x, figures, report, err);
	/* Ours come last and give way to figures of the same name. */
	if (!code) {
		host->metric(host, report, "wall_seconds", "s", LOOM_BETTER_LESS,
			     (double)a->wall_ns / 1e9);
		host->metric(host, report, "user_seconds", "s", LOOM_BETTER_LESS,
			     (double)a->user_us / 1e6);
		host->metric(host, report, "system_seconds", "s", LOOM_BETTER_LESS,
			     (double)a->system_us / 1e6);
		host->metric(host, report, "peak_bytes", "B", LOOM_BETTER_LESS, (double)a->peak_bytes);
	}
	cJSON_Delete(figures);
	return code;
}
