/* SPDX-License-Identifier: Apache-2.0 */
/* Decode attention over paged sequences without gpuloom, for bench/gpu.sh uneven: plain CUDA, float16, 128 numbers per head.
 *
 *   gpu_uneven LENGTHS HEADS KV_HEADS PAGE CHUNK       LENGTHS: a file with the tokens of a sequence per line
 *   gpu_uneven copy                                   bandwidth of a device copy of 1 GiB, read and written bytes
 *
 * There are two variants. counter: a persistent kernel whose blocks take chunks from an atomic counter. grid: one block
 * per chunk, scheduled by the hardware. In both variants a half warp processes one token at a time, while the loads of
 * four tokens are in flight. The chunk of a sequence and head that ends last combines the partial results. Some heads
 * are compared with a computation in double precision on the host. Each output line has the name, bytes of keys and
 * values per second, and seconds, as medians of TURNS runs. */
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <vector>

#include "gpu_must.h"

#define TURNS 20
#define DIM 128
#define THREADS 128
#define ROWS (THREADS / 16) /* the number of half warps in a block */

struct Task {
	uint32_t sequence, kv, from, tokens, chunk, chunks, part, pad;
};

struct Job {
	const Task *task;
	uint32_t tasks, heads, kv, page_log2;
	const uint32_t *table, *first_page;
	const __half *pages, *queries;
	uint32_t *pending, *next;
	float *parts, *out;
};

static __host__ __device__ const __half *keys_of(const Job &j, uint32_t sequence, uint32_t kv, uint32_t token)
{
	uint64_t page = j.table[j.first_page[sequence] + (token >> j.page_log2)];
	return j.pages + (((page * j.kv + kv) * 2) << j.page_log2) * DIM + (uint64_t)(token & ((1u << j.page_log2) - 1)) * DIM;
}

static __device__ void eight(const uint4 &x, float *to)
{
	const __half2 *h = reinterpret_cast<const __half2 *>(&x);
	for (int i = 0; i < 4; i++) {
		float2 f = __half22float2(h[i]);
		to[2 * i] = f.x;
		to[2 * i + 1] = f.y;
	}
}

template <int G> struct Sums {
	float peak[G], total[G], sum[G][8];
};

template <int G> static __device__ void add_token(Sums<G> &s, const float (*q)[8], const uint4 &key, const uint4 &value)
{
	float k[8], v[8];
	eight(key, k);
	eight(value, v);
#pragma unroll
	for (int g = 0; g < G; g++) {
		float score = 0;
#pragma unroll
		for (int i = 0; i < 8; i++)
			score += q[g][i] * k[i];
#pragma unroll
		for (int step = 8; step; step /= 2)
			score += __shfl_xor_sync(0xffffffffu, score, step, 16);
		float peak = fmaxf(s.peak[g], score), scale = exp2f(s.peak[g] - peak), weight = exp2f(score - peak);
		s.peak[g] = peak;
		s.total[g] = s.total[g] * scale + weight;
#pragma unroll
		for (int i = 0; i < 8; i++)
			s.sum[g][i] = s.sum[g][i] * scale + weight * v[i];
	}
}

template <int G> static __device__ void run_task(const Job &j, const Task &t)
{
	__shared__ float shared[ROWS][G][DIM + 2];
	__shared__ uint32_t last;
	const uint32_t row = threadIdx.x / 16, d = threadIdx.x % 16 * 8;
	const __half *queries = j.queries + ((uint64_t)t.sequence * j.heads + t.kv * G) * DIM;
	const uint64_t to_values = (uint64_t)DIM << j.page_log2;
	float q[G][8];
	Sums<G> s;
	for (int g = 0; g < G; g++) {
		s.peak[g] = -1e30f;
		s.total[g] = 0;
		for (int i = 0; i < 8; i++) {
			q[g][i] = __half2float(queries[g * DIM + d + i]) * (1.44269504f * 0.08838834765f);
			s.sum[g][i] = 0;
		}
	}
	/* All half warps take the same number of steps, because they shuffle. Tokens after the end do not change the
	 * sums. */
	for (uint32_t at = 0; at < t.tokens; at += 4 * ROWS) {
		uint4 k[4], v[4];
#pragma unroll
		for (int n = 0; n < 4; n++) {
			uint32_t token = at + n * ROWS + row;
			const __half *from = keys_of(j, t.sequence, t.kv, t.from + (token < t.tokens ? token : 0)) + d;
			k[n] = __ldg(reinterpret_cast<const uint4 *>(from));
			v[n] = __ldg(reinterpret_cast<const uint4 *>(from + to_values));
		}
#pragma unroll
		for (int n = 0; n < 4; n++) {
			Sums<G> before = s;
			add_token<G>(s, q, k[n], v[n]);
			if (at + n * ROWS + row >= t.tokens)
				s = before;
		}
	}
	for (int g = 0; g < G; g++) {
		for (int i = 0; i < 8; i++)
			shared[row][g][d + i] = s.sum[g][i];
		shared[row][g][DIM] = s.peak[g];
		shared[row][g][DIM + 1] = s.total[g];
	}
	__syncthreads();
	float *part = j.parts + (uint64_t)t.part * G * (DIM + 2);
	float *out = j.out + ((uint64_t)t.sequence * j.heads + t.kv * G) * DIM;
	for (uint32_t i = threadIdx.x; i < G * DIM; i += THREADS) {
		uint32_t g = i / DIM;
		float peak = -1e30f, above = 0, below = 0;
		for (int r = 0; r < ROWS; r++)
			peak = fmaxf(peak, shared[r][g][DIM]);
		for (int r = 0; r < ROWS; r++) {
			float scale = exp2f(shared[r][g][DIM] - peak);
			above += scale * shared[r][g][i % DIM];
			below += scale * shared[r][g][DIM + 1];
		}
		if (t.chunks == 1) {
			out[i] = above / below;
			continue;
		}
		part[g * (DIM + 2) + i % DIM] = above;
		part[g * (DIM + 2) + DIM] = peak;
		part[g * (DIM + 2) + DIM + 1] = below;
	}
	__syncthreads();
	if (t.chunks == 1)
		return;
	if (threadIdx.x == 0) {
		__threadfence();
		last = atomicAdd(&j.pending[t.sequence * j.kv + t.kv], 1u) + 1 == t.chunks;
		__threadfence();
	}
	__syncthreads();
	if (last)
		for (uint32_t i = threadIdx.x; i < G * DIM; i += THREADS) {
			const float *first = part - (uint64_t)t.chunk * G * (DIM + 2) + i / DIM * (DIM + 2);
			float peak = -1e30f, above = 0, below = 0;
			for (uint32_t c = 0; c < t.chunks; c++)
				peak = fmaxf(peak, first[(uint64_t)c * G * (DIM + 2) + DIM]);
			for (uint32_t c = 0; c < t.chunks; c++) {
				const float *of = first + (uint64_t)c * G * (DIM + 2);
				float scale = exp2f(of[DIM] - peak);
				above += scale * of[i % DIM];
				below += scale * of[DIM + 1];
			}
			out[i] = above / below;
		}
	__syncthreads();
}

template <int G> static __global__ void __launch_bounds__(THREADS) by_counter(Job j)
{
	__shared__ uint32_t at;
	for (;;) {
		if (threadIdx.x == 0)
			at = atomicAdd(j.next, 1u);
		__syncthreads();
		uint32_t mine = at;
		__syncthreads();
		if (mine >= j.tasks)
			return;
		run_task<G>(j, j.task[mine]);
	}
}

template <int G> static __global__ void __launch_bounds__(THREADS) by_grid(Job j)
{
	run_task<G>(j, j.task[blockIdx.x]);
}

template <int G> static void launch(const Job &j, int persistent)
{
	static int blocks;
	int each, device, multiprocessors;
	if (!blocks) {
		MUST(cudaGetDevice(&device));
		MUST(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
		MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, by_counter<G>, THREADS, 0));
		blocks = each * multiprocessors;
	}
	if (persistent)
		by_counter<G><<<blocks, THREADS>>>(j);
	else
		by_grid<G><<<j.tasks, THREADS>>>(j);
	MUST(cudaGetLastError());
}

static void launch_any(const Job &j, int persistent)
{
	switch (j.heads / j.kv) {
	case 1:
		return launch<1>(j, persistent);
	case 4:
		return launch<4>(j, persistent);
	case 8:
		return launch<8>(j, persistent);
	}
	fprintf(stderr, "1, 4 or 8 heads of queries for each head of keys\n");
	exit(2);
}

template <class T> static T *on_device(const std::vector<T> &from)
{
	T *to;
	MUST(cudaMalloc(&to, from.size() * sizeof(T)));
	MUST(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
	return to;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static __half random_half(uint64_t i)
{
	uint64_t x = mix(i);
	__half_raw raw;
	raw.x = (unsigned short)((x & 1) << 15 | (11 + (x >> 1 & 3)) << 10 | (x >> 8 & 1023));
	return __half(raw);
}

static double head_is_off(const Job &host, const std::vector<uint32_t> &length, uint32_t sequence, uint32_t head,
			  const float *out)
{
	uint32_t n = length[sequence];
	std::vector<double> score(n), sum(DIM);
	const __half *q = host.queries + ((uint64_t)sequence * host.heads + head) * DIM;
	double highest = -1e300, total = 0, worst = 0;
	for (uint32_t t = 0; t < n; t++) {
		const __half *k = keys_of(host, sequence, head / (host.heads / host.kv), t);
		for (int d = 0; d < DIM; d++)
			score[t] += (double)__half2float(q[d]) * __half2float(k[d]);
		score[t] /= sqrt((double)DIM);
		highest = std::max(highest, score[t]);
	}
	for (uint32_t t = 0; t < n; t++) {
		const __half *v = keys_of(host, sequence, head / (host.heads / host.kv), t) + ((uint64_t)DIM << host.page_log2);
		double weight = exp(score[t] - highest);
		total += weight;
		for (int d = 0; d < DIM; d++)
			sum[d] += weight * __half2float(v[d]);
	}
	for (int d = 0; d < DIM; d++) {
		double off = fabs(sum[d] / total - out[((uint64_t)sequence * host.heads + head) * DIM + d]);
		worst = off <= worst ? worst : off;
	}
	return worst;
}

static void copy()
{
	const size_t bytes = 1ull << 30;
	char *from, *to;
	float us[TURNS];
	MUST(cudaMalloc(&from, bytes));
	MUST(cudaMalloc(&to, bytes));
	MUST(cudaMemset(from, 1, bytes));
	for (int i = 0; i < TURNS; i++)
		us[i] = gpu_us([&] { MUST(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice)); });
	float seconds = median(us, TURNS) * 1e-6f;
	printf("copy %.6g %.6g\n", 2.0 * bytes / seconds, seconds);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "copy")) {
		copy();
		return 0;
	}
	if (argc < 6) {
		fprintf(stderr, "usage: %s LENGTHS HEADS KV_HEADS PAGE CHUNK\n", argv[0]);
		return 2;
	}
	FILE *f = fopen(argv[1], "r");
	std::vector<uint32_t> length, table, first_page;
	std::vector<Task> task;
	Job host = {};
	unsigned one, page = atoi(argv[4]), chunk = atoi(argv[5]);
	uint64_t tokens = 0, parts = 0, pages = 0, numbers;
	while (f && fscanf(f, "%u", &one) == 1)
		length.push_back(one);
	host.heads = atoi(argv[2]);
	host.kv = atoi(argv[3]);
	if (length.empty() || !host.kv || page & (page - 1) || !page || !chunk) {
		fprintf(stderr, "no lengths in %s, or impossible arguments\n", argv[1]);
		return 2;
	}
	host.page_log2 = __builtin_ctz(page);
	for (uint32_t s = 0; s < length.size(); s++) {
		uint32_t chunks = (length[s] + chunk - 1) / chunk;
		first_page.push_back(pages);
		pages += (length[s] + page - 1) / page;
		tokens += length[s];
		for (uint32_t kv = 0; kv < host.kv; kv++)
			for (uint32_t c = 0; c < chunks; c++)
				task.push_back({s, kv, c * chunk, std::min(chunk, length[s] - c * chunk), c, chunks, (uint32_t)parts++, 0});
	}
	for (uint32_t i = 0; i < pages; i++)
		table.push_back(i);
	for (uint32_t i = pages; i > 1; i--)
		std::swap(table[i - 1], table[mix(i) % i]);
	numbers = pages * host.kv * 2 * page * DIM;
	std::vector<__half> data(numbers), queries(length.size() * host.heads * DIM);
	for (uint64_t i = 0; i < numbers; i++)
		data[i] = random_half(i);
	for (uint64_t i = 0; i < queries.size(); i++)
		queries[i] = random_half(numbers + i);
	host.table = table.data();
	host.first_page = first_page.data();
	host.pages = data.data();
	host.queries = queries.data();

	Job j = host;
	size_t outs = length.size() * host.heads * DIM, groups = host.heads / host.kv, pending = length.size() * host.kv;
	j.task = on_device(task);
	j.tasks = task.size();
	j.table = on_device(table);
	j.first_page = on_device(first_page);
	j.pages = on_device(data);
	j.queries = on_device(queries);
	MUST(cudaMalloc(&j.parts, parts * groups * (DIM + 2) * sizeof(float)));
	MUST(cudaMalloc(&j.out, outs * sizeof(float)));
	MUST(cudaMalloc(&j.pending, pending * sizeof(uint32_t)));
	MUST(cudaMalloc(&j.next, sizeof(uint32_t)));
	std::vector<float> out(outs);
	for (int persistent = 1; persistent >= 0; persistent--) {
		float us[TURNS];
		for (int turn = -2; turn < TURNS; turn++) {
			MUST(cudaMemset(j.pending, 0, pending * sizeof(uint32_t)));
			MUST(cudaMemset(j.next, 0, sizeof(uint32_t)));
			MUST(cudaMemset(j.out, 0xff, outs * sizeof(float)));
			float time = gpu_us([&] { launch_any(j, persistent); });
			if (turn >= 0)
				us[turn] = time;
		}
		MUST(cudaMemcpy(out.data(), j.out, outs * sizeof(float), cudaMemcpyDeviceToHost));
		for (uint32_t i = 0; i < 16; i++) {
			uint32_t s = mix(i) % length.size(), h = mix(i + 99) % host.heads;
			double off = head_is_off(host, length, s, h, out.data());
			if (!(off < 1e-5)) {
				fprintf(stderr, "sequence %u, head %u is off by %g\n", s, h, off);
				return 3;
			}
		}
		float seconds = median(us, TURNS) * 1e-6f;
		printf("%s %.6g %.6g\n", persistent ? "counter" : "grid", (double)tokens * host.kv * DIM * 4 / seconds, seconds);
	}
	return 0;
}
