/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger FIFO (plugins/trigger_nic: nic.dev.h, fifo.c): producers take a ticket, wait for room by a
 * tail that they last saw, write an argument and then the word with its lap; the NIC reads while the lap
 * fits and then publishes its tail. Every fire is taken once, with its own argument, and all are taken.
 *
 *   -DP=2 producers  -DF=3 fires of each  -DE=2 entries, a power of two
 *   -DFAULT_LAP: the word has no lap: the NIC takes what a slot held before
 *   -DFAULT_ROOM: a producer does not wait for room
 *   -DFAULT_ORDER: the word is stored before the argument
 *   -DFAULT_TAIL: the NIC publishes its tail before it has read */
#ifndef P
#define P 2
#endif
#ifndef F
#define F 3
#endif
#ifndef E
#define E 2
#endif

byte head, tail, cached; /* tickets given; the NIC's tail; what producers last saw of it */
byte word[E];            /* 0: never written; else 1 + fire, see below */
bool lap[E];
byte argument[E];
byte taken[P * F];
byte all;

#define LAP(n) ((((n) / E) % 2) == 0)

proctype producer(byte me)
{
	byte i, n, seen;
	do
	:: i < F ->
		atomic { n = head; head++ };
#ifndef FAULT_ROOM
		do
		:: n - cached >= E ->
			seen = tail;
			cached = seen; /* others may store a larger one before or after */
			if
			:: n - seen < E -> break
			:: else /* look again */
			fi
		:: else -> break
		od;
#endif
#ifdef FAULT_ORDER
		atomic { word[n % E] = 1 + me * F + i; lap[n % E] = LAP(n) };
		argument[n % E] = 1 + me * F + i;
#else
		argument[n % E] = 1 + me * F + i;
		d_step { word[n % E] = 1 + me * F + i; lap[n % E] = LAP(n) };
#endif
		i++
	:: else -> break
	od
}

proctype nic()
{
	byte cursor, w, a;
	bool l;
	do
	:: all < P * F ->
		/* One 8-byte word: lap and tag come together. */
		d_step { w = word[cursor % E]; l = lap[cursor % E] };
		if
#ifdef FAULT_LAP
		:: w != 0 ->
#else
		:: w != 0 && l == LAP(cursor) ->
#endif
#ifdef FAULT_TAIL
			tail = cursor + 1;
#endif
			a = argument[cursor % E];
			assert(a == w);            /* the argument is this fire's */
			assert(taken[w - 1] == 0); /* and the fire is new */
			taken[w - 1] = 1;
			all++;
			cursor++;
			tail = cursor
		:: else
		fi
	:: else -> break
	od;
	w = 0; a = 0
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

/* Under weak fairness all fires are taken: nobody waits for ever. */
ltl served { <> (all == P * F) }
