/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: the plug-ins that a conf selects, found, loaded and with their options filled. A plan needs no device, so
 * `config check` and `config show` stop here. */
#ifndef LOOM_PLAN_H
#define LOOM_PLAN_H

#include "config/config.h"
#include "plugin/registry.h"

struct loom__run_opts {
	const char *workload; /* "": the embedding program submits tasks */
	const char *devices;
	const char *title;
	uint32_t samples, warmup;
	uint64_t timeout;    /* ns per sample */
	uint64_t time_limit; /* ns for the whole run; 0: none */
	uint64_t seed;
	uint32_t ranks;
	uint32_t tasks; /* enum loom__tasks */
};
enum loom__tasks { LOOM__TASKS_OWN, LOOM__TASKS_SHARED };

/* One selected plug-in. A device has an entry per instance. */
struct loom__choice {
	enum loom_kind kind;
	const struct loom_plugin *plugin;
	char *path;
	void *opts; /* plugin->opts_size bytes, filled */
	uint32_t instance, instances;
	char label[48]; /* "cpu:1", "mgws": for messages and results */
};

struct loom__plan {
	struct loom_config *cfg;
	struct loom__search search;
	struct loom__run_opts run;
	struct loom__choice *choice; /* devices first, in order; then the others by kind */
	size_t choices;
	uint32_t devices;
};

/* Hooks of the command for planning. Each may be NULL. */
struct loom__plan_hooks {
	/* Checks a plug-in in another process before this one loads it; NULL: trust the plug-in. */
	int (*probe)(void *arg, const char *path, struct loom_error *err);
	/* Declares and checks the sections that a run does not use; NULL: they are ignored. */
	void (*sections)(void *arg, struct loom_config *cfg, struct loom__diag *diag);
	void *arg;
};

/* Makes the plan, which keeps pointers into cfg, and collects all mistakes in diag. On errors *plan is empty:
 * LOOM_EUNAVAIL when all of them are plug-ins that the build left out, else LOOM_EINVAL. */
int loom__plan_create(struct loom_config *cfg, const struct loom__plan_hooks *hooks,
		      struct loom__plan *plan, struct loom__diag *diag);
void loom__plan_free(struct loom__plan *plan);

/* Returns the only choice of a kind, or NULL. */
const struct loom__choice *loom__plan_get(const struct loom__plan *plan, enum loom_kind kind);

/* The core's own sections with their rows, NULL-terminated, for docs and completion. */
struct loom__core_section {
	const char *name;
	const struct loom_opt *rows;
	const char *summary;
};
const struct loom__core_section *loom__core_sections(size_t *n);

#endif
