/* SPDX-License-Identifier: Apache-2.0 */
/* Prints figures, tables and claims: as text tables and as JSON, from which tools/papers makes docs/papers.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "papers/papers.h"
#include "report/text/grid.h"

const char *const loom__paper_state_name[LOOM__PAPER_STATES] = {
    "reproduced",        "different",   "opposite",           "undecided",
    "not like for like", "not run yet", "not to be had here", "no experiment"};

void loom__paper_judge(struct loom__paper_row *r)
{
	struct loom_error err;
	for (size_t i = 0; r->figure && i < r->figure->claims; i++) {
		struct loom__paper_claim *c = &r->claim[i];
		c->claim = &r->figure->claim[i];
		c->value = (struct loom__claim_value){NAN, NAN, NAN, 0};
		*c->error = 0;
		if (r->view && loom__claim_value(c->claim, r->view, &c->value, &err))
			snprintf(c->error, sizeof(c->error), "%s", err.text);
		c->verdict = loom__claim_judge(c->claim, &c->value);
	}
}

enum loom__paper_state loom__paper_state(const struct loom__paper_row *r)
{
	size_t n[LOOM__CLAIM_VERDICTS] = {0};
	if (!r->figure)
		return strncmp(r->reason, "not here", 8) ? LOOM__PAPER_NO_EXPERIMENT : LOOM__PAPER_NOT_HERE;
	for (size_t i = 0; i < r->figure->claims; i++)
		n[r->claim[i].verdict]++;
	return n[LOOM__CLAIM_OPPOSITE]                                  ? LOOM__PAPER_OPPOSITE
	       : n[LOOM__CLAIM_SMALLER] || n[LOOM__CLAIM_LARGER]        ? LOOM__PAPER_DIFFERENT
	       : n[LOOM__CLAIM_UNDECIDED]                               ? LOOM__PAPER_UNDECIDED
	       : n[LOOM__CLAIM_SAME] || (r->view && !r->figure->claims) ? LOOM__PAPER_REPRODUCED
	       : n[LOOM__CLAIM_NOT_ALIKE]                               ? LOOM__PAPER_NOT_ALIKE
	       : *r->figure->lacks                                      ? LOOM__PAPER_NOT_HERE
									: LOOM__PAPER_NOT_RUN;
}

/* Formats a value with three significant digits, because papers give no more. */
static const char *figure(char text[32], double v)
{
	if (isnan(v))
		snprintf(text, 32, "-");
	else if (v == floor(v) && fabs(v) < 1e7)
		snprintf(text, 32, "%.0f", v);
	else
		snprintf(text, 32, "%.3g", v);
	return text;
}
#define FIGURE(v) figure((char[32]){0}, (v))

/* ---- the result of a row ----------------------------------------------------------------------------- */

static const char *model_of(const cJSON *head, const char *device)
{
	char name[80];
	snprintf(name, sizeof(name), "device.%s.model", device);
	return loom__json_text(loom__json_object(head, "choices"), name);
}

/* Appends the origin of a result, as in "NVIDIA H200; Intel Xeon; 3a793bf; 2026-11-23; 5 to 10 samples; only
 * cuda.workers=8|132". */
static void add_origin(const struct loom__paper_row *r, struct loom__text *out)
{
	const cJSON *head = r->view->head, *d;
	const cJSON *facts = loom__json_object(loom__json_object(head, "environment"), "before");
	const char *revision = loom__json_text(loom__json_object(head, "gpuloom"), "revision");
	size_t least = SIZE_MAX, most = 0;
	int simulated = loom__head_simulated(head);
	for (size_t i = 0; i < r->view->variants; i++) {
		size_t n = r->view->variant[i].rows;
		least = n && n < least ? n : least;
		most = n > most ? n : most;
	}
	cJSON_ArrayForEach(d, loom__json_list(head, "devices"))
	{
		const char *name = loom__json_text(d, "name"), *model = model_of(head, name);
		if (strncmp(name, "cpu", 3) && !simulated)
			loom__text_add(out, "%s; ", *model ? model : name);
	}
	loom__text_add(out, "%s; %.20s; %.10s; ", simulated ? "virtual time" : loom__json_text(facts, "cpu_model"),
		       *revision ? revision : "revision not known", loom__json_text(head, "started"));
	if (least < most)
		loom__text_add(out, "%zu to ", least);
	loom__text_add(out, "%zu sample%s", most, most == 1 ? "" : "s");
	if (loom__json_length(loom__json_list(head, "warnings")) && !simulated)
		loom__text_add(out, "; the machine was not quiet");
	cJSON_ArrayForEach(d, loom__json_list(head, "constraints")) /* a run that was cut short */
	    if (*loom__json_text(d, "only")) loom__text_add(out, "; only %s", loom__json_text(d, "only"));
}

/* ---- terminal ---------------------------------------------------------------------------------------- */

static const char *summary(const struct loom__paper_row *r)
{
	const char *text = r->reason ? strchr(r->reason, ':') : NULL;
	return text ? text + 2 : r->figure ? r->figure->shows : "";
}

int loom__paper_gpus(const struct loom__paper_row *r)
{
	const char *needs = r->figure ? r->figure->needs : "";
	return !strcmp(needs, "two-gpus") ? 2 : !strcmp(needs, "gpu");
}

void loom__papers_list(const struct loom__catalogue *c, const struct loom__paper_row *row, size_t rows, int gpus,
		       struct loom__text *out)
{
	for (size_t p = 0; p < c->papers; p++) {
		struct loom__grid g = {0};
		size_t n = 0;
		loom__grid_columns(&g, "|state|here|#takes|shows");
		for (size_t i = 0; i < rows; i++) {
			const struct loom__paper_row *r = &row[i];
			if (r->paper != p)
				continue;
			n++;
			loom__grid_cell(&g, 0, "%s", r->label);
			loom__grid_cell(&g, 0, "%s", loom__paper_state_name[loom__paper_state(r)]);
			loom__grid_cell(&g, 0, "%s",
					!r->figure                    ? ""
					: loom__paper_gpus(r) <= gpus ? "runs"
					: *r->figure->cpu             ? "--cpu"
								      : "no");
			loom__grid_cell(&g, 0, "%s", r->takes);
			loom__grid_cell(&g, 0, "%s", summary(r));
		}
		if (!n) {
			loom__grid_free(&g);
			continue;
		}
		loom__text_add(out, out->length ? "\n" : "");
		loom__line_add(out, "%s: %s\n\n", c->paper[p].id, c->paper[p].title);
		loom__grid_text(&g, out, 2);
	}
}

/* Returns why the value is not the paper's, or why there is none. */
static const char *reason_of(const struct loom__paper_claim *c)
{
	switch (c->verdict) {
	case LOOM__CLAIM_UNDECIDED:
		return c->value.samples < LOOM__CLAIM_SAMPLES ? "too few samples of a configuration"
							      : "noise: the interval allows several verdicts";
	case LOOM__CLAIM_NOT_ALIKE:
		return c->claim->incomparable;
	case LOOM__CLAIM_SAME:
		return "";
	default:
		if (isnan(c->value.at) && (*c->claim->incomparable || !*c->error))
			return c->claim->incomparable;
		return *c->error ? c->error : c->claim->why;
	}
}

void loom__papers_claims(const struct loom__paper_row *r, struct loom__text *out)
{
	struct loom__grid g = {0};
	struct loom__text origin = {0};
	loom__line_add(out, "%s, %s: %s\n\n", r->figure->of, r->label, r->figure->shows);
	loom__grid_columns(&g, "claim|#paper|#here|#95 % interval|verdict|where the paper says it|reason");
	for (size_t i = 0; i < r->figure->claims; i++) {
		const struct loom__paper_claim *c = &r->claim[i];
		loom__grid_cell(&g, 0, "%s", c->claim->name);
		loom__grid_cell(&g, 0, "%s", c->claim->paper);
		loom__grid_cell(&g, 0, "%s", FIGURE(c->value.at));
		loom__grid_cell(&g, 0, "%s%s%s", FIGURE(c->value.low), isnan(c->value.at) ? "" : " .. ",
				isnan(c->value.at) ? "" : FIGURE(c->value.high));
		loom__grid_cell(&g, 0, "%s", loom__claim_verdict_name[c->verdict]);
		loom__grid_cell(&g, 0, "%s", c->claim->place);
		loom__grid_cell(&g, 0, "%s", reason_of(c));
	}
	loom__grid_text(&g, out, 2);
	if (*r->figure->unlike)
		loom__line_add(out, "\n  unlike the paper: %s\n", r->figure->unlike);
	if (r->view) {
		add_origin(r, &origin);
		loom__line_add(out, "  measured: %s\n", loom__must_text(&origin));
	} else {
		loom__line_add(out, "  there is no result yet\n");
	}
	loom__text_free(&origin);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void add_texts(cJSON *o, const char *const text[][2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		loom__json_add_text(o, text[i][0], text[i][1]);
}

static void add_claim(cJSON *o, const struct loom__paper_claim *c)
{
	const char *const text[][2] = {{"name", c->claim->name},   {"claim", c->claim->text},
				       {"paper", c->claim->paper}, {"verdict", loom__claim_verdict_name[c->verdict]},
				       {"error", c->error},        {"place", c->claim->place},
				       {"reason", reason_of(c)}};
	add_texts(o, text, LOOM__COUNT(text));
	loom__json_add_finite(o, "low", c->claim->low);
	loom__json_add_finite(o, "high", c->claim->high);
	loom__json_add_finite(o, "neutral", c->claim->neutral);
	loom__json_add_finite(o, "here", c->value.at);
	loom__json_add_finite(o, "here_low", c->value.low);
	loom__json_add_finite(o, "here_high", c->value.high);
}

static void add_row(cJSON *o, const struct loom__paper_row *r)
{
	static const struct loom__figure none = {.says = "", .needs = "", .unlike = "", .lacks = "", .part = ""};
	const struct loom__figure *f = r->figure ? r->figure : &none;
	const char *const text[][2] = {{"label", r->label},
				       {"state", loom__paper_state_name[loom__paper_state(r)]},
				       {"shows", summary(r)},
				       {"says", f->says},
				       {"conf", r->conf ? r->conf : ""},
				       {"needs", f->needs},
				       {"takes", r->takes},
				       {"unlike", f->unlike},
				       {"lacks", f->lacks},
				       {"number", f->numbers ? f->number[0] : ""},
				       {"part", f->part},
				       {"result", r->file}};
	add_texts(o, text, LOOM__COUNT(text));
	cJSON *list = loom__json_add_array(o, "claims");
	for (size_t i = 0; i < f->claims; i++)
		add_claim(loom__json_append_object(list), &r->claim[i]);
}

cJSON *loom__papers_json(const struct loom__catalogue *c, const struct loom__paper_row *row, size_t rows)
{
	cJSON *doc = cJSON_CreateObject();
	loom__json_add_text(doc, "schema", "gpuloom.papers/1");
	cJSON *papers = loom__json_add_array(doc, "papers");
	for (size_t p = 0; p < c->papers; p++) {
		const struct loom__paper *of = &c->paper[p];
		const char *const text[][2] = {{"id", of->id},
					       {"title", of->title},
					       {"authors", of->authors},
					       {"where", of->where},
					       {"url", of->url}};
		cJSON *o = loom__json_append_object(papers), *list;
		add_texts(o, text, LOOM__COUNT(text));
		list = loom__json_add_array(o, "rows");
		for (size_t i = 0; i < rows; i++)
			if (row[i].paper == p)
				add_row(loom__json_append_object(list), &row[i]);
	}
	return doc;
}
