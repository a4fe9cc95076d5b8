/* SPDX-License-Identifier: Apache-2.0 */
/* The words of allreduce's algorithm pull (allreduce.dev.h), for N ranks and one slice. A rank sets "ready", reads the
 * input of all other ranks, and sets "read". So no rank reads the input of another round. FAULT_READY: a rank reads
 * without waiting for "ready". FAULT_DONE: a rank continues without waiting for "read". */
#ifndef N
#define N 3
#endif
#define ROUNDS 3

byte input[N];	    /* the round that each rank's input belongs to */
byte ready[N * N];  /* the last round that rank `from` has announced to rank `to`, at to * N + from */
byte taken[N * N];
byte done;

#define RAISE(word, round)                                                                         \
	r = 0;                                                                                     \
	do                                                                                         \
	:: r < N -> word[r * N + _pid] = round; r++                                                \
	:: else -> break                                                                           \
	od
#define AWAIT(word, round)                                                                         \
	r = 0;                                                                                     \
	do                                                                                         \
	:: r < N && r != _pid -> word[_pid * N + r] >= round; r++                                  \
	:: r == _pid -> r++                                                                        \
	:: else -> break                                                                           \
	od

active [N] proctype rank()
{
	byte round = 1, r;
	do
	:: round <= ROUNDS ->
		input[_pid] = round;
		RAISE(ready, round);
#ifndef FAULT_READY
		AWAIT(ready, round);
#endif
		r = 0;
		do
		:: r < N -> assert(input[r] == round); r++
		:: else -> break
		od;
		RAISE(taken, round);
#ifndef FAULT_DONE
		AWAIT(taken, round);
#endif
		round++
	:: else -> break
	od;
	done++
}

ltl ends { <> (done == N) }
