/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of composed programs share: which policies there are, and their combinations. */
#ifndef LOOM_TEST_COMPOSE_PICK_H
#define LOOM_TEST_COMPOSE_PICK_H

#include <dirent.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>

#include "compose/compose.h"
#include "fake_host.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
	const struct loom_plugin *policy[LOOM_KINDS];
	struct loom_program program;
	char constants[2048];
};

/* A GPU alone; and beside a CPU with which it cannot change the same word. */
static const struct loom_device_shape compose_shapes[] = {{.workers = 64, .lanes = 32, .kind = LOOM_ON_GPU},
							  {.workers = 2, .lanes = 1, .kind = LOOM_ON_CPU}};
static const struct loom_layout compose_alone = {
	.size = sizeof(compose_alone), .devices = 1, .workers = 64, .device = compose_shapes};
static const struct loom_layout compose_apart = {
	.size = sizeof(compose_apart), .devices = 2, .workers = 66, .device = compose_shapes, .apart = 1};

/* The selected scheduler with these options ("a=b, c=d"): the constants of the program. */
FAKE_FN void pick_options_for(struct selection *s, const struct loom_layout *layout, const char *settings)
{
	const struct loom_plugin *p = s->policy[LOOM_SCHED];
	const struct loom_sched_ops *ops = p->ops;
	struct loom_error err = {0};
	char copy[200];
	void *self = NULL, *opts = fake_alloc(&fake_host, p->opts_size);
	snprintf(copy, sizeof(copy), "%s", settings);
	fake_options(p, opts, copy);
	CU_ASSERT_EQUAL_FATAL(ops->create(&fake_host, opts, &self, &err), 0);
	CU_ASSERT_EQUAL(ops->constants(self, layout, s->constants, sizeof(s->constants), &err), 0);
	s->program.constants = s->constants;
	ops->destroy(self);
	fake_free(&fake_host, opts);
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

/* Every scheduler with every termination detector and each workload. */
FAKE_FN void each_combination(void (*run)(struct selection *s, const char *label))
{
	struct names scheds, terms;
	find_plugins("sched_", &scheds);
	find_plugins("term_", &terms);
	CU_ASSERT(scheds.count && terms.count);
	for (size_t i = 0; i < scheds.count; i++)
		for (size_t j = 0; j < terms.count; j++)
			for (size_t k = 0; k < COUNT(compose_workloads); k++) {
				struct selection s = {0};
				char label[200];
				pick(&s, scheds.at[i]);
				pick(&s, terms.at[j]);
				pick_options(&s, "");
				pick(&s, compose_workloads[k]);
				snprintf(label, sizeof(label), "%s %s %s", scheds.at[i], terms.at[j],
					 compose_workloads[k]);
				run(&s, label);
			}
}

FAKE_FN int is_for_gpus(const struct loom_plugin *p)
{
	return p->dev && p->dev->source;
}

/* The first that has device code, for those who ask for services. */
FAKE_FN void pick_qos(struct selection *s)
{
	struct names policies;
	find_plugins("qos_", &policies);
	for (size_t i = 0; i < policies.count && !s->policy[LOOM_QOS]; i++)
		if (is_for_gpus(fake_load(policies.at[i])))
			pick(s, policies.at[i]);
}

/* Every workload that brings a kernel of its own, with what it uses: each trigger, or a sync. */
FAKE_FN void each_kernel(void (*run)(struct selection *s, const char *label))
{
	struct names workloads, triggers;
	find_plugins("workload_", &workloads);
	find_plugins("trigger_", &triggers);
	for (size_t i = 0; i < workloads.count; i++) {
		const struct loom_plugin *w = fake_load(workloads.at[i]);
		const struct loom_workload_dev *dev = w->dev ? w->dev->cpu : NULL;
		const struct loom_workload_ops *ops = w->ops;
		if (!is_for_gpus(w) || !LOOM_HAS(dev, kernel))
			continue;
		for (size_t j = 0; j < (LOOM_HAS(ops, wire) ? triggers.count : 1); j++) {
			struct selection s = {0};
			char label[140];
			pick(&s, workloads.at[i]);
			if (LOOM_HAS(ops, channels))
				pick(&s, "sync_poll");
			pick_qos(&s);
			snprintf(label, sizeof(label), "%s", workloads.at[i]);
			if (LOOM_HAS(ops, wire)) {
				if (!is_for_gpus(fake_load(triggers.at[j])))
					continue;
				pick(&s, triggers.at[j]);
				snprintf(label, sizeof(label), "%s %s", triggers.at[j], workloads.at[i]);
			}
			run(&s, label);
		}
	}
}

/* Every sync: a program that uses none of it still compiles all of its code. */
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

/* The work-stealing scheduler's policies: each victim once with each grain; the others' combinations
 * with one victim. COMPOSE_ALL=1: all of them. */
FAKE_FN void each_policy(void (*run)(struct selection *s, const char *label))
{
	static const char *const overflows[] = {"two_atomics", "damping"};
	static const char *const victims[] = {"random", "biased", "local", "neighbour", "none"};
	static const char *const transfers[] = {"body", "id"}, *const grains[] = {"worker", "lane"};
	for (size_t i = 0; i < COUNT(victims) * 8; i++) {
		const char *overflow = overflows[i & 1], *transfer = transfers[i >> 1 & 1];
		const char *grain = grains[i >> 2 & 1], *victim = victims[i / 8];
		char settings[160];
		struct selection s = {0};
		if (i / 8 && (i & 3) != (i / 8 & 3) && !getenv("COMPOSE_ALL"))
			continue;
		snprintf(settings, sizeof(settings), "overflow=%s victim=%s transfer=%s grain=%s", overflow,
			 victim, transfer, grain);
		pick(&s, "sched_mgws");
		pick(&s, "term_counter");
		pick(&s, i & 1 ? "workload_fib" : "workload_uts");
		pick_options(&s, settings);
		run(&s, settings);
	}
}

/* Beside a CPU, over a link without atomic read-modify-writes: the first with the defaults. */
FAKE_FN void each_apart(void (*run)(struct selection *s, const char *label))
{
	static const char *const settings[] = {"", "grain=lane", "transfer=id overflow=damping", "victim=none"};
	static const char *const terms[] = {"term_hcounter", "term_tree"};
	for (size_t i = 0; i < COUNT(settings); i++) {
		struct selection s = {0};
		char label[160];
		pick(&s, "sched_mgws");
		pick(&s, terms[i & 1]);
		pick(&s, compose_workloads[COUNT(compose_workloads) - 1 - i]);
		pick_options_for(&s, &compose_apart, settings[i]);
		snprintf(label, sizeof(label), "apart %s %s", terms[i & 1], settings[i]);
		run(&s, label);
	}
}

#endif
