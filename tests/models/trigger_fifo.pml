/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger FIFO (plugins/trigger_common/nic: nic.dev.h, fifo.c). Producers take a ticket, and wait for room by the latest
 * tail that one of them has read. They write an argument and then the word with its lap. The NIC reads words with the
 * current lap and then publishes its tail. A producer is two lanes of a wave. The lanes fire together, as one word that
 * counts for both, or one after the other. Each fire is counted exactly once, with its own argument.
 *
 *   -DP=2 producers  -DF=3 fires of each lane  -DE=2 entries, a power of two
 *   -DFAULT_ORDER: the word is stored before the argument
 *   -DFAULT_TAIL: the NIC publishes its tail before it has read
 *   -DFAULT_MERGE: the word of two lanes counts for one
 *   -DFAULT_LAP, -DFAULT_ROOM, -DFAULT_POLL, -DFAULT_OLD: as in fifo.pml */
#include "fifo.pml"
#ifndef F
#define F 3
#endif

/* A word is 1 plus the number of the fire: lane, producer and fire, as in `taken`. */
byte count[E];
byte argument[E];
byte taken[2 * P * F]; /* for each fire of each lane of each producer, how many fires its word counted for */
byte all;

/* Pushes fire number `number`, which counts for `lanes`. */
inline push(number, lanes)
{
	take_ticket();
#ifdef FAULT_ORDER
	atomic { word[n % E] = 1 + number; count[n % E] = lanes; lap[n % E] = LAP(n) };
	argument[n % E] = 1 + number;
#else
	argument[n % E] = 1 + number;
	d_step { word[n % E] = 1 + number; count[n % E] = lanes; lap[n % E] = LAP(n) };
#endif
}

proctype producer(byte me)
{
	byte i, n, seen;
	bool mine;
	do
	:: i < F ->
		if
		:: /* Both lanes fire together. */
#ifdef FAULT_MERGE
			push(me * F + i, 1)
#else
			push(me * F + i, 2)
#endif
		:: push(me * F + i, 1); push(P * F + me * F + i, 1)
		fi;
		i++
	:: else -> break
	od
}

proctype nic()
{
	byte cursor, w, k, a;
	bool l;
	do
	:: all < 2 * P * F ->
		/* The 8-byte word has lap, count and tag. */
		d_step { w = word[cursor % E]; k = count[cursor % E]; l = lap[cursor % E] };
		if
		:: filled(cursor) ->
#ifdef FAULT_TAIL
			tail = cursor + 1;
#endif
			a = argument[cursor % E];
			assert(a == w);            /* the argument belongs to this fire */
			assert(taken[w - 1] == 0); /* the fire has not been taken before */
			taken[w - 1] = k;
			all = all + k;
			cursor++;
			tail = cursor
		:: else
		fi
	:: else -> break
	od;
	w = 0; a = 0; k = 0
}

init {
	byte i;
	atomic {
		run nic();
		do
		:: i < P -> run producer(i); i++
		:: else -> break
		od
	}
}

/* Under weak fairness all fires are taken, and no process waits forever. */
ltl served { <> (all == 2 * P * F) }
