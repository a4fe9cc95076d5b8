/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU as a device: options and descriptor. */
#include "driver.h"

static const struct loom_opt rows[] = {
    GPU_OPTIONS,
    LOOM_OPT(struct gpu_options, arch, LOOM_OPT_STR, "",
	     "Architecture to compile for, as in sm_90. Empty: that of this GPU."),
    GPU_COMPILER("nvrtc", "Path of the run-time compiler, libnvrtc.so. Empty: where toolkits install it."),
    {.name = NULL},
};

static int create(const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self,
		  struct loom_error *err)
{
	return gpu_create(host, &cuda_driver, sizeof(struct cuda), opts, instance, instances, self, err);
}

static void doctor(const struct loom_host *host, struct loom_doctor *out)
{
	struct cuda cuda = {0};
	gpu_doctor(&cuda.gpu, &cuda_driver, host, out);
}

static const struct loom_device_hardware hardware = {sizeof(hardware), .energy = cuda_energy, .time_slicing = gpu_time_slicing,
							.facts = gpu_facts, .throttled = gpu_throttled};
static const struct loom_extension extensions[] = {GPU_EXTENSIONS, LOOM_EXTENSION(hardware, &hardware), {NULL, NULL}};
static const struct loom_device_ops ops = {
    .size = sizeof(ops), .create = create, .doctor = doctor, GPU_DEVICE_OPS, .extensions = extensions};

LOOM_PLUGIN_DEFINE(DEVICE, "device_cuda", "0.1.0", "Apache-2.0",
		   "NVIDIA GPUs: workers are thread blocks or warps of one persistent kernel", .opts = rows,
		   .opts_size = sizeof(struct gpu_options), .ops = &ops)
