/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the tables that nccl-tests and the OSU micro-benchmarks print. The file may have other lines before and
 * between them, such as messages of mpirun. If the file has the output of several executions, one after the other, each
 * gives one sample for each row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "report/foreign.h"

enum { MOST_COLUMNS = 24, MOST_WORD = 64 };

struct column {
	char name[MOST_WORD]; /* the name of the metric */
	char unit[MOST_WORD]; /* the unit that the program prints */
};

struct table {
	struct loom__foreign f;
	size_t line; /* number of the present line, from 1 */
	struct column column[MOST_COLUMNS];
	size_t columns; /* 0: no header yet */
	/* nccl-tests: number of columns before the first time. The name of the collective. */
	size_t before;
	char test[2 * MOST_WORD], type[MOST_WORD];
	int redop; /* 1: there is a column for the reduction, which can be empty */
};

struct words {
	const char *at[MOST_COLUMNS];
	size_t length[MOST_COLUMNS], n;
};

/* Cuts a line at white space, or, if `wide` is 1, at two blanks, tabs and closing parentheses. */
static void split(const char *s, const char *end, int wide, struct words *w)
{
	w->n = 0;
	while (w->n < MOST_COLUMNS) {
		while (s < end && strchr(" \t\r", *s))
			s++;
		if (s >= end)
			return;
		const char *begin = s;
		while (s < end && *s != '\t' && *s != '\r') {
			int gap = *s == ' ' && (!wide || s + 1 >= end || s[1] == ' ');
			if (gap)
				break;
			s++;
			if (wide && s[-1] == ')')
				break;
		}
		w->at[w->n] = begin;
		w->length[w->n++] = (size_t)(s - begin);
	}
}

static void copy(char *to, size_t room, const char *from, size_t n)
{
	snprintf(to, room, "%.*s", (int)(n < room ? n : room - 1), from);
}

static int number_at(const struct words *w, size_t i, double *v)
{
	char text[MOST_WORD];
	const char *end;
	copy(text, sizeof(text), w->at[i], w->length[i]);
	return i < w->n && w->length[i] < sizeof(text) && !loom__read_double(text, &end, v) && !*end;
}

static int is_word(const struct words *w, size_t i, const char *text)
{
	return i < w->n && strlen(text) == w->length[i] && !memcmp(text, w->at[i], w->length[i]);
}

static int bad_row(const struct table *t, const char *what, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EINVAL, "'%s' line %zu: %s: if the output was cut or mixed with other output, run the "
			  "benchmark again", t->f.doc->path, t->line, what);
}

/* Returns the benchmark of a row, with its size as a factor. */
static cJSON *benchmark(struct table *t, const char *size, const char *type, struct loom_error *err)
{
	char name[5 * MOST_WORD];
	snprintf(name, sizeof(name), "%s%s%s%s%s", t->test, *t->test && *size ? "/" : "", size, *type ? "/" : "", type);
	cJSON *b = loom__foreign_benchmark(&t->f, *name ? name : t->f.tool, 1, err);
	if (b && *size)
		loom__foreign_level(b, "bytes", size);
	if (b && *t->test)
		loom__foreign_level(b, "benchmark", t->test);
	if (b && *type)
		loom__foreign_level(b, "type", type);
	return b;
}

/* ---- nccl-tests ----------------------------------------------------------------------------------- */

/* Reads "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong". */
static int nccl_header(struct table *t, const struct words *w)
{
	size_t first = 0;
	while (first < w->n && !is_word(w, first, "time"))
		first++;
	if (w->n < 4 || !is_word(w, 1, "size") || !is_word(w, 2, "count") || first == w->n)
		return 0;
	t->redop = 0;
	t->columns = 0;
	t->before = first - 1;
	for (size_t i = 1; i < w->n; i++) {
		t->redop |= is_word(w, i, "redop");
		copy(t->column[t->columns++].name, MOST_WORD, w->at[i], w->length[i]);
	}
	return 1;
}

static int nccl_row(struct table *t, const struct words *w, struct loom_error *err)
{
	/* The reduction is blank for collectives that have none, in some versions. */
	size_t lacking = t->columns - w->n;
	char size[MOST_WORD], type[2 * MOST_WORD], redop[MOST_WORD] = "";
	double v, wrong = 0;
	if (w->n > t->columns || lacking > (size_t)t->redop || t->before < 4 + lacking)
		return bad_row(t, "the row does not have a value for each column of the header", err);
	copy(size, sizeof(size), w->at[0], w->length[0]);
	copy(type, MOST_WORD, w->at[2], w->length[2]);
	if (t->redop && !lacking)
		copy(redop, sizeof(redop), w->at[3], w->length[3]);
	if (*redop && strcmp(redop, "none"))
		snprintf(type + strlen(type), sizeof(type) - strlen(type), "/%s", redop);
	cJSON *b = benchmark(t, size, type, err);
	if (!b)
		return LOOM_EINVAL;
	int in_place = -1;
	for (size_t i = t->before; i < t->columns; i++) {
		const char *name = t->column[i].name, *prefix;
		char metric[2 * MOST_WORD];
		in_place += !strcmp(name, "time");
		prefix = in_place ? "in_place." : "";
		int known = number_at(w, i - lacking, &v), is_time = !strcmp(name, "time"), is_rate = strstr(name, "bw") != NULL;
		snprintf(metric, sizeof(metric), "%s%s", prefix, is_time ? "seconds" : name);
		if ((is_time || is_rate) && !known)
			return bad_row(t, "a time or a bandwidth is not a number", err);
		if (is_time) {
			loom__foreign_lead(b, metric);
			loom__foreign_value(b, metric, "s", "less", v * 1e-6);
		} else if (is_rate) {
			loom__foreign_value(b, metric, "bytes/s", "more", v * 1e9);
		} else if (!strcmp(name, "#wrong") && known) { /* N/A: the program did not check */
			wrong += v;
		}
	}
	if (wrong > 0)
		loom__foreign_failed(b, "wrong", "nccl-tests found wrong values");
	return 0;
}

/* Reads a comment of nccl-tests. Returns 1 if it is the unit of a table in which times are not microseconds. */
static int nccl_note(struct table *t, const struct words *w)
{
	static const char starting[] = "test";
	for (size_t i = 1; i + 2 < w->n; i++) /* "# Collective test starting: all_reduce_perf" */
		if (is_word(w, i, starting) && is_word(w, i + 1, "starting:"))
			copy(t->test, sizeof(t->test), w->at[i + 2], w->length[i + 2]);
	if (is_word(w, 1, "nccl-tests") && is_word(w, 2, "version") && w->n > 3) {
		char version[MOST_WORD];
		copy(version, sizeof(version), w->at[3], w->length[3]);
		if (!cJSON_GetObjectItemCaseSensitive(t->f.choices, "nccl_tests"))
			loom__json_add_text(t->f.choices, "nccl_tests", version);
	}
	return is_word(w, 1, "(B)") && !is_word(w, 3, "(us)");
}

/* Takes the GPU from "#  Rank  0 Group  0 Pid  1 on HOST device  0 [0x01] NVIDIA H100". The host is not taken. */
static void nccl_device(struct table *t, const char *s, const char *end)
{
	const char *bracket = memchr(s, ']', (size_t)(end - s));
	struct loom__text name = {0};
	if (!bracket || cJSON_GetObjectItemCaseSensitive(t->f.choices, "device"))
		return;
	for (s = bracket + 1; s < end && *s == ' ';)
		s++;
	while (end > s && strchr(" \r", end[-1]))
		end--;
	loom__text_put(&name, s, (size_t)(end - s));
	if (name.length)
		loom__json_add_text(t->f.choices, "device", loom__must_text(&name));
	loom__text_free(&name);
}

static int nccl_line(struct table *t, const char *s, const char *end, struct loom_error *err)
{
	struct words w;
	double v;
	split(s, end, 0, &w);
	if (is_word(&w, 0, "#")) {
		if (is_word(&w, 1, "Rank"))
			nccl_device(t, s, end);
		if (!nccl_header(t, &w) && nccl_note(t, &w))
			return bad_row(t, "the times are not in us", err);
		return 0;
	}
	return t->columns && w.n && number_at(&w, 0, &v) ? nccl_row(t, &w, err) : 0;
}

/* ---- OSU micro-benchmarks ------------------------------------------------------------------------- */

/* Turns "Avg Latency(us)" into the name avg_latency and the unit us. */
static void osu_column(struct column *c, const char *text, size_t n)
{
	const char *open = memchr(text, '(', n);
	size_t length = open ? (size_t)(open - text) : n, k = 0;
	memset(c, 0, sizeof(*c));
	if (open)
		copy(c->unit, sizeof(c->unit), open + 1, n - length - 1 - (text[n - 1] == ')'));
	for (size_t i = 0; i < length && k + 1 < sizeof(c->name); i++) {
		char letter = text[i];
		if (letter == ' ' || letter == '.')
			letter = '_';
		if (letter == '_' && (!k || c->name[k - 1] == '_'))
			continue;
		c->name[k++] = (char)loom__lower(letter);
	}
	while (k && c->name[k - 1] == '_')
		c->name[--k] = 0;
	if (!open && (!strcmp(c->name, "mb/s") || !strcmp(c->name, "messages/s"))) {
		copy(c->unit, sizeof(c->unit), text, n);
		strcpy(c->name, *c->unit == 'M' && c->unit[1] == 'B' ? "bandwidth" : "messages");
	}
}

static int osu_header(struct table *t, const struct words *w)
{
	t->columns = 0;
	for (size_t i = 0; i < w->n; i++)
		osu_column(&t->column[t->columns++], w->at[i], w->length[i]);
	return 0;
}

/* Adds a value in the unit of the column. Returns 0 if the column has no metric, such as the number of iterations. */
static int osu_value(cJSON *b, const struct column *c, int first, double v)
{
	double length;
	const char *name = c->name;
	if (loom__foreign_time(c->unit, &length)) {
		name = first ? "seconds" : name;
		loom__foreign_value(b, name, "s", "less", v * length);
	} else if (!strcmp(c->unit, "MB/s")) {
		loom__foreign_value(b, name, "bytes/s", "more", v * 1e6);
	} else if (!strcmp(c->unit, "Messages/s")) {
		loom__foreign_value(b, name, "messages/s", "more", v);
	} else if (!strcmp(c->unit, "%")) {
		loom__foreign_value(b, name, "%", !strcmp(name, "overlap") ? "more" : "", v);
	} else {
		return 0;
	}
	if (first)
		loom__foreign_lead(b, name);
	return 1;
}

static int osu_row(struct table *t, const struct words *w, struct loom_error *err)
{
	char size[MOST_WORD] = "";
	size_t from = !strcmp(t->column[0].name, "size");
	double v;
	int first = 1;
	if (w->n != t->columns)
		return bad_row(t, "the row does not have a value for each column of the header", err);
	if (from)
		copy(size, sizeof(size), w->at[0], w->length[0]);
	cJSON *b = benchmark(t, size, !strcmp(t->type, "MPI_CHAR") ? "" : t->type, err);
	if (!b)
		return LOOM_EINVAL;
	for (size_t i = from; i < w->n; i++) {
		if (is_word(w, i, "Fail"))
			loom__foreign_failed(b, "wrong", "the benchmark found wrong data");
		else if (number_at(w, i, &v) && osu_value(b, &t->column[i], first, v))
			first = 0;
	}
	return first ? bad_row(t, "the row has no time and no rate", err) : 0;
}

/* Reads "# OSU MPI Allreduce Latency Test v7.3" and "# Datatype: MPI_CHAR.". */
static int osu_note(struct table *t, const char *s, const char *end)
{
	static const char title[] = "# OSU ", type[] = "# Datatype: ";
	size_t n = (size_t)(end - s);
	if (n > sizeof(type) && !strncmp(s, type, sizeof(type) - 1)) {
		copy(t->type, sizeof(t->type), s + sizeof(type) - 1, n - sizeof(type) + 1);
		t->type[strcspn(t->type, ". \r")] = 0;
		return 1;
	}
	if (n < sizeof(title) || strncmp(s, title, sizeof(title) - 1))
		return 0;
	const char *test = memmem(s, n, " Test", 5), *version = memmem(s, n, " v", 2);
	const char *stop = test ? test : version ? version : end;
	if (stop > s + sizeof(title) - 1)
		copy(t->test, sizeof(t->test), s + sizeof(title) - 1, (size_t)(stop - s) - sizeof(title) + 1);
	if (version && !cJSON_GetObjectItemCaseSensitive(t->f.choices, "osu")) {
		char text[MOST_WORD];
		copy(text, sizeof(text), version + 2, (size_t)(end - version) - 2);
		text[strcspn(text, " \r")] = 0;
		loom__json_add_text(t->f.choices, "osu", text);
	}
	t->columns = 0;
	*t->type = 0;
	return 1;
}

static int osu_line(struct table *t, const char *s, const char *end, struct loom_error *err)
{
	struct words w;
	double v;
	if (s < end && *s == '#') {
		if (osu_note(t, s, end))
			return 0;
		split(s + 1, end, 1, &w);
		/* Other comments, such as "[ pairs: 1 ]", have no units. */
		for (size_t i = 0; i < w.n; i++)
			if (memchr(w.at[i], '(', w.length[i]) || is_word(&w, i, "MB/s") || is_word(&w, i, "Messages/s"))
				return osu_header(t, &w);
		return 0;
	}
	split(s, end, 0, &w);
	return t->columns && w.n && number_at(&w, 0, &v) ? osu_row(t, &w, err) : 0;
}

/* ---- both ----------------------------------------------------------------------------------------- */

/* Returns the place after a prefix "[1,0]<stdout>:" of mpirun --tag-output. */
static const char *untagged(const char *s, const char *end)
{
	const char *tag = *s == '[' ? memmem(s, (size_t)(end - s), ">:", 2) : NULL;
	return tag ? tag + 2 : s;
}

static const char *line_end(const char *s)
{
	const char *end = strchr(s, '\n');
	return end ? end : s + strlen(s);
}

/* Returns the program whose table the text has, or NULL. */
static const char *tool_of(const char *text)
{
	for (const char *s = text, *end; *s; s = *end ? end + 1 : end) {
		struct words w;
		end = line_end(s);
		const char *at = untagged(s, end);
		split(at, end, 0, &w);
		if (is_word(&w, 0, "#") && is_word(&w, 1, "OSU"))
			return "OSU micro-benchmarks";
		if (is_word(&w, 0, "#") && is_word(&w, 1, "size") && is_word(&w, 2, "count"))
			return "nccl-tests";
	}
	return NULL;
}

int loom__foreign_text(struct loom__doc *doc, struct loom_error *err)
{
	const char *tool = tool_of(doc->bytes);
	if (!tool)
		return LOOM_ENOENT;
	struct table *t = loom__must(calloc(1, sizeof(*t)));
	int rc = 0, osu = *tool == 'O';
	loom__foreign_begin(&t->f, doc, tool);
	for (const char *s = doc->bytes, *end; *s && !rc; s = *end ? end + 1 : end) {
		end = line_end(s);
		t->line++;
		rc = (osu ? osu_line : nccl_line)(t, untagged(s, end), end, err);
	}
	rc = loom__foreign_end(&t->f, rc, doc, err);
	free(t);
	return rc;
}
