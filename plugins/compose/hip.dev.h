/* SPDX-License-Identifier: Apache-2.0 */
/* What the composed program needs of HIP's language, in front of kernel.dev.h. */
#define LOOM_DEVICE __device__
#define LOOM_NOINLINE __attribute__((noinline))
#define LOOM_DEVICE_CONSTANT(declaration) extern "C" { __constant__ declaration; }
#define LOOM_KERNEL                                                                                \
	extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(                          \
		LOOM_LANES * LOOM_WORKERS_PER_BLOCK, LOOM_LANES * LOOM_WORKERS_PER_BLOCK))) void
#define LOOM_BLOCK_INDEX __builtin_amdgcn_workgroup_id_x()
#define LOOM_THREAD_INDEX __builtin_amdgcn_workitem_id_x()

extern __shared__ __attribute__((aligned(16))) char loom_gpu_shared[];
#ifdef LOOM_HIP_WAVE
#define LOOM_GPU_TOGETHER NULL
#else
__shared__ struct loom_lanes loom_gpu_lanes;
#define LOOM_GPU_TOGETHER (&loom_gpu_lanes)
#endif
