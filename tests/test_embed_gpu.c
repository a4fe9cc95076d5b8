/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a program that embeds a stack with GPUs: the driver's functions that a run calls; results, stops, time-outs and
 * errors of tasks in many runs of one stack; two stacks at once; a kernel that dies. tests/gpu/runs.sh runs this
 * program over a driver without a GPU. On a real GPU, call TEST_GPU=cuda:0 build/tests/test_embed_gpu. The environment
 * has: TEST_GPU, the devices; TEST_GPU_RESIDENT, the time for which workers stay after a run; TEST_GPU_RUNS, the number
 * of runs that are stopped (300); TEST_GPU_QUICK, set for quick = yes; TEST_GPU_APART, set if two devices are two GPUs. */
#include "embedder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "base/base.h"

/* The same constants as in tests/gpu/embed_task.dev.h. */
enum { EMBED_COUNT, EMBED_TREE, EMBED_SPIN, EMBED_FAIL, EMBED_TRAP };

static const char *scheduler = "mgws"; /* of open_with() */

static uint32_t devices(void)
{
	uint32_t n = 1;
	for (const char *at = getenv("TEST_GPU"); *at; at++)
		n += *at == ' ';
	return n;
}

static int has_cpu(void)
{
	return strstr(getenv("TEST_GPU"), "cpu") != NULL;
}

/* Returns 1 if workers stay on the GPU between runs. */
static int resident(void)
{
	const char *time = getenv("TEST_GPU_RESIDENT");
	return time && *time;
}

static void open_with(struct embedder *e, const char *workers, const char *timeout)
{
	static const char *const name[] = {"embed_task"};
	embedder_begin(e, getenv("TEST_GPU"));
	set(e, "scheduler", "use", scheduler);
	set(e, "run", "timeout", timeout);
	set(e, "device.gpu", "workers", workers);
	if (devices() > 1 && !getenv("TEST_GPU_APART"))
		set(e, strstr(getenv("TEST_GPU"), "hip") ? "device.hip.1" : "device.cuda.1", "gpu", "0");
	set(e, "device.cpu", "workers", "2");
	if (getenv("TEST_GPU_QUICK"))
		set(e, "device.gpu", "quick", "yes");
	if (resident()) {
		set(e, "device.gpu", "resident", "yes");
		set(e, "device.gpu", "idle", getenv("TEST_GPU_RESIDENT"));
	}
	set(e, "transport", "use", "p2p");
	set(e, "termination", "use", "hcounter");
	ok(e, loom_stack_open(e->cfg, NULL, &e->stack, &e->err));
	ok(e, loom_stack_source(e->stack, "tests/gpu/embed_task.dev.h", NULL, name, 1, &e->tag, &e->err));
	ok(e, loom_stack_alloc(e->stack, LOOM_MAX_DEVICES * 64, &e->ref, &e->host, &e->err));
}

static void submit(struct embedder *e, uint64_t n, uint64_t what, uint64_t param)
{
	struct loom_task t = {.tag = e->tag, .param = {what, param}, .data = {.ref = e->ref}};
	for (uint64_t i = 0; i < n; i++)
		ok(e, loom_stack_submit(e->stack, &t, 1, &e->err));
}

/* Returns the number of tasks that ran since the last call. */
static uint64_t ran(struct embedder *e)
{
	uint64_t sum = 0;
	for (uint32_t d = 0; d < LOOM_MAX_DEVICES; d++) {
		sum += ((uint64_t *)e->host)[8 * d];
		((uint64_t *)e->host)[8 * d] = 0;
	}
	return sum;
}

/* ---- calls of the driver in a run ---- */

/* Returns how often these functions of the driver without a GPU were called, or 0 with a real driver. */
static unsigned calls(const char *const *names, size_t n)
{
	unsigned (*count)(const char *);
	unsigned sum = 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	driver = driver ? driver : dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD);
	*(void **)&count = driver ? dlsym(driver, "fake_gpu_count") : NULL;
	for (size_t i = 0; count && i < n; i++)
		sum += count(names[i]);
	return sum;
}
#define CALLS(...) calls((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

struct costs {
	unsigned launches, up, down, memory, waits, other;
};

static struct costs costs(void)
{
	return (struct costs){
	    .launches = CALLS("cuLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernel"),
	    .up = CALLS("cuMemcpyHtoDAsync", "hipMemcpyHtoDAsync"),
	    .down = CALLS("cuMemcpyDtoHAsync", "hipMemcpyDtoHAsync"),
	    .memory = CALLS("cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "hipExtMallocWithFlags",
			    "hipFree", "hipHostMalloc", "hipHostRegister"),
	    .waits = CALLS("cuStreamSynchronize", "hipStreamSynchronize"),
	    .other = CALLS("cuMemsetD8Async", "hipMemsetD8Async", "cuFuncSetAttribute", "cuCtxSetLimit",
			   "cuModuleLoadData", "hipModuleLoadData", "cuOccupancyMaxActiveBlocksPerMultiprocessor"),
	};
}

/* Checks the calls of the driver since `from`, in `runs` runs with `copies` copies to the GPU each. A CPU launches no
 * kernel. */
static void check_costs(struct costs from, unsigned runs, unsigned copies)
{
	struct costs to = costs();
	unsigned gpus = devices() - (unsigned)has_cpu(), fake = CALLS("cuInit", "hipInit") != 0;
	if (!resident())
		CU_ASSERT_EQUAL(to.launches - from.launches, fake * runs * gpus);
	if (resident() && !strcmp(getenv("TEST_GPU_RESIDENT"), "2s"))
		CU_ASSERT_EQUAL(to.launches, from.launches);
	CU_ASSERT_EQUAL(to.up - from.up, fake * runs * copies);
	if (!CALLS("hipInit")) /* device_hip polls for the ends of copies */
		CU_ASSERT_EQUAL(to.waits - from.waits, fake * runs * copies);
	CU_ASSERT_EQUAL(to.down, from.down);
	CU_ASSERT_EQUAL(to.memory, from.memory);
	CU_ASSERT_EQUAL(to.other, from.other);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static uint64_t opened, allocated;
static pthread_t watched; /* the thread whose allocations are counted */
static int watches;
#define COUNTS_FILES     1
#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))
#define EXPORT           __attribute__((visibility("default")))
EXPORT FILE *fopen(const char *path, const char *mode)
{
	__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	return NEXT(FILE * (*)(const char *, const char *), "fopen")(path, mode);
}
EXPORT void *realloc(void *old, size_t bytes)
{
	static void *(*next)(void *, size_t);
	if (!next)
		next = NEXT(void *(*)(void *, size_t), "realloc");
	if (watches && pthread_equal(watched, pthread_self()))
		allocated++;
	return next(old, bytes);
}
#endif

TEST(costs)
{
	struct embedder e;
	struct loom_result *result;
	double executed = 0;
	open_with(&e, "4", "20s");
	submit(&e, 10, EMBED_COUNT, 0);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 10);
	struct costs before = costs();
#ifdef COUNTS_FILES
	uint64_t files = opened, pieces = allocated;
	watched = pthread_self();
	watches = 1;
#endif
	for (int i = 0; i < 50; i++) {
		submit(&e, 10, EMBED_COUNT, 0);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 10);
	}
#ifdef COUNTS_FILES
	watches = 0;
	CU_ASSERT_EQUAL(opened, files);
	CU_ASSERT_EQUAL(allocated, pieces);
#endif
	check_costs(before, 50, 0);
	/* A run with a result copies the counters from the GPU. The runs after it do not. */
	submit(&e, 3, EMBED_TREE, 4);
	ok(&e, loom_stack_run(e.stack, &result, &e.err));
	CU_ASSERT_EQUAL(ran(&e), 3 * 31);
	ok(&e, loom_result_median(result, "executed", &executed));
	CU_ASSERT_EQUAL(executed, 3 * 31);
	loom_result_destroy(result);
	/* With several GPUs, the range of each depends on the number of tasks. So the first run with a new number needs
	 * one copy for each GPU. */
	submit(&e, 2, EMBED_TREE, 3);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 2 * 15);
	before = costs();
	for (int i = 0; i < 20; i++) {
		submit(&e, 2, EMBED_TREE, 3);
		ok(&e, loom_stack_start(e.stack, &e.err));
		int rc;
		while ((rc = loom_stack_wait(e.stack, 1000, NULL, &e.err)) == LOOM_EAGAIN)
			;
		ok(&e, rc);
		CU_ASSERT_EQUAL(ran(&e), 2 * 15);
	}
	if (!has_cpu())
		check_costs(before, 20, 0);
	shut(&e);
}

/* Runs with initial sets of different sizes. Sets with more than 1,024 tasks are copied to the GPU. */
TEST(sizes)
{
	static const uint64_t sizes[] = {1, 100, 0, 7, 1024, 3, 1500, 3000, 20};
	struct embedder e;
	open_with(&e, "4", "20s");
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (int again = 0; again < 3; again++) {
			struct costs before = costs();
			submit(&e, sizes[i], EMBED_COUNT, 0);
			ok(&e, run(&e));
			CU_ASSERT_EQUAL(ran(&e), sizes[i]);
			if (again && i >= 6 && devices() == 1)
				check_costs(before, 1, 1);
		}
	shut(&e);
}

/* Small samples among others. A run of at most one task for each worker, whose result is not wanted, ends when these
 * tasks have ended. If a task makes tasks that others can steal, all workers take part. */
static void mix(const char *workers, unsigned runs)
{
	struct embedder e;
	open_with(&e, workers, "20s");
	for (unsigned i = 0; i < runs; i++) {
		uint64_t n = i * 7 % 6, levels = i / 3 % 5, each = (2ull << levels) - 1;
		struct loom_result *result = NULL;
		int rc;
		submit(&e, n, EMBED_TREE, levels);
		if (i % 4 == 3) {
			ok(&e, loom_stack_start(e.stack, &e.err));
			ok(&e, loom_stack_wait(e.stack, UINT64_MAX, i % 8 == 3 ? &result : NULL, &e.err));
		} else {
			rc = i % 9 == 5 ? loom_stack_run(e.stack, &result, &e.err) : run(&e);
			ok(&e, rc);
		}
		loom_result_destroy(result);
		CU_ASSERT_EQUAL_FATAL(ran(&e), n * each);
		if (i % 16 == 15)
			usleep(100); /* resident workers may leave */
	}
	unsigned small = CALLS("SmallSample");
	for (unsigned i = 0; i < 20; i++) {
		submit(&e, i % (!strcmp(workers, "1") ? 2 : 5), EMBED_COUNT, 0);
		ok(&e, run(&e));
	}
	if (devices() == 1)
		CU_ASSERT_EQUAL(CALLS("SmallSample") - small, CALLS("cuInit", "hipInit") && getenv("TEST_GPU_QUICK") ? 20 : 0);
	shut(&e);
}

TEST(small)
{
	mix("4", 400);
	if (!has_cpu())
		mix("1", 60);
}

/* ---- ends ---- */

static uint64_t seed = 77;

static void *stop_later(void *arg)
{
	struct embedder *e = arg;
	usleep((useconds_t)(xorshift(&seed) % 2000));
	loom_stack_stop(e->stack);
	return NULL;
}

TEST(stops)
{
	unsigned runs = getenv("TEST_GPU_RUNS") ? (unsigned)atoi(getenv("TEST_GPU_RUNS")) : 300, stopped = 0;
	struct embedder e;
	open_with(&e, "4", "20s");
	for (unsigned i = 0; i < runs; i++) {
		pthread_t thread;
		int spins = i % 3 == 0;
		submit(&e, spins ? 2 : 40, spins ? EMBED_SPIN : EMBED_TREE, 5);
		ok(&e, loom_stack_start(e.stack, &e.err));
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_later, &e), 0);
		int rc = loom_stack_wait(e.stack, UINT64_MAX, NULL, &e.err);
		pthread_join(thread, NULL);
		stopped += rc == LOOM_EINTR;
		if (rc != LOOM_EINTR)
			ok(&e, rc);
		if (rc || spins) {
			CU_ASSERT_EQUAL(rc, LOOM_EINTR);
			ran(&e);
		} else {
			CU_ASSERT_EQUAL(ran(&e), 40 * 63);
		}
		submit(&e, 5, EMBED_TREE, 2);
		ok(&e, run_after_stop(&e));
		CU_ASSERT_EQUAL(ran(&e), 35);
	}
	CU_ASSERT(stopped >= runs / 3);
	shut(&e);
}

TEST(ends)
{
	struct embedder e;
	open_with(&e, "4", "2s");
	for (int i = 0; i < 2; i++) {
		submit(&e, 1, EMBED_SPIN, 0);
		REFUSED(run(&e), LOOM_ETIMEDOUT, e.err, "no end after 2 s");
		submit(&e, 10, EMBED_COUNT, 0);
		submit(&e, 1, EMBED_FAIL, 41);
		REFUSED(run_after_stop(&e), LOOM_EIO, e.err, "worker&detail 41");
		ran(&e);
		submit(&e, 10, EMBED_COUNT, 0);
		ok(&e, run_after_stop(&e));
		CU_ASSERT_EQUAL(ran(&e), 10);
	}
	/* The stack is closed in the middle of a run. */
	submit(&e, 1, EMBED_SPIN, 0);
	ok(&e, loom_stack_start(e.stack, &e.err));
	shut(&e);
}

static void *many_runs(void *arg)
{
	struct embedder *e = arg;
	struct loom_task t = {.tag = e->tag, .param = {EMBED_TREE, 4}, .data = {.ref = e->ref}};
	for (int i = 0; i < 100; i++)
		if (!loom_stack_submit(e->stack, &t, 1, &e->err) && !run(e))
			e->runs += ran(e) == 31;
	return NULL;
}

TEST(two_stacks)
{
	struct embedder e[2];
	for (int i = 0; i < 2; i++)
		open_with(&e[i], "2", "20s");
	in_threads(many_runs, e, sizeof(*e), 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(e[i].runs, 100);
		shut(&e[i]);
	}
}

/* ---- the program's streams, graphs and memory ---- */

/* Functions of CUDA's driver, which is the real one or the driver without a GPU. */
static struct {
	int (*cuDevicePrimaryCtxRetain)(void **, int);
	int (*cuCtxPushCurrent)(void *);
	int (*cuStreamCreate)(void **, unsigned);
	int (*cuStreamDestroy)(void *);
	int (*cuStreamSynchronize)(void *);
	int (*cuStreamBeginCapture)(void *, int);
	int (*cuStreamEndCapture)(void *, void **);
	int (*cuGraphInstantiate)(void **, void *, unsigned long long);
	int (*cuGraphLaunch)(void *, void *);
	int (*cuGraphExecDestroy)(void *);
	int (*cuGraphDestroy)(void *);
	int (*cuMemAlloc)(uint64_t *, size_t);
	int (*cuMemFree)(uint64_t);
	int (*cuMemcpyDtoH)(void *, uint64_t, size_t);
	int (*cuMemsetD8)(uint64_t, unsigned char, size_t);
} cu;

/* Returns 0 if CUDA's driver is not loaded, as with AMD GPUs. */
static int find_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *context;
	const struct {
		void *to;
		const char *name;
	} wanted[] = {
	    {&cu.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
	    {&cu.cuCtxPushCurrent, "cuCtxPushCurrent_v2"},
	    {&cu.cuStreamCreate, "cuStreamCreate"},
	    {&cu.cuStreamDestroy, "cuStreamDestroy_v2"},
	    {&cu.cuStreamSynchronize, "cuStreamSynchronize"},
	    {&cu.cuStreamBeginCapture, "cuStreamBeginCapture_v2"},
	    {&cu.cuStreamEndCapture, "cuStreamEndCapture"},
	    {&cu.cuGraphInstantiate, "cuGraphInstantiateWithFlags"},
	    {&cu.cuGraphLaunch, "cuGraphLaunch"},
	    {&cu.cuGraphExecDestroy, "cuGraphExecDestroy"},
	    {&cu.cuGraphDestroy, "cuGraphDestroy"},
	    {&cu.cuMemAlloc, "cuMemAlloc_v2"},
	    {&cu.cuMemFree, "cuMemFree_v2"},
	};
	if (!driver)
		return 0;
	for (size_t i = 0; i < COUNT(wanted); i++) {
		void *at = dlsym(driver, wanted[i].name);
		CU_ASSERT_PTR_NOT_NULL_FATAL(at);
		memcpy(wanted[i].to, &at, sizeof(at));
	}
	*(void **)&cu.cuMemcpyDtoH = dlsym(driver, "cuMemcpyDtoH_v2");
	*(void **)&cu.cuMemsetD8 = dlsym(driver, "cuMemsetD8_v2");
	CU_ASSERT_EQUAL_FATAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	CU_ASSERT_EQUAL_FATAL(cu.cuCtxPushCurrent(context), 0);
	return 1;
}

static void enqueue(struct embedder *e, void *stream, uint64_t n, uint64_t what, uint64_t param)
{
	submit(e, n, what, param);
	ok(e, loom_stack_enqueue(e->stack, stream, &e->err));
}

static int await(struct embedder *e)
{
	return loom_stack_wait(e->stack, UINT64_MAX, NULL, &e->err);
}

static void replay(struct embedder *e, void *stream)
{
	void *graph, *made;
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamBeginCapture(stream, 0), 0);
	struct costs before = costs();
	enqueue(e, stream, 5, EMBED_TREE, 3);
	enqueue(e, stream, 4, EMBED_COUNT, 0);
	CU_ASSERT_EQUAL(costs().up + costs().waits + costs().memory, before.up + before.waits + before.memory);
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CU_ASSERT_EQUAL_FATAL(cu.cuGraphInstantiate(&made, graph, 0), 0);
	cu.cuGraphDestroy(graph);
	CU_ASSERT_EQUAL(ran(e), 0);
	for (int i = 0; i < 60; i++)
		CU_ASSERT_EQUAL(cu.cuGraphLaunch(made, stream), 0);
	CU_ASSERT_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CU_ASSERT_EQUAL(ran(e), 60 * (5 * 15 + 4));
	ok(e, await(e));
	/* A run outside of the graph, between two launches of the graph. */
	submit(e, 3, EMBED_COUNT, 0);
	ok(e, run(e));
	CU_ASSERT_EQUAL(cu.cuGraphLaunch(made, stream), 0);
	CU_ASSERT_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CU_ASSERT_EQUAL(ran(e), 3 + 5 * 15 + 4);
	cu.cuGraphExecDestroy(made);
}

static void *stop_at_once(void *arg)
{
	usleep(20000);
	loom_stack_stop(arg);
	return NULL;
}

TEST(streams)
{
	struct embedder e;
	void *stream, *other, *graph;
	struct loom_result *result;
	double executed = 0;
	pthread_t thread;
	open_with(&e, "4", "20s");
	if (devices() > 1 || !find_driver()) {
		submit(&e, 1, EMBED_COUNT, 0);
		if (devices() > 1)
			REFUSED(loom_stack_enqueue(e.stack, NULL, &e.err), LOOM_ENOTSUP, e.err, "a run on 2 devices");
		ok(&e, run(&e));
		shut(&e);
		return;
	}
	if (resident()) {
		submit(&e, 1, EMBED_COUNT, 0);
		REFUSED(loom_stack_enqueue(e.stack, NULL, &e.err), LOOM_ENOTSUP, e.err, "resident = no");
		shut(&e);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamCreate(&stream, 1), 0);
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamCreate(&other, 1), 0);
	submit(&e, 1, EMBED_COUNT, 0);
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamBeginCapture(stream, 0), 0);
	REFUSED(loom_stack_enqueue(e.stack, stream, &e.err), LOOM_EINVAL, e.err,
		"being captured&once before the capture");
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamEndCapture(stream, &graph), 0);
	cu.cuGraphDestroy(graph);
	enqueue(&e, stream, 9, EMBED_COUNT, 0);
	ok(&e, await(&e));
	CU_ASSERT_EQUAL(ran(&e), 10);
	REFUSED(await(&e), LOOM_EINVAL, e.err, "no run is in progress");
	struct costs before = costs();
	for (int i = 0; i < 100; i++)
		enqueue(&e, stream, 1 + (uint64_t)i % 7, EMBED_TREE, 1);
	submit(&e, 1, EMBED_COUNT, 0);
	REFUSED(run(&e), LOOM_EBUSY, e.err, "100 runs are in a stream");
	ok(&e, loom_stack_enqueue(e.stack, stream, &e.err));
	check_costs(before, 101, 0);
	ok(&e, loom_stack_wait(e.stack, UINT64_MAX, &result, &e.err));
	CU_ASSERT_EQUAL(ran(&e), 3 * (14 * 28 + 1 + 2) + 1);
	ok(&e, loom_result_median(result, "executed", &executed));
	CU_ASSERT_EQUAL(executed, 1);
	loom_result_destroy(result);
	replay(&e, stream);
	/* After an error, the runs that are already in the stream do nothing. Runs that are enqueued after wait()
	 * succeed again. */
	enqueue(&e, stream, 1, EMBED_FAIL, 5);
	enqueue(&e, stream, 10, EMBED_COUNT, 0);
	REFUSED(await(&e), LOOM_EIO, e.err, "detail 5");
	ran(&e);
	enqueue(&e, stream, 1, EMBED_SPIN, 0);
	submit(&e, 1, EMBED_COUNT, 0);
	REFUSED(loom_stack_enqueue(e.stack, other, &e.err), LOOM_EBUSY, e.err, "another stream");
	CU_ASSERT_EQUAL(loom_stack_wait(e.stack, 1000, NULL, &e.err), LOOM_EAGAIN);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_at_once, e.stack), 0);
	REFUSED(await(&e), LOOM_EINTR, e.err, "interrupted");
	pthread_join(thread, NULL);
	ran(&e);
	ok(&e, loom_stack_enqueue(e.stack, other, &e.err));
	ok(&e, await(&e));
	CU_ASSERT_EQUAL(ran(&e), 1);
	enqueue(&e, NULL, 6, EMBED_COUNT, 0);
	ok(&e, await(&e));
	CU_ASSERT_EQUAL(ran(&e), 6);
	/* A stream accepts only a limited number of waiting tasks. */
	enqueue(&e, stream, 1, EMBED_SPIN, 0);
	for (int i = 0; i < 60; i++) {
		submit(&e, 100, EMBED_COUNT, 0);
		if (loom_stack_enqueue(e.stack, stream, &e.err))
			break;
	}
	REFUSED(loom_stack_enqueue(e.stack, stream, &e.err), LOOM_EFULL, e.err, "runs with&have not ended");
	loom_stack_stop(e.stack);
	CU_ASSERT_EQUAL(await(&e), LOOM_EINTR);
	submit(&e, 2000, EMBED_COUNT, 0);
	REFUSED(loom_stack_enqueue(e.stack, stream, &e.err), LOOM_EINVAL, e.err, "1024 at most");
	ran(&e);
	ok(&e, run_after_stop(&e));
	CU_ASSERT_EQUAL(ran(&e), 2100);
	enqueue(&e, stream, 1, EMBED_SPIN, 0); /* the close ends this run */
	shut(&e);
	cu.cuStreamDestroy(stream);
	cu.cuStreamDestroy(other);
}

/* A thread that launches a graph again and again, without regard for stops. */
struct launcher {
	struct embedder e;
	void *stream, *graph;
	unsigned launches;
};

static void *launch_graph(void *arg)
{
	struct launcher *l = arg;
	for (unsigned i = 0; i < l->launches; i++)
		CU_ASSERT_EQUAL(cu.cuGraphLaunch(l->graph, l->stream), 0);
	return NULL;
}

static void capture(struct launcher *l)
{
	void *graph;
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamBeginCapture(l->stream, 0), 0);
	enqueue(&l->e, l->stream, 1, EMBED_COUNT, 0);
	enqueue(&l->e, l->stream, 2, EMBED_TREE, 1);
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamEndCapture(l->stream, &graph), 0);
	CU_ASSERT_EQUAL_FATAL(cu.cuGraphInstantiate(&l->graph, graph, 0), 0);
	cu.cuGraphDestroy(graph);
}

/* Returns the number of tasks that ran since the last call of ran(), while workers may run. */
static uint64_t seen(const struct embedder *e)
{
	return __atomic_load_n((const uint64_t *)e->host, __ATOMIC_RELAXED);
}

/* Draws new costs, of which about half are 0. Returns the number of the others. */
static uint64_t draw_costs(uint32_t *cost, uint32_t n)
{
	uint64_t some = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t x = xorshift(&seed);
		cost[i] = x & 1 ? 1 + (uint32_t)(x >> 40) % 1000 : 0;
		some += cost[i] != 0;
	}
	return some;
}

/* The plan of each run and of each replay of a graph is made from the costs that are then in memory. */
TEST(plans)
{
	enum { N = 40 };
	struct loom_task t[N];
	struct embedder e;
	void *cost, *stream, *graph, *made;
	loom_ref ref;
	if (has_cpu())
		return;
	scheduler = "plan";
	open_with(&e, "4", "20s");
	scheduler = "mgws";
	ok(&e, loom_stack_alloc(e.stack, N * 4, &ref, &cost, &e.err));
	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct loom_task){.tag = e.tag, .param = {EMBED_COUNT, 0, e.ref}, .data = {ref + 4 * i, 4, LOOM_COST}};
	for (int i = 0; i < 20; i++) {
		uint64_t some = draw_costs(cost, N);
		ok(&e, loom_stack_submit(e.stack, t, N, &e.err));
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), some);
	}
	if (devices() == 1 && !resident() && find_driver()) {
		CU_ASSERT_EQUAL_FATAL(cu.cuStreamCreate(&stream, 1), 0);
		for (int captured = 0; captured < 2; captured++) { /* a stack can be captured when it has run once in a stream */
			if (captured)
				CU_ASSERT_EQUAL_FATAL(cu.cuStreamBeginCapture(stream, 0), 0);
			ok(&e, loom_stack_submit(e.stack, t, N, &e.err));
			ok(&e, loom_stack_enqueue(e.stack, stream, &e.err));
		}
		CU_ASSERT_EQUAL_FATAL(cu.cuStreamEndCapture(stream, &graph), 0);
		CU_ASSERT_EQUAL_FATAL(cu.cuGraphInstantiate(&made, graph, 0), 0);
		cu.cuGraphDestroy(graph);
		CU_ASSERT_EQUAL(cu.cuStreamSynchronize(stream), 0);
		ran(&e);
		for (int i = 0; i < 30; i++) {
			uint64_t some = draw_costs(cost, N);
			CU_ASSERT_EQUAL(cu.cuGraphLaunch(made, stream), 0);
			CU_ASSERT_EQUAL(cu.cuStreamSynchronize(stream), 0);
			CU_ASSERT_EQUAL(ran(&e), some);
		}
		ok(&e, await(&e));
		cu.cuGraphExecDestroy(made);
		cu.cuStreamDestroy(stream);
	}
	shut(&e);
}

/* Waits until nothing of the stream is left, and checks that the rest of it did nothing. */
static void end_stream(struct launcher *l)
{
	CU_ASSERT_EQUAL(cu.cuStreamSynchronize(l->stream), 0);
	CU_ASSERT_EQUAL(ran(&l->e), 0);
	cu.cuGraphExecDestroy(l->graph);
}

/* A stop while launches of a graph are in the stream, and more follow. A replay runs 7 tasks. */
TEST(graphs_stop)
{
	struct launcher l = {.launches = 300};
	struct embedder *e = &l.e;
	uint64_t slowest = 0;
	open_with(e, "4", "20s");
	if (devices() > 1 || resident() || !find_driver()) {
		shut(e);
		return;
	}
	int fake = CALLS("cuInit") != 0, stops = fake ? 4 : 20;
	if (!fake)
		l.launches = 20000;
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamCreate(&l.stream, 1), 0);
	for (int i = 0; i < stops; i++) {
		pthread_t thread;
		uint64_t until = 1 + xorshift(&seed) % (7ull * l.launches / 2);
		enqueue(e, l.stream, 5, EMBED_COUNT, 0);
		ok(e, await(e));
		CU_ASSERT_EQUAL(ran(e), 5);
		capture(&l);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, launch_graph, &l), 0);
		while (seen(e) < until)
			usleep(20);
		uint64_t began = loom__now_ns();
		loom_stack_stop(e->stack);
		REFUSED(await(e), LOOM_EINTR, e->err, "ended the runs of graphs&capture new graphs");
		uint64_t took = loom__now_ns() - began;
		slowest = took > slowest ? took : slowest;
		CU_ASSERT(ran(e) < 7ull * l.launches);
		/* The thread may still launch the graph. */
		submit(e, 3, EMBED_TREE, 2);
		ok(e, run_after_stop(e));
		CU_ASSERT_EQUAL(ran(e), 21);
		pthread_join(thread, NULL);
		end_stream(&l);
		if (i == 0) {
			took = loom__now_ns() - began;
			printf("  %u launches were over %.1f ms after the stop\n", l.launches, (double)took / 1e6);
		}
	}
	printf("  the slowest of %d stops took %.2f ms\n", stops, (double)slowest / 1e6);
	cu.cuStreamDestroy(l.stream);
	shut(e);
}

/* A stop between two launches of a graph stays until a call has returned it. Adding memory ends graphs, too. */
TEST(graphs_stop_between)
{
	struct launcher l = {.launches = 2};
	struct embedder *e = &l.e;
	loom_ref ref;
	void *host;
	open_with(e, "4", "20s");
	if (devices() > 1 || resident() || !find_driver()) {
		shut(e);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(cu.cuStreamCreate(&l.stream, 1), 0);
	for (int i = 0; i < 4; i++) {
		submit(e, 2, EMBED_COUNT, 0);
		ok(e, loom_stack_enqueue(e->stack, l.stream, &e->err));
		loom_stack_stop(e->stack); /* no graph is valid, so this stop ends at most the run in the stream */
		int rc = await(e);
		CU_ASSERT(rc == 0 || rc == LOOM_EINTR);
		enqueue(e, l.stream, 2, EMBED_COUNT, 0);
		ok(e, await(e));
		ran(e);
		capture(&l);
		launch_graph(&l);
		CU_ASSERT_EQUAL(cu.cuStreamSynchronize(l.stream), 0);
		CU_ASSERT_EQUAL(ran(e), 14);
		if (i == 3)
			ok(e, loom_stack_alloc(e->stack, 64, &ref, &host, &e->err));
		else
			loom_stack_stop(e->stack);
		launch_graph(&l);
		CU_ASSERT_EQUAL(cu.cuStreamSynchronize(l.stream), 0);
		CU_ASSERT_EQUAL(ran(e), 0);
		if (i < 3) {
			submit(e, 1, EMBED_COUNT, 0);
			REFUSED(loom_stack_enqueue(e->stack, l.stream, &e->err), LOOM_EINTR, e->err, "capture new graphs");
			rc = i == 0 ? await(e) : i == 1 ? run(e) : loom_stack_start(e->stack, &e->err);
			CU_ASSERT_EQUAL(rc, LOOM_EINTR);
			ok(e, run(e)); /* the submitted task is still there */
			CU_ASSERT_EQUAL(ran(e), 1);
		}
		launch_graph(&l);
		end_stream(&l);
	}
	cu.cuStreamDestroy(l.stream);
	shut(e);
}

TEST(adopted)
{
	struct embedder e;
	void *host = NULL;
	loom_ref own, ref, again;
	uint64_t at;
	char *line = NULL;
	CU_ASSERT_EQUAL_FATAL(posix_memalign(&host, 4096, 8192), 0);
	memset(host, 0, 8192);
	open_with(&e, "4", "20s");
	own = e.ref;
	line = e.host;
	for (int i = 0; i < 3; i++) {
		ok(&e, loom_stack_adopt(e.stack, host, 8192, &ref, &e.err));
		CU_ASSERT(i == 0 || ref == again);
		again = e.ref = ref;
		e.host = host;
		submit(&e, 20, EMBED_TREE, 2);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 140);
		ok(&e, loom_stack_release(e.stack, ref, &e.err));
	}
	REFUSED(loom_stack_release(e.stack, ref, &e.err), LOOM_EINVAL, e.err, "no memory of the program");
	REFUSED(loom_stack_release(e.stack, own, &e.err), LOOM_EINVAL, e.err, "no memory of the program");
	REFUSED(loom_stack_adopt(e.stack, (char *)host + 4, 64, &ref, &e.err), LOOM_EINVAL, e.err,
		"aligned to 8 bytes");
	REFUSED(loom_stack_adopt(e.stack, host, 0, &ref, &e.err), LOOM_EINVAL, e.err, "no memory to adopt");
	e.ref = own;
	e.host = line;
	/* Freed memory. The memory of the driver without a GPU is in this process, so any pages stand for it. */
	if (find_driver() && !CALLS("cuInit")) {
		CU_ASSERT_EQUAL_FATAL(cu.cuMemAlloc(&at, 1 << 20), 0);
		cu.cuMemFree(at);
	} else {
		void *pages = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(pages, 1 << 20);
		at = (uint64_t)(uintptr_t)pages;
	}
	REFUSED(loom_stack_adopt(e.stack, (void *)(uintptr_t)at, 1 << 20, &ref, &e.err), LOOM_EINVAL, e.err,
		"no memory at&were freed");
	if (find_driver() && !has_cpu()) {
		int fake = CALLS("cuInit") != 0;
		uint64_t words[8] = {0};
		CU_ASSERT_EQUAL_FATAL(cu.cuMemAlloc(&at, 4096), 0);
		if (fake)
			memset((void *)(uintptr_t)at, 0, 4096);
		else
			cu.cuMemsetD8(at, 0, 4096);
		REFUSED(loom_stack_adopt(e.stack, (void *)(uintptr_t)(at + 64), 4096, &ref, &e.err), LOOM_EINVAL, e.err,
			"not in one allocation&4032 bytes");
		ok(&e, loom_stack_adopt(e.stack, (void *)(uintptr_t)at, 4096, &ref, &e.err));
		e.ref = ref;
		submit(&e, 20, EMBED_TREE, 2);
		e.ref = own;
		submit(&e, 20, EMBED_COUNT, 2);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 20);
		for (uint32_t d = 0; d < devices(); d++) {
			if (fake)
				memcpy(&words[d], (char *)(uintptr_t)at + 64 * d, 8);
			else
				cu.cuMemcpyDtoH(&words[d], at + 64 * d, 8);
		}
		CU_ASSERT_EQUAL(words[0] + words[1], 140);
		ok(&e, loom_stack_release(e.stack, ref, &e.err));
		cu.cuMemFree(at);
	} else if (find_driver()) {
		CU_ASSERT_EQUAL_FATAL(cu.cuMemAlloc(&at, 4096), 0);
		REFUSED(loom_stack_adopt(e.stack, (void *)(uintptr_t)at, 4096, &ref, &e.err), LOOM_EUNAVAIL, e.err,
			"cpu:0");
		cu.cuMemFree(at);
		submit(&e, 20, EMBED_COUNT, 2);
		ok(&e, run(&e));
		CU_ASSERT_EQUAL(ran(&e), 20);
	}
	ok(&e, loom_stack_adopt(e.stack, host, 8192, &ref, &e.err)); /* the close releases this memory */
	shut(&e);
	free(host);
}

/* A kernel that dies ends its run with an error. With the driver without a GPU, another stack works afterwards. */
TEST(dies)
{
	struct embedder e;
	open_with(&e, "4", "20s");
	int fake = CALLS("cuInit", "hipInit") != 0;
	submit(&e, 10, EMBED_COUNT, 0);
	ok(&e, run(&e));
	if (fake)
		setenv("FAKE_GPU", "die", 1);
	submit(&e, 10, EMBED_TRAP, 0);
	REFUSED(run(&e), LOOM_EDIED, e.err, "its kernel has failed");
	submit(&e, 10, EMBED_COUNT, 0);
	CU_ASSERT(run(&e) < 0);
	shut(&e);
	if (!fake)
		return; /* the driver decides whether this process can go on */
	setenv("FAKE_GPU", "none", 1);
	open_with(&e, "4", "20s");
	submit(&e, 10, EMBED_COUNT, 0);
	ok(&e, run(&e));
	CU_ASSERT_EQUAL(ran(&e), 10);
	shut(&e);
}

int main(int argc, char **argv)
{
	if (!getenv("TEST_GPU"))
		test_skip("check-device-cuda.sh and check-device-hip.sh run it: TEST_GPU names the devices");
	return test_main(argc, argv, "embed_gpu", 240);
}
