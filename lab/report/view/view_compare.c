/* SPDX-License-Identifier: Apache-2.0 */
/* Reads gpuloom.compare/1 into a view. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/view.h"
#include "facts/must.h"

static const char *const words[] = {"FASTER", "SLOWER", "EQUIVALENT", "TRIVIAL", "INCONCLUSIVE"};

static void add_variant(struct loom__view *view, const cJSON *o)
{
	struct loom__variant *v = &view->variant[view->variants++];
	const cJSON *result = loom__json_object(o, "result"), *level;
	loom__view_fill(view, v, result);
	v->level = loom__arena_get(&view->arena, view->factors, sizeof(*v->level));
	cJSON_ArrayForEach(level, loom__json_object(o, "varied"))
	{
		size_t f = loom__view_number(&view->factor_names, level);
		if (f != LOOM__NO_NAME)
			v->level[f] = loom__view_scalar(view, level);
	}
	v->name = loom__json_text(o, "name");
	v->label = loom__json_text(o, "label");
	if (!*v->name)
		v->name = loom__view_levels(view, v, 1);
	if (!*v->label)
		v->label = *v->name ? v->name : "variant";
	if (!*v->name)
		v->name = v->label;
}

/* Sets the position of each sample in the interleaved run. The k-th entry of a variant in the schedule is its k-th
 * sample. A schedule that does not match the samples is ignored. */
static void use_schedule(struct loom__view *view)
{
	const cJSON *item, *schedule = loom__json_list(view->head, "schedule");
	size_t *seen = loom__arena_get(&view->arena, view->variants, sizeof(*seen));
	if (!schedule)
		return;
	for (int pass = 0; pass < 2; pass++) {
		double place = 0;
		memset(seen, 0, view->variants * sizeof(*seen));
		cJSON_ArrayForEach(item, schedule)
		{
			double v = loom__json_double(item);
			if (!(v >= 0 && v < (double)view->variants))
				return;
			struct loom__variant *variant = &view->variant[(size_t)v];
			size_t row = seen[(size_t)v]++;
			if (pass && row < variant->rows)
				variant->order[row] = place;
			place++;
		}
		/* An interrupted run may have planned more samples than it took, but never fewer. */
		for (size_t v = 0; !pass && v < view->variants; v++)
			if (seen[v] < view->variant[v].rows)
				return;
	}
}

static size_t index_of(const cJSON *o, const char *key, size_t n)
{
	double i = loom__json_number(o, key);
	return i >= 0 && i < (double)n && i == floor(i) ? (size_t)i : SIZE_MAX;
}

/* Returns the notes as one text. */
static const char *join_notes(struct loom__view *view, const cJSON *list)
{
	struct loom__text t = {0};
	const cJSON *note;
	cJSON_ArrayForEach(note, list)
	{
		loom__text_add(&t, "%s%s", t.length ? "; " : "", loom__json_string(note));
	}
	const char *copy = loom__arena_copy(&view->arena, loom__must_text(&t));
	loom__text_free(&t);
	return copy;
}

static void add_comparison(struct loom__view *view, const cJSON *o)
{
	struct loom__compared *c = &view->compared[view->comparisons];
	*c = (struct loom__compared){
	    .name = loom__json_text(o, "metric"),
	    .unit = loom__json_text(o, "unit"),
	    .baseline = index_of(o, "baseline", view->variants),
	    .variant = index_of(o, "variant", view->variants),
	    .effect = loom__json_number(o, "effect"),
	    .low = loom__json_number(o, "low"),
	    .high = loom__json_number(o, "high"),
	    .p = loom__json_number(o, "p"),
	    .p_holm = loom__json_number(o, "p_holm"),
	    .margin = loom__json_number(o, "margin"),
	    .blocks = loom__json_number(o, "blocks"),
	    .more_blocks = loom__json_number(o, "more_blocks"),
	    .word = loom__json_text(o, "verdict"),
	    .notes = join_notes(view, loom__json_list(o, "notes")),
	};
	if (c->baseline == SIZE_MAX || c->variant == SIZE_MAX)
		return; /* the entry refers to a variant that does not exist */
	c->better = loom__better_named(loom__json_text(o, "better"));
	c->metric = loom__names_find(&view->metric_names, c->name);
	if (c->metric != LOOM__NO_NAME && !c->better)
		c->better = view->metric[c->metric].better;
	for (c->verdict = 0; c->verdict < LOOM__V_OTHER; c->verdict++)
		if (!strcmp(c->word, words[c->verdict]))
			break;
	c->effect = c->effect > 0 ? c->effect : NAN; /* ratios are positive; any other value is an error in the file */
	c->low = c->low > 0 ? c->low : NAN;
	c->high = c->high > 0 ? c->high : NAN;
	c->margin = c->margin >= 0 && c->margin < 10 ? c->margin : NAN;
	const cJSON *r, *ratios = loom__json_list(o, "ratios");
	c->ratio = loom__view_numbers(view, loom__json_length(ratios));
	cJSON_ArrayForEach(r, ratios)
	{
		if (c->ratio)
			c->ratio[c->ratios++] = loom__json_double(r);
	}
	view->comparisons++;
}

void loom__view_add_compare(struct loom__view *view)
{
	const cJSON *o, *variants = loom__json_list(view->head, "variants");
	const cJSON *comparisons = loom__json_list(view->head, "comparisons");
	view->variant = loom__arena_get(&view->arena, loom__json_length(variants), sizeof(*view->variant));
	view->compared = loom__arena_get(&view->arena, loom__json_length(comparisons), sizeof(*view->compared));
	cJSON_ArrayForEach(o, variants)
	{
		loom__view_name_factors(view, loom__json_object(o, "varied"));
		loom__view_name_metrics(view, loom__json_object(o, "result"), loom__json_text(o, "label"));
	}
	cJSON_ArrayForEach(o, variants)
	{
		add_variant(view, o);
	}
	if (view->too_large)
		return;
	use_schedule(view);
	cJSON_ArrayForEach(o, comparisons)
	{
		add_comparison(view, o);
	}
	if (!*view->title && view->variants)
		view->title = loom__json_text(view->variant[0].result, "title");
	if (!*view->title && view->variants) { /* a workload outside of the plug-in folders has the name of its file */
		const char *workload = loom__json_text(view->variant[0].result, "workload"),
			   *slash = strrchr(workload, '/');
		view->title = slash ? slash + 1 : workload;
	}
}
