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

/* The selected scheduler with these options ("a=b, c=d"): the constants of the program. */
FAKE_FN void pick_options(struct selection *s, const char *settings)
{
	static struct loom_device_shape shape = {.workers = 64, .lanes = 32, .kind = LOOM_ON_GPU};
	static const struct loom_layout layout = {
		.size = sizeof(layout), .devices = 1, .workers = 64, .device = &shape};
	const struct loom_plugin *p = s->policy[LOOM_SCHED];
	const struct loom_sched_ops *ops = p->ops;
	struct loom_error err = {0};
	char copy[200];
	void *self = NULL, *opts = fake_alloc(&fake_host, p->opts_size);
	snprintf(copy, sizeof(copy), "%s", settings);
	fake_options(p, opts, copy);
	CU_ASSERT_EQUAL_FATAL(ops->create(&fake_host, opts, &self, &err), 0);
	CU_ASSERT_EQUAL(ops->constants(self, &layout, s->constants, sizeof(s->constants), &err), 0);
	s->program.constants = s->constants;
	ops->destroy(self);
	fake_free(&fake_host, opts);
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

#endif
