/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: the plug-ins that a conf selects. They are found and loaded, and their options are filled in. A plan opens
 * no device, so `config check` and `config show` make only a plan. */
#ifndef LOOM_PLAN_H
#define LOOM_PLAN_H

#include "config/config.h"
#include "plugin/registry.h"

struct loom__run_opts {
	const char *workload; /* name of the workload; "": the embedding program submits tasks */
	const char *devices;
	const char *title;
	uint32_t samples, warmup;
	uint64_t timeout;    /* ns for a sample */
	uint64_t time_limit; /* ns for the whole run; 0: no limit */
	uint64_t seed;
	uint32_t ranks;
	uint8_t joules; /* 1: samples also report the energy that devices consume */
	uint32_t tasks; /* whether ranks share tasks: enum loom__tasks */
};
enum loom__tasks { LOOM__TASKS_OWN, LOOM__TASKS_SHARED };

/* A selected plug-in. A device plug-in has an entry for each of its devices. */
struct loom__choice {
	enum loom_kind kind;
	const struct loom_plugin *plugin;
	char *path;
	void *opts;                   /* plugin->opts_size bytes with the values of all options */
	/* For a device. instance: the 1 of "cpu:1"; instances: number of selected devices that use this plug-in. */
	uint32_t instance, instances;
	char label[48];               /* name for messages and results, such as "cpu:1" or "mgws" */
};

struct loom__plan {
	struct loom_config *cfg;
	struct loom__search search;
	struct loom__run_opts run;
	struct loom__choice *choice; /* devices in the order of the conf, then the other plug-ins by kind */
	size_t choices;
	uint32_t devices;
};

/* Functions by which the command takes part in planning. Each may be NULL. */
struct loom__plan_hooks {
	/* Checks a plug-in in another process before this process loads it. NULL: plug-ins are loaded without a
	 * check. */
	int (*probe)(void *arg, const char *path, struct loom_error *err);
	/* Declares and checks the sections that a run does not use. NULL: these sections are ignored. */
	void (*sections)(void *arg, struct loom_config *cfg, struct loom__diag *diag);
	void *arg;
};

/* Makes the plan, which has pointers into cfg. Reports all mistakes to diag. After an error, *plan is empty. Returns
 * LOOM_ENOMEM if memory ran out, LOOM_EUNAVAIL if all errors are about plug-ins that the build left out, and
 * LOOM_EINVAL for other errors. */
int loom__plan_create(struct loom_config *cfg, const struct loom__plan_hooks *hooks,
		      struct loom__plan *plan, struct loom__diag *diag);
void loom__plan_free(struct loom__plan *plan);
/* Returns the kinds of plug-ins that a workload needs, as bits; of NULL: those that the tasks of a program need. */
uint32_t loom__plan_needs(const struct loom_plugin *workload);

/* Returns the first choice of a kind, or NULL. */
const struct loom__choice *loom__plan_get(const struct loom__plan *plan, enum loom_kind kind);

/* Calls an op of a plug-in. If the op fails without a reason, or with a positive number, the error names the plug-in and
 * the op. */
#define LOOM__OP(choice, op, call, err) \
	loom__op_end((choice), (op), ((void)((err) ? *(err)->text = 0 : 0), (call)), (err))
int loom__op_end(const struct loom__choice *choice, const char *op, int rc, struct loom_error *err);

/* A section that belongs to the core, for docs and completion. `rows` ends with a NULL name. */
struct loom__core_section {
	const char *name;
	const struct loom_opt *rows;
	const char *summary;
};
const struct loom__core_section *loom__core_sections(size_t *n);

#endif
