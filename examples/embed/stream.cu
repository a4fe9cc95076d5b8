/* SPDX-License-Identifier: Apache-2.0 */
/* Executes kernels of the program and runs of gpuloom in one CUDA stream, on memory of the program. Neither waits for the
 * host. Then captures the same work as a CUDA graph, and replays it.
 *
 *   ./stream [N [REPLAYS]]
 *
 * A step does this twice: a kernel of the program doubles N numbers, and tasks add 1 to each. Idle workers may steal tasks. */
#include <gpuloom/gpuloom.h>

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const char conf[] = "[run]\ndevices = cuda:0\n[transport]\nuse = p2p\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n";

/* param[0]: index of the first number; param[1]: how many numbers. A task with more than 1,024 splits in halves. */
static const char source[] = R"(
LOOM_FN void add(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t first = t->param[0], n = t->param[1];
	uint32_t *number = (uint32_t *)loom_at(c, t->data.ref);
	if (n > 1024) {
		struct loom_task half = *t;
		half.param[1] = n / 2;
		if (LOOM_CALL(sched, spawn, c, &half))
			return;
		half.param[0] = first + n / 2;
		half.param[1] = n - n / 2;
		LOOM_CALL(sched, spawn, c, &half);
		return;
	}
	for (uint64_t i = first + c->lane; i < first + n; i += c->lanes)
		number[i] += 1;
}
)";

__global__ void twice(uint32_t *number, uint64_t n)
{
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
		number[i] *= 2;
}

static loom_error err;

static void must(int code)
{
	if (!code)
		return;
	fprintf(stderr, "stream: %s\n", err.text);
	exit(1);
}

static void must(cudaError_t code)
{
	if (code == cudaSuccess)
		return;
	fprintf(stderr, "stream: %s\n", cudaGetErrorString(code));
	exit(1);
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1000000;
	unsigned replays = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	loom_config *cfg;
	loom_stack *stack;
	const char *const names[] = {"add"};
	uint32_t tag, *number;
	loom_ref ref;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t made;

	must(cudaMalloc(&number, n * sizeof(*number)));
	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	must(loom_config_create(&cfg, &err));
	must(loom_config_load_text(cfg, "built in", conf, &err));
	must(loom_stack_open(cfg, nullptr, &stack, &err));
	must(loom_stack_source(stack, "add", source, names, 1, &tag, &err));
	must(loom_stack_adopt(stack, number, n * sizeof(*number), &ref, &err));

	loom_task all = {};
	all.tag = tag;
	all.param[1] = n;
	all.data.ref = ref;
	auto step = [&] {
		for (int i = 0; i < 2; i++) {
			twice<<<256, 256, 0, stream>>>(number, n);
			must(cudaGetLastError());
			must(loom_stack_submit(stack, &all, 1, &err));
			must(loom_stack_enqueue(stack, stream, &err));
		}
	};

	/* Execute a step in the stream. Its first run compiles the tasks. */
	must(cudaMemsetAsync(number, 0, n * sizeof(*number), stream));
	step();
	must(loom_stack_wait(stack, UINT64_MAX, nullptr, &err));

	/* Capture a step as a graph, and replay it. */
	must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	step();
	must(cudaStreamEndCapture(stream, &graph));
	must(cudaGraphInstantiate(&made, graph, 0));
	must(cudaStreamSynchronize(stream));
	auto begin = std::chrono::steady_clock::now();
	for (unsigned i = 0; i < replays; i++)
		must(cudaGraphLaunch(made, stream));
	must(cudaStreamSynchronize(stream));
	std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
	must(loom_stack_wait(stack, UINT64_MAX, nullptr, &err)); /* returns the first error of all replays */

	uint32_t want = 0;
	for (unsigned i = 0; i < 2 * (replays + 1); i++)
		want = 2 * want + 1;
	std::vector<uint32_t> got(n);
	must(cudaMemcpy(got.data(), number, n * sizeof(*number), cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < n; i++)
		if (got[i] != want) {
			fprintf(stderr, "stream: number %llu is %u, not %u\n", (unsigned long long)i, got[i], want);
			return 1;
		}
	printf("%u replays of 2 kernels and 2 runs: right; %.1f us each\n", replays, us.count() / replays);

	cudaGraphExecDestroy(made);
	cudaGraphDestroy(graph);
	loom_stack_close(stack); /* does not free the numbers, which the program owns */
	loom_config_destroy(cfg);
	cudaFree(number);
	cudaStreamDestroy(stream);
	return 0;
}
