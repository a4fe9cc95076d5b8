/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/plan.h"

#include "stack/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/workload.h>

/* ---- the core's own options ---------------------------------------------------------------- */

struct gpuloom_opts {
	const char *plugin_path;
};
static const struct loom_opt gpuloom_rows[] = {
	LOOM_OPT(struct gpuloom_opts, plugin_path, LOOM_OPT_STR, "",
			 "Folders with plug-ins, separated by ':' and relative to the conf file. They are searched "
			 "before the installed ones. A backslash before a ':' makes it part of a path.",
			 .flags = LOOM__OPT_FOLDERS),
	{0},
};

static const char *const tasks_choices[] = {"own", "shared", NULL}; /* the index is an enum loom__tasks */

static const struct loom_opt run_rows[] = {
	LOOM_OPT(struct loom__run_opts, workload, LOOM_OPT_STR, "",
			 "The workload: the name of its plug-in. Empty: tasks come from the embedding program.",
			 .flags = LOOM__OPT_FILE),
	LOOM_OPT(struct loom__run_opts, devices, LOOM_OPT_STR, NULL,
			 "Devices that run workers, as in 'cpu:0 cpu:1': device plug-ins, each with the number of "
			 "the engine. A backslash before a blank or comma makes it part of a path.",
			 .flags = LOOM_OPT_REQUIRED | LOOM__OPT_FILES),
	LOOM_OPT(struct loom__run_opts, title, LOOM_OPT_STR, "", "A line about this run, shown in its results."),
	LOOM_OPT(struct loom__run_opts, samples, LOOM_OPT_U32, "5",
			 "Timed executions of the workload.", .min = 1, .max = 1e6),
	LOOM_OPT(struct loom__run_opts, warmup, LOOM_OPT_U32, "1",
			 "Executions before the samples: verified, but not counted.", .min = 0, .max = 1e6),
	LOOM_OPT(struct loom__run_opts, timeout, LOOM_OPT_TIME, "60s",
			 "Longest time of one execution, without the verification of its result. An execution that takes "
			 "longer is ended.", .min = 1e6, .max = 1e14),
	LOOM_OPT(struct loom__run_opts, time_limit, LOOM_OPT_TIME, "0",
			 "Longest time of the whole run. After it no sample begins, and a verification in progress is "
			 "ended. 0: no limit.", .min = 0, .max = 1e15),
	LOOM_OPT(struct loom__run_opts, ranks, LOOM_OPT_U32, "1",
			 "Number of ranks that `gpuloom run` starts without -n. On simulated devices they are threads of "
			 "one process, else processes.", .min = 1, .max = 65536),
	LOOM_OPT(struct loom__run_opts, tasks, LOOM_OPT_ENUM, "own",
			 "With several ranks, own: each rank runs all tasks by itself; shared: the ranks run one set "
			 "of tasks together, and idle workers steal from other ranks.", .choices = tasks_choices),
	LOOM_OPT(struct loom__run_opts, joules, LOOM_OPT_BOOL, "no",
			 "Whether samples also report joules: the energy that CPU packages and GPUs consumed meanwhile, with "
			 "that of other programs. Samples should take a second or more."),
	LOOM_OPT(struct loom__run_opts, seed, LOOM_OPT_U64, "1",
			 "Seed of all random choices: the same seed gives the same choices."),
	{0},
};

struct use_opts {
	const char *use;
};
#define USE_ROWS(kind, help_, flags_)                                                              \
	static const struct loom_opt use_##kind[] = {                                              \
		LOOM_OPT(struct use_opts, use, LOOM_OPT_STR, "", help_, .flags = flags_), {0}}
USE_ROWS(transport, "The memory that devices share: the name of a transport plug-in.", LOOM__OPT_FILE);
USE_ROWS(sched, "The scheduler, which gives tasks to workers: the name of its plug-in.", LOOM__OPT_FILE);
USE_ROWS(term, "The detector that tells workers that all work is done: the name of its plug-in.", LOOM__OPT_FILE);
USE_ROWS(sync, "The way in which consumers wait for producers: the name of a sync plug-in.", LOOM__OPT_FILE);
USE_ROWS(barrier, "The barrier of workers: the name of its plug-in.", LOOM__OPT_FILE);
USE_ROWS(trigger, "The mechanism by which workers start network operations: the name of a trigger plug-in.", LOOM__OPT_FILE);
USE_ROWS(qos, "Policies for service requests, in the order of the pipeline: names of qos plug-ins.", LOOM__OPT_FILES);

static const struct loom__core_section core_sections[] = {
	{"gpuloom", gpuloom_rows, "the framework itself"},
	{"run", run_rows, "what is run, where and how often"},
	{"transport", use_transport, "shared memory"},
	{"scheduler", use_sched, "distribution of tasks"},
	{"termination", use_term, "detection of the end"},
	{"sync", use_sync, "waiting for data"},
	{"barrier", use_barrier, "meeting points"},
	{"trigger", use_trigger, "network operations"},
	{"qos", use_qos, "service requests"},
};

const struct loom__core_section *loom__core_sections(size_t *n)
{
	*n = LOOM__COUNT(core_sections);
	return core_sections;
}

/* ---- choosing -------------------------------------------------------------------------------- */

struct planner {
	struct loom_config *cfg;
	const struct loom__plan_hooks *hooks;
	struct loom__plan *plan;
	struct loom__diag *diag;
	size_t lacking; /* number of errors about plug-ins that this build left out, which are no mistakes of the user */
	int failed;	/* memory ran out */
};

/* Reports a mistake at the place of the value of section.key, which may come from any source. */
static void mistake_at(struct planner *p, const char *section, const char *key, const char *text)
{
	const struct loom__entry *e = loom__config_get(p->cfg, section, key);
	loom__diag_add(p->diag, 0, e ? e->file : NULL, e ? e->line : 0, e ? e->value_column : 0, "%s", text);
}

/* Finds, probes and loads a plug-in. The caller frees *path. */
static int load(struct planner *p, enum loom_kind kind, const char *name, char **path,
		const struct loom_plugin **plugin, struct loom_error *err)
{
	int rc = loom__plugin_find(&p->plan->search, kind, name, path, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < p->plan->choices; i++) /* another device of the same plug-in, which was probed before */
		if (!strcmp(p->plan->choice[i].path, *path)) {
			*plugin = p->plan->choice[i].plugin;
			return 0;
		}
	if (p->hooks && p->hooks->probe)
		rc = p->hooks->probe(p->hooks->arg, *path, err);
	if (!rc)
		rc = loom__plugin_load(*path, kind, plugin, err);
	if (rc) {
		free(*path);
		*path = NULL;
	}
	return rc;
}

static void section_of(const struct loom__choice *c, char *section, size_t size)
{
	snprintf(section, size, "%s.%s", loom__kind_section(c->kind), loom__plugin_short(c->plugin));
}

/* Adds a choice for `name`, which is the value of section.key or a word of it. */
static struct loom__choice *choose(struct planner *p, enum loom_kind kind, const char *name,
				   const char *section, const char *key)
{
	struct loom_error err;
	char *path = NULL;
	const struct loom_plugin *plugin = NULL;
	int rc = load(p, kind, name, &path, &plugin, &err);
	if (rc) {
		size_t before = p->diag->errors;
		mistake_at(p, section, key, err.text);
		if (rc == LOOM_EUNAVAIL)
			p->lacking += p->diag->errors - before;
		return NULL;
	}
	struct loom__choice *list = loom__more(p->plan->choice, p->plan->choices, sizeof(*list));
	if (!list) {
		free(path);
		p->failed = 1;
		return NULL;
	}
	p->plan->choice = list;
	struct loom__choice *c = &list[p->plan->choices++];
	*c = (struct loom__choice){.kind = kind, .plugin = plugin, .path = path, .instances = 1};
	snprintf(c->label, sizeof(c->label), "%s", loom__plugin_short(plugin));
	char own[96];
	section_of(c, own, sizeof(own));
	loom__config_declare(p->cfg, own, plugin->opts, plugin->name);
	return c;
}

/* Calls fn for each word of a list. */
static void each_word(const char *list, void (*fn)(struct planner *, char *), struct planner *p)
{
	char *copy = strdup(list), *rest = copy, *word;
	p->failed |= !copy;
	while (copy && (word = loom__word(&rest, " \t,")))
		fn(p, word);
	free(copy);
}

/* Adds the choice for a word of [run] devices: "cpu:1", "cpu" (which is cpu:0) or "./my.so:1". */
static void choose_device(struct planner *p, char *word)
{
	uint32_t instance = 0;
	char *colon = strrchr(word, ':');
	if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		instance = (uint32_t)strtoul(colon + 1, NULL, 10);
		*colon = 0;
	}
	if (p->plan->devices == LOOM_MAX_DEVICES || instance >= LOOM_MAX_DEVICES) {
		char text[80];
		snprintf(text, sizeof(text), "at most %d devices, numbered from 0", LOOM_MAX_DEVICES);
		mistake_at(p, "run", "devices", text);
		return;
	}
	struct loom__choice *c = choose(p, LOOM_DEVICE, word, "run", "devices");
	if (!c)
		return;
	p->plan->devices++;
	c->instance = instance;
	snprintf(c->label, sizeof(c->label), "%s:%u", loom__plugin_short(c->plugin), instance);
	char own[96];
	section_of(c, own, sizeof(own) - 16);
	snprintf(own + strlen(own), 16, ".%u", instance);
	loom__config_declare(p->cfg, own, c->plugin->opts, c->plugin->name);
	for (size_t i = 0; i + 1 < p->plan->choices; i++)
		if (!strcmp(p->plan->choice[i].label, c->label)) {
			char text[120];
			snprintf(text, sizeof(text), "device '%s' is named twice", c->label);
			mistake_at(p, "run", "devices", text);
		}
}

static void choose_qos(struct planner *p, char *word)
{
	choose(p, LOOM_QOS, word, "qos", "use");
}

/* Checks the section of a plug-in that the conf does not select. Missing keys are no mistake in such a section. */
static void check_spare(struct planner *p, const char *section, const struct loom_plugin *plugin)
{
	loom__config_declare(p->cfg, section, plugin->opts, plugin->name);
	if (plugin->opts)
		loom__config_check(p->cfg, section, plugin->opts, p->diag);
}

/* Declares the options of all plug-ins of a kind. This includes the options of the sections that these plug-ins share.
 * */
static void declare_kind(struct planner *p, enum loom_kind kind)
{
	char names[LOOM__NAMES_MOST][64];
	size_t n = loom__plugin_names(&p->plan->search, kind, names, LOOM__COUNT(names));
	for (size_t i = 0; i < n; i++) {
		char *path = NULL, section[96];
		const struct loom_plugin *plugin = NULL;
		struct loom_error err;
		snprintf(section, sizeof(section), "%s.%s", loom__kind_section(kind), names[i]);
		if (!loom__config_declared(p->cfg, section) && !load(p, kind, names[i], &path, &plugin, &err))
			check_spare(p, section, plugin);
		free(path);
	}
}

/* Declares the sections of plug-ins that the conf does not select. A conf may have such sections, so that the command
 * line can vary `use`. Each section is checked against the plug-in that it names. */
static void declare_spares(struct planner *p)
{
	const char *whole;
	for (size_t i = 0; (whole = loom__config_section(p->cfg, i)); i++) {
		char section[96];
		snprintf(section, sizeof(section), "%s", whole);
		char *name = strchr(section, '.');
		if (!name || loom__config_declared(p->cfg, whole))
			continue;
		*name++ = 0;
		enum loom_kind kind = loom__kind_of_section(section);
		if (kind == LOOM_KIND_NONE)
			continue; /* loom__config_unknown() reports the section */
		char *last = strrchr(name, '.');
		if (kind == LOOM_DEVICE && last && strspn(last + 1, "0123456789") == strlen(last + 1))
			*last = 0;
		char *path = NULL;
		const struct loom_plugin *plugin = NULL;
		struct loom_error err;
		int rc = load(p, kind, name, &path, &plugin, &err);
		if (rc == LOOM_ENOENT)
			declare_kind(p, kind);
		if (rc == LOOM_ENOENT && loom__config_declared(p->cfg, whole))
			continue;
		if (rc) {
			int line = 0;
			const char *file = loom__config_section_at(p->cfg, whole, &line);
			/* if the build left the plug-in out, its options cannot be checked and have no effect */
			if (rc != LOOM_EUNAVAIL)
				loom__diag_add(p->diag, 0, file, line, 1, "[%s]: %s", whole, err.text);
			loom__config_declare(p->cfg, whole, NULL, NULL);
			loom__config_ignore(p->cfg, whole);
			continue;
		}
		check_spare(p, whole, plugin);
		free(path);
	}
}

struct unused {
	struct planner *p;
	unsigned declared; /* bit k: declare_kind() was called for kind k */
};

static int declare_unused_one(void *arg, const struct loom__entry *e)
{
	struct unused *u = arg;
	struct loom_error err;
	char section[LOOM__NAME_MOST + 1], *path = NULL;
	snprintf(section, sizeof(section), "%s", e->section);
	char *name = strchr(section, '.');
	if (name)
		*name++ = 0;
	enum loom_kind kind = loom__kind_of_section(section);
	if (kind == LOOM_KIND_NONE || u->declared & 1u << kind)
		return 0;
	if (name && !loom__plugin_find(&u->p->plan->search, kind, name, &path, &err)) {
		free(path); /* the section belongs to a plug-in that has no such option */
		return 0;
	}
	u->declared |= 1u << kind;
	declare_kind(u->p, kind);
	return 0;
}

/* Declares the keys in shared sections that belong to plug-ins that the conf does not select. */
static void declare_unused(struct planner *p)
{
	struct unused u = {.p = p};
	loom__config_each_unknown(p->cfg, declare_unused_one, &u);
}

/* Reports that check() of a plug-in rejects an option. The place is that of the option's value. section[1] is the
 * section of the device instance, which overrides section[0]; for a policy it is NULL. */
static void refused(struct planner *p, const struct loom__choice *c, const char *const *section, const struct loom_error *err)
{
	const struct loom_opt *row = c->plugin->opts;
	while (row && row->name && !(err->option && !strcmp(row->name, err->option)))
		row++;
	size_t n = section[1] ? 2 : 1;
	const struct loom__entry *at = row && row->name ? loom__config_entry(p->cfg, section, n, row) : NULL;
	loom__diag_add(p->diag, 0, at ? at->file : NULL, at ? at->line : 0, at ? at->value_column : 0, "[%s] %s",
		       section[0], err->text);
}

static void check_choice(struct planner *p, const struct loom__choice *c, const char *const *section)
{
	struct loom__host host;
	struct loom_error err = {0};
	loom__host_init(&host, NULL);
	int rc = LOOM_HAS(c->plugin, check) && c->opts ? c->plugin->check(&host.table, c->opts, &err) : 0;
	if (rc == LOOM_ENOMEM)
		p->failed = 1;
	else if (rc)
		refused(p, c, section, &err);
}

static void fill_choice(struct planner *p, struct loom__choice *c)
{
	char base[96], own[112];
	section_of(c, base, sizeof(base));
	snprintf(own, sizeof(own), "%s.%u", base, c->instance);
	const char *sections[] = {base, c->kind == LOOM_DEVICE ? own : NULL};
	size_t before = p->diag->errors, size = c->plugin->opts_size ? c->plugin->opts_size : 1;
	c->opts = calloc(1, size);
	int rc = c->opts ? 0 : LOOM_ENOMEM;
	if (!rc && c->plugin->opts)
		rc = loom__config_fill(p->cfg, sections, c->kind == LOOM_DEVICE ? 2 : 1, c->plugin->opts,
				       c->opts, c->plugin->opts_size, p->diag);
	p->failed |= rc == LOOM_ENOMEM;
	if (rc != LOOM_ENOMEM && p->diag->errors == before) /* check() may rely on all options */
		check_choice(p, c, sections);
}

uint32_t loom__plan_needs(const struct loom_plugin *workload)
{
	const struct loom_workload_ops *ops = workload ? workload->ops : NULL;
	const struct loom_workload_dev *dev = workload ? workload->dev->cpu : NULL;
	uint32_t needs = LOOM_HAS(ops, needs) ? ops->needs : 0;
	needs |= LOOM_HAS(ops, wire) ? 1u << LOOM_TRIGGER : 0;
	needs |= LOOM_HAS(ops, channels) ? 1u << LOOM_SYNC : 0;
	needs |= LOOM_HAS(ops, tenants) ? 1u << LOOM_QOS : 0;
	/* Workers that run the workload's kernel need no scheduler. */
	needs |= LOOM_HAS(dev, kernel) ? 0 : 1u << LOOM_SCHED | 1u << LOOM_TERM;
	return needs | 1u << LOOM_TRANSPORT;
}

static void need(struct planner *p, const struct loom_plugin *workload, enum loom_kind kind)
{
	if (loom__plan_get(p->plan, kind))
		return;
	const struct loom__entry *e = loom__config_get(p->cfg, loom__kind_section(kind), "use");
	if (e && *e->value)
		return; /* the conf names a plug-in that cannot be used, and this was reported */
	const char *section = loom__kind_section(kind);
	int own = workload && kind != LOOM_TRANSPORT;
	/* If the key has an empty value, the mistake is there. Unset variables in compose files give such values. */
	loom__diag_add(p->diag, 0, e ? e->file : NULL, e ? e->line : 0, e ? e->value_column : 0,
		       "%s%s%s%s%sno %s is selected: %s [%s] (`gpuloom list %s` shows what there is)",
		       e ? "the value is empty: " : "", own ? loom__plugin_short(workload) : "", own ? " needs a " : "", own ? section : "",
		       own ? ", and " : "", section,
		       e ? "give a name, or leave this out and add 'use = NAME' to" : "add 'use = NAME' to", section,
		       loom__kind_name(kind));
}

/* Ignores [sweep] and [sweep.SECTION], which belong to the command, because a plan is for one run. */
static void leave_studies(struct loom_config *cfg)
{
	const char *name;
	for (size_t i = 0; (name = loom__config_section(cfg, i)); i++)
		if (!strcmp(name, "sweep") || !strncmp(name, "sweep.", 6))
			loom__config_ignore(cfg, name);
}

int loom__plan_create(struct loom_config *cfg, const struct loom__plan_hooks *hooks,
		      struct loom__plan *plan, struct loom__diag *diag)
{
	*plan = (struct loom__plan){.cfg = cfg};
	struct planner p = {.cfg = cfg, .hooks = hooks, .plan = plan, .diag = diag};
	struct gpuloom_opts own = {0};
	struct loom_error err;

	for (size_t i = 0; i < LOOM__COUNT(core_sections); i++)
		loom__config_declare(cfg, core_sections[i].name, core_sections[i].rows, NULL);
	const char *section = "gpuloom";
	loom__config_fill(cfg, &section, 1, gpuloom_rows, &own, sizeof(own), diag);
	section = "run";
	loom__config_fill(cfg, &section, 1, run_rows, &plan->run, sizeof(plan->run), diag);
	if (loom__search_create(own.plugin_path && *own.plugin_path ? own.plugin_path : NULL, &plan->search, &err)) {
		mistake_at(&p, "gpuloom", "plugin_path", err.text);
		goto fail;
	}

	if (hooks && hooks->sections)
		hooks->sections(hooks->arg, cfg, diag);
	else
		leave_studies(cfg);
	if (plan->run.devices)
		each_word(plan->run.devices, choose_device, &p);
	for (size_t i = 0; i < plan->choices; i++) {
		uint32_t same = 0;
		for (size_t j = 0; j < plan->choices; j++)
			same += plan->choice[j].plugin == plan->choice[i].plugin;
		plan->choice[i].instances = same;
	}
	for (int kind = LOOM_TRANSPORT; kind < LOOM_WORKLOAD; kind++) {
		struct use_opts use = {0};
		section = loom__kind_section(kind);
		for (size_t i = 0; i < LOOM__COUNT(core_sections); i++)
			if (!strcmp(core_sections[i].name, section))
				loom__config_fill(cfg, &section, 1, core_sections[i].rows, &use, sizeof(use), diag);
		if (!use.use || !*use.use)
			continue;
		if (kind == LOOM_QOS)
			each_word(use.use, choose_qos, &p);
		else
			choose(&p, kind, use.use, section, "use");
	}
	if (plan->run.workload && *plan->run.workload)
		choose(&p, LOOM_WORKLOAD, plan->run.workload, "run", "workload");

	declare_spares(&p);
	declare_unused(&p);
	loom__config_unknown(cfg, diag);
	for (size_t i = 0; i < plan->choices; i++)
		fill_choice(&p, &plan->choice[i]);
	const struct loom__choice *w = loom__plan_get(plan, LOOM_WORKLOAD);
	/* also 1 if the named workload is unusable, which was reported */
	int named = plan->run.workload && *plan->run.workload;
	uint32_t needs = w || !named ? loom__plan_needs(w ? w->plugin : NULL) : 1u << LOOM_TRANSPORT;
	for (unsigned kind = 1; kind < LOOM_KINDS; kind++)
		if (needs & 1u << kind)
			need(&p, w ? w->plugin : NULL, kind);
	/* If memory ran out, some sections and keys are missing, so errors about them would be wrong. */
	if (p.failed || loom__config_broken(cfg)) {
		loom__diag_free(diag);
		loom__diag_add(diag, 0, NULL, 0, 0, "out of memory");
		loom__plan_free(plan);
		return LOOM_ENOMEM;
	}
	if (!diag->errors)
		return 0;
fail:
	loom__plan_free(plan);
	return p.lacking && p.lacking == diag->errors ? LOOM_EUNAVAIL : LOOM_EINVAL;
}

void loom__plan_free(struct loom__plan *plan)
{
	for (size_t i = 0; i < plan->choices; i++) {
		free(plan->choice[i].path);
		free(plan->choice[i].opts);
	}
	free(plan->choice);
	loom__search_free(&plan->search);
	*plan = (struct loom__plan){0};
}

const struct loom__choice *loom__plan_get(const struct loom__plan *plan, enum loom_kind kind)
{
	for (size_t i = 0; i < plan->choices; i++)
		if (plan->choice[i].kind == kind)
			return &plan->choice[i];
	return NULL;
}

int loom__op_end(const struct loom__choice *choice, const char *op, int rc, struct loom_error *err)
{
	if (rc <= 0 && (!rc || rc == LOOM_EAGAIN || !err || *err->text))
		return rc;
	return LOOM__FAIL(err, rc < 0 ? rc : LOOM_EPLUGIN, "%s: %s() returned %d (%s) without a reason: report it to its author",
			  choice->plugin->name, op, rc, loom_strerror(rc));
}
