/* SPDX-License-Identifier: Apache-2.0 */
/* Tests communicators (gpuloom/comm.h): results of all collectives for all types and operations, in place and at
 * addresses that are not aligned; graphs; device code that uses tracks itself; ranks that die, are late, close, or make
 * different calls; calls that are refused. Ranks are processes. The environment has TEST_GPU, the device of each rank:
 * cpu:0 by default. With a driver without a GPU (tests/gpu/runs.sh), device memory is the heap. The program does not
 * run on a real GPU, because it waits for streams without a context; bench/comm and examples/torch run there. */
#include "support.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gpuloom/comm.h>
#include <gpuloom/dev/collective.h>
#include <gpuloom/gpuloom.h>

#include "base/base.h"

enum { MOST = 8, TRACKS = 4, ROOM = 1024 };

/* What the processes share. */
struct meeting {
	pthread_barrier_t all;
	char given[MOST][ROOM];
	uint32_t gave_up; /* number of times that rank 0 has given up */
};

struct rank {
	struct meeting *meeting;
	struct loom_ranks ranks;
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_comm *comm;
	struct loom_error err;
	void *stream;
	unsigned failures;
};

#define EXPECT(r, holds)                                                                           \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "rank %u, line %d: %s: %s\n", (r)->ranks.rank, __LINE__, #holds, (r)->err.text); \
			(r)->failures++;                                                           \
		}                                                                                  \
	} while (0)

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct rank *r = self;
	struct meeting *m = r->meeting;
	(void)err;
	if (bytes > ROOM)
		return LOOM_EINVAL;
	memcpy(m->given[r->ranks.rank], mine, bytes);
	pthread_barrier_wait(&m->all);
	for (uint32_t i = 0; i < r->ranks.ranks; i++)
		memcpy((char *)all + i * bytes, m->given[i], bytes);
	pthread_barrier_wait(&m->all);
	return 0;
}

static int on_gpu(void)
{
	return getenv("TEST_GPU") != NULL;
}

static void set(struct rank *r, const char *section, const char *key, const char *value)
{
	EXPECT(r, !loom_config_set(r->cfg, section, key, value, &r->err));
}

static int open_rank(struct rank *r, const char *timeout)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/plugins", test_build_dir());
	EXPECT(r, !loom_config_create(&r->cfg, &r->err));
	set(r, "gpuloom", "plugin_path", path);
	set(r, "run", "devices", on_gpu() ? getenv("TEST_GPU") : "cpu:0");
	set(r, "run", "timeout", timeout);
	set(r, "device.cpu", "workers", "2");
	set(r, "device.cpu", "oversubscribe", "yes");
	set(r, "device.cpu", "spin", "0");
	set(r, "transport", "use", on_gpu() ? "p2p" : "host");
	set(r, "scheduler", "use", "mgws");
	set(r, "termination", "use", "counter");
	int rc = loom_stack_open(r->cfg, NULL, &r->stack, &r->err);
	EXPECT(r, !rc);
	rc = rc ? rc : loom_comm_open(r->stack, &r->ranks, &r->comm, &r->err);
	EXPECT(r, !rc);
	return rc;
}

static void close_rank(struct rank *r)
{
	loom_comm_close(r->comm);
	loom_stack_close(r->stack);
	loom_config_destroy(r->cfg);
}

/* Runs a function in `ranks` processes. Each returns the number of its failures. Waits for all but those that end by
 * _exit(77). */
static void in_ranks(uint32_t ranks, void (*run)(struct rank *))
{
	struct meeting *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;
	pid_t child[MOST];
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&m->all, &shared, ranks);
	for (uint32_t i = 0; i < ranks; i++) {
		child[i] = fork();
		if (child[i])
			continue;
		struct rank *r = calloc(1, sizeof(*r));
		r->meeting = m;
		r->ranks = (struct loom_ranks){.size = sizeof(r->ranks), .rank = i, .ranks = ranks, .self = r, .allgather = allgather};
		run(r);
		_exit(r->failures > 100 ? 100 : (int)r->failures);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		int status = -1;
		CU_ASSERT_EQUAL(waitpid(child[i], &status, 0), child[i]);
		CU_ASSERT(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
	}
	pthread_barrier_destroy(&m->all);
	munmap(m, sizeof(*m));
}

/* ---- the driver without a GPU ---- */

static void *driver(const char *name)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	so = so ? so : dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD);
	return so ? dlsym(so, name) : NULL;
}

static void await_stream(struct rank *r)
{
	int (*synchronize)(void *);
	*(void **)&synchronize = on_gpu() ? driver("cuStreamSynchronize") : NULL;
	if (on_gpu() && !synchronize)
		*(void **)&synchronize = driver("hipStreamSynchronize");
	if (on_gpu())
		EXPECT(r, synchronize && synchronize(r->stream) == 0);
}

/* ---- elements ---- */

/* Values of which every sum and maximum of at most eight is exact in every type. */
static int value(uint32_t rank, uint64_t i)
{
	return (int)((i * 7 + rank * 5 + i / 13) % 17) - 8;
}

static void put(void *vector, uint64_t i, uint32_t type, int x)
{
	if (type == LOOM_COMM_INT32)
		((int32_t *)vector)[i] = x;
	else if (type == LOOM_COMM_FLOAT)
		((float *)vector)[i] = (float)x;
	else
		((uint16_t *)vector)[i] = (uint16_t)(type == LOOM_COMM_HALF ? loom_comm_to_half((float)x) : loom_comm_to_bfloat16((float)x));
}

static int get(const void *vector, uint64_t i, uint32_t type)
{
	if (type == LOOM_COMM_INT32)
		return ((const int32_t *)vector)[i];
	if (type == LOOM_COMM_FLOAT)
		return (int)((const float *)vector)[i];
	uint32_t bits = ((const uint16_t *)vector)[i];
	return (int)(type == LOOM_COMM_HALF ? loom_comm_from_half(bits) : loom_comm_float(bits << 16));
}

/* Returns what element i of `out` must be. */
static int wanted(const struct loom_comm_call *call, uint32_t ranks, uint32_t rank, uint64_t i)
{
	if (call->what == LOOM_COMM_ALLGATHER)
		return value((uint32_t)(i / call->count), i % call->count);
	if (call->what == LOOM_COMM_BROADCAST)
		return value(call->root, i);
	i += call->what == LOOM_COMM_REDUCE_SCATTER ? rank * call->count : 0;
	int x = value(0, i);
	for (uint32_t r = 1; r < ranks; r++)
		x = call->op == LOOM_COMM_SUM ? x + value(r, i) : value(r, i) > x ? value(r, i) : x;
	return x;
}

/* How a call is made: by the host, as a graph that is launched twice, or by device code on one track. */
enum how { BY_HOST, BY_GRAPH, BY_TRACK };

/* Executes a call with `skip` elements before each vector, and checks the result, and that no other memory changes. */
static void one_call(struct rank *r, struct loom_comm_call call, uint64_t skip, int in_place, enum how how, uint32_t track)
{
	uint32_t ranks = r->ranks.ranks, rank = r->ranks.rank, size = loom_comm_size(call.type);
	uint64_t ins = call.count * (call.what == LOOM_COMM_REDUCE_SCATTER ? ranks : 1);
	uint64_t outs = call.count * (call.what == LOOM_COMM_ALLGATHER ? ranks : 1), n = (ins > outs ? ins : outs) + skip + 1;
	char *in = calloc(n, size), *out = in_place ? in : calloc(n, size);
	uint64_t own_in = in_place && call.what == LOOM_COMM_ALLGATHER ? rank * call.count : 0;
	uint64_t own_out = in_place && call.what == LOOM_COMM_REDUCE_SCATTER ? rank * call.count : 0;
	for (uint64_t i = 0; i < ins; i++)
		put(in, skip + own_in + i, call.type, value(rank, i));
	int guarded = !in_place || ins <= outs; /* in a reduce-scatter in place, the input may follow the output */
	if (guarded)
		put(out, skip + outs, call.type, 11);
	call.in = in + (skip + own_in) * size;
	call.out = out + (skip + own_out) * size;
	if (how == BY_TRACK) {
		struct loom_comm_view view;
		loom_comm_view(r->comm, &view);
		EXPECT(r, !loom_comm_block(&view, &call, track, 0, 1));
	} else {
		EXPECT(r, !loom_comm_call(r->comm, &call, r->stream, &r->err));
		await_stream(r);
		EXPECT(r, !loom_comm_status(r->comm, &r->err));
	}
	uint64_t wrong = 0, first = 0;
	for (uint64_t i = outs; i-- > 0;)
		if (get(out, skip + own_out + i, call.type) != wanted(&call, ranks, rank, i))
			wrong++, first = i;
	if (guarded && get(out, skip + outs, call.type) != 11)
		wrong++, first = outs;
	if (wrong)
		fprintf(stderr, "what %u type %u op %u count %llu skip %llu in place %d: %llu wrong, first %llu: %d, not %d\n",
			call.what, call.type, call.op, (unsigned long long)call.count, (unsigned long long)skip, in_place,
			(unsigned long long)wrong, (unsigned long long)first, get(out, skip + own_out + first, call.type),
			first < outs ? wanted(&call, ranks, rank, first) : 11);
	EXPECT(r, !wrong);
	if (!in_place)
		free(out);
	free(in);
}

/* ---- tests ---- */

static void all_calls(struct rank *r)
{
	static const uint64_t counts[] = {0, 1, 3, 8, 257, 4099, 40000, 700001};
	if (open_rank(r, "60s"))
		return;
	for (size_t c = 0; c < COUNT(counts) - (r->ranks.ranks > (on_gpu() ? 2 : 4)); c++)
		for (uint32_t what = 0; what < LOOM_COMM_BARRIER; what++)
			for (uint32_t type = 0; type <= LOOM_COMM_INT32; type++)
				for (uint32_t op = 0; op <= LOOM_COMM_MAX; op++) {
					struct loom_comm_call call = {.what = what,
								      .type = type,
								      .op = op,
								      .root = (uint32_t)c % r->ranks.ranks,
								      .count = counts[c]};
					if (op && what > LOOM_COMM_REDUCE_SCATTER)
						continue;
					if (counts[c] > 100000 && (type == LOOM_COMM_HALF || op))
						continue;
					one_call(r, call, 0, 0, BY_HOST, 0);
					one_call(r, call, counts[c] > 100000 ? 0 : 1, 1, BY_HOST, 0);
					if (counts[c] < 5000)
						one_call(r, call, 3, 0, BY_HOST, 0);
				}
	EXPECT(r, !loom_comm_barrier(r->comm, r->stream, &r->err));
	await_stream(r);
	close_rank(r);
}

TEST(results)
{
	for (uint32_t ranks = 1; ranks <= (on_gpu() ? 3 : MOST); ranks += ranks < 4 ? 1 : 4)
		in_ranks(ranks, all_calls);
}

/* Sums of sizes around the limits of comm.c, by each algorithm after another one: what one has left in the buffers does no harm. */
static void all_sums(struct rank *r)
{
	if (open_rank(r, "60s"))
		return;
	for (uint64_t sent = 256; sent <= (on_gpu() ? 2u << 20 : 4u << 20); sent *= sent < 512 << 10 ? 2048 : 2)
		for (uint32_t n = 0; n < 10; n++) {
			uint64_t count = sent / (r->ranks.ranks - 1) / loom_comm_size(n % 4) + n % 2;
			struct loom_comm_call call = {.type = n % 4, .count = count, .chosen = n > 1, .pulls = n % 5 % 4};
			if (sent <= 1 << 20 || n < 4)
				one_call(r, call, n % 3, (int)n % 2, BY_HOST, 0);
		}
	close_rank(r);
}

TEST(sums)
{
	for (uint32_t ranks = 2; ranks <= (on_gpu() ? 4 : MOST); ranks *= 2)
		in_ranks(ranks, all_sums);
	if (!on_gpu())
		in_ranks(3, all_sums);
}

/* One rank is always late, so a rank that did not wait would see old data. */
static void turns(struct rank *r)
{
	uint64_t state = 88172645463325252ull; /* the same sizes on all ranks */
	if (open_rank(r, "60s"))
		return;
	for (int n = 0; n < 300; n++) {
		uint64_t x = xorshift(&state);
		struct loom_comm_call call = {.what = (uint32_t)(x % 4), .root = (uint32_t)(x >> 8) % r->ranks.ranks,
					      .count = x >> 16 & (n % 5 ? 0x3ff : 0x3fff)};
		if ((uint32_t)n % r->ranks.ranks == r->ranks.rank)
			usleep(200);
		one_call(r, call, 0, 0, BY_HOST, 0);
	}
	close_rank(r);
}

TEST(one_is_late)
{
	in_ranks(2, turns);
	in_ranks(3, turns);
	in_ranks(MOST, turns);
}

struct user {
	struct rank *r;
	uint32_t track;
};

/* Device code of the program: each thread is a block with a track of its own. */
static void *use_track(void *arg)
{
	struct user *u = arg;
	uint64_t state = 0x9e3779b97f4a7c15ull + u->track;
	for (int n = 0; n < 200; n++) {
		uint64_t x = xorshift(&state);
		struct loom_comm_call call = {.what = (uint32_t)(x % 4), .type = (uint32_t)(x >> 4) % 4, .pulls = (uint32_t)(x >> 12) % 4,
					      .root = (uint32_t)(x >> 8) % u->r->ranks.ranks, .count = x >> 16 & 0x1fff};
		one_call(u->r, call, x >> 40 & 1, 0, BY_TRACK, u->track);
	}
	return NULL;
}

static void tracks(struct rank *r)
{
	struct user u[TRACKS];
	struct loom_comm_view view;
	if (open_rank(r, "60s"))
		return;
	loom_comm_view(r->comm, &view);
	EXPECT(r, view.tracks >= TRACKS);
	for (uint32_t i = 0; i < TRACKS; i++)
		u[i] = (struct user){r, i};
	in_threads(use_track, u, sizeof(u[0]), TRACKS);
	close_rank(r);
}

TEST(device_code)
{
	in_ranks(2, tracks);
	in_ranks(on_gpu() ? 2 : 3, tracks);
}

#define CAPTURED 3

static void graph(struct rank *r)
{
	int (*create)(void **, unsigned), (*begin)(void *, int), (*end)(void *, void **),
	    (*make)(void **, void *, unsigned long long), (*launch)(void *, void *);
	void *made = NULL, *captured = NULL;
	float x[1000], y[CAPTURED][1000];
	if (open_rank(r, "60s"))
		return;
	*(void **)&create = driver("cuStreamCreate");
	*(void **)&begin = driver("cuStreamBeginCapture_v2");
	*(void **)&end = driver("cuStreamEndCapture");
	*(void **)&make = driver("cuGraphInstantiateWithFlags");
	*(void **)&launch = driver("cuGraphLaunch");
	if (!create || !begin || !end || !make || !launch) {
		EXPECT(r, !"functions of the driver");
		return;
	}
	EXPECT(r, !create(&r->stream, 1) && !begin(r->stream, 0));
	for (int i = 0; i < CAPTURED; i++)
		EXPECT(r, !loom_comm_allreduce(r->comm, i ? y[i - 1] : x, y[i], 1000, LOOM_COMM_FLOAT, LOOM_COMM_SUM, r->stream,
					       &r->err));
	EXPECT(r, !end(r->stream, &captured) && !make(&made, captured, 0));
	for (int n = 0; n < 50; n++) {
		float sum = 0;
		for (int i = 0; i < 1000; i++)
			x[i] = (float)(i + n + (int)r->ranks.rank);
		EXPECT(r, !launch(made, r->stream));
		await_stream(r);
		for (uint32_t k = 0; k < r->ranks.ranks; k++)
			sum += (float)(999 + n + (int)k);
		for (int i = 1; i < CAPTURED; i++)
			sum *= (float)r->ranks.ranks;
		EXPECT(r, y[CAPTURED - 1][999] == sum);
	}
	EXPECT(r, !loom_comm_status(r->comm, &r->err));
	close_rank(r);
}

TEST(graphs)
{
	if (on_gpu() && !strncmp(getenv("TEST_GPU"), "cuda", 4))
		in_ranks(2, graph);
}

/* ---- errors ---- */

static double since(struct timespec from)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9;
}

static int sum(struct rank *r)
{
	static float x[100];
	int rc = loom_comm_allreduce(r->comm, x, x, 100, LOOM_COMM_FLOAT, LOOM_COMM_SUM, r->stream, &r->err);
	if (rc || !on_gpu())
		return rc;
	await_stream(r);
	return loom_comm_status(r->comm, &r->err);
}

static int amid;

static void *die_soon(void *arg)
{
	(void)arg;
	usleep(200000);
	_exit(77);
}

/* Rank 1 dies while the others wait in a collective, or amid large sums. */
static void dies(struct rank *r)
{
	static float x[300000];
	struct loom_comm_call call = {.in = x, .out = x, .count = COUNT(x), .chosen = 1, .pulls = 2};
	struct timespec begin;
	pthread_t thread;
	int rc = 0;
	if (open_rank(r, "60s"))
		return;
	EXPECT(r, !sum(r));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (r->ranks.rank == 1)
		pthread_create(&thread, NULL, die_soon, NULL);
	while (amid && !rc && since(begin) < 5) {
		rc = loom_comm_call(r->comm, &call, r->stream, &r->err);
		await_stream(r);
		rc = rc ? rc : loom_comm_status(r->comm, &r->err);
		call.pulls ^= 1;
	}
	if (!amid && r->ranks.rank == 1)
		pause();
	EXPECT(r, (rc ? rc : sum(r)) == LOOM_EDIED && strstr(r->err.text, "rank 1 (process "));
	EXPECT(r, since(begin) < 5);
	EXPECT(r, loom_comm_barrier(r->comm, r->stream, &r->err) == LOOM_EDIED);
	close_rank(r);
}

TEST(a_rank_dies)
{
	for (uint32_t ranks = 2; ranks <= 4; ranks += 2)
		for (amid = 0; amid < 2; amid++)
			in_ranks(ranks, dies);
}

static void is_late(struct rank *r)
{
	if (open_rank(r, "300ms"))
		return;
	EXPECT(r, !sum(r));
	if (r->ranks.rank == 0) {
		struct loom_comm_call barrier = {.what = LOOM_COMM_BARRIER, .chosen = 1, .pulls = 1};
		EXPECT(r, on_gpu() || loom_comm_call(r->comm, &barrier, NULL, &r->err) == LOOM_ETIMEDOUT);
		EXPECT(r, sum(r) == LOOM_ETIMEDOUT && strstr(r->err.text, "rank 0 has waited 0.3 s for rank 1"));
		EXPECT(r, sum(r) == LOOM_ETIMEDOUT);
	}
	pthread_barrier_wait(&r->meeting->all);
	close_rank(r);
}

/* Rank 0 does not wait until the last rank comes. Its later calls send nothing, and no other rank gets a wrong result. */
static void gives_up(struct rank *r)
{
	uint32_t rank = r->ranks.rank, ranks = r->ranks.ranks;
	int32_t x[100], failed = 0;
	struct loom_comm_call call = {.type = LOOM_COMM_INT32, .in = x, .out = x, .count = COUNT(x), .chosen = 1};
	struct loom_comm_view view;
	for (uint32_t n = 0; n < 16; n++) {
		if (open_rank(r, rank ? "60s" : "50ms"))
			return;
		loom_comm_view(r->comm, &view);
		for (uint32_t k = 0; k < 4; k++) {
			for (uint32_t i = 0; i < COUNT(x); i++)
				x[i] = (int32_t)(i + k);
			while (k == 1 && rank == ranks - 1 && __atomic_load_n(&r->meeting->gave_up, __ATOMIC_ACQUIRE) == n)
				usleep(1000);
			call.pulls = (k ? n : n / 4) % 4;
			failed = n < 12 ? loom_comm_block(&view, &call, 0, 0, 1) : loom_comm_call(r->comm, &call, NULL, &r->err);
			for (uint32_t i = 0; i < COUNT(x) && !failed; i++)
				EXPECT(r, x[i] == (int32_t)(ranks * (i + k)));
		}
		EXPECT(r, failed);
		__atomic_fetch_add(&r->meeting->gave_up, rank == 0, __ATOMIC_RELEASE);
		close_rank(r);
	}
}

TEST(a_rank_is_late)
{
	in_ranks(2, is_late);
	for (uint32_t ranks = 2; ranks <= 3 && !on_gpu(); ranks++)
		in_ranks(ranks, gives_up);
}

static void *stop_soon(void *arg)
{
	usleep(100000);
	loom_comm_stop(((struct rank *)arg)->comm);
	return NULL;
}

static void stops(struct rank *r)
{
	struct timespec begin;
	if (open_rank(r, "60s"))
		return;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (r->ranks.rank == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, stop_soon, r);
		EXPECT(r, sum(r) == LOOM_EINTR && since(begin) < 5);
		pthread_join(thread, NULL);
		EXPECT(r, sum(r) == LOOM_EINTR && strstr(r->err.text, "stopped"));
	}
	pthread_barrier_wait(&r->meeting->all);
	close_rank(r);
}

TEST(a_rank_stops)
{
	in_ranks(2, stops);
}

static void refusals(struct rank *r)
{
	float x[8] = {0};
	const struct loom_comm_call good = {.in = x, .out = x, .count = 8};
	struct loom_comm_call call = good;
	struct loom_comm *none = NULL;
	struct loom_ranks many = r->ranks;
	if (open_rank(r, "60s"))
		return;
#define REFUSES(words)                                                                             \
	do {                                                                                       \
		EXPECT(r, loom_comm_call(r->comm, &call, r->stream, &r->err) == LOOM_EINVAL);      \
		EXPECT(r, test_says(r->err.text, words));                                          \
		call = good;                                                                       \
	} while (0)
	call.type = 4;
	REFUSES("type 4&does not exist");
	call.op = 2;
	REFUSES("operation 2");
	call.chosen = 1, call.pulls = 4;
	REFUSES("pulls = 4&0 to 3");
	call.what = LOOM_COMM_BROADCAST, call.root = 2;
	REFUSES("no rank 2");
	call.in = (char *)x + 2;
	REFUSES("not aligned to elements of 4 bytes");
	call.out = NULL;
	REFUSES("NULL");
	call.count = UINT64_MAX;
	REFUSES("too many");
	if (!on_gpu())
		EXPECT(r, loom_comm_call(r->comm, &call, x, &r->err) == LOOM_EINVAL && strstr(r->err.text, "no streams"));
	many.ranks = 17;
	EXPECT(r, loom_comm_open(r->stack, &many, &none, &r->err) == LOOM_ENOTSUP && strstr(r->err.text, "at most 16"));
	EXPECT(r, loom_comm_open(r->stack, NULL, &none, &r->err) == LOOM_EINVAL);
	pid_t child = fork();
	if (!child) {
		int rc = loom_comm_barrier(r->comm, NULL, &r->err);
		loom_comm_close(r->comm);
		_exit(rc == LOOM_EBUSY && strstr(r->err.text, "fork") ? 0 : 1);
	}
	int status = -1;
	EXPECT(r, waitpid(child, &status, 0) == child && status == 0);
	EXPECT(r, !sum(r)); /* nothing that was refused has changed anything */
	if (r->ranks.rank == 1) {
		close_rank(r);
		pthread_barrier_wait(&r->meeting->all);
		return;
	}
	if (on_gpu()) /* a rank on a GPU waits in close() until all have closed */
		usleep(300000);
	else
		pthread_barrier_wait(&r->meeting->all);
	EXPECT(r, sum(r) == LOOM_EINVAL && strstr(r->err.text, "rank 1 has closed"));
	close_rank(r);
	if (on_gpu())
		pthread_barrier_wait(&r->meeting->all);
}

TEST(refused)
{
	in_ranks(2, refusals);
}

/* ---- ranks that differ ---- */

/* The calls of rank 0 and of the last rank, and what the ranks say about them. Ranks between them call as rank 0 does.
 */
static const struct {
	struct loom_comm_call first, last;
	const char *of_first, *of_last;
} unequal[] = {
    {{.count = 5}, {.count = 7}, "allreduce of 5 x float, sum", "allreduce of 7 x float, sum"},
    {{.count = 5}, {.count = 100000}, "allreduce of 5 x", "allreduce of 100000 x"},
    {{.count = 100000}, {.count = 5}, "allreduce of 100000 x", "allreduce of 5 x"},
    {{.count = 99998}, {.count = 100000}, "99998", "100000"},
    {{.count = 1000}, {.count = 400000}, "1000 x", "400000"}, /* other numbers of rounds */
    {{.count = 9}, {.count = 9, .op = LOOM_COMM_MAX}, "float, sum", "float, maximum"},
    {{.count = 999}, {.count = 999, .type = LOOM_COMM_INT32}, "999 x float", "999 x int32"},
    {{.what = LOOM_COMM_BROADCAST, .count = 3}, {.what = LOOM_COMM_BROADCAST, .count = 3, .root = 1}, "rank 0", "rank 1"},
    {{.what = LOOM_COMM_BROADCAST, .count = 3, .root = 1}, {.what = LOOM_COMM_BROADCAST, .count = 3}, "rank 1", "rank 0"},
    {{.what = LOOM_COMM_BROADCAST, .count = 999}, {.what = LOOM_COMM_BROADCAST, .count = 999, .root = 1}, "rank 0", "rank 1"},
    {{.count = 99, .chosen = 1, .pulls = 3}, {.count = 99, .chosen = 1, .pulls = 2}, "pulls = 3", "pulls = 2"},
    {{.what = LOOM_COMM_ALLGATHER, .count = 9, .chosen = 1}, {.what = LOOM_COMM_ALLGATHER, .count = 9, .chosen = 1, .pulls = 1}, "= 0", "= 1"},
    {{.what = LOOM_COMM_ALLGATHER, .count = 6}, {.count = 6}, "allgather of 6 x float", "allreduce of 6 x float"},
    {{.what = LOOM_COMM_BARRIER}, {.what = LOOM_COMM_REDUCE_SCATTER, .count = 6}, "barrier", "reduce_scatter of 6 x float"},
};

static void differ(struct rank *r)
{
	static float x[4 * 400000], y[4 * 400000];
	uint32_t last = r->ranks.ranks - 1;
	if (open_rank(r, "60s"))
		return;
	for (size_t i = 0; i < COUNT(unequal); i++) {
		int is_last = r->ranks.rank == last;
		struct loom_comm_call call = is_last ? unequal[i].last : unequal[i].first;
		call.in = x, call.out = y;
		EXPECT(r, !sum(r));
		pthread_barrier_wait(&r->meeting->all);
		EXPECT(r, loom_comm_call(r->comm, &call, NULL, &r->err) == LOOM_EINVAL);
		EXPECT(r, strstr(r->err.text, unequal[i].of_first) && strstr(r->err.text, unequal[i].of_last));
		EXPECT(r, strstr(r->err.text, is_last || last == 1
						  ? "calls"
						  : "rank 2 calls")); /* the last one differs from both others */
		EXPECT(r, sum(r) == LOOM_EINVAL);
		pthread_barrier_wait(&r->meeting->all); /* no rank closes before all have compared */
		loom_comm_close(r->comm);
		EXPECT(r, !loom_comm_open(r->stack, &r->ranks, &r->comm, &r->err));
	}
	close_rank(r);
}

TEST(unequal_calls)
{
	for (uint32_t ranks = 2; ranks <= 3 && !on_gpu(); ranks++)
		in_ranks(ranks, differ);
}

static void closes_meanwhile(struct rank *r)
{
	struct timespec begin;
	if (open_rank(r, "60s"))
		return;
	EXPECT(r, !sum(r));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (r->ranks.rank == 1) {
		usleep(100000); /* the others wait in their collective */
	} else {
		EXPECT(r, sum(r) == LOOM_EINVAL && test_says(r->err.text, "rank 1 has closed&rank 0 waits for it"));
		EXPECT(r, since(begin) < 20);
		EXPECT(r, sum(r) == LOOM_EINVAL);
	}
	close_rank(r);
}

TEST(a_rank_closes)
{
	in_ranks(2, closes_meanwhile);
}

/* Rank 1 cannot make its part. The other ranks get its reason, and a later attempt succeeds. */
static void fails_alone(struct rank *r)
{
	struct rlimit files, none = {0};
	struct loom_comm *comm = NULL;
	if (open_rank(r, "60s"))
		return;
	getrlimit(RLIMIT_NOFILE, &files);
	none.rlim_max = files.rlim_max;
	if (r->ranks.rank == 1)
		setrlimit(RLIMIT_NOFILE, &none);
	EXPECT(r, loom_comm_open(r->stack, &r->ranks, &comm, &r->err) == LOOM_EUNAVAIL);
	EXPECT(r, r->ranks.rank == 1 || test_says(r->err.text, "rank 1: &memfd_create&open files"));
	setrlimit(RLIMIT_NOFILE, &files);
	EXPECT(r, !loom_comm_open(r->stack, &r->ranks, &comm, &r->err));
	loom_comm_close(comm);
	EXPECT(r, !sum(r));
	close_rank(r);
}

TEST(a_rank_cannot_open)
{
	in_ranks(2, fails_alone);
	in_ranks(on_gpu() ? 2 : 3, fails_alone);
}

static void stack_first(struct rank *r)
{
	if (open_rank(r, "60s"))
		return;
	EXPECT(r, !sum(r));
	loom_stack_close(r->stack);
	r->stack = NULL;
	EXPECT(r, loom_comm_barrier(r->comm, r->stream, &r->err) == LOOM_EINVAL &&
		      strstr(r->err.text, "stack of this communicator"));
	EXPECT(r, loom_comm_status(r->comm, &r->err) == LOOM_EINVAL);
	loom_comm_stop(r->comm);
	close_rank(r);
}

TEST(the_stack_is_closed_first)
{
	in_ranks(2, stack_first);
}

static uint32_t tasks_ran;

static void count_task(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c, (void)t;
	__atomic_fetch_add(&tasks_ran, 1u, __ATOMIC_RELAXED);
}

/* Communicators use the workers, but change neither the tags nor the submitted tasks of the program. */
static void beside_tasks(struct rank *r)
{
	static float x[200000];
	uint32_t tag = 99, second = 99;
	if (open_rank(r, "60s"))
		return;
	for (int i = 0; i < 3; i++) {
		EXPECT(r, !loom_comm_allreduce(r->comm, x, x, COUNT(x), LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &r->err));
		loom_comm_close(r->comm);
		EXPECT(r, !loom_comm_open(r->stack, &r->ranks, &r->comm, &r->err));
	}
	EXPECT(r, !loom_stack_task(r->stack, "first", count_task, &tag, &r->err) && tag == 0);
	EXPECT(r, !loom_comm_allreduce(r->comm, x, x, COUNT(x), LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &r->err));
	EXPECT(r, !loom_stack_task(r->stack, "second", count_task, &second, &r->err) && second == 1);
	struct loom_task tasks[3] = {{.tag = tag}, {.tag = second}, {.tag = tag}}, none = {.tag = 2};
	EXPECT(r, loom_stack_submit(r->stack, &none, 1, &r->err) == LOOM_EINVAL);
	EXPECT(r, !loom_stack_submit(r->stack, tasks, 3, &r->err));
	EXPECT(r, !loom_comm_allreduce(r->comm, x, x, COUNT(x), LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &r->err));
	EXPECT(r, !loom_comm_allreduce(r->comm, x, x, 4096, LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &r->err));
	EXPECT(r, tasks_ran == 0);
	EXPECT(r, !loom_stack_run(r->stack, NULL, &r->err) && tasks_ran == 3);
	close_rank(r);
}

TEST(submitted_tasks)
{
	if (!on_gpu())
		in_ranks(2, beside_tasks);
}

/* ---- conversions ---- */

TEST(numbers)
{
	uint64_t state = 1234567;
	unsigned wrong = 0;
	for (uint32_t h = 0; h < 65536; h++) {
		float f = loom_comm_from_half(h);
		int nan = (h & 0x7fffu) > 0x7c00u;
		wrong += nan ? !isnan(f) : loom_comm_to_half(f) != h;
		wrong += nan ? !isnan(loom_comm_from_half(loom_comm_to_half(f))) : 0;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(loom_comm_from_half(1) == ldexpf(1, -24) && loom_comm_from_half(0x7bff) == 65504);
	for (int i = 0; i < 1000000; i++) {
		float f = loom_comm_float((uint32_t)xorshift(&state));
		if (isnan(f))
			continue;
#if defined(__x86_64__) && __GNUC__ >= 12 && !defined(__clang__)
		_Float16 h = (_Float16)f;
		uint16_t bits;
		memcpy(&bits, &h, sizeof(bits));
		wrong += loom_comm_to_half(f) != bits;
#endif
		/* The nearest bfloat16 is at most half a unit away, and even if two are equally near. */
		uint32_t up = loom_comm_to_bfloat16(f), low = loom_comm_bits(f) >> 16, rest = loom_comm_bits(f) & 0xffffu;
		wrong += up != (rest > 0x8000u || (rest == 0x8000u && (low & 1)) ? low + 1 : low);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(isnan(loom_comm_float(loom_comm_to_bfloat16(loom_comm_float(0x7f800001u)) << 16)));
	uint32_t nan = 0x7fc00000u, one = loom_comm_bits(1);
	CU_ASSERT(loom_comm_pick(nan, one, LOOM_COMM_FLOAT, LOOM_COMM_MAX) == nan);
	CU_ASSERT(loom_comm_pick(one, nan, LOOM_COMM_FLOAT, LOOM_COMM_MAX) == nan);
}

TEST_MAIN("comm", 120)
