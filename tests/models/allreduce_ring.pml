/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of allreduce's algorithm ring (allreduce.dev.h), for N ranks (2 or 3) with one worker and one piece each. The
 * network executes a put at any time after its fire. Two vectors, used in turn, and one set of buffers for steps are
 * enough. Each sum must contain each rank's part of the same round once. FAULT_VECTOR: there is only one vector.
 * FAULT_INBOX: all steps share one buffer. */
#ifndef N
#define N 3
#endif
#define HALF (N - 1)
#define STEPS (2 * HALF)
#define ROUNDS 3
#define ALL ((1 << N) - 1)
#ifdef FAULT_VECTOR
#define SET(round) 0
#else
#define SET(round) ((round) % 2)
#endif
#ifdef FAULT_INBOX
#define BOX(step) 0
#else
#define BOX(step) (step)
#endif
#define NEXT ((r + 1) % N)
#define CHUNK(rank, step) ((rank + 2 * N - (step)) % N)
#define VECTOR(rank, round, chunk) (((rank) * 2 + SET(round)) * N + (chunk))
/* A chunk has a round and the set of ranks whose parts it contains. */
#define VALUE(round, parts) ((round) * (ALL + 1) + (parts))

byte vector[N * 2 * N];
byte inbox[N * HALF];
byte fired[N * STEPS], sent[N * STEPS]; /* how often each rank has fired each step; how often it was executed */

active [N] proctype rank()
{
	byte round, step, chunk, r;
	r = _pid;
	do
	:: round < ROUNDS ->
		chunk = 0;
		do /* the stores are separate steps, because the network is notified after the last one */
		:: chunk < N -> vector[VECTOR(r, round, chunk)] = VALUE(round, 1 << r); chunk++
		:: else -> break
		od;
		fired[r * STEPS]++;
		step = 1;
		do
		:: step <= STEPS ->
			sent[((r + N - 1) % N) * STEPS + step - 1] > round; /* the message has arrived */
			d_step {
				if
				:: step <= HALF ->
					chunk = CHUNK(r, step);
					assert(inbox[r * HALF + BOX(step - 1)] / (ALL + 1) == round);
					assert((inbox[r * HALF + BOX(step - 1)] & vector[VECTOR(r, round, chunk)] & ALL) == 0);
					vector[VECTOR(r, round, chunk)] =
						VALUE(round, (inbox[r * HALF + BOX(step - 1)] | vector[VECTOR(r, round, chunk)]) & ALL)
				:: else
				fi;
				if
				:: step < STEPS -> fired[r * STEPS + step]++
				:: else
				fi
			}
			step++
		:: else -> break
		od;
		chunk = 0;
		do
		:: chunk < N -> assert(vector[VECTOR(r, round, chunk)] == VALUE(round, ALL)); chunk++
		:: else -> break
		od;
		round++
	:: else -> break
	od
}

#define SEND(step_, to, from) sent[r * STEPS + step_] < fired[r * STEPS + step_] -> d_step { to = from; sent[r * STEPS + step_]++ }
#define ROUND(step_) sent[r * STEPS + step_]
#define TO_INBOX(step_) SEND(step_, inbox[NEXT * HALF + BOX(step_)], vector[VECTOR(r, ROUND(step_), CHUNK(r, step_))])
#define TO_PLACE(step_) SEND(step_, vector[VECTOR(NEXT, ROUND(step_), CHUNK(r, step_))], vector[VECTOR(r, ROUND(step_), CHUNK(r, step_))])

/* A network process executes any step that is due. */
active [N] proctype network()
{
	byte r = _pid - N;
end:	do
#if N == 2
	:: atomic { TO_INBOX(0) }
	:: atomic { TO_PLACE(1) }
#else
	:: atomic { TO_INBOX(0) }
	:: atomic { TO_INBOX(1) }
	:: atomic { TO_PLACE(2) }
	:: atomic { TO_PLACE(3) }
#endif
	od
}
