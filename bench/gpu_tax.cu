/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what a scheduler costs per task on a GPU (bench/gpu.sh cost). The tasks are equal, and a task reads its part of a large
 * buffer.
 *
 *   gpu_tax BUILD [TURNS]         uses the plug-ins of BUILD
 *
 * Prints lines `sample FIGURE VALUE` for bench/figures.py, each once in a turn:
 *   handoff_SCHEDULER_us      time from a task of a worker to the next one: a run of empty tasks, by tasks per worker
 *   tax_SCHEDULER             a run over launches of the same body that follow each other in a stream: one launch for each wave of
 *                             tasks, with a block for each worker
 *   tax_SCHEDULER_wave_us     the time of one of these launches
 *   tax_SCHEDULER_one_launch  the same run over one launch that has a block for each task; the GPU starts a block when another ends
 * The clock of all three is that of the GPU: from the start of the first worker or block to the end of the last task or block. So
 * the time between two launches of a stream is inside, and so is all that workers do from task to task. Outside are the
 * submission, the time until the GPU begins, and the time until the host sees the end. */
#include <gpuloom/gpuloom.h>

#include <algorithm>
#include <stdint.h>
#include <string.h>
#include <string>
#include <vector>

#include "gpu_must.h"

#define WAVES 32
#define EMPTY 256 /* empty tasks per worker */
#define LANES 128
#define WORDS 4096u /* 16 bytes each; a wave must not fit into the L2 cache */

/* The body, as code for the launches and as text for the tasks. */
#define BODY                                                                                                        \
	static __device__ __forceinline__ void body(const uint4 *from, uint32_t words, uint32_t lane, uint4 *sink)  \
	{                                                                                                           \
		uint32_t sum = 0;                                                                                   \
		for (uint32_t i = lane; i < words; i += 128 * 4) {                                                  \
			uint4 v[4];                                                                                 \
			for (uint32_t k = 0; k < 4; k++)                                                            \
				v[k] = __ldcs(from + i + k * 128);                                                  \
			for (uint32_t k = 0; k < 4; k++)                                                            \
				sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;                                           \
		}                                                                                                   \
		if (sum == 1) /* never, because all numbers are even; the compiler does not know it */              \
			sink->x = sum;                                                                              \
	}
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

BODY

static const char source[] = TEXT(BODY) R"(
LOOM_FN void read(struct loom_ctx *c, const struct loom_task *t)
{
	const uint4 *all = (const uint4 *)loom_at(c, t->data.ref);
	body(all + t->param[0], (uint32_t)t->param[1], c->lane, (uint4 *)all);
}
)";

/* When a block began, and when each of its warps ended. */
struct span {
	uint64_t begin, end[LANES / 32];
};

static __global__ void __launch_bounds__(LANES) wave(const uint4 *from, uint4 *sink, span *spans)
{
	if (threadIdx.x == 0)
		spans[blockIdx.x].begin = gpu_ns();
	body(from + (uint64_t)blockIdx.x * WORDS, WORDS, threadIdx.x, sink);
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		spans[blockIdx.x].end[threadIdx.x / 32] = gpu_ns();
}

static loom_error err;

static void must(int code)
{
	if (code) {
		fprintf(stderr, "gpu_tax: %s\n", err.text);
		exit(1);
	}
}

struct stack {
	const char *name;
	loom_config *cfg;
	loom_stack *at;
	uint32_t tag, workers;
	loom_ref ref;
};

/* Returns the time in us from the start of the first worker to the end of the last task. */
static double run(stack &s, uint64_t tasks, uint32_t words)
{
	std::vector<loom_task> all(tasks);
	loom_result *result;
	double ns = 0;
	uint32_t workers = 0;
	for (uint64_t i = 0; i < tasks; i++) {
		all[i] = loom_task();
		all[i].tag = s.tag;
		all[i].param[0] = i * words;
		all[i].param[1] = words;
		all[i].data.ref = s.ref;
	}
	must(loom_stack_submit(s.at, all.data(), tasks, &err));
	must(loom_stack_run(s.at, &result, &err));
	char *json = loom_result_json(result); /* "last_task_ns": [NS] of each worker, from the start of the first worker */
	for (const char *at = json; (at = strstr(at, "\"last_task_ns\"")) && (at = strchr(at, '[')); workers++)
		ns = std::max(ns, strtod(at + 1, nullptr));
	free(json);
	loom_result_destroy(result);
	if (!workers || ns <= 0) {
		fprintf(stderr, "gpu_tax: the result of a run has no times of workers\n");
		exit(1);
	}
	s.workers = workers;
	return ns / 1e3;
}

/* Returns the time in us from the start of the first block to the end of the last one. `launches` launches have these blocks. */
static double launch(const uint4 *data, uint4 *sink, span *spans, uint32_t launches, uint64_t blocks)
{
	static std::vector<span> all;
	uint64_t begin = UINT64_MAX, end = 0, each = blocks / launches;
	for (uint32_t i = 0; i < launches; i++)
		wave<<<each, LANES>>>(data + i * each * WORDS, sink, spans + i * each);
	all.resize(blocks);
	MUST(cudaMemcpy(all.data(), spans, blocks * sizeof(*spans), cudaMemcpyDeviceToHost));
	for (const span &one : all) {
		begin = std::min(begin, one.begin);
		end = std::max(end, *std::max_element(one.end, one.end + LANES / 32));
	}
	return (end - begin) / 1e3;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"static", "counter", "plan", "mgws"};
	static const char *const task[] = {"read"};
	const int turns = argc > 2 ? atoi(argv[2]) : 20;
	std::vector<stack> stacks;
	cudaDeviceProp gpu;
	uint4 *data;
	span *spans;
	if (argc < 2 || turns < 1) {
		fprintf(stderr, "usage: gpu_tax BUILD [TURNS]\n");
		return 2;
	}
	MUST(cudaGetDeviceProperties(&gpu, 0));
	const uint64_t most = (uint64_t)gpu.multiProcessorCount * (gpu.maxThreadsPerMultiProcessor / LANES);
	const uint64_t bytes = most * WAVES * WORDS * sizeof(*data);
	MUST(cudaMalloc(&data, bytes));
	MUST(cudaMemset(data, 0, bytes));
	MUST(cudaMalloc(&spans, most * WAVES * sizeof(*spans)));
	for (const char *name : names) {
		stack s = {};
		std::string conf = std::string("[gpuloom]\nplugin_path = ") + argv[1] +
				   "/plugins\n[run]\ndevices = cuda:0\n[device.cuda]\nlanes = 128\n[transport]\nuse = p2p\n"
				   "[scheduler]\nuse = " + name + "\n[termination]\nuse = counter\n";
		s.name = name;
		must(loom_config_create(&s.cfg, &err));
		must(loom_config_load_text(s.cfg, "gpu_tax", conf.c_str(), &err));
		must(loom_stack_open(s.cfg, nullptr, &s.at, &err));
		must(loom_stack_source(s.at, "read", source, task, 1, &s.tag, &err));
		must(loom_stack_adopt(s.at, data, bytes, &s.ref, &err));
		run(s, (uint64_t)EMPTY * most, 0); /* plan has room for as many tasks as its first run has */
		if (s.workers > most)
			return 1;
		printf("%s: %u workers\n", s.name, s.workers);
		stacks.push_back(s);
	}
	for (int turn = -2; turn < turns; turn++) /* two turns of warm-up */
		for (stack &s : stacks) {
			const uint64_t tasks = (uint64_t)WAVES * s.workers;
			double empty = run(s, (uint64_t)EMPTY * s.workers, 0), full = run(s, tasks, WORDS);
			double waves = launch(data, data, spans, WAVES, tasks), one = launch(data, data, spans, 1, tasks);
			if (turn < 0)
				continue;
			printf("sample handoff_%s_us %.4f\n", s.name, empty / EMPTY);
			printf("sample tax_%s %.4f\n", s.name, full / waves);
			printf("sample tax_%s_one_launch %.4f\n", s.name, full / one);
			printf("sample tax_%s_wave_us %.3f\n", s.name, waves / WAVES);
		}
	for (stack &s : stacks) {
		loom_stack_close(s.at);
		loom_config_destroy(s.cfg);
	}
	return 0;
}
