/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of composed programs share this code, which selects policies and their combinations. */
#ifndef LOOM_TEST_COMPOSE_PICK_H
#define LOOM_TEST_COMPOSE_PICK_H

#include <dirent.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <unistd.h>

#include "device_common/compose/compose.h"
#include "compose_matrix.h"
#include "fake_host.h"

static const char *const compose_workloads[] = {"workload_memset", "workload_contains", "workload_fib",
						"workload_uts"};

struct names {
	char at[32][64];
	size_t count;
};

FAKE_FN int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

FAKE_FN void find_plugins(const char *prefix, struct names *out)
{
	char folder[4096];
	snprintf(folder, sizeof(folder), "%s/plugins", test_build_dir());
	DIR *dir = opendir(folder);
	out->count = 0;
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		size_t n = strlen(e->d_name);
		if (strncmp(e->d_name, prefix, strlen(prefix)) || n < 4 || n > 60 ||
		    strcmp(e->d_name + n - 3, ".so") || out->count == COUNT(out->at))
			continue;
		snprintf(out->at[out->count++], sizeof(out->at[0]), "%.*s", (int)n - 3, e->d_name);
	}
	if (dir)
		closedir(dir);
	qsort(out->at, out->count, sizeof(out->at[0]), by_name);
}

struct selection {
	const struct loom_plugin *policy[LOOM_KINDS_MAX];
	struct loom_program program;
	char constants[2048];
};

/* The device shapes of a GPU and a CPU. compose_alone has the GPU alone; in compose_noncoherent the two are
 * non-coherent. */
static const struct loom_device_shape compose_shapes[] = {{.workers = 64, .lanes = 32, .kind = LOOM_ON_GPU},
							  {.workers = 2, .lanes = 1, .kind = LOOM_ON_CPU}};
static const struct loom_layout compose_alone = {
	.size = sizeof(compose_alone), .devices = 1, .workers = 64, .device = compose_shapes};
static const struct loom_layout compose_noncoherent = {
	.size = sizeof(compose_noncoherent), .devices = 2, .workers = 66, .device = compose_shapes, .noncoherent = 1};

/* Creates the selected scheduler with these options ("a=b c=d"), and stores its constants for the program. */
FAKE_FN void pick_options_for(struct selection *s, const struct loom_layout *layout, const char *settings)
{
	const struct loom_plugin *p = s->policy[LOOM_SCHED];
	const struct loom_sched_ops *ops = p->ops;
	struct loom_error err = {0};
	void *self = NULL;
	CU_ASSERT_EQUAL_FATAL(ops->create(&fake_host, fake_settings(p, settings), &self, &err), 0);
	CU_ASSERT_EQUAL(ops->constants(self, layout, s->constants, sizeof(s->constants), &err), 0);
	s->program.constants = s->constants;
	s->program.layout = layout;
	ops->destroy(self);
}

FAKE_FN void pick_options(struct selection *s, const char *settings)
{
	pick_options_for(s, &compose_alone, settings);
}

FAKE_FN void pick(struct selection *s, const char *name)
{
	const struct loom_plugin *p = fake_load(name);
	s->policy[p->kind] = p;
	s->program.size = sizeof(s->program);
	s->program.policy = s->policy;
	if (p->kind == LOOM_WORKLOAD) {
		const struct loom_workload_dev *dev = p->dev->cpu;
		s->program.task = dev->task;
		s->program.tasks = dev->count;
	}
}

/* Returns the program of the selected policies for workers like those of `target`. */
FAKE_FN struct loom__text composed(const struct compose_target *target, struct selection *s)
{
	struct loom__text text;
	struct loom_error err = {0};
	int rc = compose_work(&fake_host, target, &s->program, &text, &err);
	if (rc)
		printf("%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return text;
}

/* Selects a detector whose third line of code does not compile. */
FAKE_FN void pick_broken(struct selection *s)
{
	static const char source[] = "LOOM_FN void term_broken_idle(struct loom_ctx *c)\n"
				     "{\n"
				     "\tno_such_function(c);\n"
				     "}\n";
	static const struct loom_device_code code = {.size = sizeof(code),
						     .source_name = "term_broken.dev.h",
						     .source = source,
						     .source_end = source + sizeof(source) - 1};
	static const struct loom_plugin broken = {.kind = LOOM_TERM, .name = "term_broken", .dev = &code};
	pick(s, "sched_static");
	pick(s, "workload_memset");
	s->policy[LOOM_TERM] = &broken;
}

/* ---- the factors: architecture, detector, workload, granularity, and options of the scheduler ---- */

enum { MATRIX_ARCH, MATRIX_TERM, MATRIX_WORKLOAD, MATRIX_WORKER };

FAKE_FN void add_factor(struct matrix *m, const char *name, const char *const *value, size_t values)
{
	struct factor *f = &m->factor[m->factors++];
	CU_ASSERT_FATAL(m->factors <= MATRIX_FACTORS && values <= MATRIX_VALUES);
	*f = (struct factor){.name = name, .values = values};
	for (size_t i = 0; i < values; i++)
		f->value[i] = value[i];
}

/* Adds the options of a scheduler that change the code of a program, with all their values. */
FAKE_FN void add_options(struct matrix *m, const struct loom_plugin *sched)
{
	static const char *const wanted[] = {"attempts", "victim", "transfer", "granularity"};
	for (size_t i = 0; i < COUNT(wanted); i++)
		for (const struct loom_opt *row = sched->opts; row && row->name; row++) {
			size_t n = 0;
			if (strcmp(row->name, wanted[i]))
				continue;
			while (row->choices[n])
				n++;
			add_factor(m, wanted[i], row->choices, n);
		}
}

struct combination {
	const char *sched;
	void (*run)(struct selection *s, const char *label, size_t arch, int warps);
};

FAKE_FN void run_combination(void *arg, const struct matrix *m, const size_t *pick_)
{
	const struct combination *c = arg;
	struct selection s = {0};
	char label[200], settings[160] = "";
	size_t n = 0, shown;
	pick(&s, c->sched);
	pick(&s, m->factor[MATRIX_TERM].value[pick_[MATRIX_TERM]]);
	const char *workload = m->factor[MATRIX_WORKLOAD].value[pick_[MATRIX_WORKLOAD]];
	const char *worker = m->factor[MATRIX_WORKER].value[pick_[MATRIX_WORKER]];
	/* Labels omit common prefixes, so sched_mgws becomes mgws. */
	shown = (size_t)snprintf(label, sizeof(label), "%s %s %s %s", strchr(c->sched, '_') + 1,
				 strchr(s.policy[LOOM_TERM]->name, '_') + 1, strchr(workload, '_') + 1, worker);
	for (size_t f = MATRIX_WORKER + 1; f < m->factors; f++) {
		const char *value = m->factor[f].value[pick_[f]];
		n += (size_t)snprintf(settings + n, sizeof(settings) - n, "%s=%s ", m->factor[f].name, value);
		shown += (size_t)snprintf(label + shown, sizeof(label) - shown, " %s", value);
	}
	pick_options(&s, settings);
	pick(&s, workload);
	c->run(&s, label, pick_[MATRIX_ARCH], !strcmp(worker, "warp"));
}

/* Runs the combinations of these parts (MATRIX_...). */
FAKE_FN void each_combination(const char *const *arch, size_t archs, int parts,
			      void (*run)(struct selection *s, const char *label, size_t arch, int warps))
{
	static const char *const workers[] = {"block", "warp"};
	struct names scheds, terms;
	const char *term[COUNT(terms.at)];
	size_t tried = 0, all = 0;
	find_plugins("sched_", &scheds);
	find_plugins("term_", &terms);
	CU_ASSERT(scheds.count && terms.count);
	for (size_t i = 0; i < terms.count; i++)
		term[i] = terms.at[i];
	for (size_t i = 0; i < scheds.count; i++) {
		struct combination c = {scheds.at[i], run};
		struct matrix m = {.factors = 0};
		add_factor(&m, "arch", arch, archs);
		add_factor(&m, "term", term, terms.count);
		add_factor(&m, "workload", compose_workloads, COUNT(compose_workloads));
		add_factor(&m, "worker", workers, COUNT(workers));
		add_options(&m, fake_load(scheds.at[i]));
		tried += matrix_each(&m, parts, run_combination, &c);
		all += matrix_cells(&m);
	}
	printf("  %zu of %zu combinations%s\n", tried, all,
	       getenv("COMPOSE_ALL")                   ? ""
	       : parts == MATRIX_VALUE                 ? ": each value is in one of them; CHECK=rest: the other pairs"
	       : parts == (MATRIX_VALUE | MATRIX_REST) ? ": any two values meet in one of them; COMPOSE_ALL=1: all"
						       : ": the pairs that make check does not try");
}

FAKE_FN int is_for_gpus(const struct loom_plugin *p)
{
	return p->dev && p->dev->source;
}

/* Selects the first qos plug-in with device code, for workloads with service requests. */
FAKE_FN void pick_qos(struct selection *s)
{
	struct names policies;
	find_plugins("qos_", &policies);
	for (size_t i = 0; i < policies.count && !s->policy[LOOM_QOS]; i++)
		if (is_for_gpus(fake_load(policies.at[i])))
			pick(s, policies.at[i]);
}

/* Returns 1 if the trigger and the workload support a kernel launch for each step. */
FAKE_FN int has_steps(const struct selection *s)
{
	const struct loom_workload_dev *w = s->policy[LOOM_WORKLOAD]->dev->cpu;
	const struct loom_trigger_ops *t = s->policy[LOOM_TRIGGER] ? s->policy[LOOM_TRIGGER]->ops : NULL;
	return LOOM_HAS(w, step) && LOOM_HAS(t, edge);
}

FAKE_FN int has_gpu_kernel(const struct loom_plugin *w)
{
	return is_for_gpus(w) && LOOM_HAS((const struct loom_workload_dev *)w->dev->cpu, kernel);
}

/* Returns 1 if trigger j and the workload of number `net` (from 0, of `nets` workloads that use triggers) are in
 * MATRIX_VALUE: there each of these workloads and each trigger occurs at least once. */
FAKE_FN int is_first_pair(size_t net, size_t nets, size_t j, size_t triggers)
{
	return (j + net) % triggers == 0 || (net == 0 && j + nets <= triggers);
}

/* Returns 1 for workloads whose kernels take as long to compile as ten others. They are in MATRIX_REST. */
FAKE_FN int compiles_long(const char *workload)
{
	return !strcmp(workload, "workload_cg") || !strcmp(workload, "workload_fe");
}

/* Combines every workload that has a kernel of its own with the plug-ins that the workload uses: triggers, barriers, or
 * a sync. The first workload that uses triggers is combined with every trigger. Each further workload is combined with
 * two triggers, because the code of a trigger does not depend on the workload. `parts`: MATRIX_VALUE has the
 * combinations of is_first_pair(), and MATRIX_REST has the others. */
FAKE_FN void each_kernel(int parts, void (*run)(struct selection *s, const char *label))
{
	struct names workloads, triggers, barriers;
	size_t nets = 0, all_nets = 0;
	find_plugins("workload_", &workloads);
	find_plugins("trigger_", &triggers);
	find_plugins("barrier_", &barriers);
	for (size_t i = 0; i < workloads.count; i++) {
		const struct loom_plugin *w = fake_load(workloads.at[i]);
		const struct loom_workload_ops *ops = w->ops;
		all_nets += has_gpu_kernel(w) && LOOM_HAS(ops, wire);
	}
	for (size_t i = 0; i < workloads.count; i++) {
		const struct loom_plugin *w = fake_load(workloads.at[i]);
		const struct loom_workload_ops *ops = w->ops;
		if (!has_gpu_kernel(w))
			continue;
		const struct names *used = LOOM_HAS(ops, wire)						    ? &triggers
					   : LOOM_HAS(ops, needs) && ops->needs & 1u << LOOM_BARRIER ? &barriers
												     : NULL;
		nets += used == &triggers;
		for (size_t j = 0; j < (used ? used->count : 1); j++) {
			struct selection s = {0};
			char label[140];
			int first = used == &triggers ? is_first_pair(nets - 1, all_nets, j, triggers.count)
						      : !compiles_long(workloads.at[i]);
			if (!(parts & (first ? MATRIX_VALUE : MATRIX_REST)))
				continue;
			if (used == &triggers && nets > 1 && (j + nets) % triggers.count > 1)
				continue;
			pick(&s, workloads.at[i]);
			if (LOOM_HAS(ops, channels))
				pick(&s, "sync_poll");
			pick_qos(&s);
			if (LOOM_HAS(ops, needs) && ops->needs & 1u << LOOM_SCHED) {
				pick(&s, "sched_mgws");
				pick(&s, "term_counter");
			}
			snprintf(label, sizeof(label), "%s", workloads.at[i]);
			if (used) {
				if (!is_for_gpus(fake_load(used->at[j])))
					continue;
				pick(&s, used->at[j]);
				if (used == &triggers && LOOM_HAS(ops, needs) && ops->needs & 1u << LOOM_BARRIER)
					pick(&s, "barrier_auto");
				snprintf(label, sizeof(label), "%s %s", used->at[j], workloads.at[i]);
			}
			run(&s, label);
		}
	}
}

/* Runs every sync plug-in. A program that does not use the plug-in still compiles all of its code. */
FAKE_FN void each_sync(void (*run)(struct selection *s, const char *label))
{
	struct names syncs;
	find_plugins("sync_", &syncs);
	for (size_t i = 0; i < syncs.count; i++) {
		struct selection s = {0};
		if (!is_for_gpus(fake_load(syncs.at[i])))
			continue;
		pick(&s, syncs.at[i]);
		pick(&s, "sched_static");
		pick(&s, "term_counter");
		pick(&s, "workload_memset");
		run(&s, syncs.at[i]);
	}
}

/* Runs combinations for a GPU that is non-coherent with a CPU. The first combination has the default options. */
FAKE_FN void each_apart(void (*run)(struct selection *s, const char *label))
{
	static const char *const settings[] = {"", "granularity=lane", "transfer=id attempts=damping", "victim=none"};
	static const char *const terms[] = {"term_hcounter", "term_tree"};
	for (size_t i = 0; i < COUNT(settings); i++) {
		struct selection s = {0};
		char label[160];
		pick(&s, "sched_mgws");
		pick(&s, terms[i & 1]);
		pick(&s, compose_workloads[COUNT(compose_workloads) - 1 - i]);
		pick_options_for(&s, &compose_noncoherent, settings[i]);
		snprintf(label, sizeof(label), "non-coherent %s %s", terms[i & 1], settings[i]);
		run(&s, label);
	}
}

/* Runs the workloads with tasks that are not in the matrix. */
FAKE_FN void each_other(void (*run)(struct selection *s, const char *label))
{
	static const struct {
		const char *workload, *settings;
		const struct loom_layout *layout;
	} others[] = {
		{"workload_makespan", "granularity=worker", &compose_noncoherent},
		{"workload_synthetic", "granularity=lane", &compose_alone},
	};
	for (size_t i = 0; i < COUNT(others); i++) {
		struct selection s = {0};
		char label[160];
		pick(&s, "sched_mgws");
		pick(&s, "term_hcounter");
		pick(&s, others[i].workload);
		pick_options_for(&s, others[i].layout, others[i].settings);
		snprintf(label, sizeof(label), "%s %s", others[i].workload, others[i].settings);
		run(&s, label);
	}
}

/* Selects a workload with these options, and appends its constants to those of the scheduler. */
FAKE_FN void pick_workload(struct selection *s, const struct loom_layout *layout, const char *name, const char *settings)
{
	struct loom_error err = {0};
	void *self = NULL;
	pick(s, name);
	const struct loom_plugin *p = s->policy[LOOM_WORKLOAD];
	const struct loom_workload_ops *ops = p->ops;
	size_t at = strlen(s->constants);
	CU_ASSERT_EQUAL_FATAL(ops->create(&fake_host, fake_settings(p, settings), &self, &err), 0);
	CU_ASSERT_EQUAL(ops->constants(self, layout, s->constants + at, sizeof(s->constants) - at, &err), 0);
	ops->destroy(self);
}

/* Combines each scheduler with workloads whose tasks are tiles. A worker has one wave (`wave` lanes) or several. In
 * MATRIX_VALUE each scheduler and each row of the table occurs once. flags: LOOM_SHAPE_* of the device. */
FAKE_FN void each_tile(uint32_t wave, int parts, uint32_t flags,
		       void (*run)(struct selection *s, const char *label, uint32_t lanes))
{
	static const struct {
		const char *workload, *settings;
		uint32_t waves;
	} tiles[] = {{"workload_ragged", "heads=32 kv_heads=8 dim=128 real=bfloat16", 4},
		     {"workload_experts", "rows=64 block=16", 4},
		     {"workload_experts", "rows=32 block=8 real=float16", 1},
		     {"workload_ragged", "heads=8 kv_heads=8 dim=64", 1},
		     {"workload_ragged", "heads=64 kv_heads=8 dim=128 real=float16", 8}};
	struct names scheds;
	find_plugins("sched_", &scheds);
	for (size_t i = 0; i < scheds.count; i++)
		for (size_t k = 0; k < COUNT(tiles); k++) {
			struct loom_device_shape shape = {
			    .workers = 64, .lanes = tiles[k].waves * wave, .kind = LOOM_ON_GPU, .flags = flags};
			struct loom_layout layout = compose_alone;
			struct selection s = {0};
			char label[160];
			if (k && k != 1 + i % (COUNT(tiles) - 1))
				continue; /* every scheduler runs the first row and one further row */
			if (!(parts & (!k == !i ? MATRIX_VALUE : MATRIX_REST)))
				continue;
			layout.device = &shape;
			pick(&s, scheds.at[i]);
			pick(&s, "term_counter");
			pick_options_for(&s, &layout, "");
			pick_workload(&s, &layout, tiles[k].workload, tiles[k].settings);
			snprintf(label, sizeof(label), "%s %s %u lanes", scheds.at[i], tiles[k].workload, shape.lanes);
			run(&s, label, shape.lanes);
		}
}

#endif
