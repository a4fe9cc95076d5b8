/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of allreduce's algorithm oneshot (allreduce.dev.h), for N ranks and one element. Two sets of slots, used in
 * turn, are enough for any number of rounds: no word is overwritten before it was read. FAULT_SLOT: there is only one
 * set. FAULT_EARLY: a rank sends the next round before it has read the current one. */
#ifndef N
#define N 3
#endif
#define ROUNDS 4
#ifdef FAULT_SLOT
#define SET(round) 0
#else
#define SET(round) (round % 2)
#endif
#define SLOT(to, from, round) slot[(SET(round) * N + to) * N + from]

byte slot[2 * N * N]; /* the round that each slot's word belongs to */
byte done;

active [N] proctype rank()
{
	byte round = 1, r;
	do
	:: round <= ROUNDS ->
#ifdef FAULT_EARLY
		if
		:: round > 1 -> skip
		:: else ->
#endif
		r = 0;
		do
		:: r < N -> SLOT(r, _pid, round) = round; r++
		:: else -> break
		od;
#ifdef FAULT_EARLY
		fi;
		r = 0;
		do
		:: r < N && round < ROUNDS -> SLOT(r, _pid, (round + 1)) = round + 1; r++
		:: else -> break
		od;
#endif
		r = 0;
		do
		:: r < N ->
			SLOT(_pid, r, round) >= round;
			assert(SLOT(_pid, r, round) == round);
			r++
		:: else -> break
		od;
		round++
	:: else -> break
	od;
	done++
}

ltl ends { <> (done == N) }
