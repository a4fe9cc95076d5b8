/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives (gpuloom/dev/collective.h) under the machine model. Each rank is a device with one block, whose threads
 * are fibers. Every element of a result is read by a plain load, and vectors are written again after each call. A test
 * includes its device layer and races_weaken.h first. */
#ifndef LOOM_TEST_RACES_COMM_H
#define LOOM_TEST_RACES_COMM_H

#include <string.h>

/* Waits of CPUs that do not pass the device layer. */
#define loom_relax     loom__explore_pause
#define loom_cpu_yield loom__explore_pause
#include <gpuloom/dev/collective.h>

/* A slot has room for 4 words of a round, and a buffer for 96 bytes. So a vector takes several rounds. */
enum { COMM_RANKS = 3, COMM_VECTOR = 32, COMM_SLOT = 64, COMM_SHARE = 96 };
static struct {
	uint32_t ranks, lanes;
	struct loom_comm_view view[COMM_RANKS];
	struct loom_comm_words words[COMM_RANKS];
	uint32_t in[COMM_RANKS][COMM_VECTOR * COMM_RANKS], out[COMM_RANKS][COMM_VECTOR * COMM_RANKS];
	struct loom_comm_unit memory[COMM_RANKS][256];
} comm;

/* The calls of a schedule: each algorithm of an allreduce twice in a row, after another one, and after marked words. */
enum { COMM_SUM = LOOM_COMM_ALLREDUCE };
static const struct {
	uint32_t what, pulls, root, count;
} comm_calls[] = {{COMM_SUM, 2, 0, 26}, {COMM_SUM, 1, 0, 32}, {COMM_SUM, 0, 0, 8}, {COMM_SUM, 1, 0, 16}, {COMM_SUM, 2, 0, 26},
		  {COMM_SUM, 0, 0, 8}, {COMM_SUM, 2, 0, 16}, {COMM_SUM, 3, 0, 32}, {COMM_SUM, 3, 0, 25}, {COMM_SUM, 1, 0, 16},
		  {COMM_SUM, 0, 0, 8}, {COMM_SUM, 3, 0, 16}, {LOOM_COMM_ALLGATHER, 1, 0, 6}, {COMM_SUM, 0, 0, 8}, {COMM_SUM, 3, 0, 16},
		  {COMM_SUM, 0, 0, 32}, {LOOM_COMM_BROADCAST, 0, 1, 4}, {COMM_SUM, 2, 0, 9}, {LOOM_COMM_BARRIER, 0, 0, 0},
		  {LOOM_COMM_REDUCE_SCATTER, 0, 0, 5}};

static uint32_t comm_value(uint32_t rank, uint32_t call, uint32_t i)
{
	return (rank + 1) * 10000 + call * 100 + i;
}

static uint32_t comm_wanted(uint32_t rank, uint32_t call, uint32_t i)
{
	uint32_t sum = 0, count = comm_calls[call].count;
	if (comm_calls[call].what == LOOM_COMM_ALLGATHER)
		return comm_value(i / count, call, i % count);
	if (comm_calls[call].what == LOOM_COMM_BROADCAST)
		return comm_value(comm_calls[call].root, call, i);
	i += comm_calls[call].what == LOOM_COMM_REDUCE_SCATTER ? rank * count : 0;
	for (uint32_t r = 0; r < comm.ranks; r++)
		sum += comm_value(r, call, i);
	return sum;
}

static void comm_body(uint32_t fiber)
{
	uint32_t rank = fiber / comm.lanes, lane = fiber % comm.lanes, *in = comm.in[rank], *out = comm.out[rank];
	for (uint32_t k = 0; k < sizeof(comm_calls) / sizeof(comm_calls[0]); k++) {
		uint32_t count = comm_calls[k].count,
			 several = comm_calls[k].what == LOOM_COMM_ALLGATHER ? comm.ranks : 1;
		const struct loom_comm_call call = {.what = comm_calls[k].what, .type = LOOM_COMM_INT32, .root = comm_calls[k].root,
						    .in = in, .out = out, .count = count, .pulls = comm_calls[k].pulls};
		for (uint32_t i = lane; i < COMM_VECTOR; i += comm.lanes)
			in[i] = comm_value(rank, k, i);
		LOOM_COMM_SYNC();
		wrong(loom_comm_block(&comm.view[rank], &call, 0, lane, comm.lanes));
		LOOM_COMM_SYNC();
		for (uint32_t i = 0; i < count * several; i++)
			wrong(out[i] != comm_wanted(rank, k, i));
	}
}

static void comm_begin(uint32_t ranks, uint32_t lanes)
{
	memset(&comm, 0, sizeof(comm));
	comm.ranks = ranks;
	comm.lanes = lanes;
	for (uint32_t r = 0; r < ranks; r++) {
		comm.view[r] = (struct loom_comm_view){.rank = r, .ranks = ranks, .tracks = 1, .slot = COMM_SLOT, .share = COMM_SHARE,
						       .timeout_ns = 1ull << 60, .words = &comm.words[r]};
		for (uint32_t other = 0; other < ranks; other++)
			comm.view[r].memory[other] = (char *)comm.memory[other];
		if (loom_comm_bytes(&comm.view[r]) > sizeof(comm.memory[r]))
			abort();
	}
}

#endif
