/* SPDX-License-Identifier: Apache-2.0 */
/* Task functions that come as source. The C compiler of this machine makes a shared object from them. */
#include <dlfcn.h>
#include <gpuloom/workload.h>
#include <stdio.h>

#include "../device_common/compose/compose.h"
#include "../device_common/compose/hostcc.h"
#include "device_cpu.h"

static void write_program(const struct loom_program *program, struct loom__text *text)
{
	loom__text_add(text, "#include <gpuloom/dev/dev.h>\n"
		       "#include <gpuloom/sched.h>\n"
		       "#include <gpuloom/workload.h>\n");
	compose_sources(program, text);
	for (uint32_t tag = 0; tag < program->tasks; tag++)
		if (!program->task[tag].fn && !compose_is_ir(program, tag))
			loom__text_add(text, "loom_task_fn *const loom_task_%u = %s;\n", tag, program->task[tag].name);
}

static int find_tasks(struct device *d, void *so, const struct loom_program *program, struct program *p,
		      struct loom_error *err)
{
	char name[32];
	for (uint32_t tag = 0; tag < program->tasks; tag++) {
		if (program->task[tag].fn || compose_is_ir(program, tag))
			continue;
		snprintf(name, sizeof(name), "loom_task_%u", tag);
		loom_task_fn *const *at = dlsym(so, name);
		if (!at)
			return LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: %s is lost", d->name, name);
		p->task[tag] = *at;
	}
	return 0;
}

int source_build(struct device *d, const struct loom_program *program, struct program *p, struct loom_error *err)
{
	struct loom__text text = {0};
	void *so;
	write_program(program, &text);
	struct hostcc_want want = {.label = d->name, .what = "task functions", .text = text.at};
	int rc = text.failed ? LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name)
			     : hostcc_load(d->host, &want, &so, err);
	loom__text_free(&text);
	return rc ? rc : find_tasks(d, so, program, p, err);
}
