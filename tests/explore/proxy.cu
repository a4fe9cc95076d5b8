// Proxy fence. gpuloom explore must say: the bulk copy reads data without fence.proxy.async after the stores of the peer.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

enum { WORDS = 4 };

/* Each rank stores data and sets a flag; its peer then copies the data by the asynchronous proxy. */
__global__ void exchange(of_ranks<uint32_t> flag, of_ranks<int> data, int *out, int rank)
{
	__shared__ alignas(16) int tile[WORDS];
	__shared__ alignas(8) uint64_t bar;
	uint32_t to = (uint32_t)__cvta_generic_to_shared(tile), mbar = (uint32_t)__cvta_generic_to_shared(&bar);
	for (int i = 0; i < WORDS; i++)
		data.at[rank][i] = 10 * rank + i;
	put_release(&flag.at[1 - rank][0], 1);
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mbar) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	wait_for(flag.at[rank], 1);
#ifndef FAULT
	asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbar), "r"(16) : "memory");
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
		     "l"(data.at[1 - rank]), "n"(16), "r"(mbar)
		     : "memory");
	asm volatile("{\n"
		     ".reg .pred done;\n"
		     "WAIT_%=:\n"
		     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		     "@!done bra WAIT_%=;\n"
		     "}" ::"r"(mbar),
		     "r"(0)
		     : "memory");
	for (int i = 0; i < WORDS; i++)
		out[i] = tile[i];
}

void explore_rank(int rank, int ranks)
{
	auto flag = buffers<uint32_t>("flag", 1);
	auto data = buffers<int>("data", WORDS), out = buffers<int>("out", WORDS);
	exchange<<<1, 1>>>(flag, data, out.at[rank], rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][3] == 13 - 10 * rank, "the copy has the data of the peer");
}
