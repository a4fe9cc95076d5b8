/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what a scheduler costs per task on a GPU, for bench/gpu.sh tax. The tasks are equal, and a task reads its part of a
 * large buffer.
 *
 *   gpu_tax BUILD [TURNS]         uses the plug-ins of BUILD
 *
 * Prints two lines per scheduler, with medians of TURNS runs in turns:
 *   handoff SCHEDULER US      time from a task of a worker to the next one: a run of empty tasks, by tasks per worker
 *   tax SCHEDULER RATIO US    a run of WAVES tasks per worker over one launch with a block for each task, which the hardware
 *                             starts as blocks end; US is the time of the launch, by tasks per worker
 * The time of a run counts from the moment at which the resident workers begin, that of the launch by events, while the GPU is
 * busy until the launch is queued. */
#include <gpuloom/gpuloom.h>

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

static __global__ void __launch_bounds__(LANES) launched(const uint4 *from, uint4 *sink)
{
	body(from + (uint64_t)blockIdx.x * WORDS, WORDS, threadIdx.x, sink);
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
	std::vector<double> empty, full, launch; /* us */
};

static double run(stack &s, uint64_t tasks, uint32_t words)
{
	std::vector<loom_task> all(tasks);
	loom_result *result;
	double seconds;
	for (uint64_t i = 0; i < tasks; i++) {
		all[i] = loom_task();
		all[i].tag = s.tag;
		all[i].param[0] = i * words;
		all[i].param[1] = words;
		all[i].data.ref = s.ref;
	}
	must(loom_stack_submit(s.at, all.data(), tasks, &err));
	must(loom_stack_run(s.at, &result, &err));
	if (loom_result_sample(result, 0, "seconds", &seconds))
		exit(1);
	if (!s.workers) {
		char *json = loom_result_json(result);
		for (const char *at = json; (at = strstr(at, "\"last_task_ns\"")); at++)
			s.workers++;
		free(json);
	}
	loom_result_destroy(result);
	return seconds * 1e6;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"static", "counter", "plan", "mgws"};
	static const char *const task[] = {"read"};
	const int turns = argc > 2 ? atoi(argv[2]) : 20;
	std::vector<stack> stacks;
	cudaDeviceProp gpu;
	uint4 *data;
	if (argc < 2 || turns < 1) {
		fprintf(stderr, "usage: gpu_tax BUILD [TURNS]\n");
		return 2;
	}
	MUST(cudaGetDeviceProperties(&gpu, 0));
	const uint64_t most = (uint64_t)gpu.multiProcessorCount * (gpu.maxThreadsPerMultiProcessor / LANES);
	const uint64_t bytes = most * WAVES * WORDS * sizeof(*data);
	MUST(cudaMalloc(&data, bytes));
	MUST(cudaMemset(data, 0, bytes));
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
		if (!s.workers || s.workers > most)
			return 1;
		stacks.push_back(s);
	}
	for (int turn = -2; turn < turns; turn++) /* two turns of warm-up */
		for (stack &s : stacks) {
			double empty = run(s, (uint64_t)EMPTY * s.workers, 0), full = run(s, (uint64_t)WAVES * s.workers, WORDS);
			gpu_busy();
			double launch = gpu_us([&] { launched<<<WAVES * s.workers, LANES>>>(data, data); });
			if (turn < 0)
				continue;
			s.empty.push_back(empty / EMPTY);
			s.full.push_back(full / WAVES);
			s.launch.push_back(launch / WAVES);
		}
	for (stack &s : stacks) {
		double launch_us = median(s.launch.data(), turns), full = median(s.full.data(), turns);
		fprintf(stderr, "%s: %u workers\n", s.name, s.workers);
		printf("handoff %s %.4f\n", s.name, median(s.empty.data(), turns));
		printf("tax %s %.4f %.2f\n", s.name, full / launch_us, launch_us);
		loom_stack_close(s.at);
		loom_config_destroy(s.cfg);
	}
	return 0;
}
