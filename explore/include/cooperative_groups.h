/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups, as far as `gpuloom explore` knows them: the block, the grid, tiles of lanes. */
#ifndef LOOM_EXPLORE_COOPERATIVE_GROUPS_H
#define LOOM_EXPLORE_COOPERATIVE_GROUPS_H

#include <cuda_runtime.h>

namespace cooperative_groups {
struct thread_block {
	static void sync(EXPLORE_AT("thread_block::sync")) { explore_barrier(&at, 0, 0, 1); }
	static uint32_t size() { return blockDim.x * blockDim.y * blockDim.z; }
	static uint32_t num_threads() { return size(); }
	static uint32_t thread_rank()
	{
		return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	}
	static dim3 group_index() { return blockIdx; }
	static dim3 thread_index() { return threadIdx; }
};
static inline thread_block this_thread_block() { return {}; }

struct grid_group {
	static void sync(EXPLORE_AT("grid_group::sync")) { explore_grid_barrier(&at); }
	static bool is_valid() { return true; }
	static uint32_t num_blocks() { return gridDim.x * gridDim.y * gridDim.z; }
	static uint32_t block_rank() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
	static uint64_t size() { return (uint64_t)num_blocks() * thread_block::size(); }
	static uint64_t thread_rank() { return (uint64_t)block_rank() * thread_block::size() + thread_block::thread_rank(); }
};
static inline grid_group this_grid() { return {}; }

template <uint32_t N> struct thread_block_tile {
	static_assert(N && N <= 32 && !(N & (N - 1)), "tiles have 1, 2, 4, 8, 16 or 32 lanes");
	static uint32_t first() { return (uint32_t)explore::lane() / N * N; }
	static uint32_t mask() { return (uint32_t)((1ull << N) - 1) << first(); }
	static uint32_t size() { return N; }
	static uint32_t num_threads() { return N; }
	static uint32_t thread_rank() { return (uint32_t)explore::lane() % N; }
	static uint32_t meta_group_rank() { return thread_block::thread_rank() / N; }
	static uint32_t meta_group_size() { return (thread_block::size() + N - 1) / N; }
	static void sync(EXPLORE_AT("tile::sync")) { explore_syncwarp(&at, mask()); }
	template <class T> static T shfl(T v, int from, EXPLORE_AT("tile::shfl")) { return __shfl_sync(mask(), v, from, N, at); }
	template <class T> static T shfl_up(T v, uint32_t by, EXPLORE_AT("tile::shfl_up")) { return __shfl_up_sync(mask(), v, by, N, at); }
	template <class T> static T shfl_down(T v, uint32_t by, EXPLORE_AT("tile::shfl_down")) { return __shfl_down_sync(mask(), v, by, N, at); }
	template <class T> static T shfl_xor(T v, uint32_t with, EXPLORE_AT("tile::shfl_xor")) { return __shfl_xor_sync(mask(), v, (int)with, N, at); }
	static int any(int is, EXPLORE_AT("tile::any")) { return __any_sync(mask(), is, at); }
	static int all(int is, EXPLORE_AT("tile::all")) { return __all_sync(mask(), is, at); }
	static uint32_t ballot(int is, EXPLORE_AT("tile::ballot")) { return __ballot_sync(mask(), is, at) >> first(); }
};
template <uint32_t N, class G> thread_block_tile<N> tiled_partition(const G &) { return {}; }
template <class G> void sync(const G &g, EXPLORE_AT("cooperative_groups::sync")) { g.sync(at); }
} // namespace cooperative_groups

#endif
