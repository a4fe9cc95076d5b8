/* SPDX-License-Identifier: Apache-2.0 */
/* An AMD GPU as a device: options and descriptor. */
#include "runtime.h"

static const struct loom_opt rows[] = {
    GPU_OPTIONS,
    LOOM_OPT(struct gpu_options, arch, LOOM_OPT_STR, "",
	     "Architecture to compile for, as in gfx90a. Empty: that of this GPU."),
    GPU_COMPILER("hiprtc", "Path of the run-time compiler, libhiprtc.so. Empty: where ROCm installs it."),
    {.name = NULL},
};

static int create(const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self,
		  struct loom_error *err)
{
	return gpu_create(host, &hip_driver, sizeof(struct hip), opts, instance, instances, self, err);
}

static void doctor(const struct loom_host *host, struct loom_doctor *out)
{
	struct hip hip = {0};
	gpu_doctor(&hip.gpu, &hip_driver, host, out);
}

static const struct loom_device_hardware hardware = {.size = sizeof(hardware), .time_slicing = gpu_time_slicing,
							.facts = gpu_facts, .throttled = gpu_throttled};
static const struct loom_extension extensions[] = {GPU_EXTENSIONS, LOOM_EXTENSION(hardware, &hardware), {NULL, NULL}};
static const struct loom_device_ops ops = {
    .size = sizeof(ops), .create = create, .doctor = doctor, GPU_DEVICE_OPS, .extensions = extensions};

LOOM_PLUGIN_DEFINE(DEVICE, "device_hip", "0.1.0", "Apache-2.0",
		   "AMD GPUs: workers are blocks or wavefronts of one persistent kernel; not yet run on such a GPU",
		   .opts = rows, .opts_size = sizeof(struct gpu_options), .ops = &ops)
