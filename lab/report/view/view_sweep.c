/* SPDX-License-Identifier: Apache-2.0 */
/* Reads gpuloom.sweep/1 into a view, with one variant per configuration. The file is read twice, line by line, so that
 * a long sweep need not be in memory as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/environment.h"
#include "facts/must.h"
#include "lib/hash.h"
#include "report/view/view.h"

struct configs {
	struct loom__names key;
	size_t *rows, *at, room; /* [key.count] number of samples seen in the first and in the second pass */
};

/* The samples of a pass, named by their hashes. */
struct seen {
	struct loom__names name;
	struct loom__arena arena;
};

/* Returns 1 if the pass has met the sample before: a line that was copied, or a file that was given as a part of
 * another. */
static int again(struct seen *seen, const cJSON *line)
{
	static const char *const key[] = {"configuration", "sample", "start_ns", "metrics"};
	uint64_t hash = LOOM__FNV1A;
	size_t before = seen->name.count;
	char name[20];
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		hash = loom__json_hash(hash, cJSON_GetObjectItemCaseSensitive(line, key[i]));
	snprintf(name, sizeof(name), "%llx", (unsigned long long)hash);
	return loom__names_add(&seen->arena, &seen->name, name) < before;
}

static size_t config_of(struct loom__view *view, struct configs *configs, const cJSON *line)
{
	const char *key = loom__json_text(line, "configuration");
	size_t i = *key ? loom__names_add(&view->arena, &configs->key, key) : LOOM__NO_NAME;
	if (i != LOOM__NO_NAME && i >= configs->room) {
		size_t room = 2 * configs->room + 64;
		size_t *rows = loom__arena_get(&view->arena, 2 * room, sizeof(*rows));
		if (configs->room)
			memcpy(rows, configs->rows, configs->room * sizeof(*rows));
		configs->rows = rows;
		configs->at = rows + room;
		configs->room = room;
	}
	return i;
}

/* Returns the next line of all shards, or NULL at the end. *doc and *at start at 0. */
static cJSON *next_line(const struct loom__view *view, size_t *doc, size_t *at)
{
	for (; *doc < view->docs; ++*doc, *at = 0) {
		cJSON *line = loom__doc_line(&view->doc[*doc], at);
		if (line)
			return line;
	}
	return NULL;
}

static int is_sample(const cJSON *line)
{
	return cJSON_GetObjectItemCaseSensitive(line, "sample") != NULL;
}

/* Adds a metric of a line. A line leaves out units and directions that are empty. */
static void name_metric(struct loom__view *view, const char *name, const cJSON *line)
{
	const cJSON *units = loom__json_object(line, "units"), *better = loom__json_object(line, "better");
	loom__view_metric(view, name, units ? loom__json_text(units, name) : NULL,
			  better ? loom__json_text(better, name) : NULL,
			  &(struct loom__where){.values = loom__json_object(line, "values")});
}

static void first_pass(struct loom__view *view, struct configs *configs)
{
	const cJSON *o;
	size_t shard = 0, at = 0;
	struct seen seen = {0};
	cJSON_ArrayForEach(o, loom__json_list(view->head, "factors"))
	{
		loom__view_name_factor(view, loom__json_text(o, "key"));
	}
	for (cJSON *line; (line = next_line(view, &shard, &at)); cJSON_Delete(line)) {
		size_t i = config_of(view, configs, line);
		if (i == LOOM__NO_NAME)
			continue;
		loom__view_name_factors(view, loom__json_object(line, "values"));
		if (!is_sample(line))
			continue;
		if (again(&seen, line)) {
			view->repeated++;
			continue;
		}
		configs->rows[i]++;
		cJSON_ArrayForEach(o, loom__json_object(line, "metrics"))
		{
			if (o->string)
				name_metric(view, o->string, line);
		}
	}
	loom__arena_free(&seen.arena);
}

static void add_sample(struct loom__view *view, struct loom__variant *v, size_t row, double place, const cJSON *line)
{
	const cJSON *o;
	if (row >= v->rows)
		return;
	v->order[row] = place;
	v->start_ns[row] = loom__json_number(line, "start_ns");
	cJSON_ArrayForEach(o, loom__json_object(line, "metrics"))
	{
		size_t m = loom__view_number(&view->metric_names, o);
		struct loom__series *s = m == LOOM__NO_NAME ? NULL : &v->series[m];
		if (s && !s->value)
			loom__view_room(view, s, v->rows);
		if (s && row < s->rows)
			s->value[row] = loom__json_double(o);
	}
}

/* Updates a variant from a line. Copies what is needed into the arena, because the caller frees the line. */
static void describe(struct loom__view *view, struct loom__variant *v, const cJSON *line)
{
	const cJSON *o;
	const char *skipped = loom__json_text(line, "skipped"), *failed = loom__json_text(line, "failed");
	cJSON_ArrayForEach(o, loom__json_object(line, "values"))
	{
		size_t f = loom__view_number(&view->factor_names, o);
		if (f == LOOM__NO_NAME || v->level[f])
			continue;
		const char *value = loom__view_scalar(view, o);
		v->level[f] = value ? loom__arena_copy(&view->arena, value) : NULL;
	}
	if (*skipped || *failed) {
		v->note = loom__arena_copy(&view->arena, *skipped ? skipped : failed);
		v->status = *skipped ? "skipped" : "failed";
	} else if (is_sample(line) &&
		   !strcmp(v->status, "failed")) { /* a configuration that had failed was tried again */
		v->status = "unfinished";
		v->note = "";
	} else if (loom__json_true(line, "done")) {
		v->status = "ok";
		v->note = "";
	}
}

static void move(cJSON *to, cJSON *from, const char *key)
{
	cJSON *item = cJSON_IsObject(from) ? cJSON_DetachItemFromObjectCaseSensitive(from, key) : NULL;
	if (item)
		loom__json_add(to, key, item);
}

int loom__head_simulated(const cJSON *head)
{
	const cJSON *device = cJSON_GetArrayItem(loom__json_list(head, "devices"), 0);
	return !strncmp(loom__json_text(device, "name"), "sim:", 4);
}

/* Adds warnings about other load on the machine. Samples in virtual time do not depend on this load, so simulated
 * devices get no warning. */
static void warn(cJSON *head)
{
	const cJSON *reason, *environment = loom__json_object(head, "environment");
	cJSON *reasons = cJSON_CreateArray(), *list;
	if (!loom__head_simulated(head) && !cJSON_HasObjectItem(head, "warnings")) {
		loom__environment_disturbed(loom__json_object(environment, "before"),
					    loom__json_object(environment, "after"), reasons);
		list = loom__json_add_array(head, "warnings");
		cJSON_ArrayForEach(reason, reasons)
		{
			cJSON *one = loom__json_append_object(list);
			loom__json_add_text(one, "id", "not_quiet");
			loom__json_add_text(one, "text", loom__json_string(reason));
		}
	}
	cJSON_Delete(reasons);
}

/* Completes the head from other lines: `about` (shared by all configurations), `report` (what to show) and `ended`. If
 * there are several `about` lines, the first counts. If there are several lines of the other two kinds, the last of its
 * kind counts. */
static void complete_head(struct loom__view *view)
{
	static const char *const key[] = {"config", "plugins", "devices", "choices", "environment"};
	size_t shard = 0, at = 0;
	cJSON *head = cJSON_Duplicate(view->head, 1);
	for (cJSON *line; (line = next_line(view, &shard, &at)); cJSON_Delete(line)) {
		cJSON *about = cJSON_GetObjectItemCaseSensitive(line, "about");
		for (size_t i = 0; about && i < LOOM__COUNT(key); i++)
			if (!cJSON_HasObjectItem(head, key[i]))
				move(head, about, key[i]);
		cJSON *environment = cJSON_GetObjectItemCaseSensitive(head, "environment");
		if (loom__json_object(line, "report")) {
			cJSON_DeleteItemFromObjectCaseSensitive(head, "report");
			move(head, line, "report");
		}
		if (!cJSON_HasObjectItem(line, "ended"))
			continue;
		cJSON_DeleteItemFromObjectCaseSensitive(head, "status");
		move(head, line, "status");
		cJSON *after = cJSON_DetachItemFromObjectCaseSensitive(line, "environment");
		if (after && cJSON_IsObject(environment)) {
			cJSON_DeleteItemFromObjectCaseSensitive(environment, "after");
			loom__json_add(environment, "after", after);
		} else {
			cJSON_Delete(after);
		}
	}
	if (loom__json_list(head, "devices"))
		warn(head);
	view->own = head;
	view->head = head;
}

const cJSON *loom__view_values(const struct loom__view *view, size_t f)
{
	const cJSON *factor;
	cJSON_ArrayForEach(factor, loom__json_list(view->head, "factors"))
	{
		if (!strcmp(loom__json_text(factor, "key"), view->factor[f]))
			return loom__json_list(factor, "values");
	}
	return NULL;
}

struct placed {
	size_t
	    *place; /* [factors] index of the level in the list of each factor; LOOM__NO_NAME, the largest: not there */
	size_t factors, appeared;
	struct loom__variant variant;
};

static int compare_places(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	for (size_t f = 0; f < x->factors; f++)
		if (x->place[f] != y->place[f])
			return x->place[f] < y->place[f] ? -1 : 1;
	return x->appeared < y->appeared ? -1 : 1;
}

/* Sorts the configurations by their levels, because they ran in random order. */
static void sort_configs(struct loom__view *view)
{
	struct placed *list = loom__arena_get(&view->arena, view->variants, sizeof(*list));
	size_t *place = loom__arena_get(&view->arena, view->variants * view->factors, sizeof(*place));
	struct loom__names levels[LOOM__VIEW_FACTORS] = {{0}};
	const cJSON *value;
	for (size_t f = 0; f < view->factors; f++)
		cJSON_ArrayForEach(value, loom__view_values(view, f))
		{
			loom__names_add(&view->arena, &levels[f], loom__json_string(value));
		}
	for (size_t i = 0; i < view->variants; i++) {
		list[i] = (struct placed){place + i * view->factors, view->factors, i, view->variant[i]};
		for (size_t f = 0; f < view->factors; f++) {
			const char *level = view->variant[i].level[f];
			list[i].place[f] = level ? loom__names_find(&levels[f], level) : LOOM__NO_NAME;
		}
	}
	qsort(list, view->variants, sizeof(*list), compare_places);
	for (size_t i = 0; i < view->variants; i++)
		view->variant[i] = list[i].variant;
}

/* Sets title and caption if the sweep repeats a figure of a paper. */
static void name_figure(struct loom__view *view)
{
	const cJSON *number, *paper = loom__json_object(view->head, "paper");
	struct loom__text title = {0}, caption = {0};
	const char *unlike = loom__json_text(paper, "unlike"), *part = loom__json_text(paper, "part");
	if (!*loom__json_text(paper, "of"))
		return;
	loom__text_add(&title, "%s, %s", loom__json_text(paper, "of"), loom__json_text(paper, "kind"));
	cJSON_ArrayForEach(number, loom__json_list(paper, "numbers"))
	{
		loom__text_add(&title, "%s%s", number->prev && number->prev->next == number ? ", " : " ",
			       loom__json_string(number));
	}
	loom__text_add(&title, "%s%s%s", *part ? " (" : "", part, *part ? ")" : "");
	loom__text_add(&caption, "%s%s%s", loom__json_text(paper, "shows"), *unlike ? " Unlike the paper: " : "", unlike);
	view->title = loom__arena_copy(&view->arena, loom__must_text(&title));
	view->caption = loom__arena_copy(&view->arena, loom__must_text(&caption));
	loom__text_free(&title);
	loom__text_free(&caption);
}

void loom__view_add_sweep(struct loom__view *view)
{
	struct configs configs = {0};
	complete_head(view);
	first_pass(view, &configs);
	view->variant = loom__arena_get(&view->arena, configs.key.count, sizeof(*view->variant));
	for (size_t i = 0; i < configs.key.count; i++) {
		struct loom__variant *v = &view->variant[view->variants++];
		v->status = "unfinished";
		v->note = "";
		v->level = loom__arena_get(&view->arena, view->factors, sizeof(*v->level));
		loom__view_rows(view, v, configs.rows[i]);
	}
	size_t shard = 0, at = 0, place = 0;
	struct seen seen = {0};
	if (view->too_large)
		return;
	for (cJSON *line; (line = next_line(view, &shard, &at)); cJSON_Delete(line)) {
		size_t i = loom__names_find(&configs.key, loom__json_text(line, "configuration"));
		if (i == LOOM__NO_NAME)
			continue;
		if (is_sample(line) && !again(&seen, line))
			add_sample(view, &view->variant[i], configs.at[i]++, (double)place++, line);
		describe(view, &view->variant[i], line);
	}
	loom__arena_free(&seen.arena);
	if (!*view->title)
		view->title = loom__json_text(view->head, "workload");
	name_figure(view);
	for (size_t i = 0; i < view->variants; i++) {
		struct loom__variant *v = &view->variant[i];
		const char *label = loom__view_levels(view, v, 0), *name = loom__view_levels(view, v, 1);
		v->label = *label ? label : configs.key.name[i];
		v->name = *name ? name : v->label;
	}
	sort_configs(view);
}
