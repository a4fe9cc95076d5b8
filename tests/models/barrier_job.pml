/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier with the scope of a job (plugins/barrier/rounds.dev.h, barrier_job()). First the workers of a rank
 * synchronise. Then worker 0 synchronises with the other ranks by dissemination. Then the workers of the rank
 * synchronise again. They use a counter that only grows. A message increments the arrival word of its step. A late
 * receiver models a late message.
 *   -DRANKS=3 -DW=2 -DR=2    ranks, workers of each, rounds
 *   FAULT_ALONE    worker 0 notifies the other ranks before its own workers have arrived
 *   FAULT_SHORT    one step too few
 *   FAULT_AGAIN    a message of any round is accepted
 *   FAULT_AT_ONCE  the messages of all steps are sent before one is received
 *   FAULT_LEAVE    the workers do not synchronise again */
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

byte arrived[RANKS], received[RANKS * 2], at[RANKS * W];

inline send(k)
{
	received[WORD((rank + (1 << k)) % RANKS, k)]++
}

inline ranks()
{
	k = 0;
#ifdef FAULT_AT_ONCE
	do
	:: (1 << k) < RANKS -> send(k); k++
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
		send(k);
#endif
#ifdef FAULT_AGAIN
		received[WORD(rank, k)] > 0;
#else
		received[WORD(rank, k)] >= r;
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
		arrived[rank]++;
#ifdef FAULT_ALONE
		i == 0 || arrived[rank] >= (2 * r - 1) * W;
#else
		arrived[rank] >= (2 * r - 1) * W;
#endif
		if
		:: i == 0 -> ranks()
		:: else
		fi;
		arrived[rank]++;
#ifndef FAULT_LEAVE
		arrived[rank] >= 2 * r * W;
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
