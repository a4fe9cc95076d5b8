/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's keywords for composed programs. Included before kernel.dev.h. */
#define LOOM_DEVICE __device__
#define LOOM_NOINLINE __attribute__((noinline))
#define LOOM_DEVICE_CONSTANT(declaration) extern "C" { __constant__ declaration; }
#define LOOM_HIP_THREADS (LOOM_LANES * LOOM_WORKERS_PER_BLOCK)
/* A kernel that is also launched with smaller blocks defines it again: a smaller block than the attribute says is undefined. */
#define LOOM_THREADS_LEAST LOOM_HIP_THREADS
/* The wavefronts of LOOM_BLOCKS blocks share the registers of the four SIMDs of a multiprocessor. The attribute limits
 * registers so that these wavefronts fit. */
#define LOOM_KERNEL                                                                                \
	extern "C" __global__ __attribute__((                                                      \
		amdgpu_flat_work_group_size(LOOM_THREADS_LEAST, LOOM_HIP_THREADS),                 \
		amdgpu_waves_per_eu((LOOM_BLOCKS * LOOM_HIP_THREADS / LOOM_HIP_WAVEFRONT + 3) / 4))) void
#define LOOM_BLOCK_INDEX __builtin_amdgcn_workgroup_id_x()
#define LOOM_THREAD_INDEX __builtin_amdgcn_workitem_id_x()

/* All shared memory is dynamic. It begins with the words for barriers of lanes. Compilers up to ROCm 5 place dynamic
 * memory after the static memory of the compiled function. A called function has less static memory than the kernel, so
 * with static memory in the kernel it would compute other addresses. */
extern __shared__ __attribute__((aligned(16))) char loom_gpu_dynamic[];
#ifdef LOOM_HIP_WAVE
#define loom_gpu_shared loom_gpu_dynamic
#define LOOM_GPU_TOGETHER NULL
#else
#define loom_gpu_shared (loom_gpu_dynamic + LOOM_HIP_LANES_BYTES)
#define LOOM_GPU_TOGETHER ((struct loom_lanes *)loom_gpu_dynamic)
#endif
