/* SPDX-License-Identifier: Apache-2.0 */
/* Composes the device code. On the CPU, it is a table of function pointers for each kind. */
#include <gpuloom/workload.h>

#include "../device_common/compose/compose.h"
#include "device_cpu.h"

void program_finish(struct device *d)
{
	d->host->free(d->host, d->program.task);
	d->program = (struct program){0};
}

int device_build(void *self, const struct loom_program *program, struct loom_error *err)
{
	struct device *d = self;
	struct program p = {.tasks = program->tasks};
	for (int kind = LOOM_SCHED; kind < LOOM_KINDS_MAX; kind++) {
		const struct loom_plugin *policy = program->policy[kind];
		if (!policy)
			continue;
		if (!policy->dev || !policy->dev->cpu)
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: %s has no device code for the CPU: choose another in its "
					 "section, or devices that it supports",
					 d->name, policy->name);
		p.table[kind] = policy->dev->cpu;
	}
	uint32_t sources = LOOM_HAS(program, source) ? program->sources : 0, missing = 0;
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		if (!program->task[tag].fn && !sources && !compose_is_ir(program, tag))
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: task function '%s' (tag %u) is not compiled for the CPU", d->name,
					 program->task[tag].name, tag);
	p.task = d->host->alloc(d->host, (program->tasks + 1u) * sizeof(*p.task));
	if (!p.task)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		p.task[tag] = program->task[tag].fn;
	int rc = object_load(d, program, &p, err);
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		missing += !p.task[tag];
	if (!rc && missing)
		rc = source_build(d, program, &p, err);
	if (rc) {
		d->host->free(d->host, p.task);
		return rc;
	}
	program_finish(d);
	d->program = p;
	return 0;
}
