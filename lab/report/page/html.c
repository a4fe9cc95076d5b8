/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the HTML page. It is one file that needs no network, and is readable without its script. */
#include "report/page/html.h"
#include "report/view/lines.h"
#include "facts/must.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct figure {
	enum loom__plot_kind plot;
	size_t metric;
	const struct loom__variant *variant;
	const struct loom__report_settings *settings;
};

/* Draws the figure for wide and for narrow pages; the style sheet shows one of the two. Returns 0 if there is nothing
 * to draw. */
static int add_figure(struct loom__text *out, const struct loom__view *view, const struct figure *f,
		      const char *caption)
{
	struct loom__text at[2] = {{0}, {0}}, *wide = &at[0], *narrow = &at[1];
	int drawn = 1;
	for (int i = 0; i < 2; i++)
		drawn = drawn && loom__plot_draw(&at[i], view, f->settings, f->plot, f->metric, f->variant,
						 i ? LOOM__NARROW : LOOM__WIDE) > 0;
	if (drawn && wide->at && narrow->at) {
		loom__text_add(out, "<figure>\n<div class=\"wide\">%s</div>\n<div class=\"narrow\">%s</div>\n",
			       wide->at, narrow->at);
		if (*caption)
			loom__text_add(out, "<figcaption>%s</figcaption>\n", caption);
		loom__text_add(out, "</figure>\n");
	}
	out->failed |= wide->failed | narrow->failed;
	loom__text_free(wide);
	loom__text_free(narrow);
	return drawn;
}

static const char *const kind_name[] = {"result", "comparison", "sweep"};

static void fact(struct loom__text *out, const char *name, const char *value)
{
	if (*value)
		loom__markup_add(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
}

/* Appends a time "2026-11-20T10:00:00Z" as "2026-11-20 10:00 UTC", and any other text as it is. */
static void add_time(struct loom__text *out, const char *text)
{
	size_t n = strlen(text);
	if (n == 20 && text[10] == 'T' && text[19] == 'Z')
		loom__text_add(out, "%.10s %.5s UTC", text, text + 11);
	else
		loom__text_add(out, "%s", text);
}

/* Returns 1 if a factor varies the devices. In this case the devices of the first configuration are not the devices of
 * all configurations. */
static int varies_devices(const struct loom__view *view)
{
	for (size_t f = 0; f < view->factors; f++)
		if (!strncmp(view->factor[f], "device.", 7) || !strcmp(view->factor[f], "run.devices"))
			return 1;
	return 0;
}

static void add_facts(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text t = {0};
	const cJSON *d, *result = view->variants && view->variant[0].result ? view->variant[0].result : view->head;
	char number[64];
	size_t samples = 0, warmups = 0;
	loom__text_add(out, "<dl class=\"facts\">\n");
	add_time(&t, loom__json_text(view->head, "started"));
	fact(out, "Started", loom__must_text(&t));
	loom__text_free(&t);
	for (size_t i = 0; i < view->variants; i++) {
		samples += view->variant[i].rows;
		warmups += view->variant[i].warmups;
	}
	if (view->variants == 1)
		snprintf(number, sizeof(number), "%zu", samples);
	else
		snprintf(number, sizeof(number), "%zu of %zu %s", samples, view->variants,
			 view->kind == LOOM__DOC_SWEEP ? "configurations" : "variants");
	/* Other programs may verify nothing. */
	fact(out, loom__json_list(result, "leading") ? "Samples" : "Samples, each verified", number);
	snprintf(number, sizeof(number), "%zu", warmups);
	fact(out, "Warm-ups, not counted", warmups ? number : "");
	cJSON_ArrayForEach(d, loom__json_list(result, "devices"))
	{
		double workers = varies_devices(view) ? NAN : loom__json_number(d, "workers");
		loom__text_add(&t, "%s%s", t.length ? ", " : "", loom__json_text(d, "name"));
		if (workers > 0)
			loom__text_add(&t, " (%.0f worker%s)", workers, workers == 1 ? "" : "s");
	}
	double ranks = loom__json_number(result, "ranks");
	if (ranks > 1) {
		snprintf(number, sizeof(number), "%.0f", ranks);
		fact(out, "Ranks", number);
	}
	fact(out, ranks > 1 ? "Devices of a rank" : "Devices", loom__must_text(&t));
	loom__text_free(&t);
	loom__text_add(&t, "%s", loom__json_text(loom__json_object(view->head, "gpuloom"), "version"));
	const char *revision = loom__json_text(loom__json_object(view->head, "gpuloom"), "revision");
	if (*revision)
		loom__text_add(&t, " at %.12s", revision);
	fact(out, "gpuloom", loom__must_text(&t));
	const char *status = loom__json_text(view->head, "status");
	fact(out, "Status", status);
	loom__text_add(out, "</dl>\n");
	loom__text_free(&t);
}

static void add_header(struct loom__text *out, const struct loom__view *view)
{
	loom__markup_add(out,
			 "<a class=\"skip\" href=\"#content\">To the content</a>\n<header>\n"
			 "<p class=\"kicker\">gpuloom %s</p>\n<h1>%s</h1>\n",
			 kind_name[view->kind], *view->title ? view->title : "gpuloom");
	if (*view->caption)
		loom__markup_add(out, "<p class=\"headline\">%s</p>\n", view->caption);
}

/* Appends links to the sections that `body` has. */
static void add_nav(struct loom__text *out, const char *body)
{
	static const struct {
		const char *id, *name;
	} part[] = {{"verdicts", "Verdict"},    {"variants", "Variants"}, {"lines", "Lines"},
		    {"pareto", "Pareto front"}, {"samples", "Samples"},   {"metrics", "All metrics"},
		    {"workers", "Workers"},     {"missing", "Not run"},   {"environment", "Environment"},
		    {"conf", "Configuration"},  {"command", "Command"},   {"data", "Data"}};
	loom__text_add(out, "<nav aria-label=\"Sections\">\n");
	for (size_t i = 0; i < LOOM__COUNT(part); i++) {
		char id[64];
		snprintf(id, sizeof(id), "<section id=\"%s\">", part[i].id);
		if (strstr(body, id))
			loom__text_add(out, "<a href=\"#%s\">%s</a>\n", part[i].id, part[i].name);
	}
	loom__text_add(out, "</nav>\n</header>\n<main id=\"content\">\n");
}

/* Appends the names of the factors, without which names of variants such as "1, random, 8" would be unclear. */
static void add_names(struct loom__text *out, const struct loom__view *view)
{
	if (view->factors < 2 || view->variants < 2)
		return;
	loom__text_add(out, "<p class=\"soft\">Names of variants: ");
	for (size_t f = 0; f < view->factors; f++)
		loom__markup_add(out, "%s%s", f ? ", " : "", view->factor[f]);
	loom__text_add(out, ".</p>\n");
}

static void add_samples(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings)
{
	if (!settings->metrics)
		return;
	loom__html_section(out, "samples", "Samples",
			   "All samples in run order, and their distribution. None was "
			   "dropped.");
	add_names(out, view);
	for (size_t i = 0; i < settings->metrics; i++) {
		struct figure f = {.plot = LOOM__PLOT_RUNS, .metric = settings->metric[i]};
		loom__markup_add(out, "<details class=\"print\"%s><summary><h3>%s</h3></summary>\n", i ? "" : " open",
				 view->metric[f.metric].name);
		add_figure(out, view, &f, "");
		f.plot = LOOM__PLOT_DISTRIBUTION;
		add_figure(out, view, &f,
			   view->variants > LOOM__SERIES
			       ? "Box: the middle half of the samples. Line: 95 % interval of the median."
			       : "Curves: share of samples up to a value. Below, each sample, the middle "
				 "half as a box, and the median with its 95 % interval as a line.");
		loom__text_add(out, "</details>\n");
	}
	loom__text_add(out, "</section>\n");
}

static void add_workers(struct loom__text *out, const struct loom__view *view)
{
	struct loom__text part = {0};
	for (size_t i = 0; i < view->variants && i < LOOM__SERIES; i++) {
		struct figure f = {.plot = LOOM__PLOT_WORKERS, .variant = &view->variant[i]};
		struct loom__text one = {0};
		if (view->variant[i].result && add_figure(&one, view, &f, "")) {
			if (view->variants > 1)
				loom__markup_add(&part, "<h3>%s</h3>\n", view->variant[i].label);
		}
		loom__markup_move(&part, &one);
	}
	loom__html_section_of(out, "workers", "Workers",
			      "The time of each worker in the sample nearest to the median. Idle time is "
			      "drawn at the end, since the counters have only its sum. "
			      "The line across a bar is the end of the last task.",
			      &part);
}

static void add_pareto(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings)
{
	struct figure f = {.plot = LOOM__PLOT_PARETO, .settings = settings};
	struct loom__text part = {0};
	add_names(&part, view);
	if (settings->x == LOOM__NO_NAME)
		loom__text_free(&part);
	else
		add_figure(&part, view, &f,
			   "Large marks and the line are the front: no other median is better in one "
			   "metric and as good in the other. A ring is dominated by another median, but the "
			   "intervals overlap; a dot is clearly dominated. Dotted intervals are from fewer than 6 "
			   "samples and are open.");
	loom__html_section_of(out, "pareto", "Pareto front", "", &part);
}

static void add_lines(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_settings *settings)
{
	struct loom__text part = {0}, caption = {0};
	struct loom__lines l;
	for (size_t i = 0; i < settings->metrics; i++) {
		struct figure f = {.plot = settings->plots & 1u << LOOM__PLOT_BARS   ? LOOM__PLOT_BARS
					   : settings->plots & 1u << LOOM__PLOT_HEAT ? LOOM__PLOT_HEAT
										     : LOOM__PLOT_LINES,
				   .metric = settings->metric[i],
				   .settings = settings};
		loom__lines_create(view, settings, f.metric, &l);
		size_t pooled = l.pooled;
		loom__lines_free(&l);
		if (pooled > 1)
			loom__text_add(
			    &caption,
			    "Each mark merges the samples of up to %zu configurations, which differ in other options. ",
			    pooled);
		if (f.plot != LOOM__PLOT_LINES)
			loom__text_add(&caption, "Medians%s.%s",
				       f.plot == LOOM__PLOT_BARS ? ", with their 95 % intervals where there are 6 "
								   "samples or more"
								 : "",
				       settings->marks
					   ? " In red or in parentheses: the paper's values, with their tolerances."
					   : "");
		else
			loom__text_add(
			    &caption,
			    "Marks: medians. Bars: their 95 %% intervals, where there are 6 samples or more. Thin: "
			    "the lowest to the "
			    "highest sample.%s",
			    settings->show < LOOM__SHOW_SPEEDUP || (settings->base && *settings->base)
				? ""
				: " Dashed: perfect scaling.");
		loom__markup_add(&part, "<details class=\"print\"%s><summary><h3>%s</h3></summary>\n", i ? "" : " open",
				 view->metric[f.metric].name);
		int drawn = add_figure(&part, view, &f, loom__must_text(&caption));
		loom__text_add(&part, "</details>\n");
		loom__text_free(&caption);
		if (!drawn) {
			loom__text_free(&part);
			break;
		}
	}
	loom__html_section_of(out, "lines", settings->plots & LOOM__PLOT_NAMED ? "Figure" : "Lines", "", &part);
}

static void add_body(struct loom__text *out, const struct loom__view *view,
		     const struct loom__report_settings *settings)
{
	struct figure forest = {.plot = LOOM__PLOT_FOREST};
	if (view->comparisons) {
		loom__html_verdicts(out, view);
		add_figure(
		    out, view, &forest,
		    "Each change with its 95 % interval; the shaded band is the margin within which a difference does "
		    "not matter. Right is better.");
		loom__text_add(out, "</section>\n");
	}
	if (settings->metrics)
		loom__html_variants(out, view, settings->metric[0]);
	add_lines(out, view, settings);
	add_pareto(out, view, settings);
	add_samples(out, view, settings);
	loom__html_metrics(out, view);
	add_workers(out, view);
	loom__html_missing(out, view);
	loom__html_environment(out, view);
	loom__html_conf(out, view);
	loom__html_command(out, view);
	loom__html_data(out, view);
}

void loom__report_html(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings)
{
	struct loom__text body = {0};
	add_body(&body, view, settings);
	loom__text_add(out,
		       "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		       "style-src 'unsafe-inline'; script-src 'sha256-%s'; base-uri 'none'; "
		       "form-action 'none'\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		       "<meta name=\"color-scheme\" content=\"light dark\">\n",
		       loom__html_script_hash);
	loom__markup_add(out, "<title>%s \xc2\xb7 gpuloom %s</title>\n", *view->title ? view->title : "gpuloom",
			 kind_name[view->kind]);
	loom__text_add(out, "<style>\n%s%s</style>\n</head>\n<body>\n", loom__plot_style, loom__html_style);
	add_header(out, view);
	loom__html_headline(out, view);
	add_facts(out, view);
	loom__html_notices(out, view);
	add_nav(out, loom__must_text(&body));
	loom__markup_move(out, &body);
	loom__text_add(out,
		       "</main>\n<footer>Intervals are at 95 %% and valid for any distribution; values have "
		       "four significant digits. Created by gpuloom %s from the data in this file.</footer>\n"
		       "<script>%s</script>\n</body>\n</html>\n",
		       LOOM_VERSION_TEXT, loom__html_script);
}
