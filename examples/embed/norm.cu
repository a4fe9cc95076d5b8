// SPDX-License-Identifier: Apache-2.0
// A kernel of the program that sums over GPUs itself, without a second launch: each block computes a part of a dot
// product, all ranks add theirs, and the block scales its rows by the result.
//
//   ./norm            two GPUs, a process for each
//
// The header gpuloom/dev/collective.h has the device functions.
#include <gpuloom/comm.h>
#include <gpuloom/dev/collective.h>
#include <gpuloom/gpuloom.h>

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, ROWS = 32, WIDTH = 4096, THREADS = 256 };

// Each rank has a part of each row. Block b scales row b so that its square sum over all ranks is 1.
__global__ void normalise(const __grid_constant__ struct loom_comm_view view, float *rows)
{
	__shared__ float part[THREADS], sum;
	float *row = rows + blockIdx.x * WIDTH, mine = 0;
	for (int i = threadIdx.x; i < WIDTH; i += THREADS)
		mine += row[i] * row[i];
	part[threadIdx.x] = mine;
	__syncthreads();
	for (int n = THREADS / 2; n; n /= 2) {
		if (threadIdx.x < n)
			part[threadIdx.x] += part[threadIdx.x + n];
		__syncthreads();
	}
	struct loom_comm_call call = {LOOM_COMM_ALLREDUCE, LOOM_COMM_FLOAT, LOOM_COMM_SUM, 0, part, &sum, 1, 0, 0};
	loom_comm_block(&view, &call, blockIdx.x, threadIdx.x, THREADS); // the track is the number of the block
	__syncthreads();
	for (int i = threadIdx.x; i < WIDTH; i += THREADS)
		row[i] *= rsqrtf(sum);
}

static struct {
	pthread_barrier_t all;
	char given[RANKS][4096];
} *shared;
static uint32_t rank;
static struct loom_error err;

static int meet(void *, const void *mine, void *all, size_t bytes, struct loom_error *)
{
	memcpy(shared->given[rank], mine, bytes);
	pthread_barrier_wait(&shared->all);
	for (uint32_t r = 0; r < RANKS; r++)
		memcpy((char *)all + r * bytes, shared->given[r], bytes);
	pthread_barrier_wait(&shared->all);
	return 0;
}

static void must(int failed, const char *why)
{
	if (!failed)
		return;
	fprintf(stderr, "norm: rank %u: %s\n", rank, why);
	exit(1);
}

static void run()
{
	char conf[400];
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_comm *comm;
	struct loom_comm_view view;
	struct loom_ranks ranks = {};
	float *rows, host[WIDTH];
	ranks.size = sizeof(ranks), ranks.rank = rank, ranks.ranks = RANKS, ranks.allgather = meet;
	snprintf(conf, sizeof(conf), "[run]\ndevices = cuda:0\n[device.gpu]\ngpu = %u\n[transport]\nuse = p2p\n[scheduler]\n"
		 "use = mgws\n[termination]\nuse = counter\n", rank);
	must(loom_config_create(&cfg, &err), err.text);
	must(loom_config_load_text(cfg, "norm", conf, &err), err.text);
	must(loom_stack_open(cfg, NULL, &stack, &err), err.text);
	must(loom_comm_open(stack, &ranks, &comm, &err), err.text);
	loom_comm_view(comm, &view);
	must(cudaSetDevice((int)rank) != cudaSuccess || cudaMalloc(&rows, ROWS * sizeof(host)) != cudaSuccess, "no memory");
	for (int i = 0; i < WIDTH; i++)
		host[i] = 1;
	for (int r = 0; r < ROWS; r++)
		cudaMemcpy(rows + r * WIDTH, host, sizeof(host), cudaMemcpyHostToDevice);
	normalise<<<ROWS, THREADS>>>(view, rows);
	must(cudaDeviceSynchronize() != cudaSuccess, "the kernel has failed");
	must(loom_comm_status(comm, &err), err.text);
	cudaMemcpy(host, rows, sizeof(host), cudaMemcpyDeviceToHost);
	printf("rank %u: each number is %g, and their squares sum up to %g\n", rank, host[0],
	       host[0] * host[0] * WIDTH * RANKS);
	loom_comm_close(comm);
	cudaFree(rows);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	exit(0);
}

int main()
{
	int failed = 0, status;
	pthread_barrierattr_t between;
	shared = (decltype(shared))mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_init(&between);
	pthread_barrierattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->all, &between, RANKS);
	for (rank = 0; rank < RANKS; rank++)
		if (!fork())
			run();
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
