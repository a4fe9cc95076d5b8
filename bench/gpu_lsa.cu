/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the device API of NCCL 2.28 and later between two GPUs of a host, without gpuloom: windows that kernels load from
 * and store to (LSA).
 *   gpu_lsa [FIGURE | put BYTES | meet BLOCKS | sum BYTES]
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
 * - lsa_sum_BYTES_us: a sum of floats of both GPUs. The ways are loads: a barrier, then loads from the other window;
 *   words: each float is stored into the other window with a flag.
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

#define MOST    (1u << 20)  /* bytes of the longest vector */
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
	float in[2][MOST / 4], out[2][MOST / 4];
	uint4 sums[2][MOST / 8];
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

/* ---- sums ------------------------------------------------------------------------------------------------ */

static __device__ float2 operator+(float2 a, float2 b)
{
	return {a.x + b.x, a.y + b.y};
}

static __device__ float4 operator+(float4 a, float4 b)
{
	return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/* One barrier for each round is enough, as the inputs of two rounds alternate. */
template <class V> struct by_loads {
	static constexpr int unit = sizeof(V) / sizeof(float), lanes = 512;
	struct lsa lsa;
	struct Here {
		const by_loads &op;
		session bar SESSION(op.lsa);
		__device__ void meet()
		{
			bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
		}
		__device__ void sum(const struct vectors &v, uint64_t n)
		{
			const V *mine = (const V *)v.in[n & 1], *theirs = (const V *)op.lsa.other->in[n & 1];
			V *out = (V *)v.out[n & 1], a[BATCH], b[BATCH];
			size_t all = (size_t)gridDim.x * blockDim.x, count = v.floats / unit;
			meet();
			for (size_t at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += BATCH * all) {
#pragma unroll
				for (int k = 0; k < BATCH; k++)
					if (at + k * all < count) {
						a[k] = theirs[at + k * all];
						b[k] = mine[at + k * all];
					}
#pragma unroll
				for (int k = 0; k < BATCH; k++)
					if (at + k * all < count)
						out[at + k * all] = a[k] + b[k];
			}
		}
	};
};

/* A thread has the same floats in each round, and of two rounds the words alternate. So it overwrites words of the
 * other rank only after this rank's next words have shown that they were read. */
struct sum_by_words {
	static constexpr int unit = 2, lanes = 512;
	struct lsa lsa;
	struct Here {
		const sum_by_words &op;
		session bar SESSION(op.lsa);
		__device__ void meet()
		{
			bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
		}
		__device__ void sum(const struct vectors &v, uint64_t n)
		{
			const float2 *mine = (const float2 *)v.in[n & 1];
			float2 *out = (float2 *)v.out[n & 1];
			size_t all = (size_t)gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
			size_t count = v.floats / unit;
			for (size_t i = first; i < count; i += all)
				store_words(op.lsa.other->sums[n & 1] + i, __float_as_uint(mine[i].x),
					    __float_as_uint(mine[i].y), (uint32_t)n);
			for (size_t i = first; i < count; i += BATCH * all) {
				uint4 w[BATCH];
				await_words(op.lsa.own->sums[n & 1], i, all, count, (uint32_t)n, w);
#pragma unroll
				for (int k = 0; k < BATCH; k++)
					if (i + k * all < count)
						out[i + k * all] = mine[i + k * all] + float2{__uint_as_float(w[k].x),
											      __uint_as_float(w[k].z)};
			}
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

/* Measures sums by one way with several numbers of blocks and threads. */
template <class S>
static void sums_of(struct job *job, const S &op, const struct vectors &v, unsigned sms, const char *way,
		    struct best *best)
{
	for (unsigned blocks : {1u, 4u, 16u, 64u, sms})
		for (unsigned lanes : {32u, 128u, 512u})
			if (blocks * lanes <= std::max((size_t)32, v.floats / S::unit) &&
			    v.floats / S::unit / lanes / blocks <= 64)
				best_of(best, sum_us(job, op, v, blocks, lanes), way, blocks, lanes);
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
	struct vectors v = {{lsa.own->in[0], lsa.own->in[1]}, {lsa.own->out[0], lsa.own->out[1]}, 0};

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
	for (size_t bytes : {8u, 4096u, 65536u, 262144u, MOST}) {
		struct best best = {};
		v.floats = bytes / sizeof(float);
		if (!figure(name, "lsa_sum_%zu_us", bytes))
			continue;
		if (bytes == 8)
			sums_of(&job, by_loads<float2>{lsa}, v, (unsigned)sms, "loads", &best);
		else
			sums_of(&job, by_loads<float4>{lsa}, v, (unsigned)sms, "loads", &best);
		sums_of(&job, sum_by_words{lsa}, v, (unsigned)sms, "words", &best);
		best_print(&job, name, best);
	}
	two_meet(two);
}

int main(int argc, char **argv)
{
	return two_run(measure, "lsa", argc, argv);
}
