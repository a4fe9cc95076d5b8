/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the origin of a result: effective options with their places, plug-ins, and devices. */
#include <stdio.h>
#include <stdlib.h>

#include "run/engine.h"

static int add_option(void *arg, const struct loom__effective *e)
{
	char name[200], at[400];
	snprintf(name, sizeof(name), "%s.%s", e->section, e->key);
	cJSON *o = loom__json_add_object(arg, name);
	loom__json_add_text(o, "value", e->value);
	loom__json_add_text(o, "written", e->shown ? e->shown : "");
	loom__json_add_text(o, "source",
				loom__source_name(e->entry ? e->entry->source : LOOM_FROM_DEFAULT));
	if (e->entry && e->entry->file) {
		if (e->entry->line)
			snprintf(at, sizeof(at), "%s:%d", e->entry->file, e->entry->line);
		else
			snprintf(at, sizeof(at), "%s", e->entry->file);
		loom__json_add_text(o, "at", at);
	}
	if (e->row && e->row->dflt)
		loom__json_add_text(o, "default", e->row->dflt);
	return 0;
}

static void add_plugins(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = loom__json_add_array(about, "plugins");
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind == LOOM_DEVICE && i > 0 && s->plan.choice[i - 1].plugin == c->plugin)
			continue;
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "kind", loom__kind_name(c->kind));
		loom__json_add_text(o, "name", c->plugin->name);
		loom__json_add_text(o, "version", c->plugin->version);
		loom__json_add_text(o, "path", c->path);
	}
}

static void add_devices(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = loom__json_add_array(about, "devices");
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom_device_shape *shape = &s->shape[d];
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "name", shape->name);
		loom__json_add_number(o, "first_worker", shape->first_worker);
		loom__json_add_number(o, "workers", shape->workers);
		loom__json_add_number(o, "lanes", shape->lanes);
		if (shape->numa_node >= 0)
			loom__json_add_number(o, "numa_node", shape->numa_node);
	}
}

static cJSON *choices(const struct loom_stack *s)
{
	cJSON *o = cJSON_CreateObject();
	for (uint32_t i = 0; i < s->host.facts; i++)
		loom__json_add_text(o, s->host.choice[i].name, s->host.choice[i].text);
	return o;
}

void loom__result_choices(struct loom_result *r, const struct loom_stack *s)
{
	if (r->choices == s->host.fact_changes)
		return;
	r->choices = s->host.fact_changes;
	cJSON_DeleteItemFromObjectCaseSensitive(r->about, "choices");
	loom__json_add(r->about, "choices", choices(s));
}

/* Makes the part of a result that all results of a stack have in common. */
static cJSON *about_stack(const struct loom_stack *s)
{
	cJSON *about = cJSON_CreateObject();
	cJSON *version = loom__json_add_object(about, "gpuloom");
	loom__json_add_text(version, "version", loom_version());
	loom__json_add_text(about, "title", s->plan.run.title ? s->plan.run.title : "");
	loom__json_add_text(about, "workload", s->plan.run.workload ? s->plan.run.workload : "");
	if (s->host.table.ranks > 1)
		loom__json_add_number(about, "ranks", s->host.table.ranks);
	loom__config_each(s->plan.cfg, add_option, loom__json_add_object(about, "config"));
	add_plugins(about, s);
	add_devices(about, s);
	loom__json_add(about, "choices", choices(s));
	if (!loom__json_broken(about))
		return about;
	cJSON_Delete(about);
	return NULL;
}

static struct loom__about *about_create(const struct loom_stack *s)
{
	struct loom__about *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct loom__about){.about = about_stack(s), .users = 1};
	if (a->about)
		return a;
	free(a);
	return NULL;
}

void loom__about_drop(void *at)
{
	struct loom__about *a = at;
	/* Acquire and release: all reads by earlier users happen before the last user frees the data. */
	if (!a || __atomic_sub_fetch(&a->users, 1, __ATOMIC_ACQ_REL))
		return;
	cJSON_Delete(a->about);
	free(a);
}

/* Makes a result, which takes over one reference to `a`. Returns NULL if `a` is NULL or memory ran out. */
static struct loom_result *make(const struct loom_stack *s, struct loom__about *a)
{
	uint32_t workers = s->layout.workers + s->layout.remote_workers, ranks = s->layout.ranks > 1 ? s->layout.ranks : 0, at = 0;
	struct loom_result *r = calloc(1, sizeof(*r));
	uint32_t *rank = ranks ? calloc(workers, sizeof(*rank)) : NULL; /* [workers]; the rank of each worker */
	if (!a || !r || (ranks && !rank)) {
		loom__about_drop(a);
		free(r);
		free(rank);
		return NULL;
	}
	for (uint32_t i = 0; i < ranks; i++)
		for (uint32_t w = 0; w < s->rank[i].workers; w++)
			rank[at++] = i;
	*r = (struct loom_result){.status = "failed",
				  .workers = workers,
				  .rank = rank,
				  .began_ns = loom__now_ns(),
				  .began = time(NULL),
				  .about = a->about,
				  .choices = s->host.fact_changes,
				  .shared = a};
	return r;
}

struct loom_result *loom__result_create(const struct loom_stack *s)
{
	return make(s, about_create(s));
}

struct loom_result *loom__result_share(struct loom_stack *s)
{
	struct loom__about *a = s->about;
	if (!a) {
		s->about = a = about_create(s);
		s->about_drop = loom__about_drop;
	}
	/* Relaxed: the reference that the stack holds keeps the data alive during this call. */
	if (a)
		__atomic_fetch_add(&a->users, 1, __ATOMIC_RELAXED);
	return make(s, a);
}
