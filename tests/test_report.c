/* SPDX-License-Identifier: Apache-2.0 */
/* Tests reports. Pages must be well-formed and self-contained. Hostile documents must neither crash the program nor
 * inject code. CSV must have the values of the document. The tests check such properties, and do not compare
 * pictures. */
#include "support.h"

#include <ctype.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/write.h"
#include "report/view/derive.h"
#include "report/page/html.h"
#include "report/view/lines.h"
#include "report/plot/plot.h"
#include "report/text/markup.h"
#include "report/report.h"
#include "report/text/rows.h"
#include "report/text/table.h"
#include "report/text/grid.h"

static const char *const documents[] = {"result.json", "compare.json", "sweep.jsonl", "hostile.json"};

static const char *data_path(const char *name)
{
	static char path[4][4096];
	static int turn;
	char here[] = __FILE__;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/data/%s", dirname(here), name);
	return path[turn];
}

struct loaded {
	struct loom__doc doc[2];
	struct loom__view view;
	struct loom__report_settings settings;
};

static int open_view(struct loaded *l, size_t docs, struct loom_error *err)
{
	int rc = loom__view_create(l->doc, docs, &l->view, err);
	if (!rc && loom__report_settings(&l->view, NULL, NULL, &l->settings, err)) {
		loom__view_free(&l->view);
		rc = -1;
	}
	return rc;
}

static void load(struct loaded *l, const char *name)
{
	struct loom_error err = {0};
	memset(l, 0, sizeof(*l));
	int rc = loom__doc_read(data_path(name), &l->doc[0], &err);
	rc = rc ? rc : open_view(l, 1, &err);
	if (rc) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		CU_FAIL_FATAL("a document cannot be read");
	}
}

static int load_text(struct loaded *l, const char *text, struct loom_error *err)
{
	memset(l, 0, sizeof(*l));
	int rc = loom__doc_parse("x.json", strdup(text), strlen(text), &l->doc[0], err);
	if (rc)
		return rc;
	rc = open_view(l, 1, err);
	if (rc)
		loom__doc_free(&l->doc[0]);
	return rc;
}

static void unload(struct loaded *l)
{
	loom__view_free(&l->view);
	loom__doc_free(&l->doc[0]);
	loom__doc_free(&l->doc[1]);
}

static char *render(const struct loaded *l, enum loom__report_format format)
{
	struct loom__text t = {0};
	switch (format) {
	case LOOM__AS_HTML:
		loom__report_html(&t, &l->view, &l->settings);
		break;
	case LOOM__AS_MARKDOWN:
		loom__report_markdown(&t, &l->view, &l->settings);
		break;
	case LOOM__AS_CSV:
		loom__report_csv(&t, &l->view);
		break;
	case LOOM__AS_SVG:
		loom__report_svg(&t, &l->view, &l->settings);
		break;
	default:
		loom__report_summary(&t, &l->view, &l->settings);
	}
	CU_ASSERT(loom__text_ok(&t));
	return t.at ? t.at : strdup("");
}

/* ---- well-formed
 * --------------------------------------------------------------------------------*/

static int is_void(const char *name)
{
	return !strcmp(name, "meta") || !strcmp(name, "br") || !strcmp(name, "wbr");
}

/* Checks that tags close in order, that attributes are quoted, and that texts contain no bare '<' or '&'. The contents
 * of scripts and styles are not checked. Returns NULL, or the error. */
static const char *check_tags(const char *s)
{
	static char stack[200][24], why[200];
	size_t depth = 0;
	while (*s) {
		if (*s == '&' && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) && strncmp(s, "&amp;", 5) &&
		    strncmp(s, "&quot;", 6) && strncmp(s, "&#39;", 5))
			return "a bare &";
		if (*s != '<') {
			s++;
			continue;
		}
		if (!strncmp(s, "<!DOCTYPE html>", 15)) {
			s += 15;
			continue;
		}
		int closing = s[1] == '/';
		char name[24] = "";
		s += 1 + closing;
		for (size_t n = 0; isalnum((unsigned char)*s) && n + 1 < sizeof(name);)
			name[n++] = *s++;
		if (!*name)
			return "a bare <";
		while (*s && *s != '>' && *s != '/') {
			if (*s == '"') {
				s = strchr(s + 1, '"');
				if (!s)
					return "an open quote";
			} else if (*s == '<') {
				return "a < inside a tag";
			}
			s++;
		}
		int empty = *s == '/';
		s += empty;
		if (*s++ != '>')
			return "a tag without end";
		if (closing) {
			if (!depth || strcmp(stack[--depth], name)) {
				snprintf(why, sizeof(why), "</%s> closes %s", name, depth ? stack[depth] : "nothing");
				return why;
			}
		} else if (!empty && !is_void(name)) {
			if (depth == 200)
				return "too deep";
			strcpy(stack[depth++], name);
			if (!strcmp(name, "script") || !strcmp(name, "style")) {
				char end[32];
				snprintf(end, sizeof(end), "</%s>", name);
				s = strstr(s, end);
				if (!s)
					return "a script without end";
			}
		}
	}
	return depth ? "something is left open" : NULL;
}

TEST(pages_are_well_formed)
{
	for (size_t i = 0; i < LOOM__COUNT(documents); i++) {
		struct loaded l;
		load(&l, documents[i]);
		for (int k = 0; k < 2; k++) {
			char *text = render(&l, k ? LOOM__AS_SVG : LOOM__AS_HTML);
			const char *fault = check_tags(text);
			if (fault)
				fprintf(stderr, "%s: %s\n", documents[i], fault);
			CU_ASSERT_PTR_NULL(fault);
			free(text);
		}
		unload(&l);
	}
	CU_ASSERT_PTR_NOT_NULL(check_tags("<p>a</b></p>"));
	CU_ASSERT_PTR_NOT_NULL(check_tags("<p>a < b</p>"));
	CU_ASSERT_PTR_NOT_NULL(check_tags("<p>"));
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* A page must not load anything, and only the script of gpuloom can run in it. The data are in a separate block. */
TEST(page_is_closed)
{
	for (size_t i = 0; i < LOOM__COUNT(documents); i++) {
		struct loaded l;
		load(&l, documents[i]);
		char *page = render(&l, LOOM__AS_HTML);
		char *data = strstr(page, "<script class=\"data\"");
		CU_ASSERT_PTR_NOT_NULL_FATAL(data);
		CU_ASSERT_EQUAL(count(page, "<script"), 2);
		CU_ASSERT_EQUAL(count(page, "<script>"), 1);
		CU_ASSERT_EQUAL(count(page, "</script>"), 2);
		*data = 0;
		CU_ASSERT_EQUAL(count(page, " src="), 0 + count(page, "&lt;img src="));
		CU_ASSERT_EQUAL(count(page, "href=\""), count(page, "href=\"#"));
		CU_ASSERT_EQUAL(count(page, "<link"), 0);
		CU_ASSERT_EQUAL(count(page, "<img"), 0);
		CU_ASSERT_EQUAL(count(page, "url("), 0);
		CU_ASSERT_EQUAL(count(page, "@import"), 0);
		CU_ASSERT_EQUAL(count(page, "Content-Security-Policy\" content=\"default-src 'none'"), 1);
		if (strcmp(documents[i], "hostile.json"))
			CU_ASSERT_EQUAL(count(page, "http://") + count(page, "https://"), 0);
		CU_ASSERT(count(page, "\xe2\x80\xae") == 0); /* the character that reverses the direction of text */
		CU_ASSERT(count(page, "NaN") == 0 && count(page, "nan\"") == 0);
		free(page);
		unload(&l);
	}
}

/* The security policy of a page has the hash of the page's script. If the hash were wrong, browsers would not run the
 * script. */
/* Returns the relative luminance of "#rgb" or "#rrggbb", as WCAG 2 defines it. */
static double luminance(const char *colour)
{
	size_t digits = strspn(colour + 1, "0123456789abcdef");
	double sum = 0;
	CU_ASSERT_FATAL(colour[0] == '#' && (digits == 3 || digits == 6));
	for (int i = 0; i < 3; i++) {
		char pair[3] = {colour[1 + (digits == 6 ? 2 * i : i)], colour[digits == 6 ? 2 + 2 * i : 1 + i], 0};
		double c = (double)strtoul(pair, NULL, 16) / 255;
		sum += (const double[]){0.2126, 0.7152, 0.0722}[i] *
		       (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
	}
	return sum;
}

/* Returns the contrast of two colours of the palette at `at`, from 1 to 21. */
static double contrast(const char *at, const char *one, const char *other)
{
	double l[2];
	const char *names[] = {one, other};
	for (int i = 0; i < 2; i++) {
		char name[20];
		snprintf(name, sizeof(name), "--%s:", names[i]);
		const char *found = strstr(at, name);
		CU_ASSERT_FATAL(found && found < strchr(at, '}'));
		l[i] = luminance(found + strlen(name));
	}
	return (fmax(l[0], l[1]) + 0.05) / (fmin(l[0], l[1]) + 0.05);
}

/* Text is readable on light, dark and printed pages: WCAG asks for a contrast of 4.5, and of 3 for marks of plots. On
 * light pages the colours of Okabe and Ito, which have less, differ also by the shape of their marks. */
TEST(contrasts)
{
	static const char *const text[] = {"ink", "soft", "good", "bad", "even", "claim"};
	static const char *const marks[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
	static const char *const modes[] = {":root,svg{", "(prefers-color-scheme:dark){:root,svg{", "print{:root,svg{"};
	for (size_t m = 0; m < 3; m++) {
		const char *palette = strstr(loom__plot_style, modes[m]);
		CU_ASSERT_FATAL(palette != NULL);
		for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
			CU_ASSERT(contrast(palette, text[i], "paper") >= 4.5);
			CU_ASSERT(contrast(palette, text[i], "band") >= 4);
		}
		for (size_t i = 0; i < sizeof(marks) / sizeof(*marks) && m == 1; i++)
			CU_ASSERT(contrast(palette, marks[i], "paper") >= 3);
	}
	CU_ASSERT(strstr(loom__html_style, "color-scheme:light dark") != NULL);
	CU_ASSERT(strstr(loom__html_style, "#") == NULL); /* all colours of a page come from the palette */
}

TEST(script_hash)
{
	char name[] = "/tmp/gpuloom-script-XXXXXX", command[200], hash[80] = "";
	int fd = mkstemp(name);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT(write(fd, loom__html_script, strlen(loom__html_script)) > 0);
	close(fd);
	snprintf(command, sizeof(command), "openssl dgst -sha256 -binary %s 2>/dev/null | base64", name);
	FILE *f = popen(command, "r");
	char *got = f ? fgets(hash, sizeof(hash), f) : NULL;
	if (f)
		pclose(f);
	unlink(name);
	if (!got || strlen(hash) < 44) /* openssl is missing; the pipe hides its exit status */
		return;
	hash[strcspn(hash, "\n")] = 0;
	CU_ASSERT_STRING_EQUAL(hash, loom__html_script_hash);
}

TEST(page_has_its_parts)
{
	static const struct {
		const char *document, *part[12];
	} wanted[] = {
	    {"compare.json",
	     {"id=\"verdicts\"", "FASTER", "id=\"samples\"", "id=\"metrics\"", "id=\"workers\"", "id=\"environment\"",
	      "id=\"conf\"", "id=\"command\"", "scheduler.mgws.public_queue", "prefers-color-scheme:dark",
	      "@media print"}},
	    {"sweep.jsonl",
	     {"id=\"pareto\"", "id=\"missing\"", "<summary>6 of 24</summary>", "the tree needs a stealing scheduler",
	      "id=\"samples\""}},
	    {"result.json", {"id=\"samples\"", "id=\"workers\"", "not known: no cpufreq", "sched_mgws"}},
	};
	for (size_t i = 0; i < LOOM__COUNT(wanted); i++) {
		struct loaded l;
		load(&l, wanted[i].document);
		char *page = render(&l, LOOM__AS_HTML);
		for (size_t k = 0; k < 12 && wanted[i].part[k]; k++)
			if (!strstr(page, wanted[i].part[k])) {
				fprintf(stderr, "%s: no %s\n", wanted[i].document, wanted[i].part[k]);
				CU_FAIL("a part is missing");
			}
		free(page);
		unload(&l);
	}
}

/* Even if one sample is a thousand times the median of its variant, the axis has no ratios below 0. */
TEST(ratios_from_zero)
{
	struct loaded l;
	load(&l, "sweep.jsonl");
	size_t m = l.settings.metric[0];
	for (size_t i = 0; i < l.view.variants; i++)
		if (l.view.variant[i].series && l.view.variant[i].series[m].rows) {
			l.view.variant[i].series[m].value[0] *= 1000;
			break;
		}
	l.settings.plots = 1u << LOOM__PLOT_RUNS;
	char *page = render(&l, LOOM__AS_SVG);
	CU_ASSERT_PTR_NOT_NULL(strstr(page, ">1000</text>"));
	CU_ASSERT_PTR_NULL(strstr(page, ">-500</text>"));
	CU_ASSERT_PTR_NULL(strstr(page, ">-1000</text>"));
	free(page);
	unload(&l);
}

/* ---- escaping
 * -----------------------------------------------------------------------------------*/

TEST(markup)
{
	struct loom__text t = {0};
	loom__markup_text(&t, "<a b=\"c\" d='e'>&\x01\xff\xe2\x80\xae\xc3\xa9");
	CU_ASSERT_STRING_EQUAL(t.at, "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\xef\xbf\xbd\xef\xbf\xbd"
				     "\xef\xbf\xbd\xc3\xa9");
	loom__text_free(&t);
	loom__markup_cut(&t, "<<<<", 3);
	CU_ASSERT_STRING_EQUAL(t.at, "&lt;&lt;\xe2\x80\xa6");
	loom__text_free(&t);
	CU_ASSERT_STRING_EQUAL(LOOM__XY(1.25), "1.3");
	CU_ASSERT_STRING_EQUAL(LOOM__XY(-0.04), "0");
	CU_ASSERT_STRING_EQUAL(LOOM__XY(NAN), "0");
	CU_ASSERT_STRING_EQUAL(LOOM__XY(-2), "-2");
	CU_ASSERT_STRING_EQUAL(LOOM__CHANGE(1.032), "+3.20 %");
	CU_ASSERT_STRING_EQUAL(LOOM__CHANGE(0.5), "\xe2\x88\x92"
						  "50.0 %");
	CU_ASSERT_STRING_EQUAL(LOOM__CHANGE(4), "\xc3\x97"
						"4");
	CU_ASSERT_STRING_EQUAL(LOOM__CHANGE(NAN), "\xe2\x80\x93");
}

/* A change by a factor says whether the variant is better, and its interval has factors in the same direction. */
TEST(gains)
{
	char text[112];
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(1 / 1257.0, LOOM_BETTER_LESS)),
			       "x1257 faster");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(38.5, LOOM_BETTER_LESS)), "x38.5 slower");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(4, LOOM_BETTER_MORE)), "x4 faster");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(4, LOOM_BETTER_NONE)), "x4");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(1 / 1257.0, LOOM_BETTER_NONE)), "/1257");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(1.5, LOOM_BETTER_LESS)), "+50.0 %");
	CU_ASSERT_STRING_EQUAL(loom__ascii((char *)(uintptr_t)LOOM__GAIN(0, LOOM_BETTER_LESS)), "-100 %");
	loom__gain_range(text, 0.001, 0.0008, 0.00125, LOOM_BETTER_LESS);
	CU_ASSERT_STRING_EQUAL(loom__ascii(text), "x800 .. x1250");
	loom__gain_range(text, 0.001, 0.0008, NAN, LOOM_BETTER_LESS);
	CU_ASSERT_STRING_EQUAL(loom__ascii(text), "? .. x1250");
	loom__gain_range(text, 1.2, 0.66, 5.08, LOOM_BETTER_LESS);
	CU_ASSERT_STRING_EQUAL(loom__ascii(text), "x0.66 .. x5.08");
	loom__change_range(text, 0.98, 1.02);
	CU_ASSERT_STRING_EQUAL(loom__ascii(text), "-2.00 % .. +2.00 %");
}

/* A heading may be wrapped behind each dot of a key, and is complete. */
TEST(headings)
{
	struct loom__grid g = {0};
	struct loom__text out = {0};
	loom__grid_column(&g, 0, "scheduler.mgws.victim");
	loom__grid_cell(&g, 0, "random");
	loom__grid_html(&g, &out, "", "caption");
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, ">scheduler.<wbr>mgws.<wbr>victim</th>"));
	loom__text_free(&out);
}

/* A value has the unit that the name of its metric ends in. */
TEST(units_of_names)
{
	char text[340];
	CU_ASSERT_STRING_EQUAL(LOOM__METRIC(5156123, "exit_ns", "ns"), "5,156,000 ns");
	CU_ASSERT_STRING_EQUAL(LOOM__METRIC(69.34, "round_ns", "ns"), "69.34 ns");
	CU_ASSERT_STRING_EQUAL(LOOM__METRIC(0, "idle_ns", "ns"), "0 ns");
	CU_ASSERT_STRING_EQUAL(LOOM__METRIC(5156123, "latency", "ns"), "5.156 ms");
	CU_ASSERT_STRING_EQUAL(LOOM__METRIC(0.0867, "seconds", "s"), "86.7 ms");
	loom__metric_range(text, 3790, 6162000, "exit_ns", "ns");
	CU_ASSERT_STRING_EQUAL(loom__ascii(text), "3,790 .. 6,162,000 ns");
	CU_ASSERT_STRING_EQUAL(LOOM__DURATION(12.4), "12 s");
	CU_ASSERT_STRING_EQUAL(LOOM__DURATION(960), "16 min");
	CU_ASSERT_STRING_EQUAL(LOOM__DURATION(7500), "2 h 05 min");
}

static cJSON *large_result(int workers)
{
	static const char *const counter[] = {"executed",   "spawned",        "claimed", "stolen_in",
					      "stolen_out", "steal_attempts", "idle_ns"};
	cJSON *doc = cJSON_CreateObject(), *list, *m, *o;
	loom__json_add_text(doc, "status", "ok");
	loom__json_add_text(doc, "title", "");
	loom__json_add_text(doc, "workload", "../some/where/workload_cubes.so");
	loom__json_add_number(doc, "ranks", 1024);
	list = loom__json_add_array(doc, "devices");
	loom__json_add_text(o = loom__json_append_object(list), "name", "sim:0");
	loom__json_add_number(o, "workers", workers);
	list = loom__json_add_array(doc, "plugins");
	for (int i = 0; i < 8; i++)
		loom__json_add_text(loom__json_append_object(list), "name", "trigger_with_a_name");
	list = loom__json_add_array(doc, "samples");
	for (int i = 0; i < 2; i++)
		loom__json_append_object(list);
	o = loom__json_add_object(doc, "metrics");
	static const struct {
		const char *name, *unit;
	} metric[] = {{"seconds", "s"},
		      {"remote_steals_of_host_total", "documents/s"},
		      {"qos_cpu_share_peak_of_1s", "krequests/s"},
		      {"idle_ns", "ns"}};
	for (size_t i = 0; i < LOOM__COUNT(metric); i++) {
		m = loom__json_add_object(o, metric[i].name);
		loom__json_add_text(m, "unit", metric[i].unit);
		loom__json_add_text(m, "better", strcmp(metric[i].name, "idle_ns") ? "less" : "");
		loom__json_add_number(m, "median", 123456.75);
		loom__json_add(m, "samples", cJSON_CreateDoubleArray((double[]){111111.5, 135802}, 2));
	}
	m = loom__json_add_object(o, "overflowed");
	loom__json_add_number(m, "median", 0);
	loom__json_add(m, "samples", cJSON_CreateDoubleArray((double[]){0, 0}, 2));
	list = loom__json_add_array(doc, "workers");
	for (int w = 0; w < workers; w++) {
		loom__json_add_number(o = loom__json_append_object(list), "worker", w);
		for (size_t i = 0; i < LOOM__COUNT(counter); i++) {
			double v = i == 1 ? 0 : 123456789.0 * (w + 1);
			loom__json_add(o, counter[i], cJSON_CreateDoubleArray(&v, 1));
		}
	}
	list = loom__json_add_array(doc, "warnings");
	loom__json_add_text(o = loom__json_append_object(list), "id", "not_quiet");
	loom__json_add_text(o, "text", "other programs used 67 % of the CPU time");
	return doc;
}

/* The screen of a run keeps to 80 columns, whatever the names and numbers are. It has no rows and columns of zeros, and
 * says how many ranks there are, and that the machine was busy. Counters are left to -v. */
TEST(screen)
{
	for (int workers = 1; workers <= 64; workers *= 8) {
		cJSON *doc = large_result(workers);
		for (unsigned show = 0; show < 3; show++) {
			struct loom__text text = {0};
			loom__table_result(doc, show, &text);
			CU_ASSERT(loom__text_widest(&text, 0) <= LOOM__TABLE_WIDTH);
			CU_ASSERT_PTR_NOT_NULL(strstr(text.at, "workload_cubes.so\n  1024 ranks, each on sim:0 ("));
			CU_ASSERT_PTR_NULL(strstr(text.at, "overflowed"));
			CU_ASSERT_PTR_NULL(strstr(text.at, "spawned"));
			CU_ASSERT_PTR_NOT_NULL(strstr(text.at, "\n  not quiet: other programs used 67 %"));
			CU_ASSERT_PTR_NOT_NULL(strstr(text.at, "\n  2 samples, each verified: "));
			size_t lines = count(text.at, "\n");
			CU_ASSERT(show & LOOM__SHOW_WORKERS ? lines > (size_t)workers + 12 : lines < 25);
			CU_ASSERT_EQUAL(!strstr(text.at, "per worker"), workers == 1 || show != LOOM__SHOW_ALL);
			CU_ASSERT_EQUAL(!strstr(text.at, "\n  idle_ns "), show != LOOM__SHOW_ALL);
			CU_ASSERT_EQUAL(!strstr(text.at, "\n  1 more metric, and the workers: -v\n"),
					show == LOOM__SHOW_ALL);
			loom__text_free(&text);
		}
		cJSON_Delete(doc);
	}
}

TEST(hostile_markdown)
{
	struct loaded l;
	load(&l, "hostile.json");
	char *text = render(&l, LOOM__AS_MARKDOWN);
	CU_ASSERT_EQUAL(count(text, "<script"), 0);
	CU_ASSERT_EQUAL(count(text, "<img"), 0);
	CU_ASSERT_EQUAL(count(text, "@everyone"), 0);
	CU_ASSERT_EQUAL(count(text, "https://"), 0);
	CU_ASSERT_EQUAL(count(text, "[x]("), 0);
	free(text);
	unload(&l);
}

TEST(csv_fields)
{
	static const char *const pairs[][2] = {{"plain", "plain"},
					       {"a,b", "\"a,b\""},
					       {"say \"x\"", "\"say \"\"x\"\"\""},
					       {"=1+1", "\"'=1+1\""},
					       {"-5", "-5"},
					       {"-x", "\"'-x\""},
					       {"@sum", "\"'@sum\""},
					       {"two\nlines", "two lines"},
					       {"", ""}};
	for (size_t i = 0; i < LOOM__COUNT(pairs); i++) {
		struct loom__text t = {0};
		loom__text_put(&t, "", 0);
		loom__csv_field(&t, pairs[i][0], SIZE_MAX);
		CU_ASSERT_STRING_EQUAL(t.at, pairs[i][1]);
		loom__text_free(&t);
	}
}

TEST(csv_units)
{
	static const struct {
		const char *name, *unit, *column;
	} given[] = {{"latency", "ns", "latency_ns"},   {"exit_ns", "ns", "exit_ns"},
		     {"seconds", "s", "seconds"},       {"tasks_per_s", "tasks/s", "tasks_per_s"},
		     {"rate", "GB/s", "rate_GB_per_s"}, {"steals", "", "steals"}};
	for (size_t i = 0; i < LOOM__COUNT(given); i++) {
		struct loom__text t = {0};
		struct loom__view_metric m = {.name = given[i].name, .unit = given[i].unit, .shown = 1};
		loom__csv_metric(&t, &m);
		CU_ASSERT_STRING_EQUAL(t.at, given[i].column);
		loom__text_free(&t);
	}
}

/* The CSV and the summary have exactly the values of the JSON. */
TEST(csv_round_trip)
{
	struct loaded l;
	load(&l, "result.json");
	char *summary = render(&l, LOOM__AS_JSON);
	cJSON *doc = cJSON_Parse(summary), *variant = cJSON_GetArrayItem(loom__json_list(doc, "variants"), 0);
	const cJSON *values =
	    loom__json_list(loom__json_object(loom__json_object(variant, "metrics"), "seconds"), "values");
	CU_ASSERT_EQUAL(loom__json_length(values), l.view.variant[0].rows);
	CU_ASSERT(loom__json_length(loom__json_list(variant, "workers")) > 0);
	CU_ASSERT_PTR_NOT_NULL(loom__json_object(loom__json_object(doc, "about"), "environment"));
	char *text = render(&l, LOOM__AS_CSV), *save = NULL;
	size_t m = loom__names_find(&l.view.metric_names, "seconds"), rows = 0;
	CU_ASSERT_FATAL(m != LOOM__NO_NAME);
	char *line = strtok_r(text, "\n", &save);
	CU_ASSERT(!strncmp(line, "variant,sample,order,start_ns,seconds", 37));
	while ((line = strtok_r(NULL, "\n", &save))) {
		double v = -1;
		const char *at = line, *end;
		for (size_t k = 0; k < 4 + m; k++)
			at = strchr(at, ',') + 1;
		CU_ASSERT(loom__read_double(at, &end, &v) == 0);
		CU_ASSERT(v == l.view.variant[0].series[m].value[rows]);
		CU_ASSERT_DOUBLE_EQUAL(v, cJSON_GetArrayItem(values, (int)rows)->valuedouble, 1e-12 * v);
		rows++;
	}
	cJSON_Delete(doc);
	free(summary);
	CU_ASSERT_EQUAL(rows, l.view.variant[0].rows);
	free(text);
	unload(&l);
}

/* ---- hostile
 * ------------------------------------------------------------------------------------*/

static void render_all(struct loaded *l)
{
	for (int f = 0; f < LOOM__REPORT_FORMATS; f++)
		free(render(l, (enum loom__report_format)f));
}

TEST(broken_files)
{
	static const struct {
		const char *text, *says;
	} given[] = {
	    {"{", "is incomplete"},
	    {"{\"schema\":\"gpuloom.result/1\"} x", "line 1, column 31"},
	    {"{\"schema\":\n\"gpuloom.result/1\",,}", "line 2"},
	    {"[]", "not a result of gpuloom"},
	    {"7", "not a result of gpuloom"},
	    {"{\"schema\":\"gpuloom.result/2\"}", "gpuloom.result/2"},
	    {"{\"schema\":7}", "not a result of gpuloom"},
	    {"{\"schema\":\"gpuloom.sweep/1\"}\n{\"configuration\":\n{}\n", "line 2"},
	    {"{\"schema\":\"gpuloom.sweep/1\"}\n{} x\n", "line 2"},
	    {"{\"schema\":\"gpuloom.sweep/1\"}\n[]\n", "line 2"},
	};
	for (size_t i = 0; i < LOOM__COUNT(given); i++) {
		struct loaded l;
		struct loom_error err = {0};
		CU_ASSERT(load_text(&l, given[i].text, &err) != 0);
		CU_ASSERT(test_says(err.text, given[i].says) && test_says(err.text, "x.json"));
	}
	struct loom_error err;
	struct loom__doc doc;
	char *nul = malloc(32);
	memcpy(nul, "{\"a\":1}\0{}", 11);
	CU_ASSERT(loom__doc_parse("x.json", nul, 10, &doc, &err) == LOOM_EINVAL);
	CU_ASSERT(loom__doc_read("/nonexistent/x.json", &doc, &err) == LOOM_ENOENT);
}

TEST(empty_documents)
{
	static const char *const text[] = {
	    "{\"schema\":\"gpuloom.result/1\"}",
	    "{\"schema\":\"gpuloom.compare/1\"}",
	    "{\"schema\":\"gpuloom.sweep/1\"}",
	    "{\"schema\":\"gpuloom.sweep/1\"}\n",
	    "{\"schema\":\"gpuloom.sweep/"
	    "1\"}\n\n{\"configuration\":\"a\",\"sample\":0,\"metrics\":{\"x\":1}}\n{\"ce",
	    ("{\"schema\":\"gpuloom.compare/1\",\"variants\":[{}],\"comparisons\":[{\"baseline\":0,"
	     "\"variant\":0}]}")};
	for (size_t i = 0; i < LOOM__COUNT(text); i++) {
		struct loaded l;
		struct loom_error err = {0};
		CU_ASSERT_EQUAL_FATAL(load_text(&l, text[i], &err), 0);
		render_all(&l);
		unload(&l);
	}
}

/* Makes cells of workers x policy x queue with known samples: the time is 8 / workers, and twice this time for the
 * policy b. */
static void load_grid(struct loaded *l)
{
	struct loom__text t = {0};
	struct loom_error err;
	loom__text_add(
	    &t,
	    "{\"schema\":\"gpuloom.sweep/1\",\"factors\":[{\"key\":\"device.cpu.workers\",\"values\":[\"1\",\"4\","
	    "\"2\"]},{\"key\":\"scheduler.policy\",\"values\":[\"a\",\"b\"]},{\"key\":\"q.size\",\"values\":[\"8k\","
	    "\"64\"]}]}\n");
	for (int w = 1; w <= 4; w *= 2)
		for (int p = 0; p < 2; p++)
			for (int q = 0; q < 2; q++)
				for (int i = 0; i < 9; i++)
					loom__text_add(&t,
						       "{\"configuration\":\"%d%d%d\",\"values\":{\"device.cpu."
						       "workers\":\"%d\",\"scheduler.policy\":\"%s\","
						       "\"q.size\":\"%s\"},\"sample\":%d,\"metrics\":{\"seconds\":%.6f}"
						       ",\"units\":{\"seconds\":\"s\"},"
						       "\"better\":{\"seconds\":\"less\"}}\n",
						       w, p, q, w, p ? "b" : "a", q ? "64" : "8k", i,
						       8.0 / w * (1 + p) * (1 + (i - 4) / 100.0));
	CU_ASSERT_EQUAL_FATAL(load_text(l, t.at, &err), 0);
	loom__text_free(&t);
}

static const struct loom__lines_point *point_at(const struct loom__lines *l, const char *facet, const char *line,
						const char *x)
{
	for (size_t i = 0; i < l->points; i++) {
		const struct loom__lines_point *p = &l->point[i];
		if (!strcmp(l->facet[p->facet], facet) && !strcmp(l->line[p->line], line) && !strcmp(l->x[p->at], x))
			return p;
	}
	CU_FAIL_FATAL("no such point");
	return NULL;
}

TEST(line_plots)
{
	struct loaded l;
	struct loom__lines lines;
	struct loom_error err = {0};
	load_grid(&l);
	/* By default, the factor whose levels are numbers is on the x axis, in order. The other factors give lines and
	 * panels. */
	CU_ASSERT_EQUAL_FATAL(loom__report_lines(&l.view, NULL, NULL, NULL, &l.settings, &err), 0);
	loom__lines_create(&l.view, &l.settings, 0, &lines);
	CU_ASSERT(lines.xs == 3 && lines.lines == 2 && lines.facets == 2 && lines.points == 12 && lines.pooled == 1);
	CU_ASSERT(lines.numbers && !strcmp(lines.x[1], "2"));
	const struct loom__lines_point *p = point_at(&lines, "8k", "b", "4");
	CU_ASSERT_DOUBLE_EQUAL(p->median, 4, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(p->least, 3.84, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(p->most, 4.16, 1e-9);
	CU_ASSERT(!p->open && p->low >= p->least && p->low < p->median && p->high > p->median && p->n == 9);
	loom__lines_free(&lines);
	/* If the time is halved, the speed-up is 2. A speed-up of 4 with 4 workers is an efficiency of 1. */
	l.settings.show = LOOM__SHOW_SPEEDUP;
	loom__lines_create(&l.view, &l.settings, 0, &lines);
	p = point_at(&lines, "64", "a", "4");
	CU_ASSERT_DOUBLE_EQUAL(p->median, 4, 1e-9);
	CU_ASSERT(p->low <= p->median && p->median <= p->high && p->least <= p->low);
	CU_ASSERT_DOUBLE_EQUAL(point_at(&lines, "64", "b", "1")->median, 1, 1e-9);
	loom__lines_free(&lines);
	l.settings.show = LOOM__SHOW_EFFICIENCY;
	loom__lines_create(&l.view, &l.settings, 0, &lines);
	CU_ASSERT_DOUBLE_EQUAL(point_at(&lines, "64", "a", "2")->median, 1, 1e-9);
	loom__lines_free(&lines);
	for (unsigned log = 0; log < 4; log++) {
		l.settings.log = log;
		render_all(&l);
	}
	l.settings.show = LOOM__SHOW_VALUE;
	char *page = render(&l, LOOM__AS_HTML), *summary = render(&l, LOOM__AS_JSON);
	cJSON *doc = cJSON_Parse(summary), *drawn = cJSON_GetArrayItem(loom__json_list(doc, "lines"), 0);
	const cJSON *point;
	size_t same = 0;
	CU_ASSERT_EQUAL(loom__json_length(loom__json_list(drawn, "points")), 12);
	cJSON_ArrayForEach(point, loom__json_list(drawn, "points"))
	{
		same += !strcmp(loom__json_text(point, "panel"), "8k") &&
			!strcmp(loom__json_text(point, "line"), "b") && !strcmp(loom__json_text(point, "x"), "4") &&
			fabs(loom__json_number(point, "median") - 4) < 1e-9 &&
			fabs(loom__json_number(point, "highest") - 4.16) < 1e-9;
	}
	CU_ASSERT_EQUAL(same, 1);
	cJSON_Delete(doc);
	free(summary);
	CU_ASSERT_PTR_NOT_NULL(strstr(page, "<section id=\"lines\">"));
	CU_ASSERT_PTR_NOT_NULL(strstr(page, "Names of variants: device.cpu.workers, scheduler.policy, q.size"));
	free(page);
	unload(&l);
	/* Cells that differ only in factors that the plot does not show are combined. */
	load_grid(&l);
	CU_ASSERT_EQUAL_FATAL(loom__report_lines(&l.view, "q.size", "device.cpu.workers", NULL, &l.settings, &err), 0);
	l.settings.facet = LOOM__NO_NAME;
	loom__lines_create(&l.view, &l.settings, 0, &lines);
	CU_ASSERT(lines.numbers && !strcmp(lines.x[0], "64") && lines.pooled == 2);
	CU_ASSERT_EQUAL(point_at(&lines, "", "2", "8k")->n, 18);
	loom__lines_free(&lines);
	REFUSED(loom__report_lines(&l.view, "device.cpu.worker", NULL, NULL, &l.settings, &err), LOOM_EINVAL, err,
		"'device.cpu.workers'");
	unload(&l);
}

/* The labels of effects are those of the table of `compare`. */
TEST(forest_terms)
{
	struct loaded l;
	struct loom__text svg = {0}, text = {0};
	size_t times = 0, rates = 0;
	load(&l, "compare.json");
	CU_ASSERT(loom__plot_forest(&svg, &l.view, LOOM__WIDE) > 0);
	for (size_t i = 0; i < l.view.comparisons; i++) {
		const struct loom__compared *c = &l.view.compared[i];
		int less = c->better == LOOM_BETTER_LESS;
		if (isnan(c->effect))
			continue;
		times += (size_t)less;
		rates += (size_t)!less;
		text.length = 0;
		loom__text_add(&text, ">%s", LOOM__GAIN(c->effect, c->better));
		CU_ASSERT_PTR_NOT_NULL(strstr(svg.at, text.at));
		text.length = 0;
		loom__text_add(&text, "%s against %s", c->name, l.view.variant[c->baseline].label);
		CU_ASSERT_PTR_NOT_NULL(strstr(svg.at, text.at));
	}
	CU_ASSERT(times && rates);
	loom__text_free(&svg);
	loom__text_free(&text);
	unload(&l);
}

TEST(log_axes)
{
	struct loom__scale s;
	char label[32];
	double v, last = 0;
	static const int wide[] = {60, 200, 400}, ticks[] = {2, 5, 7}; /* 1 10; 0.3 1 3 10 30; 0.5 1 2 5 10 20 50 */
	for (int k = 0; k < 3; k++, last = 0) {
		int n = 0;
		loom__scale_fit(&s, 0.3, 90, "", 0, wide[k], 50);
		loom__scale_log(&s, 0.3, 90);
		while (loom__scale_tick(&s, n, &v, label)) {
			CU_ASSERT(v > last && v >= s.lo && v <= s.hi && loom__scale_at(&s, v) >= 0 &&
				  loom__scale_at(&s, v) <= wide[k]);
			last = v;
			n++;
		}
		CU_ASSERT_EQUAL(n, ticks[k]);
	}
	CU_ASSERT_DOUBLE_EQUAL(loom__scale_at(&s, 1) - loom__scale_at(&s, 0.5),
			       loom__scale_at(&s, 20) - loom__scale_at(&s, 10), 1e-9);
	loom__scale_fit(&s, 0, 90, "", 0, 100, 50);
	loom__scale_log(&s, 0, 90); /* zero has no logarithm, so the scale remains linear */
	CU_ASSERT_EQUAL(s.log, 0);
}

static double derived_value(const char *text)
{
	struct loom_error err = {0};
	struct loom__derived d;
	struct loom__sample s = {0};
	loom__report_add(&s.report, "seconds", "s", LOOM_BETTER_LESS, 0.5);
	loom__report_add(&s.report, "bytes", "B", LOOM_BETTER_NONE, 3e9);
	loom__report_add(&s.report, "trigger.fires", "", LOOM_BETTER_NONE, 7);
	double v = NAN;
	if (loom__derived_read(text, &d, &err) || loom__derived_sample(&d, &s, &err))
		fprintf(stderr, "%s: %s\n", text, err.text);
	else if (s.report.count > 3)
		v = s.report.list[1].value; /* the derived metric is listed after the time */
	loom__report_clear(&s.report);
	return v;
}

TEST(derived_values)
{
	CU_ASSERT_DOUBLE_EQUAL(derived_value("gb_s = bytes / seconds / 1e9 [GB/s, more]"), 6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(derived_value("x=1+2*3-4/2-1"), 4, 0);
	CU_ASSERT_DOUBLE_EQUAL(derived_value("x = 2^3^2 - -(1 + trigger.fires)"), 520, 0);
	CU_ASSERT_DOUBLE_EQUAL(derived_value("x = max(log2(8), min(sqrt(16), abs(-9))) + exp(0) + log(1)"), 5, 1e-12);
	CU_ASSERT(isnan(derived_value("y = x + 1, x = seconds"))); /* y must not use x, which is defined after it */
	CU_ASSERT_DOUBLE_EQUAL(derived_value("x = seconds * 2, y = x + 1"), 1, 0);
	CU_ASSERT(isnan(derived_value("x = bytes / 0"))); /* the division gives no number */
	/* The longest expression that fits in the buffer. The parser must not read beyond its end. */
	char longest[200] = "x = 1";
	while (strlen(longest) < 4 + 159)
		strcat(longest, "+1");
	strcat(longest, " [s, more]");
	CU_ASSERT_DOUBLE_EQUAL(derived_value(longest), 80, 0);
	static const char *const wrong[][2] = {
	    {"x", "NAME = EXPRESSION"},         {"= 1", "NAME = EXPRESSION"},
	    {"x =", "missing at the end"},      {"x = 1 +", "missing at the end"},
	    {"x = (1", "')' is missing"},       {"x = 1 2", "operator is missing at '2'"},
	    {"x = foo(1)", "no such function"}, {"x = min(1)", "',' is missing"},
	    {"x = 1 [a, b, c]", "in brackets"}, {"1x = 2", "NAME = EXPRESSION"},
	    {"a-b = 1", "NAME = EXPRESSION"},   {"x = 1e", "operator is missing"},
	};
	for (size_t i = 0; i < LOOM__COUNT(wrong); i++) {
		struct loom_error err = {0};
		struct loom__derived d;
		REFUSED(loom__derived_read(wrong[i][0], &d, &err), LOOM_EINVAL, err, wrong[i][1]);
	}
}

/* Any text is either read or rejected. An accepted text gives a number, or no value. */
TEST(derived_any_text)
{
	static const char some[] = "seconds bytes x=+-*/^(),.[]1e9 \tmaxlog_";
	uint64_t state = 7;
	size_t read = 0;
	for (int round = 0; round < 200000; round++) {
		char text[200] = "x = seconds";
		struct loom_error err;
		struct loom__derived d;
		size_t n = 4 + (state >> 40) % 30;
		for (size_t i = 4; i < n; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			text[i] = some[(state >> 33) % (sizeof(some) - 1)];
		}
		if (loom__derived_read(text, &d, &err))
			continue;
		struct loom__sample s = {0};
		loom__report_add(&s.report, "seconds", "s", LOOM_BETTER_LESS, 0.5);
		read++;
		loom__derived_sample(&d, &s, &err);
		for (size_t i = 0; i < s.report.count; i++)
			CU_ASSERT(isfinite(s.report.list[i].value));
		loom__report_clear(&s.report);
	}
	CU_ASSERT(read > 100);
}

TEST(derived_views)
{
	static const char *const document[] = {"result.json", "compare.json", "sweep.jsonl"};
	for (size_t i = 0; i < LOOM__COUNT(document); i++) {
		struct loaded l;
		struct loom_error err = {0};
		struct loom__derived d;
		load(&l, document[i]);
		size_t from = loom__names_find(&l.view.metric_names, "seconds"), to = l.view.metrics;
		CU_ASSERT_EQUAL_FATAL(loom__derived_read("ms = seconds * 1000 [ms, less]", &d, &err), 0);
		CU_ASSERT_EQUAL_FATAL(loom__derived_view(&d, &l.view, &err), 0);
		CU_ASSERT_EQUAL(loom__names_find(&l.view.metric_names, "ms"), to);
		for (size_t v = 0; v < l.view.variants; v++)
			if (l.view.variant[v].series && l.view.variant[v].series[from].n)
				CU_ASSERT_DOUBLE_EQUAL(l.view.variant[v].series[to].median.at,
						       1000 * l.view.variant[v].series[from].median.at, 1e-9);
		render_all(&l);
		CU_ASSERT_EQUAL(loom__derived_read("x = secnds", &d, &err), 0);
		REFUSED(loom__derived_view(&d, &l.view, &err), LOOM_EINVAL, err, "'seconds'");
		unload(&l);
	}
}

/* Documents with many samples, metrics or cells give pages of limited size in limited time. */
TEST(large)
{
	struct loom__text t = {0};
	loom__text_add(&t, "{\"schema\":\"gpuloom.sweep/1\",\"factors\":[]}\n");
	for (int i = 0; i < 20000; i++)
		loom__text_add(&t,
			       "{\"configuration\":\"c%d\",\"values\":{\"a.b\":\"%d\",\"a.c\":\"%d\"},\"sample\":%d,"
			       "\"metrics\":{\"seconds\":%d.5,\"m%d\":1},\"better\":{\"seconds\":\"less\"}}\n",
			       i % 2500, i % 50, i % 2500 / 50, i / 2500, i % 97 + 1, i % 300);
	struct loaded l;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL_FATAL(load_text(&l, t.at, &err), 0);
	CU_ASSERT_EQUAL(l.view.variants, 2500);
	CU_ASSERT_EQUAL(l.view.metrics, LOOM__VIEW_METRICS);
	CU_ASSERT(l.view.metrics_left_out > 0);
	char *page = render(&l, LOOM__AS_HTML);
	CU_ASSERT_PTR_NULL(check_tags(page));
	CU_ASSERT(strlen(page) < t.length + (4u << 20));
	free(page);
	unload(&l);
	loom__text_free(&t);
}

/* A sample that the files have twice counts once. A sample that only looks like another one counts. */
TEST(repeated_samples)
{
#define SAMPLE(number, start, seconds)                                                                                 \
	"{\"configuration\":\"c\",\"values\":{\"a.b\":\"1\"},\"sample\":" number ",\"start_ns\":" start                \
	",\"metrics\":{\"seconds\":" seconds "}}\n"
	static const char text[] =
	    "{\"schema\":\"gpuloom.sweep/1\",\"factors\":[]}\n" SAMPLE("0", "5", "1.5") SAMPLE("0", "5", "1.5")
		SAMPLE("1", "5", "1.5") SAMPLE("0", "6", "1.5") SAMPLE("0", "5", "1.25") SAMPLE("0", "5", "1.5");
	struct loaded l;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL_FATAL(load_text(&l, text, &err), 0);
	CU_ASSERT_EQUAL(l.view.variant[0].rows, 4);
	CU_ASSERT_EQUAL(l.view.repeated, 2);
	CU_ASSERT_EQUAL(l.view.variant[0].series[0].value[3], 1.25);
	unload(&l);
	struct loom__doc shard[2];
	struct loom__view view;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(loom__doc_parse("x", strdup(text), strlen(text), &shard[i], &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__view_create(shard, 2, &view, &err), 0);
	CU_ASSERT_EQUAL(view.variant[0].rows, 4);
	CU_ASSERT_EQUAL(view.repeated, 8);
	loom__view_free(&view);
	for (int i = 0; i < 2; i++)
		loom__doc_free(&shard[i]);
#undef SAMPLE
}

/* The name of an input tells its kind. If it does not, the first byte does. */
TEST(kinds_of_inputs)
{
	static const struct {
		const char *name, *content;
		enum loom__input kind;
	} input[] = {{"a.json", NULL, LOOM__INPUT_DOCUMENT},
		     {"a.JSONL.gz", NULL, LOOM__INPUT_DOCUMENT},
		     {"a.out", NULL, LOOM__INPUT_TABLE},
		     {"a.log.gz", NULL, LOOM__INPUT_TABLE},
		     {"a.ini", " {", LOOM__INPUT_CONF},
		     {"a", "\n {\"schema\"", LOOM__INPUT_DOCUMENT},
		     {"a.old", "\x1f\x8b\x08", LOOM__INPUT_DOCUMENT},
		     {"b", "[run]\n", LOOM__INPUT_CONF},
		     {"empty", "", LOOM__INPUT_CONF},
		     {"none", NULL, LOOM__INPUT_CONF},
		     {".", NULL, LOOM__INPUT_CONF}};
	char folder[TEST_FOLDER], path[TEST_FOLDER + 20];
	test_folder(folder);
	for (size_t i = 0; i < COUNT(input); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, input[i].name);
		if (input[i].content)
			CU_ASSERT_EQUAL(loom__write_file(path, input[i].content, strlen(input[i].content), NULL), 0);
		CU_ASSERT_EQUAL(loom__input_kind(path), input[i].kind);
	}
	snprintf(path, sizeof(path), "%s/fifo", folder);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(loom__input_kind(path), LOOM__INPUT_CONF); /* and does not wait for a writer */
	test_remove(folder);
}

/* ---- what is in a view
 * --------------------------------------------------------------------------*/

/* Each cell needs memory for all metrics, so a document of 1 MB with many cells and metrics is rejected. */
TEST(many_cells_S14)
{
	struct loom__text t = {0};
	struct loaded l;
	struct loom_error err = {0};
	loom__text_add(&t, "{\"schema\":\"gpuloom.sweep/"
			   "1\",\"factors\":[]}\n{\"configuration\":\"a\",\"sample\":0,\"metrics\":{\"m\":1");
	for (int i = 0; i < LOOM__VIEW_METRICS - 1; i++)
		loom__text_add(&t, ",\"m%d\":1", i);
	loom__text_add(&t, "}}\n");
	for (int i = 0; i < 60000; i++)
		loom__text_add(&t, "{\"configuration\":\"%d\"}\n", i);
	CU_ASSERT_EQUAL(load_text(&l, t.at, &err), LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "too many samples, or variants times metrics"));
	loom__text_free(&t);
}

/* Results with a hundred thousand options are compared in acceptable time, because each option is searched only once in
 * each other result. */
TEST(many_options_S14)
{
	struct loaded l = {0};
	struct loom_error err = {0};
	for (int d = 0; d < 2; d++) {
		struct loom__text t = {0};
		loom__text_add(&t, "{\"schema\":\"gpuloom.result/1\",\"config\":{\"run.title\":{\"value\":\"%d\"}", d);
		for (int i = 0; i < 200000; i++)
			loom__text_add(&t, ",\"x.k%d\":{\"value\":\"%d\"}", i, i > 199900 ? i + d : i);
		loom__text_add(&t, "}}");
		CU_ASSERT_EQUAL_FATAL(loom__doc_parse(d ? "b.json" : "a.json", t.at, t.length, &l.doc[d], &err), 0);
	}
	CU_ASSERT_EQUAL_FATAL(open_view(&l, 2, &err), 0);
	CU_ASSERT_EQUAL(l.view.factors, LOOM__VIEW_FACTORS);
	CU_ASSERT_STRING_EQUAL(l.view.factor[0], "x.k199901");
	CU_ASSERT_STRING_EQUAL(l.view.variant[1].level[0], "199902");
	unload(&l);
}

TEST(levels_of_a_sweep)
{
	static const char text[] =
	    "{\"schema\":\"gpuloom.sweep/1\",\"factors\":[{\"key\":\"a.x\",\"values\":[\"0\",\"1\"]}]}\n"
	    "{\"configuration\":\"1\",\"values\":{\"a.x\":\"1\"},\"sample\":0,\"metrics\":{\"m\":20}}\n"
	    "{\"configuration\":\"2\",\"values\":{\"a.x\":\"0\"},\"sample\":0,\"metrics\":{\"m\":10}}\n"
	    "{\"configuration\":\"5\",\"values\":{\"a.x\":\"2\"},\"failed\":\"no\"}\n";
	const char *level[8];
	struct loaded l;
	struct loom_error err;
	CU_ASSERT_EQUAL_FATAL(load_text(&l, text, &err), 0);
	CU_ASSERT_EQUAL(loom__factor_levels(&l.view, 0, level, 8), 3);
	CU_ASSERT_STRING_EQUAL(level[0], "0"); /* levels come from the values of a line, not from the conf of the run */
	CU_ASSERT_STRING_EQUAL(l.view.variant[2].status, "failed");
	unload(&l);
}

TEST(many_results)
{
	struct loaded l;
	struct loom_error err = {0};
	memset(&l, 0, sizeof(l));
	CU_ASSERT_FATAL(!loom__doc_read(data_path("result.json"), &l.doc[0], &err));
	CU_ASSERT_FATAL(!loom__doc_read(data_path("result.json"), &l.doc[1], &err));
	cJSON *o = cJSON_GetObjectItem(cJSON_GetObjectItem(l.doc[1].root, "config"), "transport.use");
	cJSON_ReplaceItemInObject(o, "value", cJSON_CreateString("p2p"));
	CU_ASSERT_FATAL(!open_view(&l, 2, &err));
	CU_ASSERT_EQUAL(l.view.variants, 2);
	CU_ASSERT_EQUAL(l.view.factors, 1);
	CU_ASSERT_STRING_EQUAL(l.view.factor[0], "transport.use");
	render_all(&l);
	unload(&l);
	CU_ASSERT_FATAL(!loom__doc_read(data_path("result.json"), &l.doc[0], &err));
	CU_ASSERT_FATAL(!loom__doc_read(data_path("compare.json"), &l.doc[1], &err));
	CU_ASSERT(open_view(&l, 2, &err) == LOOM_EINVAL);
	loom__doc_free(&l.doc[0]);
	loom__doc_free(&l.doc[1]);
}

TEST(settings)
{
	struct loaded l;
	struct loom_error err = {0};
	struct loom__report_settings settings;
	load(&l, "result.json");
	CU_ASSERT_EQUAL(loom__report_settings(&l.view, "exit_ns,seconds", "seconds,exit_ns", &settings, &err), 0);
	CU_ASSERT_EQUAL(settings.metrics, 2);
	REFUSED(loom__report_settings(&l.view, "exit_n", NULL, &settings, &err), LOOM_EINVAL, err, "exit_ns");
	REFUSED(loom__report_settings(&l.view, NULL, "seconds", &settings, &err), LOOM_EINVAL, err, "two");
	CU_ASSERT_EQUAL(loom__report_format_of("a.b/x.HTML"), LOOM__AS_HTML);
	CU_ASSERT_EQUAL(loom__report_format_of("a.html/x"), LOOM__REPORT_FORMATS);
	unload(&l);
}

TEST_MAIN("report", 120)
