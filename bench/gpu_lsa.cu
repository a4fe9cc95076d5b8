/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the device API of NCCL 2.28 and later between two GPUs of a host, without gpuloom: windows that kernels load from
 * and store to (LSA).
 *   gpu_lsa [FIGURE | put BYTES | meet BLOCKS]
 * The program exits with 77 if the host has no two GPUs that can access each other's memory, or if libnccl.so.2 is not
 * of the version of the headers. It sets NCCL_NVLS_ENABLE=0, so multicast is off. Times are those of the GPU within a
 * kernel. Each line has the way and the blocks x threads that were fastest; with a FIGURE only its name and value.
 * - lsa_put_BYTES_us: stores into the window of the other rank, one way: half of there and back. The ways are
 *   flag: the message, then a flag with a release; barrier: the message, then a barrier of both; words: each word of
 *   4 bytes with its flag.
 * - lsa_relaxed_us: ncclLsaBarrierSession of one block of each GPU, which orders no data.
 * - lsa_meet_BLOCKS_us: all blocks of both GPUs meet, data ordered. The ways are session: the session of one block, which
 *   orders data; grid.sync: a barrier of each GPU, then a session of each block with that of the other GPU; last: all blocks arrive at a word of their GPU, the last one exchanges
 *   flags with the other GPU, and releases the others.
 *   nvcc -O3 -std=c++17 -arch=native -o gpu_lsa bench/gpu_lsa.cu -lnccl */
#include <nccl.h>
#include <nccl_device.h>

#include <cooperative_groups.h>

#include "gpu_two.h"

#define NCCL_MUST(call)                                                                                                \
	do {                                                                                                           \
		ncclResult_t nccl_rc = (call);                                                                         \
		if (nccl_rc != ncclSuccess) {                                                                          \
			fprintf(stderr, "%s: %s\n", #call, ncclGetErrorString(nccl_rc));                               \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define LONGEST (64u << 10) /* bytes of the longest message */
#define LANES   32u         /* threads of a block that meets others: the default of gpuloom's workers */
#define BATCH   8           /* loads that a thread has in flight */

/* What each rank has in its window. A flagged word of 8 bytes has 4 bytes of data and 4 of a flag, so a load gets both
 * or neither. Two of them are stored at once. */
struct window {
	uint64_t flag;
	char pad[120];
	uint64_t from[LONGEST / 8], to[LONGEST / 8];
	uint4 words[LONGEST / 8];
	uint64_t record[4096];
};

struct lsa {
	ncclDevComm comm;
	struct window *own, *other;
};

typedef ncclLsaBarrierSession<ncclCoopCta> session;
#define SESSION(lsa) {ncclCoopCta(), (lsa).comm, ncclTeamTagLsa(), blockIdx.x}

static __device__ void store_words(uint4 *to, uint32_t a, uint32_t b, uint32_t flag)
{
	asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to), "r"(a), "r"(flag), "r"(b)
		     : "memory");
}

/* Waits until all `w` of at[i], at[i + step] and so on that are below `end` have the flag. The loads of all are in
 * flight at once. */
static __device__ void await_words(const uint4 *at, size_t i, size_t step, size_t end, uint32_t flag, uint4 (&w)[BATCH])
{
	int missing;
	do {
		missing = 0;
#pragma unroll
		for (int k = 0; k < BATCH; k++)
			if (i + k * step < end)
				asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
					     : "=r"(w[k].x), "=r"(w[k].y), "=r"(w[k].z), "=r"(w[k].w)
					     : "l"(at + i + k * step)
					     : "memory");
#pragma unroll
		for (int k = 0; k < BATCH; k++)
			missing |= i + k * step < end && (w[k].y != flag || w[k].w != flag);
	} while (missing);
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static __device__ void copy(const struct lsa &lsa, const struct message &m)
{
	uint64_t *to = lsa.other->to;
	__syncthreads(); /* the message was written by all threads */
	if (m.words == 1) {
		if (threadIdx.x == 0)
			to[0] = m.from[0];
		return;
	}
	for (size_t i = threadIdx.x; i < m.words / 2; i += (size_t)BATCH * blockDim.x) {
		ulonglong2 w[BATCH];
#pragma unroll
		for (int k = 0; k < BATCH; k++)
			if (i + k * blockDim.x < m.words / 2)
				w[k] = ((const ulonglong2 *)m.from)[i + k * blockDim.x];
#pragma unroll
		for (int k = 0; k < BATCH; k++)
			if (i + k * blockDim.x < m.words / 2)
				((ulonglong2 *)to)[i + k * blockDim.x] = w[k];
	}
}

struct by_flag {
	struct lsa lsa;
	struct Here {
		const by_flag &link;
		__device__ void put(const struct message &m, uint64_t n)
		{
			copy(link.lsa, m);
			__syncthreads();
			if (threadIdx.x == 0) /* a release of what the block has stored before its barrier */
				store_release(&link.lsa.other->flag, n);
		}
		__device__ void await(const struct message &, uint64_t n)
		{
			if (threadIdx.x == 0)
				await_acquire(&link.lsa.own->flag, n);
			__syncthreads();
		}
	};
};

struct by_barrier {
	struct lsa lsa;
	struct Here {
		const by_barrier &link;
		session bar SESSION(link.lsa);
		__device__ void put(const struct message &m, uint64_t)
		{
			copy(link.lsa, m);
			bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
		}
		__device__ void await(const struct message &, uint64_t)
		{
			bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
		}
	};
};

/* A thread sends the words that it has written. What has arrived is unpacked. */
struct by_words {
	struct lsa lsa;
	struct Here {
		const by_words &link;
		__device__ void put(const struct message &m, uint64_t n)
		{
			for (size_t i = threadIdx.x; i < m.words; i += blockDim.x)
				store_words(link.lsa.other->words + i, (uint32_t)m.from[i], (uint32_t)(m.from[i] >> 32),
					    (uint32_t)n);
		}
		__device__ void await(const struct message &m, uint64_t n)
		{
			for (size_t i = threadIdx.x; i < m.words; i += (size_t)BATCH * blockDim.x) {
				uint4 w[BATCH];
				await_words(link.lsa.own->words, i, blockDim.x, m.words, (uint32_t)n, w);
#pragma unroll
				for (int k = 0; k < BATCH; k++)
					if (i + k * blockDim.x < m.words)
						m.to[i + k * blockDim.x] = w[k].x | (uint64_t)w[k].z << 32;
			}
			__syncthreads(); /* then all have arrived, and a message may be sent that overwrites them */
		}
	};
};

/* ---- barriers -------------------------------------------------------------------------------------------- */

template <bool ordered, bool all> struct lsa_barrier {
	struct lsa lsa;
	struct Here {
		const lsa_barrier &sync;
		session bar SESSION(sync.lsa);
		__device__ void meet(uint64_t)
		{
			if (all)
				cooperative_groups::this_grid().sync();
			bar.sync(ncclCoopCta(), ordered ? cuda::memory_order_acq_rel : cuda::memory_order_relaxed);
		}
	};
};

struct last_meets {
	struct lsa lsa;
	struct local *local;
	struct Here {
		const last_meets &sync;
		__device__ void meet(uint64_t n)
		{
			meet_by_last(sync.local, n, [&] {
				store_release(&sync.lsa.other->flag, n); /* its numbers grow, as those of messages */
				await_acquire(&sync.lsa.own->flag, n);
			});
		}
	};
};

/* ---- host ------------------------------------------------------------------------------------------------ */

static __global__ void pointers(ncclWindow_t window, int rank, struct window **at)
{
	at[0] = (struct window *)ncclGetLocalPointer(window, 0);
	at[1] = (struct window *)ncclGetLsaPointer(window, 0, 1 - rank);
}

static struct lsa start(int rank, struct two *two, unsigned barriers)
{
	struct lsa lsa = {};
	int version;
	ncclUniqueId id;
	ncclComm_t comm;
	ncclWindow_t window = NULL;
	void *memory;
	struct window *at[2], **on_gpu;
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
	ncclDevCommRequirements_t need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
	ncclDevCommRequirements_t need = {};
#endif
	setenv("NCCL_NVLS_ENABLE", "0", 1);
	NCCL_MUST(ncclGetVersion(&version));
	if (version != NCCL_VERSION_CODE) {
		if (rank == 0)
			fprintf(stderr, "libnccl.so.2 has version %d, its headers %d\n", version, NCCL_VERSION_CODE);
		exit(NOT_HERE);
	}
	if (rank == 0) {
		printf("version nccl %d\n", version);
		NCCL_MUST(ncclGetUniqueId(&id));
	}
	two_share(two, rank, &id, sizeof(id));
	NCCL_MUST(ncclCommInitRank(&comm, 2, id, rank));
	NCCL_MUST(ncclMemAlloc(&memory, sizeof(struct window)));
	MUST(cudaMemset(memory, 0, sizeof(struct window)));
	MUST(cudaDeviceSynchronize());
	NCCL_MUST(ncclCommWindowRegister(comm, memory, sizeof(struct window), &window, NCCL_WIN_COLL_SYMMETRIC));
	need.lsaBarrierCount = (int)barriers;
	ncclResult_t rc = window ? ncclDevCommCreate(comm, &need, &lsa.comm) : ncclInvalidUsage;
	if (rc != ncclSuccess || ncclTeamLsa(lsa.comm).nRanks != 2) {
		if (rank == 0)
			fprintf(stderr, "NCCL has no symmetric windows for these GPUs: %s\n", ncclGetErrorString(rc));
		exit(NOT_HERE);
	}
	MUST(cudaMalloc(&on_gpu, sizeof(at)));
	pointers<<<1, 1>>>(window, ncclTeamLsa(lsa.comm).rank, on_gpu);
	MUST(cudaMemcpy(at, on_gpu, sizeof(at), cudaMemcpyDeviceToHost));
	lsa.own = at[0];
	lsa.other = at[1];
	two_meet(two);
	return lsa;
}

static void measure(int rank, struct two *two)
{
	char name[64];
	int sms;
	two_select(rank);
	MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, rank));
	struct lsa lsa = start(rank, two, (unsigned)sms * 8);
	struct job job = job_of(rank, two);
	struct message m = {lsa.own->from, lsa.own->to, 0};

	for (size_t bytes : {8u, 4096u, LONGEST}) {
		struct best best = {};
		m.words = bytes / sizeof(*m.from);
		if (!figure(name, "lsa_put_%zu_us", bytes))
			continue;
		for (unsigned lanes = bytes == LONGEST ? 256 : 32; lanes == 32 || (lanes <= 1024 && lanes <= m.words);
		     lanes *= 2) {
			best_of(&best, one_way_us(&job, by_flag{lsa}, m, (int)lanes), "flag", 1, lanes);
			best_of(&best, one_way_us(&job, by_barrier{lsa}, m, (int)lanes), "barrier", 1, lanes);
			best_of(&best, one_way_us(&job, by_words{lsa}, m, (int)lanes), "words", 1, lanes);
		}
		best_print(&job, name, best);
	}
	uint64_t *mine = lsa.own->record, *theirs = lsa.other->record;
	if (figure(name, "lsa_relaxed_us", 0))
		best_print(&job, name,
			   {meeting_us(&job, lsa_barrier<false, false>{lsa}, mine, theirs, 1, LANES), "relaxed", 1, LANES});
	for (unsigned blocks : {1u, (unsigned)sms, (unsigned)sms * 8}) {
		struct best best = {};
		if (!figure(name, "lsa_meet_%zu_us", blocks))
			continue;
		if (blocks == 1)
			best_of(&best, meeting_us(&job, lsa_barrier<true, false>{lsa}, mine, theirs, 1, LANES), "session", 1, LANES);
		else
			best_of(&best, meeting_us(&job, lsa_barrier<true, true>{lsa}, mine, theirs, blocks, LANES), "grid.sync",
				blocks, LANES);
		best_of(&best, meeting_us(&job, last_meets{lsa, local_make()}, mine, theirs, blocks, LANES), "last", blocks, LANES);
		best_print(&job, name, best);
	}
	two_meet(two);
}

int main(int argc, char **argv)
{
	return two_run(measure, "lsa", argc, argv);
}
