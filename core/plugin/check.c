/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the tables of a plug-in. `need` lists the mandatory ops of each kind, as the kind's header defines them. */
#include "plugin/identity.h"

#include <gpuloom/barrier.h>
#include <gpuloom/device.h>
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/sync.h>
#include <gpuloom/term.h>
#include <gpuloom/transport.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct op {
	size_t offset; /* offset in the table of ops; 0, which is the offset of `size`, ends a list */
	const char *name;
};
#define OP(table, op)                                                                                                  \
	{                                                                                                              \
		offsetof(struct table, op), #op                                                                        \
	}
#define POLICY                                                                                                         \
	OP(loom_policy_ops, create), OP(loom_policy_ops, destroy), OP(loom_policy_ops, need), OP(loom_policy_ops, init)
#define END                                                                                                            \
	{                                                                                                              \
		0, NULL                                                                                                \
	}

enum dev_rule {
	DEV_NONE = 0, /* has no device code */
	DEV_MAY,      /* may have device code */
	DEV_MUST,     /* must have device code for the CPU or for GPUs */
	DEV_MUST_CPU, /* must have the table for the CPU, because GPU back ends take function names from it */
};
enum { MOST_OPS = 24 };

static const struct {
	struct op host[MOST_OPS], dev[MOST_OPS];
	enum dev_rule rule;
} need[LOOM_KINDS] = {
    [LOOM_DEVICE] = {.host = {OP(loom_device_ops, create), OP(loom_device_ops, destroy), OP(loom_device_ops, shape),
			      OP(loom_device_ops, mem_alloc), OP(loom_device_ops, mem_free),
			      OP(loom_device_ops, mem_map), OP(loom_device_ops, mem_unmap), OP(loom_device_ops, build),
			      OP(loom_device_ops, launch), OP(loom_device_ops, ready), OP(loom_device_ops, go),
			      OP(loom_device_ops, wait), OP(loom_device_ops, retire), END}},
    [LOOM_TRANSPORT] = {.host = {OP(loom_transport_ops, create), OP(loom_transport_ops, destroy),
				 OP(loom_transport_ops, segments), OP(loom_transport_ops, release), END}},
    [LOOM_SCHED] = {.host = {POLICY, END},
		    .dev = {OP(loom_sched_dev, run), OP(loom_sched_dev, spawn), END},
		    .rule = DEV_MUST},
    [LOOM_TERM] = {.host = {POLICY, END},
		   .dev = {OP(loom_term_dev, idle), OP(loom_term_dev, busy), OP(loom_term_dev, done), END},
		   .rule = DEV_MUST},
    [LOOM_SYNC] = {.host = {POLICY, OP(loom_sync_ops, channels), END},
		   .dev = {OP(loom_sync_dev, reserve), OP(loom_sync_dev, publish), OP(loom_sync_dev, wait),
			   OP(loom_sync_dev, wait_all), OP(loom_sync_dev, release), END},
		   .rule = DEV_MUST},
    [LOOM_BARRIER] = {.host = {POLICY, END},
		      .dev = {OP(loom_barrier_dev, wait), OP(loom_barrier_dev, arrive), OP(loom_barrier_dev, test),
			      OP(loom_barrier_dev, await), OP(loom_barrier_dev, missing), END},
		      .rule = DEV_MUST},
    [LOOM_TRIGGER] = {.host = {POLICY, OP(loom_trigger_ops, post), OP(loom_trigger_ops, flush), END},
		      .dev = {OP(loom_trigger_dev, fire), OP(loom_trigger_dev, fire_with),
			      OP(loom_trigger_dev, completed), OP(loom_trigger_dev, arrived),
			      OP(loom_trigger_dev, boundary), OP(loom_trigger_dev, deliver),
			      OP(loom_trigger_dev, arrived_at), END},
		      .rule = DEV_MUST},
    [LOOM_QOS] = {.host = {POLICY, END},
		  .dev = {OP(loom_qos_dev, request), OP(loom_qos_dev, wait), END},
		  .rule = DEV_MAY},
    [LOOM_WORKLOAD] = {.host = {POLICY, OP(loom_workload_ops, tasks), OP(loom_workload_ops, verify), END},
		       .dev = {END},
		       .rule = DEV_MUST_CPU},
};

/* The ops that a device with an extension must have. */
static const struct {
	const char *name;
	struct op ops[6];
} extension[] = {
    {"sharing", {OP(loom_device_sharing, mem_key), OP(loom_device_sharing, mem_open), OP(loom_device_sharing, mem_close),
		 OP(loom_device_sharing, adopt), OP(loom_device_sharing, disown), END}},
    {"kept", {OP(loom_device_kept, muster), OP(loom_device_kept, rest), OP(loom_device_kept, tally), END}},
    {"streams", {OP(loom_device_streams, enqueue), OP(loom_device_streams, captures), OP(loom_device_streams, drain),
		 OP(loom_device_streams, collective), END}},
    {"copies", {OP(loom_device_copies, copy_start), OP(loom_device_copies, copy_ended), END}},
    {"interrupts", {OP(loom_device_interrupts, interrupt), END}},
    {"hardware", {END}},
};
#undef OP
#undef POLICY
#undef END

/* Checks that the table begins with its size, and has the ops of a list. */
static int check_table(const char *path, const struct loom_plugin *p, const char *which, const void *table,
		       const struct op *ops, struct loom_error *err)
{
	const size_t *size = table;
	if (!size)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' has no %s; give LOOM_PLUGIN_DEFINE one", path,
				  p->name, which);
	if (*size < sizeof(*size))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the %s of plug-in '%s' does not begin with its size; set .size = "
				  "sizeof of its struct", path, which, p->name);
	for (const struct op *op = ops; op->offset; op++) {
		void *function = NULL;
		/* If the table ends before this op, the plug-in lacks the op. */
		if (*size >= op->offset + sizeof(function))
			memcpy(&function, (const char *)table + op->offset, sizeof(function));
		if (!function)
			return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' lacks '%s', which the %s of every %s must have; "
					  "implement it", path, p->name, op->name, which, loom__kind_section(p->kind));
	}
	return 0;
}

/* Checks the extensions that the core knows. */
static int check_extensions(const char *path, const struct loom_plugin *p, struct loom_error *err)
{
	char which[64];
	int rc = 0;
	for (size_t i = 0; i < LOOM__COUNT(extension) && !rc; i++) {
		const void *table = loom_extension_find(p->ops, extension[i].name);
		snprintf(which, sizeof(which), "extension '%s'", extension[i].name);
		rc = table ? check_table(path, p, which, table, extension[i].ops, err) : 0;
	}
	return rc;
}

/* A workload must have task functions or a kernel, because it does nothing without them. All task functions are looked
 * at here: the process that probes the plug-in may crash if the table ends early. */
static int check_workload(const char *path, const struct loom_plugin *p, const void *cpu, struct loom_error *err)
{
	const struct loom_workload_dev *w = cpu;
	if (!LOOM_HAS(w, kernel) && !(LOOM_HAS(w, task) && w->count))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' has neither task functions nor a kernel in "
				"its table of device functions; a workload must have one of them", path, p->name);
	for (uint32_t i = 0; LOOM_HAS(w, task) && i < w->count; i++)
		if (!w->task[i].name || !*w->task[i].name || !w->task[i].fn)
			return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: task function %u of %u of plug-in '%s' lacks a name or an address; correct .task "
					  "and .count of its loom_workload_dev", path, i, w->count, p->name);
	return 0;
}

static int check_device_code(const char *path, const struct loom_plugin *p, struct loom_error *err)
{
	enum dev_rule rule = need[p->kind].rule;
	const struct loom_device_code *code = p->dev;
	if (rule == DEV_NONE || (rule == DEV_MAY && !code))
		return 0;
	int rc = check_table(path, p, "device code", code, &(const struct op){0}, err);
	if (rc)
		return rc;
	int source = LOOM_HAS(code, source_end) && code->source && code->source_end > code->source;
	if (!LOOM_HAS(code, cpu) && (rule == DEV_MUST_CPU || !source))
		return LOOM__FAIL(err, LOOM_EPLUGIN,
				  "%s: plug-in '%s' has no device code for %s; set .cpu in its loom_device_code", path,
				  p->name, source ? "the CPU" : "the CPU nor for GPUs");
	if (source && !LOOM_HAS(code, source_name))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' embeds device source without .source_name, "
				"which compiler messages need; set it", path, p->name);
	if (!LOOM_HAS(code, cpu))
		return 0;
	rc = check_table(path, p, "table of device functions", code->cpu, need[p->kind].dev, err);
	return rc || p->kind != LOOM_WORKLOAD ? rc : check_workload(path, p, code->cpu, err);
}

int loom__offer_check(const char *path, const struct loom_plugin *p, struct loom_error *err)
{
	struct loom_error cause = {0};
	path = loom__shown(path);
	int rc = check_table(path, p, "ops table", p->ops, need[p->kind].host, err);
	rc = rc || p->kind != LOOM_DEVICE ? rc : check_extensions(path, p, err);
	rc = rc ? rc : check_device_code(path, p, err);
	if (!rc && p->opts && loom__rows_check(p->opts, p->opts_size, &cause))
		rc = LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' has a bad option row: %s", path, p->name,
				cause.text);
	return rc;
}
