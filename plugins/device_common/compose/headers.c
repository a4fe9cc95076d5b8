/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of the device layer as text. Run-time compilers open no files, so a back end passes them this text. */
#include "compose.h"

LOOM_EMBED(text_error, "gpuloom/error.h");
LOOM_EMBED(text_plugin, "gpuloom/plugin.h");
LOOM_EMBED(text_task, "gpuloom/task.h");
LOOM_EMBED(text_device, "gpuloom/device.h");
LOOM_EMBED(text_sched, "gpuloom/sched.h");
LOOM_EMBED(text_term, "gpuloom/term.h");
LOOM_EMBED(text_sync, "gpuloom/sync.h");
LOOM_EMBED(text_barrier, "gpuloom/barrier.h");
LOOM_EMBED(text_trigger, "gpuloom/trigger.h");
LOOM_EMBED(text_qos, "gpuloom/qos.h");
LOOM_EMBED(text_workload, "gpuloom/workload.h");
LOOM_EMBED(text_comm, "gpuloom/comm.h");
LOOM_EMBED(text_types, "gpuloom/dev/types.h");
LOOM_EMBED(text_ctx, "gpuloom/dev/ctx.h");
LOOM_EMBED(text_dev, "gpuloom/dev/dev.h");
LOOM_EMBED(text_gpu_layer, "gpuloom/dev/gpu.h");
LOOM_EMBED(text_cpu, "gpuloom/dev/cpu.h");
LOOM_EMBED(text_futex, "gpuloom/dev/futex.h");
LOOM_EMBED(text_libc, "gpuloom/dev/libc.h");
LOOM_EMBED(text_layer, "gpuloom/dev/layer.h");
LOOM_EMBED(text_gpu_ir_layer, "gpuloom/dev/gpu_ir.h");
LOOM_EMBED(text_probe, "gpuloom/dev/probe.h");
LOOM_EMBED(text_after, "gpuloom/dev/after.h");
LOOM_EMBED(text_trace, "gpuloom/dev/trace.h");
LOOM_EMBED(text_collective, "gpuloom/dev/collective.h");
LOOM_EMBED(text_gpu, "gpu.dev.h");
LOOM_EMBED(text_collective_kernel, "collective.dev.h");
LOOM_EMBED(text_kernel, "kernel.dev.h");
LOOM_EMBED(text_quick, "quick.dev.h");
LOOM_EMBED(text_gpu_ir, "ir.dev.h");
LOOM_EMBED(text_ir, "gpuloom/dev/ir.h");

/* The names under which a header can be included. A run-time compiler compares them with the text of an #include. */
#define TOP(name)                                                                                                      \
	{"gpuloom/" #name ".h", text_##name}, {#name ".h", text_##name},                                               \
	{                                                                                                              \
		"../" #name ".h", text_##name                                                                          \
	}
#define DEV(name)                                                                                                      \
	{"gpuloom/dev/" #name ".h", text_##name}, {"dev/" #name ".h", text_##name},                                    \
	{                                                                                                              \
#name ".h", text_##name                                                                                \
	}

static const struct compose_header headers[] = {
    TOP(error),
    TOP(plugin),
    TOP(task),
    TOP(device),
    TOP(sched),
    TOP(term),
    TOP(sync),
    TOP(barrier),
    TOP(trigger),
    TOP(qos),
    TOP(workload),
    TOP(comm),
    DEV(types),
    DEV(ctx),
    DEV(dev),
    DEV(cpu),
    DEV(futex),
    DEV(libc),
    DEV(layer),
    DEV(probe),
    DEV(after),
    DEV(trace),
    DEV(collective),
    DEV(ir),
    {"gpu.h", text_gpu_layer},
    {"gpuloom/dev/gpu.h", text_gpu_layer},
    {"dev/gpu.h", text_gpu_layer},
    {"gpuloom/dev/gpu_ir.h", text_gpu_ir_layer},
    {"gpu.dev.h", text_gpu},
    {"collective.dev.h", text_collective_kernel},
    {"kernel.dev.h", text_kernel},
    {"quick.dev.h", text_quick},
    {"ir.dev.h", text_gpu_ir},
};

const struct compose_header *compose_headers(size_t *n)
{
	*n = sizeof(headers) / sizeof(headers[0]);
	return headers;
}
