/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives inside a kernel. The header needs nothing of gpuloom at link time. The host opens a communicator
 * (gpuloom/comm.h), and passes its view to the kernel:
 *
 *   __global__ void kernel(const __grid_constant__ struct loom_comm_view view, float *x, uint64_t n)
 *   {
 *           ...
 *           struct loom_comm_call sum = {LOOM_COMM_ALLREDUCE, LOOM_COMM_FLOAT, LOOM_COMM_SUM, 0, x, x, n, 0, 0};
 *           loom_comm_grid(&view, &sum);
 *   }
 *
 * loom_comm_block() lets one block execute a collective on a track. All threads of the block call it. On each rank one
 * block calls it with the same track, the same number of threads and an equal call. Blocks with different tracks are
 * independent, also in their number of calls. Calls for a track must not overlap, nor may a kernel use the track
 * while another kernel does. loom_comm_grid() divides a vector among the blocks of the grid, which use the tracks from
 * 0 on; the grid must be one-dimensional, have at most view.tracks blocks, and be the same on all ranks. Neither waits
 * for other blocks of the grid. So a block may use only what it has received itself, unless the kernel synchronises its
 * grid. Both return 0. They return LOOM_EDIED, LOOM_ETIMEDOUT or LOOM_EINVAL if results are undefined, and so do later calls
 * with the same track, which send nothing. loom_comm_status() then gives the reason.
 *
 * A track has slots and a buffer on each rank. Its calls are divided into rounds. Rounds alternate between two sets of slots,
 * and those with flags between two buffers. In every round each rank receives from every other rank, and no thread of a block begins a round before all
 * threads of the block have ended the round before. So a rank that has ended round n + 1 knows that all ranks have read
 * what it sent in round n, and may use the set again. A rank that has the flags of a round with buffers knows this of the one before.
 *
 * Marked words (call.pulls = 0): each rank stores its data into a slot of the other rank, in words of 16 bytes, which
 * have 8 bytes of data and the number of the round. A load gets all of a word or nothing, so a reader needs no flag and
 * no fence. They carry twice the bytes across the link, but take one crossing.
 *
 * Loads (1): each rank stores its data into its own buffer and raises a flag on the other ranks, which then load the
 * data. With more than two ranks, an allreduce then has two phases: each rank reduces one part, and loads the other
 * parts from the ranks that have reduced them.
 *
 * Stores, which only an allreduce has: no load crosses the link, and a store does not wait for its crossing. With
 * stores of whole vectors (2) each rank stores its data into the buffers of all ranks, and reduces what it has received:
 * it sends N - 1 vectors, in one crossing. With stores of parts (3) it stores into the buffer of each rank the part
 * that this rank reduces, and the ranks then store their sums into the buffers of all: 2 (N - 1) / N vectors, in two
 * crossings.
 *
 * All ranks add in the order of the ranks, so they get the same bits. */
#ifndef GPULOOM_DEV_COLLECTIVE_H
#define GPULOOM_DEV_COLLECTIVE_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/comm.h>

#ifdef LOOM_FN

/* ---- the memory of a rank ------------------------------------------------------------------------------------ */

/* Begins with the words of each track, which only this rank uses. Flags, slots and buffers follow. */
struct loom_comm_track {
	uint64_t round;	 /* number of rounds that have ended */
	uint64_t failed; /* the error that ended a round early, as a negative number; 0: none */
	/* How buffers were used last, if ranks may still read what is there. 1: by loads; 2 n or 2 n + 1: by stores of n teams, of
	 * whole vectors or parts; 0: since then a flag of each rank has come. Marked words order no accesses of buffers. */
	uint64_t layout;
	uint64_t buffered; /* number of rounds that have used buffers */
	uint64_t pad[4];
};
#define LOOM_COMM_TEAMS 16u /* limit on the teams of a block */
struct loom_comm_flag {
	/* [team] 2 n + 1 or 2 n + 2: the rank has reached the first or second phase of round n. Blocks without teams use the first. */
	uint64_t value[LOOM_COMM_TEAMS];
	uint64_t round;   /* on CPUs: the last round that the rank has begun */
	uint64_t call[2]; /* on CPUs: [round & 1]; loom_comm_code() of that round's call */
	uint64_t pad[5];
};
/* Types for memory of the program, whose elements have another type. */
#ifndef LOOM_COMM_ALIAS
#define LOOM_COMM_ALIAS __attribute__((may_alias))
#endif
typedef uint64_t LOOM_COMM_ALIAS loom_comm_word8;
typedef uint32_t LOOM_COMM_ALIAS loom_comm_word4;
typedef uint16_t LOOM_COMM_ALIAS loom_comm_word2;
struct LOOM_COMM_ALIAS loom_comm_unit { /* what a thread moves by one access of a buffer */
	uint64_t word[2];
} __attribute__((aligned(16)));

LOOM_FN struct loom_comm_track *loom_comm_track(const struct loom_comm_view *v, uint32_t track)
{
	return (struct loom_comm_track *)v->memory[v->rank] + track;
}

/* Returns the flags in the memory of rank `at` that rank `from` raises. */
LOOM_FN struct loom_comm_flag *loom_comm_flag(const struct loom_comm_view *v, uint32_t at, uint32_t track, uint32_t from)
{
	return (struct loom_comm_flag *)((struct loom_comm_track *)v->memory[at] + v->tracks) + track * v->ranks + from;
}

/* Slots, buffers and the end of the memory have the same offsets in the memory of all ranks. A slot is for the words from
 * rank `from`. */
LOOM_FN uint64_t loom_comm_slot(const struct loom_comm_view *v, uint64_t round, uint32_t track, uint32_t from)
{
	uint64_t head = v->tracks * (sizeof(struct loom_comm_track) + v->ranks * sizeof(struct loom_comm_flag));
	return head + (((round & 1) * v->tracks + track) * v->ranks + from) * v->slot;
}

LOOM_FN uint64_t loom_comm_buffer(const struct loom_comm_view *v, uint64_t buffered, uint32_t track)
{
	return loom_comm_slot(v, 0, 2 * v->tracks, 0) + ((buffered & 1) * v->tracks + track) * v->share;
}

LOOM_FN struct loom_comm_unit *loom_comm_at(const struct loom_comm_view *v, uint32_t rank, uint64_t offset)
{
	return (struct loom_comm_unit *)(v->memory[rank] + offset);
}

/* Returns the size of the memory of a rank in bytes. */
LOOM_FN uint64_t loom_comm_bytes(const struct loom_comm_view *v)
{
	return loom_comm_buffer(v, 0, 2 * v->tracks);
}

/* ---- waits ------------------------------------------------------------------------------------------------- */

/* The layer of a GPU defines the barrier of a block, LOOM_COMM_SYNC(), and LOOM_COMM_ANY(x), the barrier that returns whether x
 * is not 0 in any thread. */
#ifdef LOOM_COMM_SYNC
#define LOOM_COMM_IS_GPU
#define LOOM_COMM_PAUSE(polls) ((void)(polls))
#define LOOM_COMM_UNROLL _Pragma("unroll")
#define LOOM_COMM_FLIGHT 8u /* number of words or units that a thread loads at a time to reduce them, of all ranks together */
#else /* a block has one thread */
#define LOOM_COMM_SYNC() ((void)0)
#define LOOM_COMM_ANY(x) (x)
#define LOOM_COMM_PAUSE(polls) ((polls) % 64 ? loom_relax() : loom_cpu_yield()) /* the other rank may need this core */
#define LOOM_COMM_UNROLL
#define LOOM_COMM_FLIGHT 1u
#endif
#ifndef LOOM_COMM_TOUCH /* a layer may bring the data at an address near */
#define LOOM_COMM_TOUCH(p) ((void)(p))
#endif

/* A team is a part of the threads of a block, which waits for the same team of the other ranks, while other teams of the block
 * go on. A layer that has a barrier for it defines LOOM_COMM_TEAM, its number of threads, and LOOM_COMM_TEAM_ANY(team, lanes, x),
 * which does for a team what LOOM_COMM_ANY() does for a block. Otherwise a block is one team. */
#ifndef LOOM_COMM_TEAM
#define LOOM_COMM_TEAM (~0u)
#define LOOM_COMM_TEAM_ANY(team, lanes, x) LOOM_COMM_ANY(x)
#endif
struct loom_comm_team {
	uint32_t number, count, lane, lanes;
};

LOOM_FN struct loom_comm_team loom_comm_team(uint32_t lane, uint32_t lanes)
{
	struct loom_comm_team t = {lane / LOOM_COMM_TEAM, (lanes - 1) / LOOM_COMM_TEAM + 1, lane % LOOM_COMM_TEAM, LOOM_COMM_TEAM};
	if (t.number + 1 == t.count)
		t.lanes = lanes - t.number * LOOM_COMM_TEAM;
	return t;
}

LOOM_FN int loom_comm_any(const struct loom_comm_team *t, int x)
{
	return t->count > 1 ? LOOM_COMM_TEAM_ANY(t->number, t->lanes, x) : LOOM_COMM_ANY(x);
}

LOOM_FN uint32_t loom_comm_size(uint32_t type)
{
	return type == LOOM_COMM_BFLOAT16 || type == LOOM_COMM_HALF ? 2 : 4;
}

/* A wait of a thread for a rank. `failed` stays set, so that later waits of the thread end at once. */
struct loom_comm_wait {
	uint64_t polls, since_ns, failed;
	uint64_t closed;             /* bit r: 256 polls ago, rank r had closed its communicator */
	uint64_t buffered;           /* as in struct loom_comm_track */
	uint64_t code, round, track; /* on CPUs: loom_comm_code() of the call; the round; 0: calls are not compared */
};

/* ---- unequal calls ----
 * On CPUs, ranks compare their calls. A rank stores the code of its call beside each flag that it raises, and the low
 * bits of the code in each mark. Before it waits for marked words, it also announces the round, because the other rank
 * may wait for a flag. Ranks that have begun the same round with different calls fail with LOOM_EINVAL. The code of
 * round n is overwritten in round n + 2, when all ranks have ended round n. */

/* All fields in which calls must be equal. Only 52 bits of the count are left, which is more than memory has bytes. */
#define LOOM_COMM_CODE_COUNT 12 /* the first bit of the count */
LOOM_FN uint64_t loom_comm_code(const struct loom_comm_call *call)
{
	uint64_t code = call->what;
	if (call->what == LOOM_COMM_BARRIER)
		return code;
	if (call->what == LOOM_COMM_ALLREDUCE || call->what == LOOM_COMM_REDUCE_SCATTER)
		code |= call->op << 5;
	if (call->what == LOOM_COMM_BROADCAST)
		code |= call->root << 6;
	return code | call->type << 3 | (call->pulls < 3 ? call->pulls : 3) << 10 | call->count << LOOM_COMM_CODE_COUNT;
}

#ifdef LOOM_COMM_IS_GPU
LOOM_FN uint64_t loom_comm_mark(const struct loom_comm_wait *w, uint64_t round)
{
	(void)w;
	return round;
}
LOOM_FN uint64_t loom_comm_mark_from(uint64_t round)
{
	return round;
}
#else
#define LOOM_COMM_CODE_BITS 20

/* Returns the mark of a round, which has the number of elements up to 255. CPUs choose flags for more elements. */
LOOM_FN uint64_t loom_comm_mark(const struct loom_comm_wait *w, uint64_t round)
{
	uint64_t most = (1u << LOOM_COMM_CODE_BITS) - (1u << LOOM_COMM_CODE_COUNT), rest = (1u << LOOM_COMM_CODE_COUNT) - 1;
	return round << LOOM_COMM_CODE_BITS | (w->code < most ? w->code : most | (w->code & rest));
}

/* Returns the smallest mark of a round. */
LOOM_FN uint64_t loom_comm_mark_from(uint64_t round)
{
	return round << LOOM_COMM_CODE_BITS;
}

/* Fails if the other rank has begun this round with another call. */
LOOM_FN void loom_comm_compare(const struct loom_comm_view *v, struct loom_comm_wait *w, uint32_t from)
{
	struct loom_comm_flag *flag = loom_comm_flag(v, v->rank, (uint32_t)w->track, from);
	/* Acquire: pairs with the release in loom_comm_announce(). */
	if (w->failed || !w->round || loom_load_acquire_sys(&flag->round) < w->round)
		return;
	uint64_t other = loom_load_relaxed_sys(&flag->call[w->round & 1]);
	if (other == w->code)
		return;
	w->failed = (uint64_t)LOOM_EINVAL;
	loom_store_relaxed_sys(&v->words->own, w->code);
	loom_store_relaxed_sys(&v->words->other, other);
	loom_store_relaxed_sys(&v->words->unequal, (uint64_t)from + 1);
}

/* Tells the other rank the code of this round's call. */
LOOM_FN void loom_comm_announce(const struct loom_comm_view *v, const struct loom_comm_wait *w, uint32_t to)
{
	struct loom_comm_flag *flag = loom_comm_flag(v, to, (uint32_t)w->track, v->rank);
	loom_store_relaxed_sys(&flag->call[w->round & 1], w->code);
	loom_store_release_sys(&flag->round, w->round);
}
#endif

/* Called after a poll without success. Returns 1 if the thread must give up. The host's words are loaded rarely, because
 * they are across a link. */
LOOM_FN int loom_comm_gives_up(const struct loom_comm_view *v, struct loom_comm_wait *w, uint32_t from)
{
	LOOM_COMM_PAUSE(w->polls);
	if (++w->polls % 256 || w->failed)
		return w->failed != 0;
	uint64_t now = loom_clock_ns((const struct loom_ctx *)0), lost = loom_load_acquire_sys(&v->words->lost);
	w->since_ns = w->since_ns ? w->since_ns : now;
#ifndef LOOM_COMM_IS_GPU
	loom_comm_compare(v, w, from);
#endif
	if (w->failed)
		return 1;
	if ((uint32_t)lost) {
		w->failed = (uint64_t)LOOM_EDIED;
	} else if ((lost >> 32 & w->closed) >> from & 1) { /* closed 256 polls ago: no data will follow */
		w->failed = (uint64_t)LOOM_EINVAL;
		loom_store_relaxed_sys(&v->words->late, (uint64_t)from + 1);
	} else if (now - w->since_ns > v->timeout_ns && now > w->since_ns) {
		w->failed = (uint64_t)LOOM_ETIMEDOUT;
		loom_store_relaxed_sys(&v->words->late, (uint64_t)from + 1);
	}
	w->closed = lost >> 32;
	return w->failed != 0;
}

/* Begins the next round. */
LOOM_FN void loom_comm_next(struct loom_comm_wait *w, uint64_t *round)
{
	w->round = ++*round;
	w->polls = w->since_ns = w->closed = 0;
}

/* ---- elements ------------------------------------------------------------------------------------------------ */

LOOM_FN uint32_t loom_comm_bits(float f)
{
	union {
		float f;
		uint32_t bits;
	} u;
	u.f = f;
	return u.bits;
}

LOOM_FN float loom_comm_float(uint32_t bits)
{
	union {
		uint32_t bits;
		float f;
	} u;
	u.bits = bits;
	return u.f;
}

/* Rounds to the nearest bfloat16, and to an even one if two are equally near. A NaN stays a NaN. */
LOOM_FN uint32_t loom_comm_to_bfloat16(float f)
{
	uint32_t bits = loom_comm_bits(f);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return bits >> 16 | 0x40u;
	return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

#ifndef LOOM_OWN_HALF /* a layer may convert by instructions of its device */
LOOM_FN float loom_comm_from_half(uint32_t h)
{
	uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
	if (rest >= 0x7c00u) /* infinity or NaN */
		return loom_comm_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
	if (rest >= 0x400u)
		return loom_comm_float(sign | ((rest << 13) + 0x38000000u));
	float value = (float)rest * (1.0f / 16777216.0f); /* a subnormal number counts in units of 2^-24 */
	return sign ? -value : value;
}

LOOM_FN uint32_t loom_comm_to_half(float f)
{
	uint32_t bits = loom_comm_bits(f), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
	if (rest > 0x7f800000u)
		return sign | 0x7e00u;
	if (rest >= 0x477ff000u) /* rounds to infinity */
		return sign | 0x7c00u;
	if (rest >= 0x38800000u)
		return sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13;
	/* A subnormal half. Adding 0.5 makes the units of 2^-24 the last bits of the sum, which the addition rounds. */
	return sign | (loom_comm_bits(loom_comm_float(rest) + 0.5f) - 0x3f000000u);
}
#endif

/* The reduction of the elements of a word of 8 bytes. They are the bits of floats, or integers. */
struct loom_comm_sum {
	uint32_t x[4];
};

LOOM_FN uint32_t loom_comm_pick(uint32_t a, uint32_t b, uint32_t type, uint32_t op)
{
	if (type == LOOM_COMM_INT32)
		return op == LOOM_COMM_SUM ? a + b : (int32_t)a > (int32_t)b ? a : b;
	float f = loom_comm_float(a), g = loom_comm_float(b);
	if (op == LOOM_COMM_SUM)
		return loom_comm_bits(f + g);
	return f > g || f != f ? a : b; /* a NaN stays */
}

/* Adds a word to *s. first: 1 if it is the first word. */
LOOM_FN void loom_comm_add(struct loom_comm_sum *s, uint64_t word, uint32_t type, uint32_t op, int first)
{
	int wide = type == LOOM_COMM_FLOAT || type == LOOM_COMM_INT32;
	LOOM_COMM_UNROLL
	for (int k = 0; k < 4; k++) {
		uint32_t x = (uint32_t)(word >> 16 * k) & 0xffffu;
		if (wide)
			x = (uint32_t)(word >> 32 * (k & 1));
		else
			x = type == LOOM_COMM_HALF ? loom_comm_bits(loom_comm_from_half(x)) : x << 16;
		if (!wide || k < 2)
			s->x[k] = first ? x : loom_comm_pick(s->x[k], x, type, op);
	}
}

LOOM_FN uint64_t loom_comm_word(const struct loom_comm_sum *s, uint32_t type)
{
	uint64_t word = 0;
	if (type == LOOM_COMM_FLOAT || type == LOOM_COMM_INT32)
		return s->x[0] | (uint64_t)s->x[1] << 32;
	LOOM_COMM_UNROLL
	for (int k = 0; k < 4; k++) {
		float f = loom_comm_float(s->x[k]);
		word |= (uint64_t)(type == LOOM_COMM_HALF ? loom_comm_to_half(f) : loom_comm_to_bfloat16(f)) << 16 * k;
	}
	return word;
}

/* ---- memory of the program ----------------------------------------------------------------------------------- */

/* A part of a vector of the program, in words of 8 bytes. The last word may be incomplete. */
struct loom_comm_part {
	char *at;
	uint64_t bytes;
};

LOOM_FN struct loom_comm_part loom_comm_part(const void *vector, uint64_t at, uint64_t bytes)
{
	struct loom_comm_part p = {(char *)(uintptr_t)vector + at, bytes};
	return p;
}

/* Loads word i, or what the part has of it. Elements are at least 2 bytes, so an address that is not a multiple of 8 is a
 * multiple of 2. */
LOOM_FN uint64_t loom_comm_get(struct loom_comm_part p, uint64_t i)
{
	const char *at = p.at + 8 * i;
	uint64_t word = 0;
	if (8 * i + 8 <= p.bytes && (uintptr_t)at % 8 == 0)
		return *(const loom_comm_word8 *)at;
	LOOM_NO_UNROLL
	for (uint32_t k = 0; k < 4 && 8 * i + 2 * k < p.bytes; k++)
		word |= (uint64_t)((const loom_comm_word2 *)at)[k] << 16 * k;
	return word;
}

LOOM_FN void loom_comm_put(struct loom_comm_part p, uint64_t i, uint64_t word)
{
	char *at = p.at + 8 * i;
	if (8 * i + 8 <= p.bytes && (uintptr_t)at % 8 == 0) {
		*(loom_comm_word8 *)at = word;
		return;
	}
	LOOM_NO_UNROLL
	for (uint32_t k = 0; k < 4 && 8 * i + 2 * k < p.bytes; k++)
		((loom_comm_word2 *)at)[k] = (uint16_t)(word >> 16 * k);
}

LOOM_FN struct loom_comm_unit loom_comm_get_unit(struct loom_comm_part p, uint64_t i)
{
	struct loom_comm_unit u;
	if (16 * i + 16 <= p.bytes && (uintptr_t)p.at % 16 == 0)
		return ((const struct loom_comm_unit *)p.at)[i];
	u.word[0] = loom_comm_get(p, 2 * i);
	u.word[1] = loom_comm_get(p, 2 * i + 1);
	return u;
}

LOOM_FN void loom_comm_put_unit(struct loom_comm_part p, uint64_t i, struct loom_comm_unit u)
{
	if (16 * i + 16 <= p.bytes && (uintptr_t)p.at % 16 == 0) {
		((struct loom_comm_unit *)p.at)[i] = u;
		return;
	}
	loom_comm_put(p, 2 * i, u.word[0]);
	loom_comm_put(p, 2 * i + 1, u.word[1]);
}

/* The piece of a call that a round moves: `bytes` bytes from `at` on, of each chunk of the vectors. A chunk has
 * call->count elements, and belongs to a rank if the vector has several. */
struct loom_comm_piece {
	uint64_t at, bytes;
};

LOOM_FN struct loom_comm_part loom_comm_in(const struct loom_comm_call *call, struct loom_comm_piece p, uint32_t rank)
{
	uint64_t chunk = call->what == LOOM_COMM_REDUCE_SCATTER ? rank * call->count * loom_comm_size(call->type) : 0;
	return loom_comm_part(call->in, chunk + p.at, p.bytes);
}
LOOM_FN struct loom_comm_part loom_comm_out(const struct loom_comm_call *call, struct loom_comm_piece p, uint32_t rank)
{
	uint64_t chunk = call->what == LOOM_COMM_ALLGATHER ? rank * call->count * loom_comm_size(call->type) : 0;
	return loom_comm_part(call->out, chunk + p.at, p.bytes);
}

/* ---- what a rank takes from all ranks --------------------------------------------------------------------------------- */

#define LOOM_COMM_BATCH 4u /* number of words or units that a thread sends or copies at a time */

/* The data of ranks first to last that a rank takes, and where the sums go. A marked word is a unit, too: the word and its mark. */
struct loom_comm_sources {
	uint64_t at, stride;  /* the data of rank r begin r * stride bytes after this offset, in this rank's memory */
	uint32_t loads;       /* 1: in the memory of rank r */
	uint32_t first, last;
	uint32_t marked;      /* 1: marked words, but none of this rank, whose words are in its input */
	uint32_t out;         /* 1: the sums go to the program's memory */
	uint32_t keeps;       /* so many ranks, from this rank on, get the sums in their memory, where the first unit is at `to` */
	uint64_t to;
};

LOOM_FN struct loom_comm_unit *loom_comm_source(const struct loom_comm_view *v, const struct loom_comm_sources *s, uint32_t r)
{
	return loom_comm_at(v, s->loads ? r : v->rank, s->at + r * s->stride);
}

/* Returns the rank that is n ranks after this one. The first comes after the last. */
LOOM_FN uint32_t loom_comm_after(const struct loom_comm_view *v, uint32_t n)
{
	return v->rank + n - (v->rank + n < v->ranks ? 0 : v->ranks);
}

/* Loads some units, from unit i of rank `from` on: first those of the ranks up to s->last, then unit i + lanes of the ranks from
 * s->first on, and so on. All loads are in flight at the same time. Waits for marked words, so for as long as the last rank takes.
 * After a failure, *u is undefined. */
LOOM_FN void loom_comm_load(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_sources *s,
			    uint64_t round, uint64_t i, uint64_t end, uint32_t lanes, uint32_t from, struct loom_comm_unit *u)
{
	uint64_t least = loom_comm_mark_from(round), mark = loom_comm_mark(w, round);
	uint32_t late, unlike, n;
	do {
		uint64_t at = i;
		uint32_t r = from;
		n = 0;
		LOOM_COMM_UNROLL
		for (uint32_t k = 0; k < LOOM_COMM_FLIGHT; k++) {
			if (at >= end) /* few units: their loads shall not wait for instructions of absent ones */
				break;
			u[k].word[1] = mark;
			if (!s->marked)
				u[k] = *(loom_comm_source(v, s, r) + at);
			else if (r != v->rank)
				u[k].word[1] = loom_load_marked_sys((loom_comm_source(v, s, r) + at)->word, &u[k].word[0]);
			at += r == s->last ? lanes : 0;
			r = r == s->last ? s->first : r + 1;
			n = k + 1;
		}
		late = unlike = v->ranks;
		r = from;
		LOOM_COMM_UNROLL
		for (uint32_t k = 0; k < LOOM_COMM_FLIGHT; k++) {
			if (k >= n)
				break;
			late = u[k].word[1] < least ? r : late;
			unlike = u[k].word[1] != mark ? r : unlike;
			r = r == s->last ? s->first : r + 1;
		}
	} while (s->marked && late < v->ranks && !loom_comm_gives_up(v, w, late));
#ifdef LOOM_COMM_IS_GPU
	(void)unlike;
#else
	if (s->marked && unlike < v->ranks)
		loom_comm_compare(v, w, unlike);
#endif
}

/* Takes the units begin + lane, begin + lane + lanes, ... before `end` from the ranks, and reduces or stores them. */
LOOM_FN void loom_comm_take(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_call *call,
			    struct loom_comm_piece p, const struct loom_comm_sources *s, uint64_t round, uint64_t begin, uint64_t end,
			    uint32_t lane, uint32_t lanes)
{
	int reduces = call->what == LOOM_COMM_ALLREDUCE || call->what == LOOM_COMM_REDUCE_SCATTER;
	uint64_t i = begin + lane;
	uint32_t from = s->first;
	struct loom_comm_sum sum[2] = {{{0, 0, 0, 0}}, {{0, 0, 0, 0}}};
	LOOM_NO_UNROLL
	while (i < end) {
		struct loom_comm_unit u[LOOM_COMM_FLIGHT] = {{{0, 0}}};
		loom_comm_load(v, w, s, round, i, end, lanes, from, u);
		LOOM_NO_UNROLL
		for (uint32_t k = 0; k < LOOM_COMM_FLIGHT && i < end; k++) {
			struct loom_comm_unit x = u[0];
			LOOM_COMM_UNROLL /* registers have no index, so the next one moves to the front */
			for (uint32_t n = 1; n < LOOM_COMM_FLIGHT; n++)
				u[n - 1] = u[n];
			if (s->marked && from == v->rank)
				x.word[0] = loom_comm_get(loom_comm_in(call, p, from), i);
			LOOM_COMM_UNROLL
			for (int h = 0; h < 2; h++) {
				if (reduces && !(h && s->marked))
					loom_comm_add(&sum[h], x.word[h], call->type, call->op, from == 0);
				if (reduces && !(h && s->marked) && from == s->last)
					x.word[h] = loom_comm_word(&sum[h], call->type);
			}
			if (s->marked && (!reduces || from == s->last))
				loom_comm_put(loom_comm_out(call, p, from), i, x.word[0]);
			if (!s->marked && from == s->last) {
				for (uint32_t n = 0; n < s->keeps; n++)
					loom_comm_at(v, loom_comm_after(v, n), s->to)[i] = x;
				if (s->out)
					loom_comm_put_unit(loom_comm_out(call, p, v->rank), i, x);
			}
			i += from == s->last ? lanes : 0;
			from = from == s->last ? s->first : from + 1;
		}
	}
}

/* ---- rounds with marked words --------------------------------------------------------------------------------- */

/* Sends the words i, i + lanes, ... of a piece, at most LOOM_COMM_BATCH, to all ranks. */
LOOM_FN void loom_comm_send_some(const struct loom_comm_view *v, const struct loom_comm_wait *w,
				 const struct loom_comm_call *call, struct loom_comm_piece p, uint32_t track,
				 uint64_t round, uint64_t i, uint64_t words, uint32_t lanes)
{
	uint64_t word[LOOM_COMM_BATCH] = {0}, slot = loom_comm_slot(v, round, track, v->rank), mark = loom_comm_mark(w, round);
	int to_all = call->what != LOOM_COMM_REDUCE_SCATTER;
	LOOM_NO_UNROLL
	for (uint32_t n = 1; n < v->ranks; n++) {
		uint32_t to = loom_comm_after(v, n);
		struct loom_comm_unit *at = loom_comm_at(v, to, slot) + i;
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH && (n == 1 || !to_all) && i + b * lanes < words; b++)
			word[b] = loom_comm_get(loom_comm_in(call, p, to), i + b * lanes);
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH && i + b * lanes < words; b++)
			loom_store_marked_sys(at[(uint64_t)b * lanes].word, word[b], mark);
	}
}

/* Sends the words of a piece, unless send is 0, and receives those of the other ranks. */
LOOM_FN void loom_comm_words(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_call *call,
			     struct loom_comm_piece p, uint32_t track, uint64_t round, int send, uint32_t lane, uint32_t lanes)
{
	int broadcast = call->what == LOOM_COMM_BROADCAST;
	const struct loom_comm_sources s = {loom_comm_slot(v, round, track, 0), v->slot, /* loads */ 0, broadcast ? call->root : 0,
					    broadcast ? call->root : v->ranks - 1, /* marked */ 1, /* out */ 1, 0, 0};
	uint64_t words = (p.bytes + 7) / 8;
#ifndef LOOM_COMM_IS_GPU
	for (uint32_t n = 1; words && n < v->ranks; n++)
		loom_comm_announce(v, w, loom_comm_after(v, n));
#endif
	LOOM_NO_UNROLL
	for (uint64_t i = lane; send && i < words; i += (uint64_t)LOOM_COMM_BATCH * lanes)
		loom_comm_send_some(v, w, call, p, track, round, i, words, lanes);
	loom_comm_take(v, w, call, p, &s, round, 0, words, lane, lanes);
}

/* ---- rounds with flags ------------------------------------------------------------------------------------------ */

/* Raises this rank's flag on all other ranks, and waits until they have raised theirs. What any thread of the team has
 * stored before is then visible to this team of the other ranks. Returns 1 if a thread must give up, on all of its threads. */
LOOM_FN int loom_comm_meet(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_team *t,
			   uint32_t track, uint64_t value)
{
	loom_comm_any(t, 0);
	/* Release: pairs with the fence below, on the other rank. */
	for (uint32_t r = t->lane; r < v->ranks; r += t->lanes)
		if (r != v->rank) {
#ifndef LOOM_COMM_IS_GPU
			loom_comm_announce(v, w, r);
#endif
			loom_store_release_sys(&loom_comm_flag(v, r, track, v->rank)->value[t->number], value);
		}
	for (uint32_t r = t->lane; r < v->ranks; r += t->lanes)
		if (r != v->rank) {
			uint64_t *flag = &loom_comm_flag(v, v->rank, track, r)->value[t->number];
			while (loom_load_relaxed_sys(flag) < value && !loom_comm_gives_up(v, w, r))
				;
			loom_fence_poll_sys();
#ifndef LOOM_COMM_IS_GPU
			loom_comm_compare(v, w, r);
#endif
		}
	return loom_comm_any(t, w->failed != 0);
}

/* Returns 1 if ranks store their data into each other's buffers. */
LOOM_FN int loom_comm_pushes(const struct loom_comm_view *v, const struct loom_comm_call *call)
{
	return call->pulls > 1 && v->ranks > 1 && call->what == LOOM_COMM_ALLREDUCE;
}

/* Returns the number of units of a chunk in the buffer. With REDUCE_SCATTER the buffer has a chunk for each rank. */
LOOM_FN uint64_t loom_comm_units(struct loom_comm_piece p)
{
	return (p.bytes + sizeof(struct loom_comm_unit) - 1) / sizeof(struct loom_comm_unit);
}

/* Stores `units` units of this rank's input at an offset in the memory of all ranks or, if parted is 1, of each rank its part, which has
 * `each` units. */
LOOM_FN void loom_comm_push(const struct loom_comm_view *v, struct loom_comm_part in, uint64_t units, uint64_t offset, uint32_t each,
			    int parted, uint32_t lane, uint32_t lanes)
{
	for (uint64_t i = lane; i < units; i += (uint64_t)LOOM_COMM_BATCH * lanes) {
		struct loom_comm_unit u[LOOM_COMM_BATCH];
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH && i + b * lanes < units; b++)
			u[b] = loom_comm_get_unit(in, i + b * lanes);
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH && i + b * lanes < units; b++) {
			uint32_t at = (uint32_t)i + b * lanes;
			if (parted)
				loom_comm_at(v, at / each, offset)[at % each] = u[b];
			LOOM_NO_UNROLL
			for (uint32_t n = 0; n < v->ranks && !parted; n++)
				loom_comm_at(v, loom_comm_after(v, n), offset)[at] = u[b];
		}
	}
}

/* Copies a piece of this rank's input to its buffer. */
LOOM_FN void loom_comm_stage(const struct loom_comm_view *v, const struct loom_comm_call *call, struct loom_comm_piece p,
			     uint32_t track, uint64_t buffered, uint32_t lane, uint32_t lanes)
{
	struct loom_comm_unit *buffer = loom_comm_at(v, v->rank, loom_comm_buffer(v, buffered, track));
	uint64_t units = loom_comm_units(p);
	uint32_t chunks = call->what == LOOM_COMM_REDUCE_SCATTER ? v->ranks : call->what != LOOM_COMM_BROADCAST || v->rank == call->root;
	for (uint32_t chunk = 0; chunk < chunks; chunk++)
		for (uint64_t i = lane; i < units; i += lanes)
			buffer[chunk * units + i] = loom_comm_get_unit(loom_comm_in(call, p, chunk), i);
}

#ifdef LOOM_COMM_IS_GPU
/* Reduces units [begin, end) of a chunk over the data of all ranks. */
LOOM_FN void loom_comm_reduce(const struct loom_comm_view *v, const struct loom_comm_call *call, struct loom_comm_piece p,
			      const struct loom_comm_sources *s, uint64_t begin, uint64_t end, uint32_t lane, uint32_t lanes)
{
	loom_comm_take(v, (struct loom_comm_wait *)0, call, p, s, 0, begin, end, lane, lanes);
}
#else
/* Number of elements that a CPU reduces together, in loops that compilers vectorise. */
#define LOOM_COMM_ELEMENTS 128u
struct loom_comm_sums {
	float f[LOOM_COMM_ELEMENTS];
	uint32_t i[LOOM_COMM_ELEMENTS];
};

LOOM_FN void loom_comm_add_floats(float *sum, const float *x, uint32_t n, uint32_t op)
{
	if (op == LOOM_COMM_SUM)
		for (uint32_t k = 0; k < n; k++)
			sum[k] += x[k];
	else
		for (uint32_t k = 0; k < n; k++)
			sum[k] = sum[k] > x[k] || sum[k] != sum[k] ? sum[k] : x[k];
}

/* Adds n elements of a buffer to *s. first: 1 if they are the first. */
LOOM_FN void loom_comm_add_all(struct loom_comm_sums *s, const void *from, uint32_t n, uint32_t type, uint32_t op, int first)
{
	const loom_comm_word2 *h = (const loom_comm_word2 *)from;
	const loom_comm_word4 *i = (const loom_comm_word4 *)from;
	float x[LOOM_COMM_ELEMENTS], *f = first ? s->f : x;
	if (type == LOOM_COMM_INT32) {
		for (uint32_t k = 0; k < n; k++)
			s->i[k] = first ? i[k] : loom_comm_pick(s->i[k], i[k], type, op);
		return;
	}
	if (type == LOOM_COMM_FLOAT)
		for (uint32_t k = 0; k < n; k++)
			f[k] = loom_comm_float(i[k]);
	else if (type == LOOM_COMM_BFLOAT16)
		for (uint32_t k = 0; k < n; k++)
			f[k] = loom_comm_float((uint32_t)h[k] << 16);
	else
		for (uint32_t k = 0; k < n; k++)
			f[k] = loom_comm_from_half(h[k]);
	if (!first)
		loom_comm_add_floats(s->f, x, n, op);
}

LOOM_FN void loom_comm_store_all(const struct loom_comm_sums *s, void *to, uint32_t n, uint32_t type)
{
	loom_comm_word2 *h = (loom_comm_word2 *)to;
	loom_comm_word4 *i = (loom_comm_word4 *)to;
	if (type == LOOM_COMM_INT32)
		for (uint32_t k = 0; k < n; k++)
			i[k] = s->i[k];
	else if (type == LOOM_COMM_FLOAT)
		for (uint32_t k = 0; k < n; k++)
			i[k] = loom_comm_bits(s->f[k]);
	else if (type == LOOM_COMM_BFLOAT16)
		for (uint32_t k = 0; k < n; k++)
			h[k] = (uint16_t)loom_comm_to_bfloat16(s->f[k]);
	else
		for (uint32_t k = 0; k < n; k++)
			h[k] = (uint16_t)loom_comm_to_half(s->f[k]);
}

/* Works like the function for GPUs, but each lane reduces consecutive units. The last unit of `out` may be incomplete. */
LOOM_FN void loom_comm_reduce(const struct loom_comm_view *v, const struct loom_comm_call *call, struct loom_comm_piece p,
			      const struct loom_comm_sources *s, uint64_t begin, uint64_t end, uint32_t lane, uint32_t lanes)
{
	struct loom_comm_part out = loom_comm_out(call, p, v->rank);
	uint32_t size = loom_comm_size(call->type);
	uint64_t units = end - begin, from = 16 * (begin + units * lane / lanes), until = 16 * (begin + units * (lane + 1) / lanes);
	for (uint64_t at = from, n; at < until; at += n) {
		struct loom_comm_sums sum;
		n = until - at < LOOM_COMM_ELEMENTS * size ? until - at : LOOM_COMM_ELEMENTS * size;
		for (uint32_t r = 0; r < v->ranks; r++)
			loom_comm_add_all(&sum, (const char *)loom_comm_source(v, s, r) + at, (uint32_t)(n / size), call->type,
					  call->op, r == 0);
		for (uint32_t k = 0; k < s->keeps; k++)
			loom_comm_store_all(&sum, (char *)loom_comm_at(v, loom_comm_after(v, k), s->to) + at, (uint32_t)(n / size), call->type);
		uint64_t rest = s->out && at < out.bytes ? out.bytes - at : 0;
		loom_comm_store_all(&sum, out.at + at, (uint32_t)((n < rest ? n : rest) / size), call->type);
	}
}
#endif

/* Copies units [begin, end) of a chunk of rank `from`, of which unit 0 is at `buffer`. */
LOOM_FN void loom_comm_copy(const struct loom_comm_call *call, struct loom_comm_piece p, const struct loom_comm_unit *buffer,
			    uint32_t from, uint64_t begin, uint64_t end, uint32_t lane, uint32_t lanes)
{
	struct loom_comm_part out = loom_comm_out(call, p, from);
	for (uint64_t i = begin + lane; i < end; i += (uint64_t)LOOM_COMM_BATCH * lanes) {
		struct loom_comm_unit u[LOOM_COMM_BATCH];
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH; b++)
			u[b] = buffer[i + b * lanes < end ? i + b * lanes : i];
		LOOM_COMM_UNROLL
		for (uint32_t b = 0; b < LOOM_COMM_BATCH; b++)
			if (i + b * lanes < end)
				loom_comm_put_unit(out, i + b * lanes, u[b]);
	}
}

/* Returns 1 if an allreduce has two phases. */
LOOM_FN int loom_comm_is_parted(const struct loom_comm_view *v, const struct loom_comm_call *call)
{
	return call->what == LOOM_COMM_ALLREDUCE && v->ranks > 2;
}

/* The first unit of the part that rank r reduces, if an allreduce has two phases. */
LOOM_FN uint64_t loom_comm_part_begin(const struct loom_comm_view *v, struct loom_comm_piece p, uint32_t r)
{
	return loom_comm_units(p) * r / v->ranks;
}

/* Loads what the other ranks have staged. phase: 2 after all ranks have reduced their parts, else 1. */
LOOM_FN void loom_comm_fetch(const struct loom_comm_view *v, const struct loom_comm_call *call, struct loom_comm_piece p,
			     uint32_t track, uint64_t buffered, uint32_t phase, uint32_t lane, uint32_t lanes)
{
	uint64_t units = loom_comm_units(p), begin = 0, end = units, buffer = loom_comm_buffer(v, buffered, track);
	if (phase == 1 && (call->what == LOOM_COMM_ALLREDUCE || call->what == LOOM_COMM_REDUCE_SCATTER)) {
		struct loom_comm_sources s = {buffer, 0, /* loads */ 1, 0, v->ranks - 1, /* marked */ 0, /* out */ 1, 0, buffer};
		if (call->what == LOOM_COMM_REDUCE_SCATTER) {
			s.at += v->rank * units * sizeof(struct loom_comm_unit);
		} else if (loom_comm_is_parted(v, call)) {
			begin = loom_comm_part_begin(v, p, v->rank);
			end = loom_comm_part_begin(v, p, v->rank + 1);
			s.keeps = 1;
		}
		loom_comm_reduce(v, call, p, &s, begin, end, lane, lanes);
		return;
	}
	LOOM_NO_UNROLL
	for (uint32_t n = phase == 2; n < v->ranks && call->what != LOOM_COMM_BARRIER; n++) {
		uint32_t r = loom_comm_after(v, n);
		if (phase == 2) {
			begin = loom_comm_part_begin(v, p, r);
			end = loom_comm_part_begin(v, p, r + 1);
		} else if (call->what == LOOM_COMM_BROADCAST && r != call->root) {
			continue;
		}
		loom_comm_copy(call, p, loom_comm_at(v, r, buffer), r, begin, end, lane, lanes);
	}
}

/* ---- stores into the buffers of all ranks ------------------------------------------------------------------------------
 * The teams of a block share a call's pieces and the track's buffers. In a round a team moves a piece, and waits for the
 * same team of the other ranks only. While it waits, other teams use the link. So a team needs no second piece in flight.
 *
 * Whole vectors: these rounds alternate between both buffers. A rank that stores piece n + 1 has the flags of piece n, which
 * the other ranks raised after they had reduced piece n - 1, whose place piece n + 1 takes. Parts: one buffer has the parts,
 * the other one the sums. A rank that has the sums of piece n knows that all ranks have reduced it, and a rank that has all
 * parts of piece n + 1 knows that all ranks have copied the sums of piece n.
 *
 * If the last call with buffers has used them in another way, ranks may still read what it has left there. Then all ranks
 * meet before the first piece. */

/* Executes the part of an allreduce from byte `at` to byte `end`. *round: the last round, which the function increments by the
 * number of a team's pieces. It is the same for all teams, so some of them may have an empty piece. */
LOOM_FN void loom_comm_pushed(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_call *call,
			      const struct loom_comm_team *t, uint64_t at, uint64_t end, uint32_t track, uint64_t *round)
{
	const uint64_t unit = sizeof(struct loom_comm_unit);
	int parted = call->pulls > 2;
	uint64_t room = v->share / t->count / unit / v->ranks; /* units, for the data of each rank */
	uint64_t bytes = ((end - at + t->count - 1) / t->count + unit - 1) / unit * unit, most = room * unit * (parted ? v->ranks : 1);
	uint64_t skip = t->number * room * v->ranks * unit;
	bytes = bytes < most ? bytes : most;
	LOOM_NO_UNROLL
	for (uint64_t from = at + t->number * bytes; at < end; at += t->count * bytes, from += t->count * bytes) {
		struct loom_comm_piece p = {from, from >= end ? 0 : end - from < bytes ? end - from : bytes};
		uint64_t units = loom_comm_units(p), each = parted ? (units + v->ranks - 1) / v->ranks : units;
		uint64_t begin = parted ? v->rank * each : 0, until = begin + each < units ? begin + each : units;
		uint64_t sums = loom_comm_buffer(v, 1, track) + skip;
		begin = begin < units ? begin : units; /* the last ranks may have no part */
		struct loom_comm_sources s = {
			loom_comm_buffer(v, parted ? 0 : ++w->buffered, track) + skip, each * unit, /* loads */ 0, 0, v->ranks - 1,
			/* marked */ 0, /* out */ !parted, /* keeps */ parted ? v->ranks : 0, sums};
		loom_comm_next(w, round);
		loom_comm_push(v, loom_comm_in(call, p, 0), units, s.at + v->rank * s.stride, (uint32_t)each, parted, t->lane,
			       t->lanes);
		if (loom_comm_meet(v, w, t, track, 2 * *round + 1))
			return;
		s.at -= begin * unit;
		loom_comm_reduce(v, call, p, &s, begin, until, t->lane, t->lanes);
		if (!parted)
			continue;
		if (loom_comm_meet(v, w, t, track, 2 * *round + 2))
			return;
		loom_comm_copy(call, p, loom_comm_at(v, v->rank, sums), v->rank, 0, units, t->lane, t->lanes);
	}
}

/* ---- a block ------------------------------------------------------------------------------------------------------ */

/* Returns the number of bytes of a chunk that one round moves. */
LOOM_FN uint64_t loom_comm_most(const struct loom_comm_view *v, const struct loom_comm_call *call)
{
	if (!call->pulls)
		return v->slot / 2;
	return call->what == LOOM_COMM_REDUCE_SCATTER ? v->share / v->ranks / 16 * 16 : v->share;
}

LOOM_FN void loom_comm_round(const struct loom_comm_view *v, struct loom_comm_wait *w, const struct loom_comm_call *call,
			     struct loom_comm_piece p, uint32_t track, uint64_t round, uint32_t lane, uint32_t lanes)
{
	const struct loom_comm_team all = {0, 1, lane, lanes};
	if (call->pulls && p.bytes && v->ranks > 1) {
		loom_comm_stage(v, call, p, track, ++w->buffered, lane, lanes);
		if (loom_comm_meet(v, w, &all, track, 2 * round + 1))
			return;
		loom_comm_fetch(v, call, p, track, w->buffered, 1, lane, lanes);
		if (loom_comm_is_parted(v, call) && !loom_comm_meet(v, w, &all, track, 2 * round + 2))
			loom_comm_fetch(v, call, p, track, w->buffered, 2, lane, lanes);
		return;
	}
	loom_comm_words(v, w, call, p, track, round, call->what != LOOM_COMM_BROADCAST || call->root == v->rank, lane, lanes);
	/* Each rank must receive something from every other rank. */
	if (call->what == LOOM_COMM_BROADCAST || !p.bytes)
		loom_comm_meet(v, w, &all, track, 2 * round + 1);
}

/* Executes the part of a collective from byte `at` on, of `bytes` bytes of each chunk. */
LOOM_FN int loom_comm_some(const struct loom_comm_view *v, const struct loom_comm_call *call, uint64_t at, uint64_t bytes,
			   uint32_t track, uint32_t lane, uint32_t lanes)
{
	struct loom_comm_track *own = loom_comm_track(v, track);
	struct loom_comm_wait w = {0, 0, 0, 0, 0, 0, 0, 0};
	const struct loom_comm_team t = loom_comm_team(lane, lanes), all = {0, 1, lane, lanes};
	uint64_t most = loom_comm_most(v, call), end = at + bytes;
	int failed = 0, pushes = bytes && loom_comm_pushes(v, call);
	/* The vector arrives while the thread waits for the words of the track. In a broadcast not all ranks have one. */
	if (8ull * lane < bytes && call->what != LOOM_COMM_BROADCAST)
		LOOM_COMM_TOUCH((const char *)call->in + at + 8ull * lane);
	LOOM_COMM_SYNC(); /* thread 0 has stored the words of the call before */
	uint64_t round = own->round, before = own->layout, layout = before;
	/* A rank that waited no more would overwrite what others have not read. */
	if (own->failed)
		return (int)(int64_t)own->failed;
	if (pushes)
		layout = 2 * t.count + (call->pulls > 2);
	else if (!bytes || call->pulls || call->what == LOOM_COMM_BROADCAST)
		layout = bytes && call->pulls;
	w.buffered = own->buffered;
#ifndef LOOM_COMM_IS_GPU
	w.code = loom_comm_code(call);
	w.track = track;
#endif
	if (v->ranks == 1)
		most = bytes ? bytes : 1; /* one round without slots */
	if (pushes) {
		if (before && before != layout) {
			loom_comm_next(&w, &round);
			failed = loom_comm_meet(v, &w, &all, track, 2 * round + 1);
		}
		if (!failed)
			loom_comm_pushed(v, &w, call, &t, at, end, track, &round);
		failed = LOOM_COMM_ANY(w.failed != 0);
	} else do {
		struct loom_comm_piece p = {at, end - at < most ? end - at : most};
		loom_comm_next(&w, &round);
		loom_comm_round(v, &w, call, p, track, round, lane, lanes);
		failed = LOOM_COMM_ANY(w.failed != 0); /* the same for all threads, which leave the loop together */
		at += p.bytes;
	} while (at < end && !failed);
	if (lane == 0) {
		own->round = round;
		own->layout = layout;
		own->buffered = w.buffered;
	}
	if (!failed)
		return 0;
	if (w.failed) {
		own->failed = w.failed;
		loom_store_relaxed_sys(&v->words->failed, (uint64_t)1);
	}
	LOOM_COMM_SYNC();
	return (int)(int64_t)own->failed;
}

/* Executes a collective by one block of `lanes` threads, of which this one is number `lane`. */
LOOM_FN int loom_comm_block(const struct loom_comm_view *v, const struct loom_comm_call *call, uint32_t track,
			    uint32_t lane, uint32_t lanes)
{
	uint64_t bytes = call->what == LOOM_COMM_BARRIER ? 0 : call->count * loom_comm_size(call->type);
	return loom_comm_some(v, call, 0, bytes, track, lane, lanes);
}

/* Executes the part of block `block` of a collective that is divided among blocks, each of which has `each` bytes, a multiple of 16. */
LOOM_FN int loom_comm_divided(const struct loom_comm_view *v, const struct loom_comm_call *call, uint32_t block, uint64_t each,
			      uint32_t lane, uint32_t lanes)
{
	uint64_t bytes = call->what == LOOM_COMM_BARRIER ? 0 : call->count * loom_comm_size(call->type);
	uint64_t begin = block * each < bytes ? block * each : bytes, end = begin + each < bytes ? begin + each : bytes;
	return loom_comm_some(v, call, begin, end - begin, block, lane, lanes);
}

#ifdef LOOM_COMM_IS_GPU
LOOM_FN int loom_comm_grid(const struct loom_comm_view *v, const struct loom_comm_call *call)
{
	uint64_t bytes = call->what == LOOM_COMM_BARRIER ? 0 : call->count * loom_comm_size(call->type);
	uint64_t each = ((bytes + gridDim.x - 1) / gridDim.x + 15) / 16 * 16;
	return loom_comm_divided(v, call, blockIdx.x, each, threadIdx.x, blockDim.x);
}
#endif

#endif
#endif
