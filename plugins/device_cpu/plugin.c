/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: options, instance, descriptor. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../device_common/hostmem/hostmem.h"
#include "device_cpu.h"

static const char *const isolation_choices[] = {"thread", "process", NULL};
static const char *const pin_choices[] = {"core", "set", "no", NULL};
static const char *const wait_choices[] = {"auto", "yield", "spin", NULL};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, workers, LOOM_OPT_U32, "auto",
	     "Workers of the device. auto: one per core, limited by the CPU time that the control group grants.",
	     .max = 4096, .flags = LOOM_OPT_AUTO),
    LOOM_OPT(struct options, lanes, LOOM_OPT_U32, "1",
	     "Threads per worker. Several lanes find missing barriers; they do not make a program "
	     "faster.", .min = 1, .max = 64),
    LOOM_OPT(struct options, isolation, LOOM_OPT_ENUM, "thread",
	     "thread: workers are threads of this process. process: each device is a process, which maps shared "
	     "memory at another address.",
	     .choices = isolation_choices),
    LOOM_OPT(struct options, cores, LOOM_OPT_CPUS, "",
	     "Cores of the device, as numbered by the operating system. Empty: an equal, contiguous share of all that "
	     "this process may use."),
    LOOM_OPT(struct options, oversubscribe, LOOM_OPT_BOOL, "no",
	     "Whether there may be more workers than cores, and more devices than cores."),
    LOOM_OPT(struct options, pin, LOOM_OPT_ENUM, "core",
	     "How threads are pinned. core: worker i runs on core i of the device (with lanes > 1 on any of its "
	     "cores). set: on any of its cores. no: where the kernel puts it.",
	     .choices = pin_choices),
    LOOM_OPT(struct options, spin, LOOM_OPT_TIME, "50us",
	     "Time for which a worker spins between samples before it sleeps, if the device has more cores than "
	     "its workers use."),
    LOOM_OPT(
	struct options, wait, LOOM_OPT_ENUM, "auto",
	"How a worker waits. spin: polls. yield: yields its core between polls, for progress threads or other ranks "
	"that need it. auto: yield if workers outnumber cores, or share them with other processes, else spin.",
	.choices = wait_choices),
    LOOM_OPT(struct options, caller, LOOM_OPT_BOOL, "no",
	     "Whether the thread that calls loom_stack_run() without a result executes tasks itself, in place of the "
	     "thread of worker 0. This is faster for short runs. Tasks then use the caller's stack, core and signal "
	     "mask. If such a task does not return, the call does not, either."),
    LOOM_OPT(struct options, launch_cost, LOOM_OPT_TIME, "0",
	     "Model of a GPU's kernel launch: delay of each worker at the start of a sample and of each kernel "
	     "in it.",
	     .max = 1e9),
    LOOM_OPT(struct options, teardown_cost, LOOM_OPT_TIME, "0",
	     "Model of the end of a kernel: delay of each worker there.", .max = 1e9),
    LOOM_OPT(struct options, powercap, LOOM_OPT_PATH, "/sys/class/powercap",
	     "Folder with the energy counters of CPU packages, which [run] joules = yes reads."),
    {.name = NULL},
};

static int size_up(struct device *d, uint32_t instances, struct loom_error *err)
{
	const struct options *o = d->options;
	struct loom_machine_quota quota;
	uint32_t granted = d->cores.count;
	loom_machine_quota(&quota);
	if (quota.cpus > 0 && quota.cpus / instances < granted)
		granted = (uint32_t)ceil(quota.cpus / instances);
	d->workers = o->workers ? o->workers : granted;
	if (granted < d->cores.count && !o->workers)
		LOOM_LOG(d->host, LOOM_LOG_INFO, d->name,
			 "%u workers on %u cores: the control group grants time for %.3g CPUs", d->workers,
			 d->cores.count, quota.cpus);
	if (quota.cpus > 0 && (double)d->workers * instances > quota.cpus)
		LOOM_LOG(d->host, LOOM_LOG_WARN, d->name,
			 "%u worker%s%s in a control group that grants time for %.3g CPUs: the kernel stops all of "
			 "them when it is "
			 "used up; raise the limit (a container's --cpus)%s",
			 d->workers, d->workers == 1 ? "" : "s", instances > 1 ? " beside those of other devices" : "",
			 quota.cpus, d->workers > 1 ? ", or set workers = 1 in [device.cpu]" : "");
	d->lanes = o->lanes ? o->lanes : 1;
	if (d->workers <= d->cores.count || o->oversubscribe)
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EINVAL,
			 "%s: workers = %u on %u core%s (%s): reduce workers, name more cores with cores =, or set "
			 "oversubscribe = yes in [device.cpu]",
			 d->name, d->workers, d->cores.count, d->cores.count == 1 ? "" : "s", d->cores.text);
}

static void destroy(void *self)
{
	struct device *d = self;
	if (!d)
		return;
	if (d->launch && device_retire(d, 0, NULL) != 0)
		return; /* its threads still use this memory */
	const struct loom_host *host = d->host;
	program_finish(d);
	gate_close(&d->gate);
	cores_finish(host, &d->cores);
	host->free(host, d);
}

static int create(const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self,
		  struct loom_error *err)
{
	struct device *d = host->alloc(host, sizeof(*d));
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "cpu:%u: out of memory", instance);
	d->host = host;
	d->options = opts;
	snprintf(d->name, sizeof(d->name), "cpu:%u", instance);
	struct cores_want want = {.label = d->name,
				  .cores = d->options->cores ? d->options->cores : "",
				  .instance = instance,
				  .instances = instances,
				  .oversubscribe = d->options->oversubscribe};
	int code = cores_find(host, &want, &d->cores, err);
	if (!code)
		code = size_up(d, instances, err);
	if (!code) {
		int failed = gate_open(&d->gate, d->options->isolation == ISOLATION_PROCESS);
		if (failed)
			code = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: cannot make its gate: %s", d->name,
					 strerror(failed));
	}
	if (code) {
		destroy(d);
		return code;
	}
	LOOM_LOG(host, LOOM_LOG_INFO, d->name, "%u workers of %u lanes on cores %s, node %d", d->workers, d->lanes,
		 d->cores.text, d->cores.node);
	*self = d;
	return 0;
}

static int shape(void *self, struct loom_device_shape *shape, struct loom_error *err)
{
	const struct device *d = self;
	(void)err;
	shape->workers = d->workers;
	shape->lanes = d->lanes;
	shape->numa_node = d->cores.node;
	shape->local_bytes = LOCAL_BYTES_MAX;
	shape->kind = LOOM_ON_CPU;
	/* Only threads can stay launched between runs. A child process has a copy of its parent's memory from the time
	 * of the fork, and does not see later changes. */
	shape->flags = d->options->isolation == ISOLATION_THREAD ? LOOM_SHAPE_PERSISTENT : 0;
	shape->launch_ns = d->options->launch_cost;
	shape->teardown_ns = d->options->teardown_cost;
	return 0;
}

static const struct loom_device_hardware hardware = {.size = sizeof(hardware), .energy = device_energy};
static const struct loom_extension extensions[] = {LOOM_EXTENSION(hardware, &hardware), {NULL, NULL}};
static const struct loom_device_ops ops = {
    .size = sizeof(ops), HOST_DEVICE_OPS, .doctor = device_doctor, .extensions = extensions};

LOOM_PLUGIN_DEFINE(DEVICE, "device_cpu", "1.0.0", "Apache-2.0",
		   "The CPU: workers are pinned threads, in this process or in one per device", .opts = rows,
		   .opts_size = sizeof(struct options), .caps = LOOM_CAP_DEVICE_IS_CPU, .ops = &ops)
