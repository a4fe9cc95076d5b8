/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of workload_ragged and workload_experts without gpuloom's schedulers, as rivals of `workload = exec`: plain CUDA. The task
 * functions and the data are those of the workloads, so that only the way in which blocks get tasks differs. Tasks are sorted: the
 * longest come first. The workloads verify the results.
 *
 *   gpu_uneven WORKLOAD [OPTION=VALUE]...
 *
 * The blocks of a persistent kernel take tasks from an atomic counter. WORKLOAD is ragged or experts. The constants below allow only some options. The tasks of the second product of experts stand behind
 * those of the first, and wait for them. The last line of the output is a JSON object of metrics: the medians of TURNS launches, after
 * two that are not counted. The kernel is compiled for as many registers as its tasks want, and for three blocks on a multiprocessor,
 * which is max_registers = 168 of gpuloom; the faster one counts. `seconds` is from the moment when all blocks are resident and have
 * met until the last of them has no task, by the clock of the GPU. gpuloom's runs are timed in the same way. It does not include the
 * time of the host to sort and copy the tasks.
 *
 * The program is linked with the objects that `make build/bench/gpu_uneven` names. */
#include <stdint.h>
#include <string.h>
#include <string>
#include <vector>

#include "gpu_must.h"
#include "uneven.h"

/* ---- what the task function needs from gpuloom ---- */

#define LOOM_DEVICE_COMPILE 1
#define LOOM_LANES     128u
#define LOOM_WORKLOAD  0
#define LOOM_FN        static __host__ __device__ __forceinline__ __attribute__((unused))
#define LOOM_NO_UNROLL _Pragma("unroll 1")
#define LOOM_CALL(...) 0 /* no task spawns others */
#define LOOM_OUTLINED_COLLECTIVE(fn, ...) fn(__VA_ARGS__)
#define loom_stream(c, n)                 ((void)(n))
#define loom_last_noncoherent(c, l, p)    ((void)(l), 0)
#define RAGGED_DIM    128
#define RAGGED_GROUP  4
#define RAGGED_BFLOAT 0
#define EXPERTS_ROWS   128
#define EXPERTS_BLOCK  16
#define EXPERTS_BFLOAT 1
#define EXPERTS_AHEAD  6
#define EXPERTS_FOLLOWS 0
#ifdef __CUDA_ARCH__
#define LOOM_REAL_GPU    1
#define RAGGED_PRODUCTS  1
#define EXPERTS_PRODUCTS 1
#endif

struct loom_onebit_lock;
struct loom_task {
	uint64_t tag, join, param[4], data[2];
};
struct loom_ctx {
	uint32_t lane, lanes, workers;
	void *global[1], *local[1];
};

LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	(void)c;
#ifdef __CUDA_ARCH__
	__syncthreads();
#endif
}

#define LOOM_JOB(op) op
LOOM_FN uint64_t loom_fetch_add_acq_rel(uint64_t *at, uint64_t value)
{
#ifdef __CUDA_ARCH__
	__threadfence();
	value = atomicAdd((unsigned long long *)at, value);
	__threadfence();
#else
	(void)at;
#endif
	return value;
}

/* Counts the caller's block down. Returns 1 to all its threads if it was the last one. */
LOOM_FN int loom_last(struct loom_ctx *c, uint64_t *pending)
{
	int last = 0;
	loom_barrier_lanes(c); /* the fence orders what the other threads have written */
	if (c->lane == 0)
		last = loom_fetch_add_acq_rel(pending, ~0ull) == 1;
#ifdef __CUDA_ARCH__
	last = __syncthreads_or(last);
#endif
	return last;
}

#include "../plugins/workloads/tasks/pieces.dev.h"
#include "../plugins/workloads/tasks/task.dev.h"
#include "../plugins/workloads/tasks/tile.dev.h"
#include "../plugins/workloads/tasks/workload_experts.dev.h"
#include "../plugins/workloads/tasks/workload_ragged.dev.h"

/* ---- kernels ---- */

#define TURNS 20

struct turn {
	unsigned arrived, next;
	unsigned long long begin, end;
};

extern __shared__ __align__(16) char scratch[];

static __device__ void do_task(struct loom_ctx *c, struct ragged *, const struct loom_task *task)
{
	workload_ragged_chunk(c, task);
}

/* A task of the second product waits for those of the first, which stand before it and so have been taken. */
static __device__ void do_task(struct loom_ctx *c, struct experts *r, const struct loom_task *task)
{
	struct experts_task w = experts_task_of(r, task);
	if (w.second && c->lane == 0) {
		while (*(volatile uint64_t *)(EXPERTS_AT(r, uint64_t, pending) + 2ull * w.block))
			;
		__threadfence();
	}
	__syncthreads();
	workload_experts_tile(c, task);
}

/* `blocks` are resident on a multiprocessor, or as many as the compiler makes fit: 1. */
template <class Job, int blocks>
static __global__ void __launch_bounds__(LOOM_LANES, blocks)
    by_counter(Job *r, const struct loom_task *task, unsigned tasks, struct turn *t)
{
	__shared__ unsigned at;
	struct loom_ctx c = {threadIdx.x, LOOM_LANES, gridDim.x, {r}, {scratch}};
	if (threadIdx.x == 0) {
		atomicAdd(&t->arrived, 1u);
		while (*(volatile unsigned *)&t->arrived < gridDim.x)
			;
		if (blockIdx.x == 0)
			t->begin = gpu_ns();
	}
	for (;;) {
		if (threadIdx.x == 0)
			at = atomicAdd(&t->next, 1u);
		__syncthreads();
		unsigned mine = at;
		__syncthreads();
		if (mine >= tasks)
			break;
		do_task(&c, r, task + mine);
	}
	if (threadIdx.x == 0)
		atomicMax(&t->end, gpu_ns());
}

/* ---- host ---- */

/* What differs between the jobs: the bytes that a task reads, and the shared memory of a block, which is 0 if the constants above are
 * for other options. follow() appends the tasks that wait for others. */
static unsigned shared_of(const struct ragged *r)
{
	const int fits = r->dim == RAGGED_DIM && r->group == RAGGED_GROUP && r->bfloat == RAGGED_BFLOAT;
	return fits ? ragged_scratch_of_warps(LOOM_LANES, RAGGED_DIM, RAGGED_GROUP).bytes : 0;
}

static unsigned shared_of(const struct experts *r)
{
	const int fits = experts_tile_rows(r->rows, r->block) == EXPERTS_ROWS && r->block == EXPERTS_BLOCK && r->bfloat == EXPERTS_BFLOAT;
	return fits ? LOOM_LANES / TILE_WARP * EXPERTS_LOCAL(EXPERTS_ROWS, EXPERTS_BLOCK, EXPERTS_AHEAD) : 0;
}

static double bytes_of(const struct ragged *, const struct loom_task &t)
{
	return (double)(t.param[1] >> 32) * RAGGED_DIM * 4;
}

static double bytes_of(const struct experts *r, const struct loom_task &t)
{
	return (double)(t.param[1] >> 32) * (t.param[0] >> 32 ? r->hidden : r->dim) * 2;
}

static void follow(const struct ragged *, std::vector<struct loom_task> *) {}

static void follow(const struct experts *r, std::vector<struct loom_task> *task)
{
	for (size_t i = 0, n = task->size(); i < n; i++) {
		const struct experts_task w = experts_task_of((struct experts *)r, &(*task)[i]);
		for (uint32_t tile = 0; !w.row && tile < experts_tiles(r, 1); tile++) {
			task->emplace_back();
			experts_fill_tile(r, w.expert, 1, tile, w.place, w.slots, w.block, &task->back());
		}
	}
}

/* Runs a job, and sets *best to the seconds and the bytes per second, if it is faster. */
template <class Job, int blocks> static int run(struct harness *h, struct uneven_memory m, double (&best)[2])
{
	const Job *job = (const Job *)m.block;
	const auto kernel = by_counter<Job, blocks>;
	const unsigned shared = shared_of(job);
	int each = 0, sms = 0;
	struct turn *turn, was;
	struct loom_task *task;
	char *block, *fresh;
	float us[TURNS];
	double bytes = 0;
	if (!shared) {
		fprintf(stderr, "the constants of gpu_uneven.cu are for other options\n");
		return 2;
	}
	std::vector<struct loom_task> list((const struct loom_task *)m.task, (const struct loom_task *)m.task + m.tasks);
	const int of = std::is_same_v<Job, struct ragged> ? 1 : 2; /* the parameter with the number of tokens */
	auto longer = [=](const struct loom_task &x, const struct loom_task &y) { return x.param[of] >> 32 > y.param[of] >> 32; };
	std::stable_sort(list.begin(), list.end(), longer);
	follow(job, &list);
	unsigned tasks = list.size();
	for (const struct loom_task &t : list)
		bytes += bytes_of(job, t);
	MUST(cudaMalloc(&turn, sizeof(*turn)));
	MUST(cudaMalloc(&task, tasks * sizeof(*task)));
	MUST(cudaMemcpy(task, list.data(), tasks * sizeof(*task), cudaMemcpyHostToDevice));
	MUST(cudaMalloc(&block, m.bytes));
	MUST(cudaMalloc(&fresh, m.bytes));
	MUST(cudaMemcpy(fresh, m.block, m.bytes, cudaMemcpyHostToDevice));
	MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
	MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, LOOM_LANES, shared));
	for (int i = -2; i < TURNS; i++) {
		Job *r = (Job *)block;
		void *arguments[] = {&r, &task, &tasks, &turn};
		MUST(cudaMemset(turn, 0, sizeof(*turn)));
		MUST(cudaMemcpy(block, fresh, m.bytes, cudaMemcpyDeviceToDevice));
		MUST(cudaLaunchCooperativeKernel((const void *)kernel, each * sms, LOOM_LANES, arguments, shared, NULL));
		MUST(cudaMemcpy(&was, turn, sizeof(was), cudaMemcpyDeviceToHost));
		if (i >= 0)
			us[i] = (was.end - was.begin) * 1e-3f;
	}
	MUST(cudaMemcpy(m.block, block, m.bytes, cudaMemcpyDeviceToHost));
	int rc = uneven_verify(h);
	double seconds = median(us, TURNS) * 1e-6;
	if (!best[0] || seconds < best[0]) {
		best[0] = seconds;
		best[1] = bytes / seconds;
	}
	MUST(cudaMemcpy(m.block, fresh, m.bytes, cudaMemcpyDeviceToHost)); /* for another call */
	for (void *one : {(void *)turn, (void *)task, (void *)block, (void *)fresh})
		MUST(cudaFree(one));
	return rc;
}

template <class Job> static int best_of(struct harness *h, struct uneven_memory m)
{
	double best[2] = {0, 0};
	int rc = run<Job, 1>(h, m, best);
	rc = rc ? rc : run<Job, 3>(h, m, best);
	if (!rc)
		printf("{\"seconds\": %.9g, \"bytes_per_s\": {\"value\": %.9g, \"unit\": \"B/s\", \"better\": \"more\"}}\n", best[0],
		       best[1]);
	return rc;
}

/* For uneven_main(), which this program does not call. */
void uneven_begin(uint32_t, const char *) {}
void uneven_loop(uint64_t, uneven_body *, void *) {}

int main(int argc, char **argv)
{
	const int ragged = argc > 1 && !strcmp(argv[1], "ragged"), experts = argc > 1 && !strcmp(argv[1], "experts");
	std::string options;
	if (!ragged && !experts) {
		fprintf(stderr, "usage: %s ragged|experts [OPTION=VALUE]...\n", argv[0]);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		options += std::string(i > 2 ? " " : "") + argv[i];
	struct uneven_memory memory;
	struct harness *h = uneven_open(ragged ? "workload_ragged" : "workload_experts", options.c_str(), LOOM_LANES / TILE_WARP,
					&memory);
	if (!h)
		return 1;
	return (ragged ? best_of<struct ragged> : best_of<struct experts>)(h, memory);
}
