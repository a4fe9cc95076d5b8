/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's keywords for composed programs. Included before kernel.dev.h. */
#define LOOM_DEVICE __device__
#define LOOM_NOINLINE __noinline__
#define LOOM_GPU_CONSTANT __grid_constant__
#define LOOM_DEVICE_CONSTANT(declaration) extern "C" { __constant__ declaration; }
#ifndef LOOM_GPU_WATCH_LANES
#define LOOM_GPU_WATCH_LANES 0
#endif
#define LOOM_KERNEL                                                                                \
	extern "C" __global__ void __launch_bounds__(                                                   \
		LOOM_LANES * LOOM_WORKERS_PER_BLOCK + LOOM_GPU_WATCH_LANES, LOOM_BLOCKS)
#define LOOM_BLOCK_INDEX blockIdx.x
#define LOOM_THREAD_INDEX threadIdx.x

extern __shared__ __align__(16) char loom_gpu_shared[];
#if LOOM_LANES == 32
#define LOOM_GPU_TOGETHER NULL
#else
__shared__ struct loom_lanes loom_gpu_lanes;
#define LOOM_GPU_TOGETHER (&loom_gpu_lanes)
#endif
