/* SPDX-License-Identifier: Apache-2.0 */
/* Litmus tests of the device layer on a real GPU. The patterns are those of the schedulers, at device scope in device
 * memory, and at system scope in device and in host memory.
 *
 *   publish   a thread stores data, then releases a word; a thread that acquires the word sees the data
 *   claim     each fetch_add returns a different number, and acquires the data that were published before
 *   complete  a reader copies a slot, then adds with release; the owner acquires the sum and overwrites the slot
 *   marked    a word and its mark are stored as one, without order: a load that returns the mark returns the word
 *   flag      two words, each with half of an item and the number of the round, are stored without order. A thread that has
 *             loaded both with the round has the item, and may return the slot by a relaxed store
 *   meet      threads store data, and release a counter of their GPU; the last one fences and stores a word, without order.
 *             A thread that loads the word without order, and then fences, sees the data of all
 *   line      as meet, but each thread is a last one, with a word of its own in a line. Each lane of a warp loads one word of
 *             the line, without order. If all lanes have seen theirs, each fences, and after a barrier each sees the data of all
 *   sb        both sides store, fence and load: at least one side sees the store of the other
 *
 * Forbidden outcomes are counted; each count must be 0. A test is valid only if both orders occurred. */
#include <stdio.h>
#include <stdlib.h>

/* These macros give the functions of both runtimes common names. Device memory is fine-grained, because workers of
 * several devices share it. */
#ifdef __HIP__
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#define DEVICE_MEMORY(p, bytes) hipExtMallocWithFlags((void **)(p), bytes, hipDeviceMallocFinegrained)
#define HOST_MEMORY(p, bytes) hipHostMalloc((void **)(p), bytes, hipHostMallocMapped | hipHostMallocCoherent)
#define HOST_FREE hipHostFree
#define ALL_LANES(v) __all((int)(v))
#define LANES_MEET() __builtin_amdgcn_wave_barrier()
#else
#define GPU(name) cuda##name
#define DEVICE_MEMORY cudaMalloc
#define HOST_MEMORY(p, bytes) cudaHostAlloc(p, bytes, cudaHostAllocMapped)
#define HOST_FREE cudaFreeHost
#define ALL_LANES(v) __all_sync(0xffffffffu, (int)(v))
#define LANES_MEET() __syncwarp()
#endif

#include <gpuloom/dev/dev.h>

/* gpuloom's device code refers to these functions, but the litmus tests call neither. */
__device__ void loom_task_run(struct loom_ctx *, const struct loom_task *) {}
__device__ void loom_task_run_nested(struct loom_ctx *, const struct loom_task *) {}

struct cell {
	uint32_t data, pad0[31];
	uint32_t word, pad1[31];
	uint32_t done, pad2[31];
};
struct tally {
	unsigned long long wrong, early, late;
};

#define ROUNDS 20000u
/* 1 if a load of a marked word may return the word of a later mark, because it consists of two accesses. */
#ifdef __HIP__
#define MAY_BE_LATER 1
#else
#define MAY_BE_LATER (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1203)
#endif

#define CHECK(call)                                                                                \
	do {                                                                                       \
		GPU(Error_t) rc_ = (call);                                                         \
		if (rc_ != GPU(Success)) {                                                         \
			fprintf(stderr, "litmus: %s: %s\n", #call, GPU(GetErrorString)(rc_));      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define LOOK_dev loom_load_poll_dev
#define LOOKED_dev loom_fence_poll_dev
#define LOOK_sys loom_load_acquire_sys
#define LOOKED_sys()

#define LITMUS(SCOPE)                                                                              \
	/* Each even block writes a cell, which the next odd block reads. */                       \
	__global__ void publish_##SCOPE(struct cell *cells, struct tally *t)                       \
	{                                                                                          \
		struct cell *m = &cells[blockIdx.x / 2];                                           \
		unsigned long long wrong = 0, early = 0, late = 0;                                 \
		for (uint32_t i = 1; i <= ROUNDS; i++) {                                           \
			if (blockIdx.x % 2 == 0) {                                                 \
				*(volatile uint32_t *)&m->data = i;                                \
				loom_store_release_##SCOPE(&m->word, i);                           \
			} else {                                                                   \
				uint32_t w = loom_load_acquire_##SCOPE(&m->word);                  \
				uint32_t d = *(volatile uint32_t *)&m->data;                       \
				wrong += d < w;                                                    \
				early += d == w;                                                   \
				late += d > w;                                                     \
			}                                                                          \
		}                                                                                  \
		atomicAdd(&t->wrong, wrong);                                                       \
		atomicAdd(&t->early, early);                                                       \
		atomicAdd(&t->late, late);                                                         \
	}                                                                                          \
	/* All blocks draw numbers from one word. seen[n] counts the draws of n. */                \
	__global__ void claim_##SCOPE(struct cell *m, uint32_t *seen, struct tally *t)             \
	{                                                                                          \
		for (uint32_t i = 0; i < ROUNDS / 100; i++) {                                      \
			uint32_t n = loom_fetch_add_acquire_##SCOPE(&m->word, 1u);                 \
			if (atomicAdd(&seen[n], 1u))                                               \
				atomicAdd(&t->wrong, 1ull);                                        \
		}                                                                                  \
	}                                                                                          \
	/* The owner writes i, publishes it, and waits for the reader's completion. */             \
	__global__ void complete_##SCOPE(struct cell *cells, struct tally *t)                      \
	{                                                                                          \
		struct cell *m = &cells[blockIdx.x / 2];                                           \
		unsigned long long wrong = 0;                                                      \
		for (uint32_t i = 1; i <= ROUNDS / 20; i++) {                                      \
			if (blockIdx.x % 2 == 0) {                                                 \
				*(volatile uint32_t *)&m->data = i;                                \
				loom_store_release_##SCOPE(&m->word, i);                           \
				while (loom_load_acquire_##SCOPE(&m->done) != i)                   \
					;                                                          \
			} else {                                                                   \
				wrong += m->data > i; /* loads the old data into the cache */      \
				while (LOOK_##SCOPE(&m->word) != i)                                \
					;                                                          \
				LOOKED_##SCOPE();                                                  \
				wrong += m->data != i;                                             \
				loom_fetch_add_release_##SCOPE(&m->done, 1u);                      \
			}                                                                          \
		}                                                                                  \
		atomicAdd(&t->wrong, wrong);                                                       \
	}                                                                                          \
	/* Both blocks of a pair wait for each other at `done`, then store and load. */            \
	__global__ void sb_##SCOPE(struct cell *cells, uint32_t *saw, struct tally *t)             \
	{                                                                                          \
		uint32_t pair = blockIdx.x / 2, me = blockIdx.x % 2;                               \
		struct cell *m = &cells[pair];                                                     \
		uint32_t *mine = me ? &m->data : &m->word, *its = me ? &m->word : &m->data;        \
		for (uint32_t i = 1; i <= ROUNDS / 20; i++) {                                      \
			loom_fetch_add_acq_rel_##SCOPE(&m->done, 1u);                              \
			while (loom_load_acquire_##SCOPE(&m->done) < 4 * i - 2) \
				;                                                                  \
			loom_store_relaxed_##SCOPE(mine, i);                                       \
			loom_fence_seq_cst_##SCOPE();                                              \
			saw[2 * pair + me] = loom_load_relaxed_##SCOPE(its) >= i;                  \
			loom_fetch_add_acq_rel_##SCOPE(&m->done, 1u);                              \
			while (loom_load_acquire_##SCOPE(&m->done) < 4 * i)                        \
				;                                                                  \
			if (me == 0) {                                                             \
				uint32_t a = *(volatile uint32_t *)&saw[2 * pair];                 \
				uint32_t b = *(volatile uint32_t *)&saw[2 * pair + 1];             \
				if (!a && !b)                                                      \
					atomicAdd(&t->wrong, 1ull);                                \
				if (a != b)                                                        \
					atomicAdd(&t->early, 1ull);                                \
			}                                                                          \
			loom_fence_seq_cst_##SCOPE();                                              \
		}                                                                                  \
	}

LITMUS(dev)
LITMUS(sys)

/* Each lane of an even block stores words with marks. The same lane of the next odd block loads them. */
__global__ void marked(uint64_t *pairs, struct tally *t)
{
	uint64_t *p = pairs + 2 * (blockIdx.x / 2 * blockDim.x + threadIdx.x);
	unsigned long long wrong = 0, early = 0, late = 0, seen = 0;
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t word;
		if (blockIdx.x % 2 == 0) {
			loom_store_marked_sys(p, i * 0x9e3779b97f4a7c15ull, i);
		} else {
			uint64_t mark = loom_load_marked_sys(p, &word);
			wrong += word != mark * 0x9e3779b97f4a7c15ull && !MAY_BE_LATER;
			wrong += mark < seen;
			early += mark == seen;
			late += mark > seen;
			seen = mark;
		}
	}
	atomicAdd(&t->wrong, wrong);
	atomicAdd(&t->early, early);
	atomicAdd(&t->late, late);
}

/* A slot with a flag as in plugins/sync_common/gpu_wait.dev.h. */
struct slot {
	uint64_t half[2], pad0[14];
	uint32_t done, pad1[31];
};
#define HALF(i, high) ((uint64_t)(i) << 32 | (uint32_t)((i) * 0x9e3779b9u + (high)))

__global__ void flags_out(struct slot *slots)
{
	struct slot *s = &slots[blockIdx.x * blockDim.x + threadIdx.x];
	for (uint32_t i = 1; i <= ROUNDS / 10; i++) {
		loom_store_marked_sys(s->half, HALF(i, 0), HALF(i, 1));
		while (loom_load_relaxed_sys(&s->done) != i)
			;
	}
}
__global__ void flags_in(struct slot *slots, struct tally *t)
{
	struct slot *s = &slots[blockIdx.x * blockDim.x + threadIdx.x];
	unsigned long long wrong = 0, early = 0, late = 0;
	for (uint32_t i = 1; i <= ROUNDS / 10; i++) {
		uint64_t low, high;
		int waited = 0;
		while ((high = loom_load_marked_sys(s->half, &low)) >> 32 != i || low >> 32 != i)
			waited = 1;
		wrong += low != HALF(i, 0) || high != HALF(i, 1);
		early += waited;
		late += !waited;
		loom_store_relaxed_sys(&s->done, i);
	}
	atomicAdd(&t->wrong, wrong);
	atomicAdd(&t->early, early);
	atomicAdd(&t->late, late);
}

static int failures;

static struct tally fetch(const struct tally *t)
{
	struct tally out;
	CHECK(GPU(DeviceSynchronize)());
	CHECK(GPU(Memcpy)(&out, t, sizeof(out), GPU(MemcpyDeviceToHost)));
	return out;
}

static void report(const char *name, const char *where, struct tally got)
{
	const struct tally *t = &got;
	printf("  %s  litmus %-9s %-22s forbidden %llu, the interesting orders %llu and %llu\n",
	       t->wrong ? "FAILED" : "ok", name, where, t->wrong, t->early, t->late);
	failures += t->wrong != 0;
}

enum { PAIRS = 128 };

template <typename Publish, typename Claim, typename Complete, typename Sb>
static void all(const char *where, int host, Publish publish, Claim claim, Complete complete, Sb sb)
{
	struct cell *cells;
	struct tally *t;
	uint32_t *seen;
	uint64_t bytes = PAIRS * sizeof(*cells);
	if (host)
		CHECK(HOST_MEMORY(&cells, bytes));
	else
		CHECK(DEVICE_MEMORY(&cells, bytes));
	CHECK(DEVICE_MEMORY(&t, sizeof(*t)));
	CHECK(DEVICE_MEMORY(&seen, (2 * PAIRS * (ROUNDS / 100) + 2 * PAIRS) * sizeof(*seen)));
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"publish", "claim", "complete", "sb"};
		CHECK(GPU(Memset)(cells, 0, bytes));
		CHECK(GPU(Memset)(seen, 0, (2 * PAIRS * (ROUNDS / 100) + 2 * PAIRS) * sizeof(*seen)));
		CHECK(GPU(Memset)(t, 0, sizeof(*t)));
		if (i == 0)
			publish<<<2 * PAIRS, 1>>>(cells, t);
		else if (i == 1)
			claim<<<2 * PAIRS, 1>>>(cells, seen, t);
		else if (i == 2)
			complete<<<2 * PAIRS, 1>>>(cells, t);
		else
			sb<<<2 * PAIRS, 1>>>(cells, seen, t);
		report(names[i], where, fetch(t));
	}
	CHECK(GPU(Free)(seen));
	CHECK(GPU(Free)(t));
	CHECK(host ? HOST_FREE(cells) : GPU(Free)(cells));
}

/* The GPU publishes data in host memory, and a thread of the host reads them. */
static void to_host(void)
{
	struct cell *cells;
	struct tally *t, mine = {0, 0, 0};
	CHECK(HOST_MEMORY(&cells, sizeof(*cells)));
	CHECK(DEVICE_MEMORY(&t, sizeof(*t)));
	*cells = (struct cell){};
	CHECK(GPU(Memset)(t, 0, sizeof(*t)));
	publish_sys<<<1, 1>>>(cells, t);
	for (uint32_t w = 0, seen = 0; w != ROUNDS; seen = w) {
		w = __atomic_load_n(&cells->word, __ATOMIC_ACQUIRE);
		uint32_t d = *(volatile uint32_t *)&cells->data;
		mine.wrong += d < w;
		mine.early += w != seen && d == w;
		mine.late += d > w;
	}
	fetch(t);
	report("publish", "GPU to CPU", mine);
	CHECK(GPU(Free)(t));
	CHECK(HOST_FREE(cells));
}

/* Runs marked() with blocks of one warp, in host memory if `host` is 1. */
static void marks(const char *where, int host)
{
	uint64_t *pairs, bytes = PAIRS * 32 * 16;
	struct tally *t;
	if (host)
		CHECK(HOST_MEMORY(&pairs, bytes));
	else
		CHECK(DEVICE_MEMORY(&pairs, bytes));
	CHECK(DEVICE_MEMORY(&t, sizeof(*t)));
	CHECK(GPU(Memset)(pairs, 0, bytes));
	CHECK(GPU(Memset)(t, 0, sizeof(*t)));
	marked<<<2 * PAIRS, 32>>>(pairs, t);
	report("marked", where, fetch(t));
	CHECK(GPU(Free)(t));
	CHECK(host ? HOST_FREE(pairs) : GPU(Free)(pairs));
}

/* marks_between() runs marks_out() on the second GPU, which stores into the memory of the first GPU. The first GPU
 * polls this memory with marks_in(). */
__global__ void marks_out(uint64_t *pairs)
{
	for (uint64_t i = 1; i <= ROUNDS; i++)
		loom_store_marked_sys(pairs + 2 * (blockIdx.x * blockDim.x + threadIdx.x), i * 0x9e3779b97f4a7c15ull, i);
}
__global__ void marks_in(const uint64_t *pairs, struct tally *t)
{
	unsigned long long wrong = 0, early = 0, late = 0, seen = 0;
	while (seen < ROUNDS) {
		uint64_t word, mark = loom_load_marked_sys(pairs + 2 * (blockIdx.x * blockDim.x + threadIdx.x), &word);
		wrong += word != mark * 0x9e3779b97f4a7c15ull && !MAY_BE_LATER;
		wrong += mark < seen;
		early += mark == seen;
		late += mark > seen;
		seen = mark;
	}
	atomicAdd(&t->wrong, wrong);
	atomicAdd(&t->early, early);
	atomicAdd(&t->late, late);
}
static void marks_between(void)
{
	uint64_t *pairs;
	struct tally *t;
	CHECK(DEVICE_MEMORY(&pairs, PAIRS * 32 * 16));
	CHECK(DEVICE_MEMORY(&t, sizeof(*t)));
	CHECK(GPU(Memset)(pairs, 0, PAIRS * 32 * 16));
	CHECK(GPU(Memset)(t, 0, sizeof(*t)));
	CHECK(GPU(DeviceSynchronize)());
	marks_in<<<PAIRS, 32>>>(pairs, t);
	CHECK(GPU(SetDevice)(1));
	marks_out<<<PAIRS, 32>>>(pairs);
	CHECK(GPU(DeviceSynchronize)());
	CHECK(GPU(SetDevice)(0));
	report("marked", "GPU to GPU", fetch(t));
	CHECK(GPU(Free)(t));
	CHECK(GPU(Free)(pairs));
}

/* The first GPU has the slots, unless they are in host memory. The second GPU or the host stores rounds. */
static void flags(const char *where, int host)
{
	struct slot *slots;
	struct tally *t;
	uint64_t bytes = PAIRS * sizeof(*slots);
	if (host)
		CHECK(HOST_MEMORY(&slots, bytes));
	else
		CHECK(DEVICE_MEMORY(&slots, bytes));
	CHECK(DEVICE_MEMORY(&t, sizeof(*t)));
	CHECK(GPU(Memset)(slots, 0, bytes));
	CHECK(GPU(Memset)(t, 0, sizeof(*t)));
	CHECK(GPU(DeviceSynchronize)());
	flags_in<<<PAIRS, 1>>>(slots, t);
	if (!host) {
		CHECK(GPU(SetDevice)(1));
		flags_out<<<PAIRS, 1>>>(slots);
		CHECK(GPU(DeviceSynchronize)());
		CHECK(GPU(SetDevice)(0));
	}
	for (uint32_t i = 1; host && i <= ROUNDS / 10; i++)
		for (int p = 0; p < PAIRS; p++) {
			while (__atomic_load_n(&slots[p].done, __ATOMIC_RELAXED) != i - 1)
				;
			__atomic_store_n(&slots[p].half[0], HALF(i, 0), __ATOMIC_RELAXED);
			__atomic_store_n(&slots[p].half[1], HALF(i, 1), __ATOMIC_RELAXED);
		}
	report("flag", where, fetch(t));
	CHECK(GPU(Free)(t));
	CHECK(host ? HOST_FREE(slots) : GPU(Free)(slots));
}

/* A meeting of WRITERS blocks and a reader. Each member has cache lines of its own. */
enum { WRITERS = 3, MEMBERS = WRITERS + 1, MEETINGS = 32, LINE = 32 };
struct meeting {
	uint32_t data[WRITERS][LINE], word[LINE], done[LINE];
};
/* all: in the memory of the readers' GPU. counters: [MEETINGS][LINE], in the memory of the writers' GPU. Blocks from the
 * first one of a meeting write, the last one reads. roles: which of them take part in this launch. */
enum { WRITE = 1, READ = 2 };
__global__ void meet(struct meeting *all, uint32_t *counters, int roles, struct tally *t)
{
	struct meeting *m = &all[blockIdx.x / MEMBERS];
	uint32_t *counter = &counters[blockIdx.x / MEMBERS * LINE], me = blockIdx.x % MEMBERS;
	unsigned long long wrong = 0, early = 0, late = 0;
	for (uint32_t i = 1; i <= ROUNDS / 10; i++) {
		if (me < WRITERS && roles & WRITE) {
			*(volatile uint32_t *)m->data[me] = i;
			if (loom_fetch_add_release_dev(counter, 1u) + 1 == i * WRITERS) {
				loom_fence_release_sys();
				loom_store_relaxed_sys(m->word, i);
			}
			while (loom_load_acquire_sys(m->done) < i)
				;
		} else if (me == WRITERS && roles & READ) {
			int waited = 0;
			for (uint32_t w = 0; w < WRITERS; w++)
				wrong += m->data[w][0] > i; /* loads the old data into the cache */
			while (loom_load_relaxed_sys(m->word) != i)
				waited = 1;
			loom_fence_poll_sys();
			for (uint32_t w = 0; w < WRITERS; w++)
				wrong += m->data[w][0] != i;
			early += waited;
			late += !waited;
			loom_store_release_sys(m->done, i);
		}
	}
	atomicAdd(&t->wrong, wrong);
	atomicAdd(&t->early, early);
	atomicAdd(&t->late, late);
}

/* As meet(), with a line in place of counters and words. A block has a warp, of which the first lane writes. */
__global__ void line(struct meeting *all, uint32_t *unused, int roles, struct tally *t)
{
	struct meeting *m = &all[blockIdx.x / MEMBERS];
	uint32_t me = blockIdx.x % MEMBERS, lane = threadIdx.x;
	unsigned long long wrong = 0, early = 0, late = 0;
	(void)unused;
	for (uint32_t i = 1; i <= ROUNDS / 10; i++) {
		if (me < WRITERS && roles & WRITE && lane == 0) {
			*(volatile uint32_t *)m->data[me] = i;
			loom_fence_release_sys();
			loom_store_relaxed_sys(&m->word[me], i);
			while (loom_load_acquire_sys(m->done) < i)
				;
		} else if (me == WRITERS && roles & READ) {
			int waited = 0;
			for (uint32_t w = 0; w < WRITERS; w++)
				wrong += m->data[w][0] > i; /* loads the old data into the cache */
			while (!ALL_LANES(lane >= WRITERS || loom_load_relaxed_sys(&m->word[lane]) == i))
				waited = 1;
			loom_fence_poll_sys();
			LANES_MEET();
			for (uint32_t w = 0; w < WRITERS; w++)
				wrong += m->data[w][0] != i;
			LANES_MEET();
			early += lane == 0 && waited;
			late += lane == 0 && !waited;
			if (lane == 0)
				loom_store_release_sys(m->done, i);
		}
	}
	atomicAdd(&t->wrong, wrong);
	atomicAdd(&t->early, early);
	atomicAdd(&t->late, late);
}

/* Runs meet() or line() on the first GPU. If `between` is 1, the writers are on the second GPU. */
static void meetings(const char *name, void (*kernel)(struct meeting *, uint32_t *, int, struct tally *), uint32_t lanes,
		     const char *where, int between)
{
	struct meeting *all;
	struct tally *t[2];
	uint32_t *counters;
	CHECK(DEVICE_MEMORY(&all, MEETINGS * sizeof(*all)));
	CHECK(GPU(Memset)(all, 0, MEETINGS * sizeof(*all)));
	for (int d = between; d >= 0; d--) {
		CHECK(GPU(SetDevice)(d));
		CHECK(DEVICE_MEMORY(&t[d], sizeof(*t[d])));
		CHECK(GPU(Memset)(t[d], 0, sizeof(*t[d])));
		if (d == between)
			CHECK(DEVICE_MEMORY(&counters, MEETINGS * LINE * sizeof(*counters)));
		if (d == between)
			CHECK(GPU(Memset)(counters, 0, MEETINGS * LINE * sizeof(*counters)));
		CHECK(GPU(DeviceSynchronize)());
	}
	kernel<<<MEETINGS * MEMBERS, lanes>>>(all, counters, between ? READ : READ | WRITE, t[0]);
	if (between) {
		CHECK(GPU(SetDevice)(1));
		kernel<<<MEETINGS * MEMBERS, lanes>>>(all, counters, WRITE, t[1]);
		CHECK(GPU(DeviceSynchronize)());
		CHECK(GPU(SetDevice)(0));
	}
	report(name, where, fetch(t[0]));
	for (int d = 0; d <= between; d++)
		CHECK(GPU(Free)(t[d]));
	CHECK(GPU(Free)(counters));
	CHECK(GPU(Free)(all));
}

/* Returns 1 if the second GPU can access the memory of the first one, and enables that. */
static int has_second(void)
{
	int devices = 0, reaches = 0;
	CHECK(GPU(GetDeviceCount)(&devices));
	if (devices > 1)
		CHECK(GPU(DeviceCanAccessPeer)(&reaches, 1, 0));
	if (!reaches)
		return 0;
	CHECK(GPU(SetDevice)(1));
	CHECK(GPU(DeviceEnablePeerAccess)(0, 0));
	CHECK(GPU(SetDevice)(0));
	return 1;
}

int main(void)
{
	all("device scope", 0, publish_dev, claim_dev, complete_dev, sb_dev);
	all("system scope", 0, publish_sys, claim_sys, complete_sys, sb_sys);
	all("system scope, host mem", 1, publish_sys, claim_sys, complete_sys, sb_sys);
	marks("system scope", 0);
	marks("system scope, host mem", 1);
	meetings("meet", meet, 1, "system scope", 0);
	meetings("line", line, 32, "system scope", 0);
	flags("CPU to GPU", 1);
	if (has_second()) {
		marks_between();
		flags("GPU to GPU", 0);
		meetings("meet", meet, 1, "GPU to GPU", 1);
		meetings("line", line, 32, "GPU to GPU", 1);
	}
	to_host();
	return failures != 0;
}
