/* SPDX-License-Identifier: Apache-2.0 */
#include "compose.h"

#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <stdio.h>
#include <string.h>
#include "lib/identifier.h"

static const char *const kind_names[LOOM_KINDS] = {
#define KIND_NAME(NAME, file, section) [LOOM_##NAME] = #file,
    LOOM_KIND_MAP(KIND_NAME)
#undef KIND_NAME
};
static const char *const kind_sections[LOOM_KINDS] = {
#define KIND_SECTION(NAME, file, section) [LOOM_##NAME] = #section,
    LOOM_KIND_MAP(KIND_SECTION)
#undef KIND_SECTION
};

/* The order of the kinds in a program. Device code of a kind may call device code of the kinds before it. */
static const enum loom_kind order[] = {LOOM_TRIGGER, LOOM_TERM,  LOOM_BARRIER, LOOM_SYNC,
				       LOOM_QOS,     LOOM_SCHED, LOOM_WORKLOAD};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOT_SELECTED "no_%s_is_selected" /* prefix of an unselected kind's ops, which compose_lacks() finds in messages */

static const struct loom_plugin *watcher(const struct loom_program *program)
{
	const struct loom_plugin *p = program->policy[LOOM_SYNC];
	return p && LOOM_HAS(p->dev, flags) && p->dev->flags & LOOM_CODE_WATCHES ? p : NULL;
}

int compose_watches(const struct loom_program *program)
{
	return watcher(program) != NULL;
}

static int add_watcher(const struct loom_host *host, const struct compose_target *t, const struct loom_program *program,
		       struct loom__text *out, struct loom_error *err)
{
	const struct loom_plugin *p = watcher(program);
	if (!p)
		return 0;
	if (!t->watch)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: %s needs a wave of its own in each block, which this device does not have: "
				 "choose another sync",
				 t->label, p->name);
	loom__text_add(out, "#define LOOM_GPU_WATCH_LANES %u\n#define LOOM_GPU_WATCH(op) %s_##op\n", t->watch, p->name);
	return 0;
}

const char *compose_lacks(const char *message)
{
	for (size_t i = 0; i < COUNT(order); i++) {
		char name[64];
		snprintf(name, sizeof(name), NOT_SELECTED "_", kind_names[order[i]]);
		if (strstr(message, name))
			return kind_sections[order[i]];
	}
	return NULL;
}

/* alone: 1 if this device has all workers of the job. */
static void add_head(struct loom__text *out, const struct compose_target *t, int alone)
{
	if (t->defines)
		loom__text_put(out, t->defines, strlen(t->defines));
	loom__text_add(out,
		 "#define LOOM_DEVICE_LAYER <%s>\n"
		 "#define LOOM_DEVICE_COMPILE 1\n"
		 "#define LOOM_LANES %u\n"
		 "#define LOOM_WORKERS_PER_BLOCK %u\n"
		 "#define LOOM_BLOCKS %u\n"
		 "#define LOOM_NESTING_MAX %uu\n%s",
		 t->layer->name, t->lanes, t->per_block, t->blocks, t->nesting, alone ? "#define LOOM_ONE_DEVICE 1\n" : "");
	for (size_t i = 0; i < COUNT(kind_names); i++)
		if (i > LOOM_KIND_NONE && i != LOOM_TRANSPORT)
			loom__text_add(out, "#include <gpuloom/%s.h>\n", kind_names[i]);
	loom__text_add(out, "#include <gpuloom/dev/dev.h>\n"
		      "#include \"gpu.dev.h\"\n");
	loom__text_put(out, t->layer->dialect, strlen(t->layer->dialect));
}

/* Adds the source of a plug-in. Puts the plug-in's name before each file name (LOOM_CODE_FILE). */
static void add_source(struct loom__text *out, const struct loom_plugin *p)
{
	static const char mark[] = "\n#line 1 \"";
	const char *at = p->dev->source, *end = p->dev->source_end;
	while (at < end) {
		const char *next = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1);
		const char *stop = next ? next + sizeof(mark) - 1 : end;
		loom__text_put(out, at, (size_t)(stop - at));
		if (next)
			loom__text_add(out, "%s: ", p->name);
		at = stop;
	}
}

/* Defines LOOM_GPU_KINDS(X), which expands X(kind) for each selected kind. */
static void add_kinds(struct loom__text *out, const struct loom_program *program)
{
	loom__text_add(out, "#define LOOM_GPU_KINDS(X)");
	for (int kind = 0; program && kind < LOOM_KINDS_MAX; kind++)
		if (program->policy[kind])
			loom__text_add(out, " X(%d)", kind);
	loom__text_add(out, "\n");
}

static int add_policies(const struct loom_host *host, const struct compose_target *t,
			const struct loom_program *program, struct loom__text *out, struct loom_error *err)
{
	for (size_t i = 0; i < COUNT(order); i++) {
		const struct loom_plugin *p = program->policy[order[i]];
		const char *kind = kind_names[order[i]];
		if (!p) {
			loom__text_add(out, "#define LOOM_POLICY_%s " NOT_SELECTED "\n", kind, kind);
			continue;
		}
		if (!p->dev || !p->dev->source)
			return LOOM_FAIL(host, err, LOOM_ENOTSUP,
					 "%s: %s has no device code for GPUs: choose another %s, or "
					 "devices that it supports",
					 t->label, p->name, kind);
		if (!loom__is_identifier(p->name) || !p->dev->source_name)
			return LOOM_FAIL(host, err, LOOM_EPLUGIN,
					 "%s: plug-in '%s' or its device code has no valid name: use letters, digits "
					 "and underscores", t->label,
					 p->name);
		loom__text_add(out, "#define LOOM_POLICY_%s %s\n#define LOOM_SELECTS_%s 1\n", kind, p->name, kind);
	}
	add_kinds(out, program);
	const struct loom_plugin *w = program->policy[LOOM_WORKLOAD];
	if (w && LOOM_HAS((const struct loom_workload_dev *)w->dev->cpu, cost)) /* a scheduler, which comes earlier, may call it */
		loom__text_add(out, "#define LOOM_WORKLOAD_COSTS 1\nLOOM_FN uint64_t %s_cost(struct loom_ctx *, const struct loom_task *);\n",
			       w->name);
	for (size_t i = 0; i < COUNT(order); i++) {
		const struct loom_plugin *p = program->policy[order[i]];
		if (!p)
			continue;
		loom__text_add(out, "\n#line 1 \"%s: %s\"\n", p->name, p->dev->source_name);
		add_source(out, p);
		loom__text_add(out, "\n#line 1 \"gpuloom\"\n");
	}
	return 0;
}

void compose_sources(const struct loom_program *program, struct loom__text *out)
{
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		if (!program->task[tag].fn)
			loom__text_add(out, "#define LOOM_TAG_%s %u\n", program->task[tag].name, tag);
	for (uint32_t i = 0; LOOM_HAS(program, source) && i < program->sources; i++)
		loom__text_add(out, "\n#line 1 \"%s\"\n%s\n#line 1 \"gpuloom\"\n", program->source[i].file,
			 program->source[i].text);
}

/* Adds loom_gpu_dispatch(), which switches over the tags of task functions. */
static int add_tasks(const struct loom_host *host, const struct compose_target *t, const struct loom_program *program,
		     struct loom__text *out, struct loom_error *err)
{
	const struct loom_plugin *w = program->policy[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = w ? w->dev->cpu : NULL;
	uint32_t own = dev ? dev->count : 0;
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		if (compose_is_ir(program, tag))
			loom__text_add(out, "LOOM_FN void %s(struct loom_ctx *c, const struct loom_task *t);\n",
				 program->task[tag].name);
	loom__text_add(out, "LOOM_FN int loom_gpu_no_task(struct loom_ctx *c, uint32_t tag)\n"
		      "{\n"
		      "\tif (c->lane == 0)\n"
		      "\t\tloom_worker_fail(c, LOOM_EINTERNAL, tag);\n"
		      "\treturn 0;\n"
		      "}\n"
		      "LOOM_FN void loom_gpu_dispatch(struct loom_ctx *c, const struct loom_task *t)\n"
		      "{\n"
		      "\tswitch (t->tag) {\n");
	for (uint32_t tag = 0; tag < program->tasks; tag++) {
		const char *name = program->task[tag].name;
		if (tag >= own && program->task[tag].fn)
			return LOOM_FAIL(host, err, LOOM_ENOTSUP,
					 "%s: task function '%s' (tag %u) was registered for the CPU "
					 "only: GPUs run those of workload plug-ins and of sources",
					 t->label, name, tag);
		if (!loom__is_identifier(name))
			return LOOM_FAIL(host, err, LOOM_EPLUGIN, "%s: the name of task function '%s' is not a C "
				"identifier",
					 t->label, name);
		loom__text_add(out, "\tcase %u:\n\t\t%s(c, t);\n\t\tbreak;\n", tag, name);
	}
	loom__text_add(out, "\tdefault:\n"
		      "\t\tLOOM_OUTLINED(loom_gpu_no_task, c, t->tag);\n"
		      "\t}\n"
		      "}\n");
	return 0;
}

/* Adds the calls of task functions that come as IR, and the functions that these task functions call. Both follow the
 * kernel. */
static void add_ir(const struct loom_program *program, struct loom__text *out)
{
	int any = 0;
	for (uint32_t tag = 0; tag < program->tasks; tag++) {
		if (!compose_is_ir(program, tag))
			continue;
		loom__text_add(out, "%sLOOM_GPU_IR(%s)\n", any ? "" : "#include \"ir.dev.h\"\n", program->task[tag].name);
		any = 1;
	}
}

static int finish(const struct loom_host *host, const struct compose_target *t, struct loom__text *out,
		  struct loom_error *err)
{
	if (t->kernel)
		loom__text_put(out, t->kernel, strlen(t->kernel));
	else
		loom__text_add(out, "#include \"kernel.dev.h\"\n");
	if (!out->failed)
		return 0;
	return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", t->label);
}

int compose_work(const struct loom_host *host, const struct compose_target *target, const struct loom_program *program,
		 struct loom__text *out, struct loom_error *err)
{
	const struct loom_plugin *sched = program->policy[LOOM_SCHED];
	const struct loom_plugin *workload = program->policy[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = workload && workload->dev ? workload->dev->cpu : NULL;
	const struct loom_layout *layout = program->layout;
	int kernel = LOOM_HAS(dev, kernel) != 0;
	if (!sched && !kernel)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: nothing to run: no scheduler is selected, and the workload has no "
				 "kernel of its own",
				 target->label);
	*out = (struct loom__text){0};
	int rc = add_watcher(host, target, program, out, err);
	/* The headers test some of these macros, so the macros come first. */
	if (program->traced)
		loom__text_add(out, "#define LOOM_TRACED 1\n");
	if (LOOM_HAS(program, constants))
		loom__text_add(out, "%s", program->constants);
	add_head(out, target, layout && layout->devices == 1 && layout->ranks <= 1);
	if (!rc)
		rc = add_policies(host, target, program, out, err);
	if (!rc)
		compose_sources(program, out);
	if (!rc)
		rc = add_tasks(host, target, program, out, err);
	if (!rc) {
		loom__text_add(out, "#define LOOM_GPU_RUN %s_%s\n", kernel ? workload->name : sched->name,
			 kernel ? "kernel" : "run");
		if (!kernel && LOOM_HAS((const struct loom_sched_dev *)sched->dev->cpu, small))
			loom__text_add(out, "#define LOOM_GPU_SMALL %s_small\n", sched->name);
		if (target->launched)
			loom__text_add(out, "#define LOOM_GPU_STEP %s_step\n", workload->name);
		rc = finish(host, target, out, err);
	}
	if (!rc)
		add_ir(program, out);
	if (!rc && out->failed)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", target->label);
	if (rc)
		loom__text_free(out);
	return rc;
}

int compose_probe(const struct loom_host *host, const struct compose_target *target, struct loom__text *out,
		  struct loom_error *err)
{
	*out = (struct loom__text){0};
	add_head(out, target, 0);
	add_kinds(out, NULL);
	loom__text_add(out, "#include <gpuloom/dev/probe.h>\n"
		      "LOOM_FN void loom_gpu_dispatch(struct loom_ctx *, const struct loom_task *) {}\n"
		      "#define LOOM_GPU_RUN(c) loom_probe_run(c, loom_gpu.probe)\n");
	int rc = finish(host, target, out, err);
	if (rc)
		loom__text_free(out);
	return rc;
}

int compose_collective(const struct loom_host *host, const struct compose_target *target, struct loom__text *out,
		       struct loom_error *err)
{
	struct compose_target t = *target;
	t.kernel = "#include \"collective.dev.h\"\n";
	*out = (struct loom__text){0};
	add_head(out, &t, 0);
	int rc = finish(host, &t, out, err);
	if (rc)
		loom__text_free(out);
	return rc;
}
