/* SPDX-License-Identifier: Apache-2.0 */
/* Common GPU implementations of tasks that spawn tasks, without gpuloom, written for bench/gpu.sh rivals.
 *   gpu_rivals fib|uts RIVAL
 * - global: one array to which all threads append and from which they take, by one fetch-and-add per warp.
 * - frontier: a persistent kernel, whose blocks meet after each level of the tree. It has not run on a GPU yet.
 * - tail: a kernel for each level of the tree, launched by the previous kernel (dynamic parallelism, tail launch).
 * - levels: the same kernels, launched by the host, which reads the size of each level, by a copy to pinned memory.
 * Prints tasks_per_s of the fastest of four numbers of blocks, the median of 5 verified runs. The time is that of the GPU, by events. It
 * includes the start of the first kernel, but not its launch by the host, as the GPU is busy until then. With gpuloom the clock
 * starts when all workers are resident. A rival that fails says why.
 * A task is a node of the spawn tree of fib(32), or of the tree T1L of Unbalanced Tree Search.
 * The program requires nvcc -rdc=true. */
#include <cmath>
#include <cooperative_groups.h>
#include <stdint.h>
#include <string.h>

#include "gpu_must.h"

#define LOOM_DEVICE_COMPILE
#define LOOM_FN static __device__ __host__ __forceinline__
#include "../plugins/workloads/tasks/sha1.dev.h"

#define TURNS 5
#define THREADS 128
#define ROOM (1u << 27) /* in nodes: fib(32) has 7 million, T1L 102 million */

/* ---- the jobs ----------------------------------------------------------------------------------------- */

struct Fib {
	static constexpr uint64_t tasks = 2ull * 3524578 - 1, answer = 2178309; /* `answer` is fib(32) */
	struct Node {
		uint32_t n;
	};
	static Node root() { return {32}; }
	static void prepare() {}
	static __device__ uint32_t children(const Node &x) { return x.n < 2 ? 0 : 2; }
	static __device__ uint32_t value(const Node &x) { return x.n < 2 ? x.n : 0; }
	static __device__ Node child(const Node &x, uint32_t i) { return {x.n - 1 - i}; }
};

#define DEPTH 13
#define MOST 100
__constant__ uint32_t bounds[MOST]; /* a node whose random number is at least bounds[k] has more than k children */

struct Uts {
	static constexpr uint64_t tasks = 102181082, answer = 81746377; /* `answer` is the number of leaves */
	struct Node {
		uint32_t digest[5], depth;
	};
	static Node root()
	{
		uint32_t message[5] = {0, 0, 0, 0, 29};
		Node n;
		sha1_block(n.digest, message, 5);
		n.depth = 0;
		return n;
	}
	static void prepare()
	{
		uint32_t b[MOST];
		for (int k = 0; k < MOST; k++) {
			uint32_t low = 0, high = 1u << 31;
			while (low < high) {
				uint32_t middle = low + (high - low) / 2;
				if (floor(log(1 - middle / 2147483648.0) / log(1 - 1.0 / (1.0 + 4))) > k)
					high = middle;
				else
					low = middle + 1;
			}
			b[k] = low;
		}
		MUST(cudaMemcpyToSymbol(bounds, b, sizeof(b)));
	}
	static __device__ uint32_t children(const Node &x)
	{
		uint32_t number = x.digest[4] & 0x7fffffff, k = 0;
		if (x.depth >= DEPTH)
			return 0;
		for (uint32_t half = 64; half; half /= 2)
			if (k + half <= MOST && number >= bounds[k + half - 1])
				k += half;
		return k;
	}
	static __device__ uint32_t value(const Node &x) { return children(x) == 0; }
	static __device__ Node child(const Node &x, uint32_t i)
	{
		uint32_t message[6];
		Node n;
		for (int k = 0; k < 5; k++)
			message[k] = x.digest[k];
		message[5] = i;
		sha1_block(n.digest, message, 6);
		n.depth = x.depth + 1;
		return n;
	}
};

struct State {
	unsigned long long tasks, answer;
	unsigned long long head, tail; /* for the rival `global` */
	long long pending;             /* the number of nodes that were created and are not done yet */
	unsigned int size[3]; /* nodes of the levels; for all rivals but `global` */
	int overflow; /* FULL, LATE, or 0 if the run is correct so far */
};

template <class T> __device__ T look(const T *p) { return *(const volatile T *)p; }

/* A run that takes longer ends with LATE, because its queue has lost a task or is in a deadlock. */
#define LIMIT_NS 5000000000ull
enum { FULL = 1, LATE };

__device__ int late(State *s, unsigned long long begin)
{
	if (gpu_ns() - begin < LIMIT_NS)
		return 0;
	s->overflow = LATE;
	return 1;
}

/* Each warp adds the sums of its lanes to the totals when it ends. */
__device__ void note(State *s, unsigned long long tasks, unsigned long long answer)
{
	for (int half = 16; half; half /= 2) {
		tasks += __shfl_down_sync(~0u, tasks, half);
		answer += __shfl_down_sync(~0u, answer, half);
	}
	if (threadIdx.x % 32 == 0) {
		atomicAdd(&s->tasks, tasks);
		atomicAdd(&s->answer, answer);
	}
}

/* Returns the sum of n over the lower lanes, and stores the sum over the warp in *total. All lanes of the warp call
 * this function. */
__device__ uint32_t scan(uint32_t n, uint32_t *total)
{
	uint32_t sum = n, lane = threadIdx.x % 32;
	for (int step = 1; step < 32; step *= 2) {
		uint32_t left = __shfl_up_sync(~0u, sum, step);
		sum += lane >= step ? left : 0;
	}
	*total = __shfl_sync(~0u, sum, 31);
	return sum - n;
}

/* ---- global: one array for all --------------------------------------------------------------- */

template <class Job>
__global__ void global_queue(State *s, typename Job::Node *node, uint32_t *ready, uint32_t mark)
{
	unsigned long long tasks = 0, answer = 0;
	uint32_t lane = threadIdx.x % 32;
	unsigned long long at = 0, begin = gpu_ns();
	int has = 0; /* 1 while the lane has a ticket that is not served yet */
	for (;;) {
		/* One addition draws tickets for all lanes that have none. */
		unsigned need = __ballot_sync(~0u, !has);
		unsigned long long first = 0;
		if (need && lane == __ffs(need) - 1)
			first = atomicAdd(&s->head, (unsigned long long)__popc(need));
		if (need) {
			first = __shfl_sync(~0u, first, __ffs(need) - 1);
			if (!has)
				at = first + __popc(need & ((1u << lane) - 1));
			has = 1;
		}
		int mine = at < ROOM && look(&ready[at]) == mark;
		if (!__any_sync(~0u, mine)) {
			if (__any_sync(~0u, look(&s->pending) == 0 || late(s, begin)))
				break;
			__nanosleep(50);
			continue;
		}
		__threadfence();
		typename Job::Node x;
		uint32_t n = 0, total, before;
		if (mine) {
			x = node[at];
			n = Job::children(x);
			tasks++;
			answer += Job::value(x);
			has = 0;
		}
		before = scan(n, &total);
		unsigned done = __ballot_sync(~0u, mine);
		unsigned long long to = 0;
		if (lane == 0) {
			atomicAdd((unsigned long long *)&s->pending, (unsigned long long)total - __popc(done));
			if (total)
				to = atomicAdd(&s->tail, (unsigned long long)total);
		}
		to = __shfl_sync(~0u, to, 0) + before;
		for (uint32_t i = 0; i < n; i++)
			if (to + i < ROOM)
				node[to + i] = Job::child(x, i);
			else
				s->overflow = FULL;
		__threadfence();
		for (uint32_t i = 0; i < n && to + i < ROOM; i++)
			*(volatile uint32_t *)&ready[to + i] = mark;
	}
	note(s, tasks, answer);
}

/* ---- level by level ----------------------------------------------------------------------------------- */

/* Expands the nodes of level `now`, and so creates level `next`. Both are indices of s->size. */
template <class Job>
__device__ void level_step(State *s, const typename Job::Node *from, typename Job::Node *to, uint32_t now, uint32_t next)
{
	uint32_t n = look(&s->size[now]), lanes = gridDim.x * blockDim.x;
	unsigned long long tasks = 0, answer = 0;
	for (uint32_t base = 0; base < n; base += lanes) {
		uint32_t i = base + blockIdx.x * blockDim.x + threadIdx.x, children = 0, total, at = 0;
		typename Job::Node x;
		if (i < n) {
			x = from[i];
			children = Job::children(x);
			tasks++;
			answer += Job::value(x);
		}
		uint32_t before = scan(children, &total);
		if (threadIdx.x % 32 == 0 && total)
			at = atomicAdd(&s->size[next], total);
		at = __shfl_sync(~0u, at, 0) + before;
		for (uint32_t k = 0; k < children; k++)
			if (at + k < ROOM)
				to[at + k] = Job::child(x, k);
			else
				s->overflow = FULL;
	}
	note(s, tasks, answer);
}

template <class Job>
__global__ void level(State *s, const typename Job::Node *from, typename Job::Node *to, uint32_t which)
{
	level_step<Job>(s, from, to, which, 1 - which);
}

template <class Job> __global__ void frontier(State *s, typename Job::Node *from, typename Job::Node *to)
{
	uint32_t now = 0;
	do {
		uint32_t next = (now + 1) % 3;
		if (blockIdx.x == 0 && threadIdx.x == 0)
			s->size[(now + 2) % 3] = 0; /* its nodes were read before the last meeting */
		level_step<Job>(s, from, to, now, next);
		cooperative_groups::this_grid().sync();
		typename Job::Node *other = from;
		from = to;
		to = other;
		now = next;
	} while (look(&s->size[now]));
}

template <class Job>
__global__ void tail_next(State *s, typename Job::Node *from, typename Job::Node *to, uint32_t which, int blocks);

template <class Job>
__global__ void tail_level(State *s, typename Job::Node *from, typename Job::Node *to, uint32_t which, int blocks)
{
	level_step<Job>(s, from, to, which, 1 - which);
	if (blockIdx.x == 0 && threadIdx.x == 0) /* a tail launch starts after all blocks of this kernel have ended */
		tail_next<Job><<<1, 1, 0, cudaStreamTailLaunch>>>(s, to, from, 1 - which, blocks);
}

template <class Job>
__global__ void tail_next(State *s, typename Job::Node *from, typename Job::Node *to, uint32_t which, int blocks)
{
	s->size[1 - which] = 0;
	if (s->size[which])
		tail_level<Job><<<blocks, THREADS, 0, cudaStreamTailLaunch>>>(s, from, to, which, blocks);
}

/* ---- measuring ---------------------------------------------------------------------------------------- */

template <class Job> struct Room {
	State *s;
	typename Job::Node *a, *b;
	uint32_t *ready, mark, *size; /* size: in pinned memory of the host */
	int blocks;
};

template <class Job> static void play(const char *rival, Room<Job> *r)
{
	if (!strcmp(rival, "global")) {
		global_queue<Job><<<r->blocks, THREADS>>>(r->s, r->a, r->ready, r->mark);
	} else if (!strcmp(rival, "frontier")) {
		void *arguments[] = {&r->s, &r->a, &r->b};
		MUST(cudaLaunchCooperativeKernel((const void *)frontier<Job>, r->blocks, THREADS, arguments, 0, NULL));
	} else if (!strcmp(rival, "tail")) {
		tail_level<Job><<<r->blocks, THREADS>>>(r->s, r->a, r->b, 0, r->blocks);
	} else {
		typename Job::Node *from = r->a, *to = r->b;
		uint32_t which = 0;
		do {
			MUST(cudaMemsetAsync(&r->s->size[1 - which], 0, sizeof(uint32_t)));
			level<Job><<<r->blocks, THREADS>>>(r->s, from, to, which);
			which = 1 - which;
			MUST(cudaMemcpyAsync(r->size, &r->s->size[which], sizeof(uint32_t), cudaMemcpyDeviceToHost));
			MUST(cudaStreamSynchronize(0));
			std::swap(from, to);
		} while (*r->size);
	}
}

template <class Job> static void prepare(Room<Job> *r)
{
	State s = {};
	typename Job::Node root = Job::root();
	s.tail = s.pending = 1;
	s.size[0] = 1;
	r->mark++;
	MUST(cudaMemcpy(r->s, &s, sizeof(s), cudaMemcpyHostToDevice));
	MUST(cudaMemcpy(r->a, &root, sizeof(root), cudaMemcpyHostToDevice));
	MUST(cudaMemcpy(r->ready, &r->mark, sizeof(r->mark), cudaMemcpyHostToDevice));
}

template <class Job> static int measure(const char *rival, int processors)
{
	Room<Job> r = {};
	State s;
	float us[TURNS];
	double best = 0;
	Job::prepare();
	MUST(cudaMalloc(&r.s, sizeof(*r.s)));
	MUST(cudaMalloc(&r.a, ROOM * sizeof(*r.a)));
	MUST(cudaMalloc(&r.b, ROOM * sizeof(*r.b)));
	MUST(cudaMallocHost(&r.size, sizeof(*r.size)));
	MUST(cudaMalloc(&r.ready, ROOM * sizeof(*r.ready)));
	MUST(cudaMemset(r.ready, 0, ROOM * sizeof(*r.ready)));
	int most = 0;
	MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, frontier<Job>, THREADS, 0));
	for (int each : {2, 4, 8, 16}) {
		r.blocks = processors * (strcmp(rival, "frontier") ? each : std::min(each, most)); /* all must be resident */
		for (int turn = -1; turn < TURNS; turn++) {
			prepare(&r);
			MUST(cudaDeviceSynchronize());
			gpu_busy();
			us[turn < 0 ? 0 : turn] = gpu_us([&] { play<Job>(rival, &r); });
			MUST(cudaMemcpy(&s, r.s, sizeof(s), cudaMemcpyDeviceToHost));
			if (s.overflow || s.tasks != Job::tasks || s.answer != Job::answer) {
				fprintf(stderr, "%s: %s\n", rival,
					s.overflow == LATE ? "did not end in 5 s" : s.overflow ? "the queue was full" : "wrong answer");
				return 1;
			}
		}
		best = std::max(best, (double)s.tasks / median(us, TURNS) * 1e6);
	}
	printf("tasks_per_s %.6g\n", best);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const rivals[] = {"global", "frontier", "tail", "levels"};
	int processors = 0;
	MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	for (const char *rival : rivals)
		if (argc == 3 && !strcmp(argv[2], rival))
			return !strcmp(argv[1], "fib") ? measure<Fib>(rival, processors) : measure<Uts>(rival, processors);
	fprintf(stderr, "usage: gpu_rivals fib|uts global|frontier|tail|levels\n");
	return 2;
}
