/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU as a device: options and descriptor. */
#include "driver.h"

static const char *const worker_choices[] = {"block", "warp", NULL};

static const struct loom_opt rows[] = {
    GPU_OPTIONS,
    LOOM_OPT(struct gpu_options, lanes, LOOM_OPT_U32, "32",
	     "Threads per worker, a multiple of 32. A worker of one warp needs no barrier of the block, so the "
	     "scheduler takes the least time. More lanes suit tasks that use them.",
	     .min = 32, .max = 1024),
    LOOM_OPT(struct gpu_options, worker, LOOM_OPT_ENUM, "block",
	     "block: a worker is a thread block. warp: a worker is a warp, and several workers share a block, so that "
	     "the limit of resident blocks matters less.",
	     .choices = worker_choices),
    GPU_OPTION_AS(group, "warps", .type = LOOM_OPT_U32, .dflt = "4", .help = "worker = warp: workers per thread block.",
		  .min = 1, .max = 32),
    LOOM_OPT(struct gpu_options, arch, LOOM_OPT_STR, "",
	     "Architecture to compile for, as in sm_90. Empty: that of this GPU."),
    LOOM_OPT(struct gpu_options, carveout, LOOM_OPT_U32, "100",
	     "Shared memory of a multiprocessor, in percent of its largest size; the rest is cache, which also holds "
	     "loads in flight. If blocks need more, the driver provides more, or they do not fit.",
	     .max = 100),
    GPU_OPTION_AS(compiler, "nvrtc", .type = LOOM_OPT_PATH, .dflt = "",
		  .help = "Path of the run-time compiler, libnvrtc.so. Empty: where toolkits install it."),
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

static const struct loom_device_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .doctor = doctor,
    GPU_DEVICE_OPS,
    .energy = cuda_energy,
};

LOOM_PLUGIN_DEFINE(DEVICE, "device_cuda", "0.1.0", "Apache-2.0",
		   "NVIDIA GPUs: workers are thread blocks or warps of one persistent kernel", .opts = rows,
		   .opts_size = sizeof(struct gpu_options), .ops = &ops)
