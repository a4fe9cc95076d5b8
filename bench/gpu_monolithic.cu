/* SPDX-License-Identifier: Apache-2.0 */
/* fib(n) by work stealing in one hand-written kernel, the baseline of the composed kernel in bench/gpu.sh. The
 * algorithm is that of sched_mgws (defaults), term_counter and workload_fib, without plug-ins, options, references or
 * composition. Queues, epochs, memory orders, and polls of the stop word and of the public queue's words are the same.
 * The kernel has no joins, priorities, affinity, initial set and overflow lists, because fib does not need them.
 *   gpu_monolithic N WORKERS SAMPLES
 * prints tasks_per_s, the median. */
#include <cstdint>
#include <algorithm>
#include <vector>

#include "gpu_must.h"

struct alignas(64) task {
	uint32_t tag, odd;
	uint64_t join, param[4], data[2];
};
enum { LOCAL = 32, PUBLIC = 64, NESTING = 2 };

struct alignas(64) queue {
	uint64_t word, pad0[7];
	uint64_t completed[2], pad1[6];
	uint64_t sum, pad2[7];
	task ring[PUBLIC];
};
struct alignas(64) shared_words {
	uint64_t idle, pad0[7];
	uint32_t stop, pad1[15];
	uint64_t next;
};
struct own {
	uint64_t word, open, tail, head, begin[2], started[2];
	uint32_t epoch;
};
/* The state of a worker, in shared memory. */
struct local {
	own own;
	uint64_t executed, spawned, steals;
	task ring[LOCAL];
};

__constant__ queue *queues;
__constant__ shared_words *words;
__constant__ uint32_t workers;
extern __shared__ __align__(64) char memory[];
#define L ((local *)memory) /* L is a macro, so that the compiler infers the address space. */

/* The fields of a queue's word and their bits, from the highest: attempts 24, lock 1, epoch 1, initial 19, tail 19. */
constexpr uint64_t COUNT_MASK = (1ull << 19) - 1, LOCK = 1ull << 39, ATTEMPT = 1ull << 40;
#define FN static __device__ __forceinline__

FN uint64_t initial_of(uint64_t w) { return w >> 19 & COUNT_MASK; }
FN uint64_t left_of(uint64_t w)
{
	uint32_t a = (uint32_t)(w >> 40);
	return initial_of(w) >> (a < 32 ? a : 32);
}
FN bool offers(uint64_t w) { return !(w & LOCK) && left_of(w); }

FN uint64_t load_relaxed(const uint64_t *p)
{
	uint64_t v;
	asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
FN uint32_t load_relaxed(const uint32_t *p)
{
	uint32_t v;
	asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}
FN uint64_t load_acquire(const uint64_t *p)
{
	uint64_t v;
	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
FN void store_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
#define ADD(order)                                                                                 \
	FN uint64_t add_##order(uint64_t *p, uint64_t v)                                           \
	{                                                                                          \
		uint64_t old;                                                                      \
		asm volatile("atom." #order ".sys.add.u64 %0, [%1], %2;"                           \
			     : "=l"(old)                                                           \
			     : "l"(p), "l"(v)                                                      \
			     : "memory");                                                          \
		return old;                                                                        \
	}
ADD(relaxed) ADD(acquire) ADD(release) ADD(acq_rel)

struct worker {
	uint32_t id, lane, head, count, depth, stop, looked;
	uint64_t random, spawned;
	uint64_t seen;
	queue *q;
};

FN uint64_t from_lane0(uint64_t v)
{
	__syncwarp();
	return __shfl_sync(0xffffffffu, v, 0);
}
FN uint32_t below(worker &w, uint32_t n)
{
	uint64_t x = w.random;
	x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
	w.random = x;
	return (uint32_t)(((x * 0x2545f4914f6cdd1dull >> 32) * n) >> 32);
}
FN bool stopped(worker &w)
{
	if (w.stop)
		return true;
	w.stop = load_relaxed(&words->stop);
	return false;
}
/* Returns 1 when the worker must poll words that other workers change, like loom_poll_due(). */
FN bool due(worker &w)
{
	uint32_t now;
	asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
	if (now - w.looked < 16384)
		return false;
	w.looked = now;
	return true;
}
/* All lanes copy n tasks between rings. */
FN void move(const worker &w, task *to, uint64_t to_at, uint32_t to_mask, const task *from, uint64_t at,
	     uint32_t mask, uint32_t n)
{
	for (uint32_t i = w.lane; i < n * 8; i += 32)
		((uint64_t *)&to[(to_at + i / 8) & to_mask])[i % 8] =
			((const uint64_t *)&from[(at + i / 8) & mask])[i % 8];
}

/* ---- the public queue: lane 0 ---- */
FN void close_epoch(own &o, queue *q)
{
	if (!o.open)
		return;
	uint64_t word = load_relaxed(&q->word);
	if (left_of(word))
		word = add_relaxed(&q->word, LOCK);
	uint64_t taken = o.open - left_of(word);
	o.started[o.epoch] += taken;
	o.tail += taken;
	o.open = 0;
}
FN bool copied(const own &o, queue *q, uint32_t e) { return load_acquire(&q->completed[e]) == o.started[e]; }
FN uint32_t room(const own &o, queue *q)
{
	uint64_t oldest = o.tail;
	for (uint32_t e = 0; e < 2; e++)
		if (!copied(o, q, e) && o.begin[e] < oldest)
			oldest = o.begin[e];
	return PUBLIC - (uint32_t)(o.head - oldest);
}
FN void settle(own &o, queue *q)
{
	if (o.open || o.head == o.tail)
		return;
	uint32_t e = o.epoch ^ 1;
	if (copied(o, q, e))
		o.begin[e] = o.tail;
	o.epoch = e;
	o.open = o.head - o.tail;
	o.word = (uint64_t)e << 38 | o.open << 19 | (o.tail & COUNT_MASK);
	store_release(&q->word, o.word);
}
FN bool empty(const own &o, queue *q)
{
	if (!o.open)
		return true;
	uint64_t word = load_relaxed(&q->word);
	return word != o.word && !left_of(word);
}

/* ---- all lanes ---- */
FN uint32_t release(worker &w)
{
	own &o = L->own;
	uint32_t n = 0, want = w.count / 2;
	bool held = w.lane == 0 && !(o.open >= PUBLIC && load_relaxed(&w.q->word) == o.word);
	if (held) {
		close_epoch(o, w.q);
		n = min(room(o, w.q), want);
	}
	n = (uint32_t)from_lane0(n);
	if (n)
		move(w, w.q->ring, o.head, PUBLIC - 1, L->ring, w.head, LOCAL - 1, n);
	__syncwarp();
	if (held) {
		o.head += n;
		settle(o, w.q);
	}
	w.head += n;
	w.count -= n;
	return n;
}
FN uint32_t acquire(worker &w)
{
	own &o = L->own;
	uint32_t n = 0;
	if (w.lane == 0 && !empty(o, w.q)) {
		close_epoch(o, w.q);
		uint64_t left = o.head - o.tail;
		n = (uint32_t)min(left - left / 2, (uint64_t)LOCAL / 2);
		o.head -= n;
		settle(o, w.q);
	}
	n = (uint32_t)from_lane0(n);
	if (n)
		move(w, L->ring, w.head, LOCAL - 1, w.q->ring, o.head, PUBLIC - 1, n);
	w.count = n;
	return n;
}
FN uint32_t steal(worker &w, bool idle)
{
	own &o = L->own;
	uint64_t word = 0, victim = 0;
	if (w.lane == 0) {
		uint32_t v = below(w, workers - 1);
		v += v >= w.id;
		close_epoch(o, w.q);
		if (room(o, w.q) >= PUBLIC / 2 && offers(load_relaxed(&queues[v].word))) {
			word = add_acquire(&queues[v].word, ATTEMPT);
			if (!offers(word))
				word = 0;
		}
		if (!word)
			settle(o, w.q);
		victim = v;
	}
	word = from_lane0(word);
	if (!word)
		return 0;
	queue *q = &queues[from_lane0(victim)];
	uint64_t left = left_of(word), at = (word & COUNT_MASK) + initial_of(word) - left;
	uint32_t n = (uint32_t)(left - left / 2), keep = min(n - n / 2, (uint32_t)LOCAL / 2), rest = n - keep;
	move(w, w.q->ring, o.head, PUBLIC - 1, q->ring, at, PUBLIC - 1, rest);
	move(w, L->ring, w.head, LOCAL - 1, q->ring, at + rest, PUBLIC - 1, keep);
	w.count = keep;
	__syncwarp();
	if (w.lane == 0) {
		if (idle)
			add_acq_rel(&words->idle, ~0ull);
		o.head += rest;
		settle(o, w.q);
		add_release(&q->completed[word >> 38 & 1], n);
		L->steals++;
	}
	return n;
}

FN bool push(worker &w, const task &t)
{
	if (w.count >= LOCAL)
		return false;
	uint64_t *to = (uint64_t *)&L->ring[(w.head + w.count) & (LOCAL - 1)];
	uint64_t word = ((const uint64_t *)&t)[0];
	for (uint32_t i = 1; i < 8; i++)
		word = w.lane == i ? ((const uint64_t *)&t)[i] : word;
	if (w.lane < 8)
		to[w.lane] = word;
	w.count++;
	return true;
}

struct state {
	uint32_t head, count, depth, stop;
	uint64_t spawned;
};
static __device__ __noinline__ state overflow(state s, uint64_t k, uint64_t random);

/* Runs a task and its children. The template parameter makes the kernel's copy non-recursive, so that the compiler
 * inlines it. */
template <int NESTED> FN void run(worker &w, const task &t)
{
	uint64_t k = t.param[0];
	if (k < 2) {
		if (w.lane == 0)
			w.q->sum += k;
		return;
	}
	for (uint64_t i = 1; i <= 2; i++) {
		task child = {};
		child.param[0] = k - i;
		w.spawned++;
		if (!push(w, child)) {
			state s = overflow({w.head, w.count, w.depth, w.stop, w.spawned}, k - i, w.random);
			w.head = s.head, w.count = s.count, w.stop = s.stop, w.spawned = s.spawned;
		}
	}
}
FN void find(worker &w)
{
	w.id = blockIdx.x;
	w.lane = threadIdx.x;
	w.q = &queues[w.id];
	w.seen = 0;
	w.looked = 0;
}
static __device__ __noinline__ state overflow(state s, uint64_t k, uint64_t random)
{
	worker w;
	find(w);
	w.head = s.head, w.count = s.count, w.depth = s.depth, w.stop = s.stop, w.spawned = s.spawned;
	w.random = random;
	task t = {};
	t.param[0] = k;
	if (!(release(w) && push(w, t))) {
		if (w.depth >= NESTING)
			__trap(); /* with fib the nesting never becomes this deep */
		w.depth++;
		run<1>(w, t);
		w.depth--;
		if (w.lane == 0)
			L->executed++;
	}
	return {w.head, w.count, w.depth, w.stop, w.spawned};
}

FN bool work(worker &w, uint64_t &ran)
{
	own &o = L->own;
	for (;;) {
		bool can_share = w.count >= 2;
		uint64_t news = 0;
		/* Each poll evaluates the word that the previous poll loaded, and then loads the next word. So the
		 * worker never waits for the load. */
		if (w.lane == 0 && due(w)) {
			if (stopped(w))
				news = 1;
			else if (can_share && !offers(w.seen))
				news = 2;
			else
				w.seen = load_relaxed(&w.q->word);
		}
		news = from_lane0(news);
		if (news == 1)
			return false;
		if (news == 2) {
			release(w);
			w.seen = o.word;
		}
		if (!w.count)
			return true;
		w.count--;
		task t = L->ring[(w.head + w.count) & (LOCAL - 1)];
		__syncwarp();
		run<0>(w, t);
		ran++;
	}
}

static __device__ __noinline__ state seek(state s, uint64_t *random)
{
	worker w;
	find(w);
	w.head = s.head, w.count = s.count, w.depth = 0, w.stop = s.stop, w.spawned = s.spawned;
	w.random = *random;
	bool idle = false;
	uint32_t pause = 32;
	while (!from_lane0(stopped(w))) {
		if (steal(w, idle))
			break;
		if (!idle) {
			uint64_t quiet = 0;
			if (w.lane == 0) {
				own &o = L->own;
				if (empty(o, w.q)) {
					close_epoch(o, w.q);
					quiet = copied(o, w.q, 0) && copied(o, w.q, 1);
				}
				settle(o, w.q);
				if (quiet)
					add_acq_rel(&words->idle, 1);
			}
			idle = from_lane0(quiet);
		}
		if (idle && from_lane0(w.lane == 0 && load_acquire(&words->idle) == workers)) {
			w.stop = 1;
			break;
		}
		if (w.lane == 0)
			__nanosleep(pause);
		if (pause < 2048)
			pause *= 2;
	}
	*random = w.random;
	return {w.head, w.count, 0, w.stop, w.spawned};
}

#ifndef BLOCKS
#define BLOCKS 16
#endif
__global__ void __launch_bounds__(32, BLOCKS) kernel(uint32_t n)
{
	worker w;
	uint64_t ran = 0;
	find(w);
	if (w.lane == 0)
		*L = local{};
	w.head = w.count = w.depth = w.stop = 0;
	w.spawned = 0;
	w.random = (w.id + 1) * 0x9e3779b97f4a7c15ull | 1;
	__syncwarp();
	if (w.id == 0) {
		task t = {};
		t.param[0] = n;
		push(w, t);
		__syncwarp();
	}
	while (work(w, ran)) {
		if (acquire(w))
			continue;
		state s = seek({w.head, w.count, 0, w.stop, w.spawned}, &w.random);
		w.head = s.head, w.count = s.count, w.stop = s.stop;
		if (!w.count)
			break;
	}
	if (w.lane == 0)
		L->executed += ran;
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 34;
	uint32_t wanted = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	int samples = argc > 3 ? atoi(argv[3]) : 10, each = 0, sm = 0;
	size_t shared = sizeof(local);
	MUST(cudaDeviceGetAttribute(&sm, cudaDevAttrMultiProcessorCount, 0));
	MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
	MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, 32, shared));
	uint32_t count = wanted ? wanted : (uint32_t)(each * sm);
	queue *q;
	shared_words *s;
	MUST(cudaMalloc(&q, count * sizeof(*q)));
	MUST(cudaMalloc(&s, sizeof(*s)));
	MUST(cudaMemcpyToSymbol(queues, &q, sizeof(q)));
	MUST(cudaMemcpyToSymbol(words, &s, sizeof(s)));
	MUST(cudaMemcpyToSymbol(workers, &count, sizeof(count)));
	uint64_t expect = 0, next = 1;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t t = expect + next;
		expect = next;
		next = t;
	}
	double tasks = 2.0 * (double)next - 1;
	std::vector<double> rates;
	std::vector<queue> back(count);
	for (int i = -2; i < samples; i++) {
		uint64_t sum = 0;
		MUST(cudaMemset(q, 0, count * sizeof(*q)));
		MUST(cudaMemset(s, 0, sizeof(*s)));
		void *args[] = {&n};
		float us = gpu_us([&] {
			MUST(cudaLaunchCooperativeKernel((void *)kernel, dim3(count), dim3(32), args, shared, 0));
		});
		MUST(cudaMemcpy(back.data(), q, count * sizeof(*q), cudaMemcpyDeviceToHost));
		for (auto &one : back)
			sum += one.sum;
		if (sum != expect) {
			fprintf(stderr, "fib(%u): expected %llu, found %llu\n", n, (unsigned long long)expect,
				(unsigned long long)sum);
			return 1;
		}
		if (i >= 0)
			rates.push_back(tasks / (us * 1e-6));
	}
	std::sort(rates.begin(), rates.end());
	printf("tasks_per_s %.6g\n", rates[rates.size() / 2]);
	return 0;
}
