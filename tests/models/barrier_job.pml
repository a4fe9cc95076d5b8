/* SPDX-License-Identifier: Apache-2.0 */
/* The scope of the job, plugins/barrier/ops.dev.h, barrier_job(): the workers of a rank meet, worker 0 meets the other ranks by
 * dissemination, the workers of the rank meet again. What a rank's workers meet at is a counter that only grows; a message
 * counts an arrival word of its step up. A message that is late is here a receiver that is.
 *   -DRANKS=3 -DW=2 -DR=2    ranks, workers of each, rounds
 *   FAULT_ALONE    worker 0 tells the other ranks before its own workers have come
 *   FAULT_SHORT    one step too few
 *   FAULT_AGAIN    a message of any round will do
 *   FAULT_AT_ONCE  all steps are fired before any is heard
 *   FAULT_LEAVE    the workers do not meet again */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef W
#define W 2
#endif
#ifndef R
#define R 2
#endif
#define WORD(rank, k) ((rank) * 2 + (k))

byte came[RANKS], told[RANKS * 2], at[RANKS * W];

inline fire(k)
{
	told[WORD((rank + (1 << k)) % RANKS, k)]++
}

inline ranks()
{
	k = 0;
#ifdef FAULT_AT_ONCE
	do
	:: (1 << k) < RANKS -> fire(k); k++
	:: else -> break
	od;
	k = 0;
#endif
	do
#ifdef FAULT_SHORT
	:: (2 << k) < RANKS ->
#else
	:: (1 << k) < RANKS ->
#endif
#ifndef FAULT_AT_ONCE
		fire(k);
#endif
#ifdef FAULT_AGAIN
		told[WORD(rank, k)] > 0;
#else
		told[WORD(rank, k)] >= r;
#endif
		k++
	:: else -> break
	od;
	k = 0
}

proctype worker(byte rank; byte i)
{
	byte r = 1, k, j;
	do
	:: r > R -> break
	:: else ->
		at[rank * W + i] = r;
		came[rank]++;
#ifdef FAULT_ALONE
		i == 0 || came[rank] >= (2 * r - 1) * W;
#else
		came[rank] >= (2 * r - 1) * W;
#endif
		if
		:: i == 0 -> ranks()
		:: else
		fi;
		came[rank]++;
#ifndef FAULT_LEAVE
		came[rank] >= 2 * r * W;
#endif
		atomic {
			j = 0;
			do
			:: j < RANKS * W -> assert(at[j] >= r); j++
			:: else -> break
			od;
			j = 0
		};
		r++
	od
}

init {
	byte n;
	atomic {
		do
		:: n < RANKS * W -> run worker(n / W, n % W); n++
		:: else -> break
		od
	}
}
