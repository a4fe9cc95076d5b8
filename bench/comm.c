/* SPDX-License-Identifier: Apache-2.0 */
/* Measures an allreduce of bfloat16 over ranks of this host, by loom_comm_allreduce() and by NCCL, if libnccl.so.2 is found.
 *
 *   comm PLUGINS cpu|cuda [MOST [RANKS]]
 *
 * PLUGINS is the folder of the plug-ins, MOST the largest vector in bytes (8 MiB), RANKS the number of ranks (2). On
 * GPUs each rank has one, and the calls are in CUDA graphs of 50 calls, so the time of a call includes the launch of its node.
 * The two libraries take turns. The program prints a line for each size: bytes, our time, and that of NCCL (0 without it),
 * medians in us of rank 0. A wrong sum is an error. */
#include <gpuloom/comm.h>
#include <gpuloom/gpuloom.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MOST = 16, CALLS = 50, LAUNCHES = 4, TURNS = 9, ROOM = 4096 };
enum { NCCL_BFLOAT16 = 9, NCCL_SUM = 0 }; /* values of nccl.h */

static struct meeting {
	pthread_barrier_t all;
	char given[RANKS_MOST][ROOM];
} *meeting;
static uint32_t rank, count = 2; /* the number of ranks */

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "comm: rank %u: %s: %s\n", rank, what, why);
	exit(1);
}

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	(void)self, (void)err;
	if (bytes > ROOM)
		return LOOM_EINVAL;
	memcpy(meeting->given[rank], mine, bytes);
	pthread_barrier_wait(&meeting->all);
	for (uint32_t r = 0; r < count; r++)
		memcpy((char *)all + r * bytes, meeting->given[r], bytes);
	pthread_barrier_wait(&meeting->all);
	return 0;
}

/* ---- the driver of NVIDIA, and NCCL, both loaded at run time ---------------------------------------------------- */

static struct {
	int (*cuInit)(unsigned), (*cuDeviceGet)(int *, int), (*cuDevicePrimaryCtxRetain)(void **, int);
	int (*cuCtxSetCurrent)(void *), (*cuStreamCreate)(void **, unsigned), (*cuStreamSynchronize)(void *);
	int (*cuMemAlloc_v2)(uint64_t *, size_t), (*cuMemcpyHtoDAsync_v2)(uint64_t, const void *, size_t, void *);
	int (*cuMemcpyDtoHAsync_v2)(void *, uint64_t, size_t, void *), (*cuStreamBeginCapture_v2)(void *, int);
	int (*cuStreamEndCapture)(void *, void **), (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
	int (*cuGraphLaunch)(void *, void *);
} cu;
struct nccl_id {
	char bytes[128];
};
static struct {
	int (*ncclGetUniqueId)(struct nccl_id *), (*ncclCommInitRank)(void **, int, struct nccl_id, int);
	int (*ncclAllReduce)(const void *, void *, size_t, int, int, void *, void *);
} nc;
static void *stream, *nccl; /* nccl: the communicator, or NULL */
#define CU(call)                                                                                   \
	do {                                                                                       \
		if (cu.call)                                                                       \
			fail(#call, "the driver fails");                                           \
	} while (0)

static void *load(void *so, const char *name, int must)
{
	void *at = dlsym(so, name);
	if (!at && must)
		fail(name, "not found");
	return at;
}
#define LOAD(table, so, name, must) (*(void **)&table.name = load(so, #name, must))

static void open_gpu(void)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	int device;
	if (!so)
		fail("libcuda.so.1", dlerror());
	LOAD(cu, so, cuInit, 1);
	LOAD(cu, so, cuDeviceGet, 1);
	LOAD(cu, so, cuDevicePrimaryCtxRetain, 1);
	LOAD(cu, so, cuCtxSetCurrent, 0); /* the driver without a GPU lacks it */
	LOAD(cu, so, cuStreamCreate, 1);
	LOAD(cu, so, cuStreamSynchronize, 1);
	LOAD(cu, so, cuMemAlloc_v2, 1);
	LOAD(cu, so, cuMemcpyHtoDAsync_v2, 1);
	LOAD(cu, so, cuMemcpyDtoHAsync_v2, 1);
	LOAD(cu, so, cuStreamBeginCapture_v2, 1);
	LOAD(cu, so, cuStreamEndCapture, 1);
	LOAD(cu, so, cuGraphInstantiateWithFlags, 1);
	LOAD(cu, so, cuGraphLaunch, 1);
	CU(cuInit(0));
	CU(cuDeviceGet(&device, (int)rank));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	if (cu.cuCtxSetCurrent)
		CU(cuCtxSetCurrent(context));
	CU(cuStreamCreate(&stream, 1));
}

static void open_nccl(void)
{
	void *so = dlopen("libnccl.so.2", RTLD_NOW);
	struct nccl_id id[RANKS_MOST] = {{{0}}}, mine = {{0}};
	if (!so) {
		if (!rank)
			fprintf(stderr, "comm: no libnccl.so.2 here: its figures are left out\n");
		return;
	}
	LOAD(nc, so, ncclGetUniqueId, 1);
	LOAD(nc, so, ncclCommInitRank, 1);
	LOAD(nc, so, ncclAllReduce, 1);
	if (!rank && nc.ncclGetUniqueId(&mine))
		fail("ncclGetUniqueId", "fails");
	allgather(NULL, &mine, id, sizeof(mine), NULL);
	int failed[RANKS_MOST] = {0}, fails = nc.ncclCommInitRank(&nccl, (int)count, id[0], (int)rank);
	allgather(NULL, &fails, failed, sizeof(fails), NULL);
	for (uint32_t r = 0; r < count; r++)
		if (failed[r])
			nccl = NULL;
	if (!nccl && !rank)
		fprintf(stderr, "comm: ncclCommInitRank fails: its figures are left out\n");
}

/* ---- one vector ---------------------------------------------------------------------------------------------------- */

static struct loom_comm *comm;
static uint64_t in, out; /* addresses */

static void call(int by_nccl, uint64_t elements)
{
	struct loom_error err;
	void *from = (void *)(uintptr_t)in, *to = (void *)(uintptr_t)out;
	if (by_nccl && nc.ncclAllReduce(from, to, elements, NCCL_BFLOAT16, NCCL_SUM, nccl, stream))
		fail("ncclAllReduce", "fails");
	if (!by_nccl && loom_comm_allreduce(comm, from, to, elements, LOOM_COMM_BFLOAT16, LOOM_COMM_SUM, stream, &err))
		fail("loom_comm_allreduce", err.text);
}

/* The elements are small integers, so that a bfloat16, which has 8 binary digits, has the exact sum of all ranks. */
static uint32_t whole(uint32_t r, uint64_t i)
{
	return (uint32_t)((i * 7 + r * 3) % (256 / count));
}

static uint16_t bfloat(uint32_t number)
{
	float f = (float)number;
	uint32_t bits;
	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static uint16_t sum_of(uint64_t i)
{
	uint32_t sum = 0;
	for (uint32_t r = 0; r < count; r++)
		sum += whole(r, i);
	return bfloat(sum);
}

static void check(uint16_t *host, uint64_t elements, const char *who)
{
	if (stream) {
		CU(cuMemcpyDtoHAsync_v2(host, out, 2 * elements, stream));
		CU(cuStreamSynchronize(stream));
	} else {
		memcpy(host, (void *)(uintptr_t)out, 2 * elements);
	}
	for (uint64_t i = 0; i < elements; i++)
		if (host[i] != sum_of(i))
			fail(who, "wrong sum");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void measure(uint64_t elements, uint16_t *host)
{
	void *graph[2] = {NULL, NULL}, *captured;
	double us[2][TURNS] = {{0}};
	for (int who = 0; who < (nccl ? 2 : 1); who++) {
		call(who, elements);
		if (stream)
			CU(cuStreamSynchronize(stream));
		check(host, elements, who ? "NCCL" : "gpuloom");
		if (!stream)
			continue;
		CU(cuStreamBeginCapture_v2(stream, 2)); /* relaxed: NCCL may call anything */
		for (int i = 0; i < CALLS; i++)
			call(who, elements);
		CU(cuStreamEndCapture(stream, &captured));
		CU(cuGraphInstantiateWithFlags(&graph[who], captured, 0));
	}
	for (int turn = 0; turn <= TURNS; turn++) /* the first turn is a warm-up */
		for (int who = 0; who < (nccl ? 2 : 1); who++) {
			pthread_barrier_wait(&meeting->all);
			double begin = now();
			for (int i = 0; stream && i < LAUNCHES; i++)
				CU(cuGraphLaunch(graph[who], stream));
			for (int i = 0; !stream && i < LAUNCHES * CALLS; i++)
				call(who, elements);
			if (stream)
				CU(cuStreamSynchronize(stream));
			if (turn)
				us[who][turn - 1] = (now() - begin) * 1e6 / LAUNCHES / CALLS;
		}
	check(host, elements, nccl ? "NCCL" : "gpuloom");
	for (int who = 0; who < 2; who++)
		qsort(us[who], TURNS, sizeof(double), by_value);
	if (!rank) {
		printf("%llu %.3f %.3f\n", (unsigned long long)(2 * elements), us[0][TURNS / 2], us[1][TURNS / 2]);
		fflush(stdout);
	}
}

/* ---- a rank ---------------------------------------------------------------------------------------------------------- */

#define TRY(call)                                                                                  \
	do {                                                                                       \
		if (call)                                                                          \
			fail(#call, err.text);                                                     \
	} while (0)

static void run(const char *plugins, int on_gpu, uint64_t most)
{
	struct loom_ranks ranks = {.size = sizeof(ranks), .rank = rank, .ranks = count, .allgather = allgather};
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err;
	char number[8];
	snprintf(number, sizeof(number), "%u", rank);
	TRY(loom_config_create(&cfg, &err));
	TRY(loom_config_set(cfg, "gpuloom", "plugin_path", plugins, &err));
	TRY(loom_config_set(cfg, "run", "devices", on_gpu ? "cuda:0" : "cpu:0", &err));
	TRY(loom_config_set(cfg, "run", "timeout", "30s", &err));
	if (on_gpu)
		TRY(loom_config_set(cfg, "device.gpu", "gpu", number, &err));
	TRY(loom_config_set(cfg, "device.cpu", "workers", getenv("COMM_WORKERS") ? getenv("COMM_WORKERS") : "1", &err));
	TRY(loom_config_set(cfg, "device.cpu", "oversubscribe", "yes", &err));
	TRY(loom_config_set(cfg, "transport", "use", on_gpu ? "p2p" : "host", &err));
	TRY(loom_config_set(cfg, "scheduler", "use", "mgws", &err));
	TRY(loom_config_set(cfg, "termination", "use", "counter", &err));
	uint16_t *host = malloc(most);
	for (uint64_t i = 0; i < most / 2; i++)
		host[i] = bfloat(whole(rank, i));
	if (on_gpu) {
		open_gpu();
		CU(cuMemAlloc_v2(&in, most));
		CU(cuMemAlloc_v2(&out, most));
		CU(cuMemcpyHtoDAsync_v2(in, host, most, stream));
		CU(cuStreamSynchronize(stream));
		open_nccl();
	} else {
		in = (uint64_t)(uintptr_t)memcpy(malloc(most), host, most);
		out = (uint64_t)(uintptr_t)malloc(most);
	}
	TRY(loom_stack_open(cfg, NULL, &stack, &err));
	TRY(loom_comm_open(stack, &ranks, &comm, &err));
	for (uint64_t bytes = 16; bytes <= most; bytes *= 2)
		measure(bytes / 2, host);
	TRY(loom_comm_status(comm, &err));
	loom_comm_close(comm);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t shared;
	int failed = 0, status;
	if (argc < 3)
		fail("usage", "comm PLUGINS cpu|cuda [MOST [RANKS]]");
	if (argc > 4)
		count = (uint32_t)strtoul(argv[4], NULL, 10);
	if (count < 2 || count > RANKS_MOST)
		fail(argv[4], "the number of ranks is from 2 to 16");
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&meeting->all, &shared, count);
	pid_t child[RANKS_MOST];
	for (rank = 0; rank < count; rank++) {
		child[rank] = fork();
		if (!child[rank])
			run(argv[1], !strcmp(argv[2], "cuda"), argc > 3 ? strtoull(argv[3], NULL, 10) : 8 << 20);
	}
	/* A rank that fails leaves the others in a barrier, so these are ended. */
	for (uint32_t n = 0; n < count; n++) {
		pid_t ended = wait(&status);
		if (!failed && status)
			for (uint32_t r = 0; r < count; r++)
				if (child[r] != ended)
					kill(child[r], SIGKILL);
		failed |= status;
	}
	return failed != 0;
}
