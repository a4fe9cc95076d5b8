/* SPDX-License-Identifier: Apache-2.0 */
/* The input has a rule of --fail-on, a bar, metrics, and facts that may differ (four lines), and two or three results of
 * gpuloom or other programs. The target compares the results and prints a table, JSON and reports. */
#include <stdlib.h>
#include <string.h>

#include "compare/rules.h"
#include "input.h"
#include "formats.h"
#include "report/view/document.h"
#include "report/report.h"
#include "report/text/table.h"

enum { MOST = 3, METRICS = 8 };

struct asked {
	char *line[4];
	size_t n;
};

static void take(void *arg, char *line)
{
	struct asked *a = arg;
	if (a->n < 4)
		a->line[a->n++] = line;
}

static size_t read_metrics(char *list, struct loom__compare_metric *metric)
{
	struct loom_error err;
	size_t n = 0;
	char *rest = NULL;
	for (char *one = strtok_r(list, ",", &rest); one && n < METRICS; one = strtok_r(NULL, ",", &rest))
		n += !loom__compare_metric_parse(one, &metric[n], &err);
	return n;
}

/* Writes the comparison to a file, and makes a report of the file. */
static void report(const cJSON *comparison)
{
	struct loom__doc doc;
	struct loom__view view;
	struct loom__report_settings settings;
	struct loom__text page = {0};
	struct loom_error err;
	char *json = loom__json_print(comparison, 1);
	fuzz_is_json(json, strlen(json));
	FUZZ_CHECK(!loom__doc_parse("comparison", json, strlen(json), &doc, &err));
	if (!loom__view_create(&doc, 1, &view, &err)) {
		FUZZ_CHECK(!loom__report_settings(&view, NULL, NULL, &settings, &err));
		FUZZ_CHECK(!loom__report_lines(&view, NULL, NULL, NULL, &settings, &err));
		loom__table_compare(&view, &page);
		fuzz_printable("table", page.at, page.length);
		loom__text_free(&page);
		loom__report_html(&page, &view, &settings);
		fuzz_is_html(page.at, page.length);
		loom__text_free(&page);
		loom__report_junit(&page, &view);
		fuzz_is_svg(page.at, page.length);
		loom__text_free(&page);
		loom__view_free(&view);
	}
	loom__text_free(&page);
	loom__doc_free(&doc);
}

static void judge(cJSON *doc, size_t n, struct asked *a)
{
	struct loom__job job[MOST];
	struct loom__compare_metric metric[METRICS + 1] = {{.name = "seconds"}};
	struct loom__gate_rule rule;
	struct loom__bar bar;
	struct loom__text text = {0};
	struct loom_error err = {0};
	const char *allowed = a->n > 3 ? a->line[3] : "";
	size_t metrics = a->n > 2 ? read_metrics(a->line[2], metric) : 0, failed, undecided;
	const cJSON *lead, *leading = loom__json_list(loom__json_object(loom__compare_variant(doc, 0), "result"), "leading");
	if (!metrics)
		cJSON_ArrayForEach(lead, leading)
		{
			if (metrics < METRICS && strlen(loom__json_string(lead)) < sizeof(metric->name))
				strcpy(metric[metrics++].name, loom__json_string(lead));
		}
	metrics += !metrics;
	for (size_t i = 0; i < n; i++) {
		const cJSON *variant = loom__compare_variant(doc, i), *result = loom__json_object(variant, "result");
		job[i] = (struct loom__job){loom__compare_label(doc, i), result, loom__json_object(result, "metrics"),
					    loom__json_object(variant, "varied")};
	}
	int rc = loom__compare_same_job(job, n, &allowed, 1, &err);
	rc = rc ? rc : loom__compare_figures(job, n, metric, metrics, &allowed, 1, &err);
	if (!rc)
		loom__compare_add_files(doc);
	rc = rc ? rc : loom__compare_same_environment(doc, &allowed, 1, &err);
	rc = rc ? rc : loom__compare_judge(doc, metric, metrics, &err);
	if (!rc && a->n && !loom__gate_rule_parse(a->line[0], &rule, &err))
		loom__compare_gate(doc, &rule, 1, &failed, &undecided);
	if (!rc && a->n > 1 && !loom__bar_parse(a->line[1], &bar, &err))
		loom__compare_bars(doc, &bar, 1, &text, &err);
	if (!rc) {
		report(doc);
	}
	fuzz_say(err.text);
	loom__text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const label[MOST] = {"a", "b", "c"};
	struct fuzz_parts parts = {data, size};
	char *lines = fuzz_part(&parts, NULL);
	struct asked asked = {0};
	struct loom__compare_about about = {.confidence = 0.95, .margin = 0.01};
	cJSON *doc = loom__compare_document(&about);
	size_t n = 0;
	fuzz_lines(lines, take, &asked);
	struct loom__doc read[MOST];
	size_t docs = 0;
	while (parts.left && docs < MOST) {
		size_t length;
		struct loom_error err;
		char *text = fuzz_part(&parts, &length);
		if (loom__doc_parse(label[docs], text, length, &read[docs], &err))
			fuzz_say(err.text);
		else
			docs++;
	}
	for (size_t i = 0; i < docs; i++) {
		if (read[i].kind == LOOM__DOC_RESULT &&
		    (read[i].foreign || loom__json_length(loom__json_list(read[i].root, "samples")))) {
			loom__compare_add_variant(doc, label[n], label[n], NULL, read[i].root);
			read[i].root = NULL;
			n++;
		}
		loom__doc_free(&read[i]);
	}
	if (n > 1)
		judge(doc, n, &asked);
	cJSON_Delete(doc);
	free(lines);
	return 0;
}
