/* SPDX-License-Identifier: Apache-2.0 */
/* Measures collectives of bfloat16 over ranks of this host, by loom_comm_call(), and on GPUs by NCCL, if libnccl.so.2 is found.
 *
 *   comm PLUGINS cpu|cuda [MOST [RANKS]]
 *
 * PLUGINS is the folder of the plug-ins, MOST the largest vector in bytes (8 MiB), RANKS the number of ranks (2). On
 * GPUs each rank has one, and the calls are in CUDA graphs of 50 calls, so the time of a call includes the launch of its node.
 * The ways take turns, each turn in another order:
 * - gpuloom: memory of cuMemAlloc();
 * - nccl: the same memory;
 * - nccl_window: memory of ncclMemAlloc(), registered as a symmetric window, which NCCL from 2.27 on reduces by other
 *   kernels.
 * - gpuloom_words, gpuloom_loads, gpuloom_stores, gpuloom_parts, if COMM_EACH is set: call.pulls is 0, 1, 2, 3. They show where the
 *   limits of comm.c belong.
 * The program sets NCCL_NVLS_ENABLE=0, so that NCCL has no multicast, which gpuloom has not either. Lines on stdout are
 * `sample comm_[WHAT_]WAY_BYTES_us TURN VALUE`: the time of a call of rank 0 in this turn. WHAT is scatter (a reduce-scatter), gather
 * or broadcast; without it, the line is of an allreduce. BYTES is the size of the longer vector of the call. A wrong result is an
 * error. The line `version nccl CODE` has the version of the library that was loaded, 22809 for 2.28.9. */
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

enum { RANKS_MOST = 16, CALLS = 50, LAUNCHES = 4, TURNS = 20, ROOM = 4096 };
enum { NCCL_BFLOAT16 = 9, NCCL_SUM = 0, NCCL_WIN_COLL_SYMMETRIC = 1 }; /* values of nccl.h */

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
	int (*cuGraphLaunch)(void *, void *), (*cuMemsetD8Async)(uint64_t, unsigned char, size_t, void *);
} cu;
struct nccl_id {
	char bytes[128];
};
static struct {
	int (*ncclGetVersion)(int *), (*ncclGetUniqueId)(struct nccl_id *), (*ncclCommInitRank)(void **, int, struct nccl_id, int);
	int (*ncclAllReduce)(const void *, void *, size_t, int, int, void *, void *), (*ncclMemAlloc)(void **, size_t);
	int (*ncclReduceScatter)(const void *, void *, size_t, int, int, void *, void *);
	int (*ncclAllGather)(const void *, void *, size_t, int, void *, void *);
	int (*ncclBroadcast)(const void *, void *, size_t, int, int, void *, void *);
	int (*ncclCommWindowRegister)(void *, void *, size_t, void **, int); /* NULL before NCCL 2.27 */
} nc;
static void *stream, *nccl; /* nccl: the communicator, or NULL */

enum { GPULOOM, NCCL, NCCL_WINDOW, EACH, STORES = EACH + 2, WAYS = EACH + 4 };
static struct {
	const char *name;
	uint64_t in, out; /* addresses of its vectors; 0: this way is left out */
} way[WAYS] = {{"gpuloom", 0, 0},	{"nccl", 0, 0},		  {"nccl_window", 0, 0},  {"gpuloom_words", 0, 0},
	       {"gpuloom_loads", 0, 0}, {"gpuloom_stores", 0, 0}, {"gpuloom_parts", 0, 0}};
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
	LOAD(cu, so, cuMemsetD8Async, 1);
	CU(cuInit(0));
	CU(cuDeviceGet(&device, (int)rank));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	if (cu.cuCtxSetCurrent)
		CU(cuCtxSetCurrent(context));
	CU(cuStreamCreate(&stream, 1));
}

/* Returns whether a call has succeeded on all ranks. If not, rank 0 says what is left out. */
static int agreed(int rc, const char *what)
{
	int all[RANKS_MOST] = {0}, failed = 0;
	allgather(NULL, &rc, all, sizeof(rc), NULL);
	for (uint32_t r = 0; r < count; r++)
		failed |= all[r];
	if (failed && !rank)
		fprintf(stderr, "comm: %s: left out\n", what);
	return !failed;
}

/* Allocates the two vectors of NCCL's symmetric kernels. All ranks register them in the same order. */
static void open_windows(uint64_t most)
{
	void *at[2] = {NULL, NULL}, *window[2] = {NULL, NULL};
	if (!agreed(!nc.ncclMemAlloc || !nc.ncclCommWindowRegister, "this NCCL has no windows (2.27 and later have)"))
		return;
	if (!agreed(nc.ncclMemAlloc(&at[0], most) || nc.ncclMemAlloc(&at[1], most), "ncclMemAlloc fails"))
		return;
	for (int i = 0; i < 2; i++) {
		int rc = nc.ncclCommWindowRegister(nccl, at[i], most, &window[i], NCCL_WIN_COLL_SYMMETRIC);
		if (!agreed(rc || !window[i], "ncclCommWindowRegister makes no symmetric window"))
			return;
	}
	way[NCCL_WINDOW].in = (uint64_t)(uintptr_t)at[0];
	way[NCCL_WINDOW].out = (uint64_t)(uintptr_t)at[1];
}

static void open_nccl(uint64_t most)
{
	void *so = dlopen("libnccl.so.2", RTLD_NOW);
	struct nccl_id id[RANKS_MOST] = {{{0}}}, mine = {{0}};
	int version = 0;
	if (!agreed(!so, "no libnccl.so.2 here"))
		return;
	LOAD(nc, so, ncclGetVersion, 1);
	LOAD(nc, so, ncclGetUniqueId, 1);
	LOAD(nc, so, ncclCommInitRank, 1);
	LOAD(nc, so, ncclAllReduce, 1);
	LOAD(nc, so, ncclReduceScatter, 1);
	LOAD(nc, so, ncclAllGather, 1);
	LOAD(nc, so, ncclBroadcast, 1);
	LOAD(nc, so, ncclMemAlloc, 0);
	LOAD(nc, so, ncclCommWindowRegister, 0);
	if (!rank && !nc.ncclGetVersion(&version))
		printf("version nccl %d\n", version);
	if (!rank && nc.ncclGetUniqueId(&mine))
		fail("ncclGetUniqueId", "fails");
	allgather(NULL, &mine, id, sizeof(mine), NULL);
	if (!agreed(nc.ncclCommInitRank(&nccl, (int)count, id[0], (int)rank), "ncclCommInitRank fails"))
		return;
	way[NCCL].in = way[GPULOOM].in;
	way[NCCL].out = way[GPULOOM].out;
	open_windows(most);
}

/* ---- one vector ---------------------------------------------------------------------------------------------------- */

static struct loom_comm *comm;

/* What a call does, with vectors of `elements`: for a reduce-scatter those of the input, for an allgather those of the output. */
struct job {
	enum loom_comm_what what;
	const char *name;
	uint64_t elements;
};

static int is_split(const struct job *j)
{
	return j->what == LOOM_COMM_REDUCE_SCATTER || j->what == LOOM_COMM_ALLGATHER;
}

/* Returns the number of elements that a call names. */
static uint64_t named(const struct job *j)
{
	return j->elements / (is_split(j) ? count : 1);
}

static uint64_t received(const struct job *j)
{
	return j->what == LOOM_COMM_REDUCE_SCATTER ? named(j) : j->elements;
}

static int call_nccl(const struct job *j, const void *from, void *to)
{
	switch (j->what) {
	case LOOM_COMM_REDUCE_SCATTER:
		return nc.ncclReduceScatter(from, to, named(j), NCCL_BFLOAT16, NCCL_SUM, nccl, stream);
	case LOOM_COMM_ALLGATHER:
		return nc.ncclAllGather(from, to, named(j), NCCL_BFLOAT16, nccl, stream);
	case LOOM_COMM_BROADCAST:
		return nc.ncclBroadcast(from, to, named(j), NCCL_BFLOAT16, 0, nccl, stream);
	default:
		return nc.ncclAllReduce(from, to, named(j), NCCL_BFLOAT16, NCCL_SUM, nccl, stream);
	}
}

static void call(int who, const struct job *j)
{
	struct loom_error err;
	void *from = (void *)(uintptr_t)way[who].in, *to = (void *)(uintptr_t)way[who].out;
	const struct loom_comm_call c = {j->what, LOOM_COMM_BFLOAT16, 0, 0, from, to, named(j), (uint32_t)(who - EACH), who >= EACH};
	int is_nccl = who == NCCL || who == NCCL_WINDOW;
	if (is_nccl && call_nccl(j, from, to))
		fail(j->name, "NCCL fails");
	if (!is_nccl && loom_comm_call(comm, &c, stream, &err))
		fail(j->name, err.text);
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

/* Returns element i of the result on this rank. */
static uint16_t expected(const struct job *j, uint64_t i)
{
	uint32_t sum = 0;
	if (j->what == LOOM_COMM_BROADCAST)
		return bfloat(whole(0, i));
	if (j->what == LOOM_COMM_ALLGATHER)
		return bfloat(whole((uint32_t)(i / named(j)), i % named(j)));
	if (j->what == LOOM_COMM_REDUCE_SCATTER)
		i += rank * named(j);
	for (uint32_t r = 0; r < count; r++)
		sum += whole(r, i);
	return bfloat(sum);
}

/* Overwrites the output, so that no result of another way or call is found there. */
static void spoil(int who, const struct job *j)
{
	if (stream)
		CU(cuMemsetD8Async(way[who].out, 0xff, 2 * received(j), stream));
	else
		memset((void *)(uintptr_t)way[who].out, 0xff, 2 * received(j));
}

static void check(int who, uint16_t *host, const struct job *j)
{
	if (stream) {
		CU(cuMemcpyDtoHAsync_v2(host, way[who].out, 2 * received(j), stream));
		CU(cuStreamSynchronize(stream));
	} else {
		memcpy(host, (void *)(uintptr_t)way[who].out, 2 * received(j));
	}
	for (uint64_t i = 0; i < received(j); i++)
		if (host[i] != expected(j, i))
			fail(way[who].name, "wrong result");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A turn of one way. Returns the time of a call in us. */
static double turn_of(int who, void *graph, const struct job *j)
{
	pthread_barrier_wait(&meeting->all);
	double begin = now();
	for (int i = 0; stream && i < LAUNCHES; i++)
		CU(cuGraphLaunch(graph, stream));
	for (int i = 0; !stream && i < LAUNCHES * CALLS; i++)
		call(who, j);
	if (stream)
		CU(cuStreamSynchronize(stream));
	return (now() - begin) * 1e6 / LAUNCHES / CALLS;
}

static int takes_part(int who, const struct job *j)
{
	return way[who].in && (who < STORES || j->what == LOOM_COMM_ALLREDUCE);
}

static void measure(const struct job *j, uint16_t *host)
{
	void *graph[WAYS] = {NULL}, *captured;
	for (int who = 0; who < WAYS; who++) {
		if (!takes_part(who, j))
			continue;
		spoil(who, j);
		call(who, j);
		check(who, host, j);
		if (!stream)
			continue;
		CU(cuStreamBeginCapture_v2(stream, 2)); /* relaxed: NCCL may call anything */
		for (int i = 0; i < CALLS; i++)
			call(who, j);
		CU(cuStreamEndCapture(stream, &captured));
		CU(cuGraphInstantiateWithFlags(&graph[who], captured, 0));
	}
	for (int turn = 0; turn <= TURNS; turn++) /* the first turn is a warm-up */
		for (int i = 0; i < WAYS; i++) {
			int who = (i + turn) % WAYS;
			double us = takes_part(who, j) ? turn_of(who, graph[who], j) : 0;
			if (turn && us > 0 && !rank)
				printf("sample comm_%s%s_%llu_us %d %.3f\n", j->name, way[who].name,
				       (unsigned long long)(2 * j->elements), turn, us);
		}
	for (int who = 0; who < WAYS; who++)
		if (takes_part(who, j)) {
			spoil(who, j);
			turn_of(who, graph[who], j);
			check(who, host, j);
		}
	fflush(stdout);
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
		CU(cuMemAlloc_v2(&way[GPULOOM].in, most));
		CU(cuMemAlloc_v2(&way[GPULOOM].out, most));
		open_nccl(most);
		for (int who = 0; who < WAYS; who++)
			if (way[who].in)
				CU(cuMemcpyHtoDAsync_v2(way[who].in, host, most, stream));
		CU(cuStreamSynchronize(stream));
	} else {
		way[GPULOOM].in = (uint64_t)(uintptr_t)memcpy(malloc(most), host, most);
		way[GPULOOM].out = (uint64_t)(uintptr_t)malloc(most);
	}
	for (int who = EACH; who < WAYS && getenv("COMM_EACH"); who++) {
		way[who].in = way[GPULOOM].in;
		way[who].out = way[GPULOOM].out;
	}
	TRY(loom_stack_open(cfg, NULL, &stack, &err));
	TRY(loom_comm_open(stack, &ranks, &comm, &err));
	for (uint64_t bytes = 8; bytes <= most; bytes *= 2)
		measure(&(struct job){LOOM_COMM_ALLREDUCE, "", bytes / 2}, host);
	for (uint64_t bytes = 1024; bytes <= most; bytes *= 16) {
		measure(&(struct job){LOOM_COMM_REDUCE_SCATTER, "scatter_", bytes / 2 / count * count}, host);
		measure(&(struct job){LOOM_COMM_ALLGATHER, "gather_", bytes / 2 / count * count}, host);
		measure(&(struct job){LOOM_COMM_BROADCAST, "broadcast_", bytes / 2}, host);
	}
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
	setenv("NCCL_NVLS_ENABLE", "0", 1);
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
