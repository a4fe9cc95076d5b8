/* SPDX-License-Identifier: Apache-2.0 */
/* Decode attention over paged sequences, and a layer of routed experts, without gpuloom's schedulers, as rivals of `workload =
 * exec`: plain CUDA. The task functions are those of workload_ragged and workload_experts, so that only the way in which blocks get
 * tasks differs. Tasks are sorted: the longest come first. Attention has float16, 128 numbers a head, 32 heads, 8 of keys, pages of
 * 16 tokens in random order. Experts have bfloat16, matrices of 1,024 x 2,048, two experts a token.
 *
 *   gpu_uneven counter LENGTHS CHUNK     a persistent kernel, whose blocks take tasks from an atomic counter
 *   gpu_uneven grid LENGTHS CHUNK        a block for each task; the hardware starts them in this order
 *   gpu_uneven experts COUNTS            as counter; the tasks of the second product follow, and wait for those of the first
 *   gpu_uneven copy                      a copy of 1 GiB; bytes_per_s counts bytes read and written
 *
 * LENGTHS is a file with the tokens of a sequence per line, COUNTS the same of an expert, CHUNK the most tokens of a task. The last
 * line of the output is a JSON object of metrics: the medians of TURNS launches, after two that are not counted. `seconds` is:
 * - counter and experts: from the moment when all blocks are resident and have met until the last of them has no task, by the clock of
 *   the GPU. gpuloom's runs are timed in the same way. launch_ns is the time of the whole kernel by events;
 * - grid: the time of the kernel by events. The GPU is busy until the kernel is queued, so no time of the host is in it.
 * plan_ns is the time of the host to make, sort and copy the tasks, which none includes. Some heads or tokens are compared with a
 * computation in double precision. */
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <vector>

#include "gpu_must.h"
#include "times.h"

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
#define RAGGED_TILE   64
#define RAGGED_BFLOAT 0
#define EXPERTS_ROWS   128
#define EXPERTS_BLOCK  16
#define EXPERTS_BFLOAT 1
#define EXPERTS_AHEAD  6
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
	uint32_t lane, lanes;
	void *global[1], *local[1];
};

LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	(void)c;
#ifdef __CUDA_ARCH__
	__syncthreads();
#endif
}

/* Counts the caller's block down. Returns 1 to all its threads if it was the last one. */
LOOM_FN int loom_last(struct loom_ctx *c, uint64_t *pending)
{
	int last = 0;
	loom_barrier_lanes(c); /* the fence orders what the other threads have written */
#ifdef __CUDA_ARCH__
	if (c->lane == 0) {
		__threadfence();
		last = atomicAdd((unsigned long long *)pending, ~0ull) == 1;
		__threadfence();
	}
	last = __syncthreads_or(last);
#else
	(void)pending;
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
#define HEADS 32u
#define KV    (HEADS / RAGGED_GROUP)
#define PAGE  16u
#define CHECKED 4 /* heads, or tokens */
#define DIM	1024u
#define HIDDEN	2048u
#define TOP	2u

struct turn {
	unsigned arrived, next;
	unsigned long long begin, end;
};

static __device__ unsigned long long gpu_ns(void)
{
	unsigned long long ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
	return ns;
}

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
	struct loom_ctx c = {threadIdx.x, LOOM_LANES, {r}, {scratch}};
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

template <class Job> static __global__ void __launch_bounds__(LOOM_LANES) by_grid(Job *r, const struct loom_task *task)
{
	struct loom_ctx c = {threadIdx.x, LOOM_LANES, {r}, {scratch}};
	do_task(&c, r, task + blockIdx.x);
}

static __host__ __device__ uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Returns random number i as float16 or bfloat16: its absolute value is at least 1/16 and below 1. */
static __host__ __device__ uint16_t random_half(uint64_t i, uint32_t bfloat)
{
	uint64_t x = mix(i), sign = (x & 1) << 15;
	return (uint16_t)(sign | (bfloat ? (123 + (x >> 1 & 3)) << 7 | (x >> 8 & 127) : (11 + (x >> 1 & 3)) << 10 | (x >> 8 & 1023)));
}

static __global__ void fill(uint16_t *to, uint64_t n, uint64_t first, uint32_t bfloat)
{
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
		to[i] = random_half(first + i, bfloat);
}

/* ---- host ---- */

/* Launches the kernel TURNS times, and prints the metrics. reset() sets all that a launch changes. `bytes` are those that a launch
 * has to read, `shared` those of a block. */
template <class Job, int blocks, class Reset>
static void measure(int persistent, Job *r, const struct loom_task *task, unsigned tasks, unsigned shared, double bytes,
		    uint64_t plan_ns, Reset reset)
{
	const auto kernel = by_counter<Job, blocks>;
	int each = 0, sms = 0;
	struct turn *turn, was;
	float us[TURNS], launch[TURNS];
	MUST(cudaMalloc(&turn, sizeof(*turn)));
	MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
	MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, LOOM_LANES, shared));
	for (int i = -2; i < TURNS; i++) {
		void *arguments[] = {&r, &task, &tasks, &turn};
		MUST(cudaMemset(turn, 0, sizeof(*turn)));
		reset();
		gpu_busy();
		float time = gpu_us([&] {
			if (persistent)
				MUST(cudaLaunchCooperativeKernel((const void *)kernel, each * sms, LOOM_LANES, arguments, shared,
								 NULL));
			else
				by_grid<<<tasks, LOOM_LANES, shared>>>(r, task);
			MUST(cudaGetLastError());
		});
		MUST(cudaMemcpy(&was, turn, sizeof(was), cudaMemcpyDeviceToHost));
		if (i >= 0) {
			launch[i] = time;
			us[i] = persistent ? (was.end - was.begin) * 1e-3f : time;
		}
	}
	double seconds = median(us, TURNS) * 1e-6;
	printf("{\"seconds\": %.9g, \"bytes_per_s\": {\"value\": %.9g, \"unit\": \"B/s\", \"better\": \"more\"}, "
	       "\"launch_ns\": {\"value\": %.9g, \"unit\": \"ns\", \"better\": \"less\"}, "
	       "\"plan_ns\": {\"value\": %llu, \"unit\": \"ns\", \"better\": \"less\"}}\n",
	       seconds, bytes / seconds, median(launch, TURNS) * 1e3, (unsigned long long)plan_ns);
}

template <class T> static void send(const std::vector<T> &from, void *block, uint64_t at)
{
	MUST(cudaMemcpy((char *)block + at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
}

struct batch {
	std::vector<uint32_t> length, start, table;
	std::vector<uint64_t> pending;
	std::vector<struct loom_task> task;
	uint64_t tokens, numbers, parts, bytes; /* numbers: of all pages; bytes: of the block */
	struct ragged head;
};

/* Sets the offsets of the arrays, as workload_ragged does. */
static void place(struct batch *b)
{
	uint64_t at = sizeof(b->head), n = b->length.size();
#define PLACE(what, size) (b->head.what##_at = at, at = (at + (size) + 63) & ~63ull)
	PLACE(start, (n + 1) * 4);
	PLACE(table, b->table.size() * 4);
	PLACE(pages, b->numbers * 2);
	PLACE(queries, n * HEADS * RAGGED_DIM * 2);
	PLACE(pending, n * KV * 8);
	PLACE(parts, b->parts * RAGGED_GROUP * (RAGGED_DIM + 2) * 4);
	PLACE(out, n * HEADS * RAGGED_DIM * 4);
#undef PLACE
	b->bytes = at;
}

static void make_batch(struct batch *b, uint32_t chunk)
{
	uint32_t pages;
	b->head = {};
	b->head.sequences = b->length.size();
	b->head.heads = HEADS;
	b->head.kv = KV;
	b->head.group = RAGGED_GROUP;
	b->head.dim = RAGGED_DIM;
	b->head.tile = RAGGED_TILE;
	b->head.page_log2 = __builtin_ctz(PAGE);
	b->head.chunk = chunk;
	b->head.scale = (float)(1.4426950408889634 / sqrt((double)RAGGED_DIM));
	b->tokens = 0;
	for (uint32_t n : b->length) {
		b->start.push_back(b->tokens);
		b->tokens += n;
		for (uint32_t kv = 0; kv < KV; kv++)
			b->pending.push_back(pieces_of(n, chunk));
	}
	b->start.push_back(b->tokens);
	pages = pieces_room(b->tokens, b->length.size(), PAGE);
	b->parts = (uint64_t)pieces_room(b->tokens, b->length.size(), chunk) * KV;
	for (uint32_t i = 0; i < pages; i++)
		b->table.push_back(i);
	for (uint32_t i = pages; i > 1; i--)
		std::swap(b->table[i - 1], b->table[mix(i) % i]);
	b->numbers = pages * KV * 2 * PAGE * RAGGED_DIM;
	place(b);
}

static uint32_t tokens_of(const struct loom_task &t)
{
	return (uint32_t)(t.param[1] >> 32);
}

/* Makes the tasks, the longest first, and copies them to the GPU. Returns the time that this took. */
static uint64_t plan(struct batch *b, struct loom_task *on_gpu)
{
	uint64_t begin = now_ns();
	b->task.clear();
	for (uint32_t i = 0; i < b->length.size(); i++)
		for (uint32_t kv = 0; kv < KV; kv++)
			for (uint32_t k = 0; k < pieces_of(b->length[i], b->head.chunk); k++) {
				b->task.emplace_back();
				ragged_fill(&b->head, i, kv, b->length[i], k, &b->task.back());
			}
	std::stable_sort(b->task.begin(), b->task.end(),
			 [](const struct loom_task &x, const struct loom_task &y) { return tokens_of(x) > tokens_of(y); });
	MUST(cudaMemcpy(on_gpu, b->task.data(), b->task.size() * sizeof(*on_gpu), cudaMemcpyHostToDevice));
	return now_ns() - begin;
}

static double value_of(uint64_t i)
{
	__half_raw raw;
	raw.x = random_half(i, 0);
	return __half2float(__half(raw));
}

/* Returns the largest error of a head of a sequence. */
static double head_is_off(const struct batch *b, uint32_t sequence, uint32_t head, const float *out)
{
	uint32_t n = b->length[sequence];
	std::vector<double> score(n), sum(RAGGED_DIM);
	double highest = -1e300, total = 0, worst = 0;
	/* The index of the first number of a token's keys; its values are one page of tokens further. */
	auto at = [&](uint32_t t) {
		uint64_t page = b->table[pieces_first(b->start.data(), sequence, PAGE) + t / PAGE];
		return ((page * KV + head / RAGGED_GROUP) * 2 * PAGE + t % PAGE) * RAGGED_DIM;
	};
	for (uint32_t t = 0; t < n; t++) {
		for (uint32_t d = 0; d < RAGGED_DIM; d++)
			score[t] += value_of(b->numbers + ((uint64_t)sequence * HEADS + head) * RAGGED_DIM + d) * value_of(at(t) + d);
		score[t] /= sqrt((double)RAGGED_DIM);
		highest = std::max(highest, score[t]);
	}
	for (uint32_t t = 0; t < n; t++) {
		double weight = exp(score[t] - highest);
		total += weight;
		for (uint32_t d = 0; d < RAGGED_DIM; d++)
			sum[d] += weight * value_of(at(t) + PAGE * RAGGED_DIM + d);
	}
	for (uint32_t d = 0; d < RAGGED_DIM; d++) {
		double off = fabs(sum[d] / total - out[((uint64_t)sequence * HEADS + head) * RAGGED_DIM + d]);
		worst = off <= worst ? worst : off;
	}
	return worst;
}

static int check(const struct batch *b, const char *block)
{
	std::vector<float> out(b->length.size() * HEADS * RAGGED_DIM);
	MUST(cudaMemcpy(out.data(), block + b->head.out_at, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
	for (float x : out)
		if (!isfinite(x)) {
			fprintf(stderr, "a head has no output\n");
			return 3;
		}
	for (uint32_t i = 0; i < CHECKED; i++) {
		uint32_t s = mix(now_ns()) % b->length.size(), h = mix(i + 99) % HEADS;
		double off = head_is_off(b, s, h, out.data());
		if (!(off < 0x1p-16)) { /* workload_ragged has the same limit */
			fprintf(stderr, "sequence %u, head %u is off by %g\n", s, h, off);
			return 3;
		}
	}
	return 0;
}

static int attention(int persistent, struct batch *b)
{
	char *block;
	struct loom_task *task;
	MUST(cudaMalloc(&block, b->bytes));
	MUST(cudaMalloc(&task, b->parts * sizeof(*task)));
	MUST(cudaMemcpy(block, &b->head, sizeof(b->head), cudaMemcpyHostToDevice));
	send(b->start, block, b->head.start_at);
	send(b->table, block, b->head.table_at);
	fill<<<1024, 256>>>((uint16_t *)(block + b->head.pages_at), b->numbers, 0, 0);
	fill<<<64, 256>>>((uint16_t *)(block + b->head.queries_at), b->length.size() * HEADS * RAGGED_DIM, b->numbers, 0);
	plan(b, task); /* for the first time, which takes longer */
	uint64_t plan_ns = plan(b, task);
	measure<struct ragged, 1>(persistent, (struct ragged *)block, task, b->task.size(),
				  ragged_scratch_of_warps(LOOM_LANES, RAGGED_DIM, RAGGED_GROUP).bytes,
				  (double)b->tokens * KV * RAGGED_DIM * 4, plan_ns, [&] {
		send(b->pending, block, b->head.pending_at);
		MUST(cudaMemset(block + b->head.out_at, 0xff, b->bytes - b->head.out_at)); /* NaN */
	});
	return check(b, block);
}

/* ---- experts ---- */

struct layer {
	std::vector<uint32_t> count, start, order, place;
	std::vector<uint64_t> pending, open;
	std::vector<float> x, weight;
	std::vector<struct loom_task> task;
	uint64_t weights, bytes, read; /* weights: numbers of a matrix of all experts; bytes: of the block; read: of the weights */
	struct experts head;
};

/* Makes the layer as workload_experts does. Slots are in the order of their experts. */
static void make_layer(struct layer *l)
{
	uint32_t slots = 0, n = l->count.size();
	for (uint32_t e = 0; e < n; slots += l->count[e++])
		l->start.push_back(slots);
	l->start.push_back(slots);
	l->head = {};
	l->head.experts = n;
	l->head.tokens = slots / TOP;
	l->head.top = TOP;
	l->head.dim = DIM;
	l->head.hidden = HIDDEN;
	l->head.rows = EXPERTS_ROWS;
	l->head.block = EXPERTS_BLOCK;
	l->head.bfloat = EXPERTS_BFLOAT;
	l->weights = (uint64_t)n * DIM * HIDDEN;
	for (uint32_t i = 0; i < slots; i++) {
		l->order.push_back((i * TOP) % slots + (i * TOP) / slots); /* a token's slots are far from each other */
		l->weight.push_back(1.0f / TOP);
	}
	l->place.resize(slots);
	for (uint32_t i = 0; i < slots; i++)
		l->place[l->order[i]] = i;
	for (uint64_t i = 0; i < l->head.tokens * DIM; i++)
		l->x.push_back((float)((int64_t)mix(~i) * 0x1p-63 / sqrt(DIM)));
	l->open.assign(l->head.tokens, TOP);
	for (uint32_t i = 0; i < pieces_room(slots, n, EXPERTS_BLOCK); i++) {
		l->pending.push_back(HIDDEN / EXPERTS_ROWS);
		l->pending.push_back(DIM / EXPERTS_ROWS);
	}
	uint64_t at = sizeof(l->head);
#define PLACE(what, size) (l->head.what##_at = at, at = (at + (size) + 63) & ~63ull)
	PLACE(first_slot, (n + 1) * 4ull);
	PLACE(order, slots * 4ull);
	PLACE(weight, slots * 4ull);
	PLACE(place, slots * 4ull);
	PLACE(x, l->x.size() * 4);
	PLACE(first, l->weights * 2);
	PLACE(second, l->weights * 2);
	PLACE(pending, l->pending.size() * 8);
	PLACE(open, l->open.size() * 8);
	PLACE(hidden, slots * HIDDEN * 4ull);
	PLACE(result, slots * DIM * 4ull);
	PLACE(out, l->x.size() * 4);
#undef PLACE
	l->bytes = at;
	l->read = 0;
	for (uint32_t e = 0; e < n; e++)
		l->read += l->count[e] ? DIM * HIDDEN * 4 : 0;
}

static uint64_t plan(struct layer *l, struct loom_task *on_gpu)
{
	uint64_t begin = now_ns();
	const struct experts *r = &l->head;
	l->task.clear();
	for (uint32_t second = 0; second < 2; second++)
		for (uint32_t e = 0; e < r->experts; e++)
			for (uint32_t b = 0; b < pieces_of(l->count[e], r->block); b++)
				for (uint32_t t = 0; t < (second ? DIM : HIDDEN) / r->rows; t++) {
					l->task.emplace_back();
					experts_fill(r, e, second, t, l->start[e] + b * r->block,
						     std::min(r->block, l->count[e] - b * r->block),
						     pieces_first(l->start.data(), e, r->block) + b, &l->task.back());
				}
	auto key = [](const struct loom_task &t) { return std::make_pair(t.param[0] >> 32, ~(t.param[2] >> 32)); };
	std::stable_sort(l->task.begin(), l->task.end(),
			 [&](const struct loom_task &x, const struct loom_task &y) { return key(x) < key(y); });
	MUST(cudaMemcpy(on_gpu, l->task.data(), l->task.size() * sizeof(*on_gpu), cudaMemcpyHostToDevice));
	return now_ns() - begin;
}

static double weight_of(uint64_t i)
{
	uint32_t bits = random_half(i, 1) << 16;
	float x;
	memcpy(&x, &bits, 4);
	return x;
}

/* Returns the largest error of a token's output, in units of the expected rounding error, as workload_experts does. */
static double token_is_off(const struct layer *l, uint32_t token, const float *out)
{
	std::vector<double> sum(DIM), hidden(HIDDEN);
	double size = 0, worst = 0;
	for (uint32_t k = 0; k < TOP; k++) {
		uint32_t place = l->place[token * TOP + k], e = 0;
		while (l->start[e + 1] <= place)
			e++;
		uint64_t at = (uint64_t)e * DIM * HIDDEN;
		for (uint32_t i = 0; i < HIDDEN; i++) {
			double a = 0;
			for (uint32_t d = 0; d < DIM; d++)
				a += weight_of(at + (uint64_t)i * DIM + d) * l->x[token * DIM + d];
			hidden[i] = a / (1 + exp(-a));
		}
		for (uint32_t d = 0; d < DIM; d++)
			for (uint32_t i = 0; i < HIDDEN; i++)
				sum[d] += weight_of(l->weights + at + (uint64_t)d * HIDDEN + i) * hidden[i] / TOP;
	}
	for (double x : sum)
		size += x * x;
	size = sqrt(size / DIM) * 0x1p-24 * sqrt((double)DIM * HIDDEN);
	for (uint32_t d = 0; d < DIM; d++) {
		double off = fabs(out[token * DIM + d] - sum[d]) / size;
		worst = off <= worst ? worst : off;
	}
	return worst;
}

static int routed(struct layer *l)
{
	char *block;
	struct loom_task *task;
	const unsigned warps = LOOM_LANES / TILE_WARP, areas = std::min(warps, TILE_AREAS) * EXPERTS_AREA(EXPERTS_ROWS, EXPERTS_BLOCK) * 4;
	make_layer(l);
	MUST(cudaMalloc(&block, l->bytes));
	MUST(cudaMalloc(&task, l->pending.size() * (DIM + HIDDEN) / EXPERTS_ROWS * sizeof(*task)));
	MUST(cudaMemcpy(block, &l->head, sizeof(l->head), cudaMemcpyHostToDevice));
	send(l->start, block, l->head.first_slot_at);
	send(l->order, block, l->head.order_at);
	send(l->weight, block, l->head.weight_at);
	send(l->place, block, l->head.place_at);
	send(l->x, block, l->head.x_at);
	fill<<<1024, 256>>>((uint16_t *)(block + l->head.first_at), l->weights, 0, 1);
	fill<<<1024, 256>>>((uint16_t *)(block + l->head.second_at), l->weights, l->weights, 1);
	plan(l, task); /* for the first time, which takes longer */
	uint64_t plan_ns = plan(l, task);
	measure<struct experts, 3>(1, (struct experts *)block, task, l->task.size(),
				   std::max(areas, warps * EXPERTS_RING(EXPERTS_AHEAD, EXPERTS_BLOCK)), l->read, plan_ns, [&] {
		MUST(cudaMemset(block + l->head.hidden_at, 0xff, l->bytes - l->head.hidden_at)); /* NaN */
		send(l->pending, block, l->head.pending_at);
		send(l->open, block, l->head.open_at);
	});
	std::vector<float> out(l->x.size());
	MUST(cudaMemcpy(out.data(), block + l->head.out_at, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < l->head.tokens + CHECKED; i++) {
		uint32_t token = i < l->head.tokens ? i : mix(now_ns()) % l->head.tokens;
		double off = i < l->head.tokens ? out[i * DIM] * 0 : token_is_off(l, token, out.data());
		if (!(off <= 8)) { /* workload_experts has the same limit */
			fprintf(stderr, "token %u is off by %g times the rounding of its sums\n", token, off);
			return 3;
		}
	}
	return 0;
}

static int copy(void)
{
	const size_t bytes = 1ull << 30;
	char *from, *to;
	float us[TURNS];
	MUST(cudaMalloc(&from, bytes));
	MUST(cudaMalloc(&to, bytes));
	MUST(cudaMemset(from, 1, bytes));
	for (int i = 0; i < TURNS; i++)
		us[i] = gpu_us([&] { MUST(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice)); });
	double seconds = median(us, TURNS) * 1e-6;
	printf("{\"seconds\": %.9g, \"bytes_per_s\": {\"value\": %.9g, \"unit\": \"B/s\", \"better\": \"more\"}}\n", seconds,
	       2.0 * bytes / seconds);
	return 0;
}

int main(int argc, char **argv)
{
	struct batch b;
	struct layer l;
	const int layered = argc == 3 && !strcmp(argv[1], "experts");
	unsigned one, chunk = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (argc == 2 && !strcmp(argv[1], "copy"))
		return copy();
	FILE *f = argc == 4 || layered ? fopen(argv[2], "r") : NULL;
	while (f && fscanf(f, "%u", &one) == 1 && (one || layered))
		(layered ? l.count : b.length).push_back(one);
	if (layered && !l.count.empty())
		return routed(&l);
	if (b.length.empty() || !chunk || chunk % PAGE || (strcmp(argv[1], "counter") && strcmp(argv[1], "grid"))) {
		fprintf(stderr, "usage: %s counter|grid LENGTHS CHUNK, experts COUNTS, or copy; CHUNK is a multiple of %u\n", argv[0],
			PAGE);
		return 2;
	}
	make_batch(&b, chunk);
	return attention(!strcmp(argv[1], "counter"), &b);
}
