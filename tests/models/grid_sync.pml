/* SPDX-License-Identifier: Apache-2.0 */
/* Grid synchronisation by one word (plugins/workloads/barriers/workload_primitives.dev.h, primitives_sync_grid()). All
 * workers add 1 to the word, except that the first adds so much that the highest bit changes when all have arrived. In
 * the model the word is a byte.
 *   -DFAULT_SHORT    the first worker adds one too little
 *   -DFAULT_ALIKE    all workers add 1
 *   -DFAULT_LATE     a worker compares with the value of the word after its own addition
 *   -DFAULT_RECORD   a worker adds before it has written the data that others read */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 4
#endif
#define FIRST_BIT 128

byte word, arrived[N];

#ifdef FAULT_SHORT
#define OF_FIRST (FIRST_BIT - N)
#else
#define OF_FIRST (FIRST_BIT - (N - 1))
#endif

active [N] proctype worker()
{
	byte round, before, other;
	do
	:: round < ROUNDS ->
		round++;
#ifndef FAULT_RECORD
		arrived[_pid] = round;
#endif
		d_step {
#ifndef FAULT_LATE
			before = word;
#endif
			if
#ifndef FAULT_ALIKE
			:: _pid == 0 -> word = word + OF_FIRST
#endif
			:: else -> word = word + 1
			fi;
#ifdef FAULT_LATE
			before = word;
#endif
		}
#ifdef FAULT_RECORD
		arrived[_pid] = round;
#endif
		(((before ^ word) & FIRST_BIT) != 0);
		for (other : 0 .. N - 1) {
			assert(arrived[other] >= round)
		}
	:: else -> break
	od
}
