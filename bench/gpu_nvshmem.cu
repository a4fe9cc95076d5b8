/* SPDX-License-Identifier: Apache-2.0 */
/* Measures NVSHMEM between two GPUs of a host, without gpuloom.
 *   gpu_nvshmem [FIGURE | put BYTES | meet BLOCKS | sum BYTES]
 * The program exits with 77 if the host has no two GPUs that can access each other's memory. It sets
 * NVSHMEM_DISABLE_NVLS=1, so multicast is off. Times are those of the GPU within a kernel. Each line has the way and the
 * blocks x threads that were fastest; with a FIGURE only its name and value.
 * - nvshmem_put_BYTES_us: a put with a signal, one way: half of there and back.
 * - nvshmem_sync_us: sync_all of one block of each GPU, which orders no data.
 * - nvshmem_meet_BLOCKS_us: all blocks of both GPUs meet, data ordered. The ways are barrier_all, of one block; grid.sync: a barrier of each GPU, then a
 *   signal, for which all blocks wait; last: all blocks arrive at a word of their GPU, the last one exchanges signals
 *   with the other GPU, and releases the others.
 * - nvshmem_sum_BYTES_us: a sum of floats of both GPUs by the reduction of one block.
 * The wheel nvidia-nvshmem-cu13 or -cu12 has all of the library:
 *   at=$(python3 -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])')
 *   nvcc -O3 -std=c++17 -arch=native -rdc=true -I$at/include -o gpu_nvshmem bench/gpu_nvshmem.cu -L$at/lib \
 *        -lnvshmem_device -l:libnvshmem_host.so.3
 *   LD_LIBRARY_PATH=$at/lib ./gpu_nvshmem */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cooperative_groups.h>

#include "gpu_two.h"

#define MOST    (1u << 20)  /* bytes of the longest vector */
#define LONGEST (64u << 10) /* bytes of the longest message */
#define LANES   32u         /* threads of a block that meets others: the default of gpuloom's workers */

enum scope { THREAD, WARP, BLOCK };

template <enum scope scope> struct put {
	uint64_t *signal;
	int peer;
	struct Here {
		const put &link;
		__device__ void put(const struct message &m, uint64_t n)
		{
			size_t bytes = m.words * sizeof(*m.from);
			if (scope == THREAD)
				nvshmem_putmem_signal(m.to, m.from, bytes, link.signal, n, NVSHMEM_SIGNAL_SET,
						      link.peer);
			else if (scope == WARP)
				nvshmemx_putmem_signal_warp(m.to, m.from, bytes, link.signal, n, NVSHMEM_SIGNAL_SET,
							    link.peer);
			else
				nvshmemx_putmem_signal_block(m.to, m.from, bytes, link.signal, n, NVSHMEM_SIGNAL_SET,
							     link.peer);
		}
		__device__ void await(const struct message &, uint64_t n)
		{
			if (threadIdx.x == 0)
				nvshmem_signal_wait_until(link.signal, NVSHMEM_CMP_GE, n);
			__syncthreads();
		}
	};
};

struct sync_all {
	struct Here {
		const sync_all &sync;
		__device__ void meet(uint64_t)
		{
			nvshmemx_sync_all_block();
		}
	};
};

struct barrier_all {
	struct Here {
		const barrier_all &sync;
		__device__ void meet(uint64_t)
		{
			nvshmemx_barrier_all_block();
		}
	};
};

/* Only one block at a time may call a collective of a team. So all blocks of a GPU meet, and then one block signals to
 * the other GPU, where each block waits for the signal. */
struct meet_all {
	uint64_t *signal;
	int peer;
	struct Here {
		const meet_all &sync;
		__device__ void meet(uint64_t n)
		{
			cooperative_groups::this_grid().sync();
			if (threadIdx.x == 0) {
				if (blockIdx.x == 0) {
					nvshmem_fence();
					nvshmemx_signal_op(sync.signal, n, NVSHMEM_SIGNAL_SET, sync.peer);
				}
				nvshmem_signal_wait_until(sync.signal, NVSHMEM_CMP_GE, n);
			}
			__syncthreads();
		}
	};
};

struct last_meets {
	uint64_t *signal;
	int peer;
	struct local *local;
	struct Here {
		const last_meets &sync;
		__device__ void meet(uint64_t n)
		{
			meet_by_last(sync.local, n, [&] {
				nvshmem_fence();
				nvshmemx_signal_op(sync.signal, n, NVSHMEM_SIGNAL_SET, sync.peer);
				nvshmem_signal_wait_until(sync.signal, NVSHMEM_CMP_GE, n);
			});
		}
	};
};

struct reduce {
	static constexpr int unit = 1, lanes = 512; /* with 1,024 threads a thread has too few registers for it */
	struct Here {
		const reduce &op;
		__device__ void meet()
		{
			nvshmemx_barrier_all_block();
		}
		__device__ void sum(const struct vectors &v, uint64_t n)
		{
			nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, v.out[n & 1], v.in[n & 1], v.floats);
		}
	};
};

/* Returns zeroed memory that has the same symmetric address on both ranks. */
static void *symmetric(size_t bytes)
{
	void *at = nvshmem_malloc(bytes);
	if (!at) {
		fprintf(stderr, "nvshmem_malloc: no %zu bytes\n", bytes);
		exit(1);
	}
	MUST(cudaMemset(at, 0, bytes));
	return at;
}

static void start(int rank, struct two *two)
{
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
	setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
	setenv("NCCL_NVLS_ENABLE", "0", 1); /* NVSHMEM may load NCCL */
	setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
	two_select(rank);
	if (rank == 0 && nvshmemx_get_uniqueid(&id)) {
		fprintf(stderr, "nvshmemx_get_uniqueid fails\n");
		exit(1);
	}
	if (rank == 0)
		printf("version nvshmem %d\n",
		       NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 + NVSHMEM_VENDOR_PATCH_VERSION);
	two_share(two, rank, &id, sizeof(id));
	if (nvshmemx_set_attr_uniqueid_args(rank, 2, &id, &attributes) ||
	    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes)) {
		fprintf(stderr, "nvshmemx_init_attr fails\n");
		exit(1);
	}
}

static void measure(int rank, struct two *two)
{
	char name[64];
	int sms, peer = 1 - rank;
	start(rank, two);
	struct job job = job_of(rank, two);
	MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, rank));
	uint64_t *signal = (uint64_t *)symmetric(2 * 128); /* a line for messages, one for meetings */
	uint64_t *record = (uint64_t *)symmetric((size_t)sms * 8 * sizeof(*record));
	struct message m = {(uint64_t *)symmetric(LONGEST), (uint64_t *)symmetric(LONGEST), 0};
	struct vectors v = {};
	for (int i = 0; i < 2; i++) {
		v.in[i] = (float *)symmetric(MOST);
		v.out[i] = (float *)symmetric(MOST);
	}
	uint64_t *theirs = (uint64_t *)nvshmem_ptr(record, peer);
	if (!theirs) {
		fprintf(stderr, "NVSHMEM does not map the other GPU's memory\n");
		exit(NOT_HERE);
	}
	MUST(cudaDeviceSynchronize());
	two_meet(two);

	for (size_t bytes : {8u, 4096u, LONGEST}) {
		struct best best = {};
		m.words = bytes / sizeof(*m.from);
		if (!figure(name, "nvshmem_put_%zu_us", bytes))
			continue;
		if (bytes == 8)
			best_of(&best, one_way_us(&job, put<THREAD>{signal, peer}, m, 1), "thread", 1, 1);
		if (bytes <= 4096)
			best_of(&best, one_way_us(&job, put<WARP>{signal, peer}, m, 32), "warp", 1, 32);
		for (unsigned lanes = 128; bytes > 8 && lanes <= 1024; lanes *= 2)
			best_of(&best, one_way_us(&job, put<BLOCK>{signal, peer}, m, (int)lanes), "block", 1, lanes);
		best_print(&job, name, best);
	}
	if (figure(name, "nvshmem_sync_us", 0))
		best_print(&job, name, {meeting_us(&job, sync_all(), record, theirs, 1, LANES), "sync_all", 1, LANES});
	for (unsigned blocks : {1u, (unsigned)sms, (unsigned)sms * 8}) {
		struct best best = {};
		if (!figure(name, "nvshmem_meet_%zu_us", blocks))
			continue;
		if (blocks == 1)
			best_of(&best, meeting_us(&job, barrier_all(), record, theirs, 1, LANES), "barrier_all", 1, LANES);
		else
			best_of(&best, meeting_us(&job, meet_all{signal + 16, peer}, record, theirs, blocks, LANES), "grid.sync",
				blocks, LANES);
		best_of(&best, meeting_us(&job, last_meets{signal + 16, peer, local_make()}, record, theirs, blocks, LANES), "last",
			blocks, LANES);
		best_print(&job, name, best);
	}
	for (size_t bytes : {8u, 4096u, 65536u, 262144u, MOST}) {
		struct best best = {};
		v.floats = bytes / sizeof(float);
		if (!figure(name, "nvshmem_sum_%zu_us", bytes))
			continue;
		for (unsigned lanes = bytes > 4096 ? 128 : 32; lanes <= 512; lanes *= 2)
			best_of(&best, sum_us(&job, reduce(), v, 1, lanes), "reduce_block", 1, lanes);
		best_print(&job, name, best);
	}
	two_meet(two);
	nvshmem_finalize();
}

int main(int argc, char **argv)
{
	return two_run(measure, "nvshmem", argc, argv);
}
