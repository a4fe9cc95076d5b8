// A bulk store that is not waited for. All threads order their own writes for the copy, and one thread makes it. gpuloom
// explore must say: race on box, between the bulk copy and the load of the rank that got it.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

enum { WORDS = 32 };

__global__ void push(const int *in, int *peer, uint32_t *flag)
{
	__shared__ alignas(128) int part[WORDS];
	part[threadIdx.x] = in[threadIdx.x];
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x)
		return;
	uint32_t from = (uint32_t)__cvta_generic_to_shared(part);
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(peer), "r"(from), "r"(4 * WORDS)
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#ifdef FAULT
	asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); /* the source was read */
#else
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
	put_release(flag, 1);
}

/* The threads that do not copy leave early, so the barrier waits only for the others. */
__global__ void pull(const int *box, uint32_t *flag, int *out)
{
	if (threadIdx.x >= WORDS)
		return;
	if (threadIdx.x == 0)
		wait_for(flag, 1);
	__syncthreads();
	out[threadIdx.x] = box[threadIdx.x];
}

void explore_rank(int rank, int ranks)
{
	auto in = buffers<int>("in", WORDS), box = buffers<int>("box", WORDS), out = buffers<int>("out", WORDS);
	auto flag = buffers<uint32_t>("flag", 1);
	cudaStream_t other;
	cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
	for (int i = 0; i < WORDS; i++)
		in.at[rank][i] = i + rank;
	push<<<1, WORDS, 0, other>>>(in.at[rank], box.at[1 - rank], flag.at[1 - rank]);
	pull<<<1, 2 * WORDS>>>(box.at[rank], flag.at[rank], out.at[rank]);
	cudaDeviceSynchronize();
	for (int i = 0; i < WORDS; i++)
		explore_expect(out.at[rank][i] == i + 1 - rank, "the words of the other rank");
}
