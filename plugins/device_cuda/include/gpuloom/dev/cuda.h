/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer on CUDA. dev.h documents the functions.
 *
 * Each function is one instruction of the PTX memory model, with the order and scope of its name: `dev` is .gpu, `sys`
 * is .sys. Addresses are generic, so that shared memory works, too. All instructions are volatile and clobber memory.
 * So the compiler neither moves other accesses across them nor removes a poll.
 *
 * A composed program (plugins/device_common/compose) defines LOOM_LANES, the number of threads of a worker. It also defines
 * LOOM_NESTING_MAX, and the names LOOM_POLICY_* from which LOOM_CALL makes the name of a function. */
#ifndef GPULOOM_DEV_CUDA_H
#define GPULOOM_DEV_CUDA_H

#include <gpuloom/dev/ctx.h>
#ifdef LOOM_IR
#include <gpuloom/dev/gpu_ir.h>
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "gpuloom: below compute capability 7.0 there are no memory orders and scopes"
#endif

/* Plug-ins test this where the code for threads of the host would be slow on a GPU. */
#ifdef LOOM_DEVICE_COMPILE
#define LOOM_REAL_GPU 1
#endif

#define LOOM_FN static __device__ __forceinline__ __attribute__((unused))

/* ---- memory ----------------------------------------------------------------------------------- */

/* In these macros, T is a type, S its PTX suffix, and R the register constraint. NAME is a memory order and a scope. */
#define LOOM_PTX_LOAD(NAME, T, S, R)                                                               \
	LOOM_FN T loom_load_##NAME(const T *p)                                                     \
	{                                                                                          \
		T v;                                                                               \
		asm volatile("ld." LOOM_PTX_##NAME ".u" S " %0, [%1];"                             \
			     : "=" R(v)                                                            \
			     : "l"(p)                                                              \
			     : "memory");                                                          \
		return v;                                                                          \
	}
#define LOOM_PTX_STORE(NAME, T, S, R)                                                              \
	LOOM_FN void loom_store_##NAME(T *p, T v)                                                  \
	{                                                                                          \
		asm volatile("st." LOOM_PTX_##NAME ".u" S " [%0], %1;" ::"l"(p), R(v) : "memory"); \
	}
/* Read-modify-writes return the value before the operation. */
#define LOOM_PTX_ATOM(op, insn, NAME, T, S, R)                                                     \
	LOOM_FN T loom_##op##_##NAME(T *p, T v)                                                    \
	{                                                                                          \
		T old;                                                                             \
		asm volatile("atom." LOOM_PTX_##NAME "." insn S " %0, [%1], %2;"                   \
			     : "=" R(old)                                                          \
			     : "l"(p), R(v)                                                        \
			     : "memory");                                                          \
		return old;                                                                        \
	}
#define LOOM_PTX_CAS(NAME, T, S, R)                                                                \
	LOOM_FN int loom_cas_##NAME(T *p, T *expected, T v)                                        \
	{                                                                                          \
		T want = *expected, old;                                                           \
		asm volatile("atom." LOOM_PTX_##NAME ".cas.b" S " %0, [%1], %2, %3;"               \
			     : "=" R(old)                                                          \
			     : "l"(p), R(want), R(v)                                               \
			     : "memory");                                                          \
		*expected = old;                                                                   \
		return old == want;                                                                \
	}

#define LOOM_PTX_relaxed_dev "relaxed.gpu"
#define LOOM_PTX_relaxed_sys "relaxed.sys"
#define LOOM_PTX_acquire_dev "acquire.gpu"
#define LOOM_PTX_acquire_sys "acquire.sys"
#define LOOM_PTX_release_dev "release.gpu"
#define LOOM_PTX_release_sys "release.sys"
#define LOOM_PTX_acq_rel_dev "acq_rel.gpu"
#define LOOM_PTX_acq_rel_sys "acq_rel.sys"

#define LOOM_PTX_ALL(T, S, R)                                                                      \
	LOOM_PTX_LOAD(relaxed_dev, T, S, R)                                                        \
	LOOM_PTX_LOAD(relaxed_sys, T, S, R)                                                        \
	LOOM_PTX_LOAD(acquire_dev, T, S, R)                                                        \
	LOOM_PTX_LOAD(acquire_sys, T, S, R)                                                        \
	LOOM_PTX_STORE(relaxed_dev, T, S, R)                                                       \
	LOOM_PTX_STORE(relaxed_sys, T, S, R)                                                       \
	LOOM_PTX_STORE(release_dev, T, S, R)                                                       \
	LOOM_PTX_STORE(release_sys, T, S, R)                                                       \
	LOOM_PTX_ATOM(fetch_add, "add.u", relaxed_dev, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", relaxed_sys, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", acquire_dev, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", acquire_sys, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", release_dev, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", release_sys, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", acq_rel_dev, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_add, "add.u", acq_rel_sys, T, S, R)                                    \
	LOOM_PTX_ATOM(fetch_or, "or.b", relaxed_dev, T, S, R)                                      \
	LOOM_PTX_ATOM(fetch_or, "or.b", relaxed_sys, T, S, R)                                      \
	LOOM_PTX_ATOM(fetch_or, "or.b", acq_rel_dev, T, S, R)                                      \
	LOOM_PTX_ATOM(fetch_or, "or.b", acq_rel_sys, T, S, R)                                      \
	LOOM_PTX_ATOM(exchange, "exch.b", acq_rel_dev, T, S, R)                                    \
	LOOM_PTX_ATOM(exchange, "exch.b", acq_rel_sys, T, S, R)                                    \
	LOOM_PTX_CAS(acq_rel_dev, T, S, R)                                                         \
	LOOM_PTX_CAS(acq_rel_sys, T, S, R)

LOOM_PTX_ALL(uint32_t, "32", "r")
LOOM_PTX_ALL(uint64_t, "64", "l")

/* These two functions access data and mark by one instruction of 128 bits. It is atomic from compute capability 7.0 on
 * (PTX 8.3). A vector of two words would be two accesses in any order. Older compilers do not have the instruction.
 * With them, the release of the mark pairs with the acquire of the mark. */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
LOOM_FN void loom_store_marked_sys(uint64_t *p, uint64_t data, uint64_t mark)
{
	asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.b128 [%0], v; }" ::"l"(p), "l"(data), "l"(mark)
		     : "memory");
}
LOOM_FN uint64_t loom_load_marked_sys(const uint64_t *p, uint64_t *data)
{
	uint64_t word, mark;
	asm volatile("{ .reg .b128 v; ld.relaxed.sys.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
		     : "=l"(word), "=l"(mark)
		     : "l"(p)
		     : "memory");
	*data = word;
	return mark;
}
#else
LOOM_FN void loom_store_marked_sys(uint64_t *p, uint64_t data, uint64_t mark)
{
	loom_store_relaxed_sys(&p[0], data);
	loom_store_release_sys(&p[1], mark);
}
LOOM_FN uint64_t loom_load_marked_sys(const uint64_t *p, uint64_t *data)
{
	uint64_t mark = loom_load_acquire_sys(&p[1]);
	*data = loom_load_relaxed_sys(&p[0]);
	return mark;
}
#endif

/* Hopper has a weaker fence than acq_rel (PTX 8.6). There a poll loop makes relaxed loads, and one acquire fence at its
 * end. An acquire in each poll would take longer. */
#define LOOM_PTX_FENCE(name, insn)                                                                 \
	LOOM_FN void loom_fence_##name(void)                                                       \
	{                                                                                          \
		asm volatile("fence." insn ";" ::: "memory");                                      \
	}
LOOM_PTX_FENCE(acquire_dev, "acq_rel.gpu")
LOOM_PTX_FENCE(acquire_sys, "acq_rel.sys")
LOOM_PTX_FENCE(release_dev, "acq_rel.gpu")
LOOM_PTX_FENCE(release_sys, "acq_rel.sys")
LOOM_PTX_FENCE(acq_rel_sys, "acq_rel.sys")
LOOM_PTX_FENCE(seq_cst_dev, "sc.gpu")
LOOM_PTX_FENCE(seq_cst_sys, "sc.sys")
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 13
#define LOOM_OWN_POLL
#define loom_load_poll_dev(p) loom_load_relaxed_dev(p)
LOOM_PTX_FENCE(poll_dev, "acquire.gpu")
LOOM_PTX_FENCE(poll_sys, "acquire.sys")
#endif

/* ---- time ------------------------------------------------------------------------------------- */

#define LOOM_PAUSE_NS 32

LOOM_FN uint32_t loom_lowest_bit(uint64_t v)
{
	return (uint32_t)__ffsll((long long)v) - 1;
}

/* Sleeps for about `ns`. A longer sleep leaves more time of the multiprocessor to other warps. */
LOOM_FN void loom_nanosleep(uint32_t ns)
{
	asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory");
}

LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	loom_nanosleep(LOOM_PAUSE_NS);
}

/* Reads the clock that the whole device shares. It ticks every 32 ns to 1 us, depending on the model. */
LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	uint64_t ns;
	(void)c;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
	return ns;
}

/* ---- lanes ------------------------------------------------------------------------------------ */

/* A worker is a warp, or a whole block. */
#if defined(LOOM_IR) /* the program to which the IR is linked knows which of the two */
LOOM_IR_LANES
#elif defined(LOOM_LANES) && LOOM_LANES == 32
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (!LOOM_IS_SINGLE_LANE(c))
		__syncwarp();
}

LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return value;
	loom_barrier_lanes(c); /* a shuffle alone orders no memory */
	return __shfl_sync(0xffffffffu, value, 0);
}

#define LOOM_OWN_WORD_FROM_LANE0
LOOM_FN uint32_t loom_word_from_lane0(struct loom_ctx *c, uint32_t v)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return v;
	loom_barrier_lanes(c);
	return __shfl_sync(0xffffffffu, v, 0);
}
#define LOOM_WAVE 32u
#define loom_wave_word(c, v) loom_word_from_lane0(c, v)
#define loom_wave_all(c, v)  __all_sync(0xffffffffu, (int)(v))
#else
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return;
#ifdef LOOM_GPU_WATCH /* the block has threads that are not lanes */
	asm volatile("bar.sync 1, %0;" ::"n"(LOOM_LANES) : "memory");
#else
	__syncthreads();
#endif
}
#define LOOM_SLOTS_IN_TURN

/* Uses the barrier's own reduction. A load from shared memory after an acquire would wait for that acquire, 90 ns on an
 * H200. */
#define LOOM_OWN_FLAG_FROM_LANE0
LOOM_FN int loom_flag_from_lane0(struct loom_ctx *c, uint32_t v)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return v != 0;
	v = c->lane == 0 ? v : 0;
#ifdef LOOM_GPU_WATCH
	uint32_t any;
	asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 1, %2, p; selp.u32 %0, 1, 0, q; }"
		     : "=r"(any)
		     : "r"(v), "n"(LOOM_LANES)
		     : "memory");
	return (int)any;
#else
	return __syncthreads_or((int)v);
#endif
}
#endif

/* Makes the compiler compute a uint64_t at this place, and not where it is used. */
#define LOOM_COMPUTED(word) asm volatile("" : "+l"(word))

/* If several lanes add to the same word at the same time, one atomic instruction adds their sum. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define LOOM_OWN_ADD
LOOM_FN void loom_own_add(struct loom_ctx *c, uint64_t *p, uint64_t v)
{
	if (!LOOM_IS_SINGLE_LANE(c)) {
		*p += v;
		return;
	}
	uint32_t active = __activemask();
	int first = __ffs((int)active) - 1;
	int same = __shfl_sync(active, (uint64_t)p, first) == (uint64_t)p;
	if (!__all_sync(active, same && v >> 27 == 0)) { /* a lane has another word, or the sum of 32 values might overflow */
		loom_fetch_add_relaxed_dev(p, v);
		return;
	}
	uint32_t n = __reduce_add_sync(active, (uint32_t)v);
	if ((int)(threadIdx.x & 31) == first && n)
		loom_fetch_add_relaxed_dev(p, (uint64_t)n);
}

/* Does not wait for the word, as a compare-and-swap with its fences would. */
LOOM_FN void loom_own_max(struct loom_ctx *c, uint64_t *p, uint64_t v)
{
	uint32_t active = __activemask();
	int first = __ffs((int)active) - 1;
	int same = LOOM_IS_SINGLE_LANE(c) && __shfl_sync(active, (uint64_t)p, first) == (uint64_t)p;
	if (__all_sync(active, same && v >> 32 == 0)) {
		uint32_t most = __reduce_max_sync(active, (uint32_t)v);
		v = (int)(threadIdx.x & 31) == first ? most : 0;
	}
	if (v)
		asm volatile("red.relaxed.gpu.max.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
#endif

#define LOOM_OWN_MATCH
struct loom_match {
	uint32_t mask;
};

LOOM_FN uint32_t loom_cuda_lane(void)
{
	return threadIdx.x & 31;
}

LOOM_FN struct loom_match loom_match(uint64_t key)
{
	uint32_t active = __activemask();
	struct loom_match g = {1u << loom_cuda_lane()};
	int equal = 0;
	/* Grouping lanes by different keys (match.any) takes longer than letting each lane act for itself. */
	if (active != g.mask && __match_all_sync(active, key, &equal)) {
		g.mask = active;
		__syncwarp(active); /* a match alone orders no memory */
	}
	return g;
}

LOOM_FN int loom_match_leader(struct loom_match g)
{
	return (g.mask & ((1u << loom_cuda_lane()) - 1)) == 0;
}

LOOM_FN uint32_t loom_match_sum(struct loom_match g, uint32_t v)
{
	if (!(g.mask & (g.mask - 1)))
		return v;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	return __reduce_add_sync(g.mask, v);
#else
	uint32_t sum = 0;
	for (uint32_t left = g.mask; left; left &= left - 1)
		sum += __shfl_sync(g.mask, v, __ffs((int)left) - 1);
	return sum;
#endif
}

LOOM_FN uint64_t loom_match_broadcast(struct loom_match g, uint64_t v)
{
	return g.mask & (g.mask - 1) ? __shfl_sync(g.mask, v, __ffs((int)g.mask) - 1) : v;
}

LOOM_FN uint64_t loom_take_ticket_dev(uint64_t *p)
{
	struct loom_match g = {__activemask()};
	uint64_t first = 0;
	if (loom_match_leader(g))
		first = loom_fetch_add_relaxed_dev(p, (uint64_t)__popc(g.mask));
	return loom_match_broadcast(g, first) + (uint64_t)__popc(g.mask & ((1u << loom_cuda_lane()) - 1));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define LOOM_OWN_DISTRIBUTE
struct loom_distribute {
	/* n: number of this lane's pieces. item, mine: in this round, the index of this lane's piece among those of its
	 * owner, and 1 if this lane has a piece. */
	uint32_t n, item, mine;
	uint32_t mask, rank;	/* mask: the active lanes; rank: number of this lane among them */
	uint32_t before, total; /* before: number of pieces of lower lanes; total: number of all pieces */
	/* at: the piece of rank 0 in the next round. from: the lane that owns the piece of this lane. */
	uint32_t at, from;
};

LOOM_FN struct loom_distribute loom_distribute(const struct loom_ctx *c, uint32_t n)
{
	struct loom_distribute d = {n, 0, 0, 1u << loom_cuda_lane(), 0, 0, n, 0, loom_cuda_lane()};
	if (!LOOM_IS_SINGLE_LANE(c))
		return d;
	d.mask = __activemask();
	uint32_t below = d.mask & ((1u << loom_cuda_lane()) - 1);
	d.rank = (uint32_t)__popc(below);
	d.total = 0;
	/* Computes prefix sums bit by bit, which works for any set of active lanes. */
#pragma unroll 1
	for (uint32_t bit = 0; bit < 32 && __any_sync(d.mask, n >> bit); bit++) {
		uint32_t set = __ballot_sync(d.mask, n >> bit & 1);
		d.before += (uint32_t)__popc(set & below) << bit;
		d.total += (uint32_t)__popc(set) << bit;
	}
	return d;
}

/* Returns the position of the k-th bit that is set, where k = 1 is the lowest. */
LOOM_FN uint32_t loom_cuda_bit(uint32_t set, uint32_t k)
{
	uint32_t lane = 0;
#pragma unroll
	for (uint32_t half = 16; half; half /= 2)
		if ((uint32_t)__popc(set & ((1u << (lane + half)) - 1)) < k)
			lane += half;
	return lane;
}

LOOM_FN int loom_distribute_next(struct loom_distribute *d)
{
	if (d->at >= d->total)
		return 0;
	if (!(d->mask & (d->mask - 1))) {
		d->mine = 1;
		d->item = d->at++;
		return 1;
	}
	uint32_t width = (uint32_t)__popc(d->mask), end = d->at + width;
	/* gives: this lane owns pieces of this round. first: the rank at which its pieces begin. */
	int gives = d->n && d->before < end && d->before + d->n > d->at;
	uint32_t first = d->before > d->at ? d->before - d->at : 0;
	uint32_t givers = __ballot_sync(d->mask, gives);
	uint32_t begins = __reduce_or_sync(d->mask, gives ? 1u << first : 0);
	uint32_t until = begins << (31 - d->rank); /* bits of the owners whose pieces begin at this rank or before it */
	d->mine = d->at + d->rank < d->total;
	d->from = loom_cuda_bit(givers, (uint32_t)__popc(until));
	d->item = d->at + d->rank - __shfl_sync(d->mask, d->before, (int)d->from);
	d->at = end;
	return 1;
}

LOOM_FN const uint32_t *loom_distribute_words(const struct loom_distribute *d, const uint32_t *v, uint32_t n, uint32_t *room)
{
#pragma unroll
	for (uint32_t i = 0; i < n; i++)
		room[i] = d->mask & (d->mask - 1) ? __shfl_sync(d->mask, v[i], (int)d->from) : v[i];
	return room;
}
#endif

/* Interval between two polls of words that other workers change, in clock cycles of a multiprocessor: about 8 us. A
 * load takes at most 1 us. With a longer interval, polls take less time, but other workers find this worker's tasks
 * later. */
#define LOOM_POLL_TICKS 16384u
#ifdef LOOM_LANES
#define LOOM_POLLS_AGREE (LOOM_LANES == 32)
LOOM_FN int loom_poll_due(struct loom_ctx *c)
{
	uint32_t now;
	asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
	int due = now - c->polled >= LOOM_POLL_TICKS;
	if (LOOM_POLLS_AGREE)
		due = __any_sync(0xffffffffu, due);
	if (due)
		c->polled = now;
	return due;
}
#endif

/* For gpuloom/dev/collective.h. */
#define LOOM_COMM_SYNC() __syncthreads()
#define LOOM_COMM_ANY(x) __syncthreads_or(x)
#define LOOM_COMM_TOUCH(p) asm volatile("prefetch.L1 [%0];" ::"l"(p))
/* Four warps: more threads would wait together, and less would need more flags and fences. Barrier 0 is that of the block. */
#define LOOM_COMM_TEAM 128u
LOOM_FN int loom_comm_team_any(uint32_t team, uint32_t lanes, int x)
{
	int any;
	asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.or.pred q, %2, %3, p; selp.s32 %0, 1, 0, q; }"
		     : "=r"(any)
		     : "r"(x), "r"(team + 1), "r"((lanes + 31) / 32 * 32)
		     : "memory");
	return any;
}
#define LOOM_COMM_TEAM_ANY(team, lanes, x) loom_comm_team_any(team, lanes, x)
#define LOOM_COMM_ALIAS
#define LOOM_OWN_HALF
LOOM_FN float loom_comm_from_half(uint32_t h)
{
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)h));
	return f;
}

LOOM_FN uint32_t loom_comm_to_half(float f)
{
	unsigned short h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}

#include <gpuloom/dev/gpu.h>

#endif
