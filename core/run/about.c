/* SPDX-License-Identifier: Apache-2.0 */
/* What a result says about how it came to be: effective options with origin, plug-ins, devices. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "run/build.h"
#include "run/engine.h"
#include "run/environment.h"
#include "run/hash.h"

static int add_option(void *arg, const struct loom__effective *e)
{
	char name[200], at[400];
	snprintf(name, sizeof(name), "%s.%s", e->section, e->key);
	cJSON *o = cJSON_AddObjectToObject(arg, name);
	if (!o)
		return LOOM_ENOMEM;
	cJSON_AddStringToObject(o, "value", e->value);
	cJSON_AddStringToObject(o, "written", e->shown ? e->shown : "");
	cJSON_AddStringToObject(o, "source",
				loom__source_name(e->entry ? e->entry->source : LOOM_FROM_DEFAULT));
	if (e->entry && e->entry->file) {
		if (e->entry->line)
			snprintf(at, sizeof(at), "%s:%d", e->entry->file, e->entry->line);
		else
			snprintf(at, sizeof(at), "%s", e->entry->file);
		cJSON_AddStringToObject(o, "at", at);
	}
	if (e->row && e->row->dflt)
		cJSON_AddStringToObject(o, "default", e->row->dflt);
	return 0;
}

static void add_plugins(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = cJSON_AddArrayToObject(about, "plugins");
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind == LOOM_DEVICE && i > 0 && s->plan.choice[i - 1].plugin == c->plugin)
			continue;
		cJSON *o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "kind", loom__kind_name(c->kind));
		cJSON_AddStringToObject(o, "name", c->plugin->name);
		cJSON_AddStringToObject(o, "version", c->plugin->version);
		cJSON_AddStringToObject(o, "path", c->path);
		char digest[LOOM__HASH_TEXT];
		struct loom_error err;
		if (loom__hash_file(c->path, digest, &err))
			loom__fact_none(o, "sha256", "%s", err.text);
		else
			cJSON_AddStringToObject(o, "sha256", digest);
		cJSON_AddItemToArray(list, o);
	}
}

static void add_devices(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = cJSON_AddArrayToObject(about, "devices");
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom_device_shape *shape = &s->shape[d];
		cJSON *o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "name", shape->name);
		cJSON_AddNumberToObject(o, "first_worker", shape->first_worker);
		cJSON_AddNumberToObject(o, "workers", shape->workers);
		cJSON_AddNumberToObject(o, "lanes", shape->lanes);
		if (shape->numa_node >= 0)
			cJSON_AddNumberToObject(o, "numa_node", shape->numa_node);
		cJSON_AddItemToArray(list, o);
	}
}

void loom__build_revision(cJSON *gpuloom)
{
	if (*LOOM_BUILD_REVISION)
		cJSON_AddStringToObject(gpuloom, "revision", LOOM_BUILD_REVISION);
	else
		loom__fact_none(gpuloom, "revision", "not built in a git checkout");
}

struct loom_result *loom__result_create(const struct loom_stack *s)
{
	struct loom_result *r = calloc(1, sizeof(*r));
	cJSON *about = cJSON_CreateObject();
	if (!r || !about)
		goto fail;
	r->status = "failed";
	r->workers = s->layout.workers;
	r->began_ns = loom__now_ns();
	r->about = about;

	char when[32];
	time_t now = time(NULL);
	struct tm utc;
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	cJSON *version = cJSON_AddObjectToObject(about, "gpuloom");
	cJSON_AddStringToObject(version, "version", loom_version());
	loom__build_revision(version);
	cJSON_AddStringToObject(about, "started", when);
	cJSON_AddStringToObject(about, "title", s->plan.run.title ? s->plan.run.title : "");
	cJSON_AddStringToObject(about, "workload", s->plan.run.workload ? s->plan.run.workload : "");
	cJSON *config = cJSON_AddObjectToObject(about, "config");
	if (!version || !config || loom__config_each(s->plan.cfg, add_option, config))
		goto fail;
	add_plugins(about, s);
	add_devices(about, s);
	cJSON *environment = cJSON_AddObjectToObject(about, "environment"), *facts = loom__environment();
	if (!environment || !facts) {
		cJSON_Delete(facts);
		goto fail;
	}
	cJSON_AddItemToObject(environment, "before", facts);
	return r;
fail:
	cJSON_Delete(about);
	free(r);
	return NULL;
}

const char *loom_version(void)
{
	return LOOM_VERSION_TEXT;
}
