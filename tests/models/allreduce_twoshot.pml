/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers and flags of allreduce's algorithm twoshot (allreduce.dev.h, dev/collective.h), for N ranks with one track.
 * A buffer has a part for each rank. A rank stores the input of a round into its buffer, raises its flag, and reduces its
 * own part when all flags are raised. Its sum replaces the input. After a second flag, it copies the other sums. Two
 * buffers are used in turn. FAULT_READY: a rank does not wait for the first flags. FAULT_SUMS: it does not wait for the
 * second ones. FAULT_SET: there is only one buffer. */
#ifndef N
#define N 2
#endif
#define ROUNDS 4
#ifdef FAULT_SET
#define SET(round) 0
#else
#define SET(round) (round % 2)
#endif
#define PLACE(rank, part) ((SET(round) * N + rank) * N + part)
#define SUM (100 + round)

byte buffer[2 * N * N]; /* the round that an input belongs to, or 100 plus the round of a sum */
byte flag[N * N];       /* the flag of rank `from` on rank `to` is at to * N + from */
byte done;

#define EACH(what)                                                                                 \
	r = 0;                                                                                     \
	do                                                                                         \
	:: r < N -> what; r++                                                                      \
	:: else -> break                                                                           \
	od
#define AWAIT(value) EACH((r == _pid || flag[_pid * N + r] >= value))

active [N] proctype rank()
{
	byte round = 1, r;
	do
	:: round <= ROUNDS ->
		EACH(buffer[PLACE(_pid, r)] = round);
		EACH(flag[r * N + _pid] = 2 * round + 1);
#ifndef FAULT_READY
		AWAIT(2 * round + 1);
#endif
		EACH(assert(buffer[PLACE(r, _pid)] == round));
		buffer[PLACE(_pid, _pid)] = SUM;
		EACH(flag[r * N + _pid] = 2 * round + 2);
#ifndef FAULT_SUMS
		AWAIT(2 * round + 2);
#endif
		EACH(assert(buffer[PLACE(r, r)] == SUM); buffer[PLACE(_pid, r)] = SUM);
		round++
	:: else -> break
	od;
	done++
}

ltl ends { <> (done == N) }
