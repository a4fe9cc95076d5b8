/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks that store pieces of an allreduce into each other's buffers (dev/collective.h, loom_comm_pushed()): a call of three
 * pieces, a call in which the ranks load from each other's buffers, and another call of three pieces. A buffer has four
 * places. A piece takes one of them; data that the other rank loads take a set, two of them. The link delivers stores in any
 * order, except across a release.
 * FAULT_FLAG: a rank does not wait for the flag of a piece. FAULT_RELEASE: the flag may arrive before the piece. FAULT_PLACES: only
 * two places. FAULT_AHEAD: after the call with loads, a rank stores the second piece before it has the flag of the first one. */
#define PIECES 3
#define OTHER (1 - me)
#ifdef FAULT_PLACES
#define PLACE(n) (n % 2 * 2)
#else
#define PLACE(n) (n % 2 * 2 + n / 2 % 2)
#endif

byte buffer[8];  /* [4 * rank + place]: the round of the data there */
bit reading[8];  /* a rank reads the place */
byte flag[2], landed[2], stored[2]; /* of each rank: the last round announced to it; the last one whose piece has arrived there */

inline push(n)
{
	assert(!reading[4 * OTHER + PLACE(n)]);
	buffer[4 * OTHER + PLACE(n)] = n;
	stored[OTHER] = n;
#ifndef FAULT_RELEASE
	landed[OTHER] >= n;
#endif
	flag[OTHER] = n
}

inline read(rank, place, n)
{
	reading[4 * (rank) + (place)] = 1;
	assert(buffer[4 * (rank) + (place)] == n && (rank != me || landed[me] >= n));
	reading[4 * (rank) + (place)] = 0
}

inline pushed()
{
	push(n);
	k = 1;
	do
	:: k <= PIECES ->
		if
		:: k < PIECES && ahead -> push((n + 1))
		:: else -> skip
		fi;
#ifndef FAULT_FLAG
		flag[me] >= n;
#endif
		if
		:: k < PIECES && !ahead -> push((n + 1))
		:: else -> skip
		fi;
		ahead = 1;
		read(me, PLACE(n), n);
		n++;
		k++
	:: else -> break
	od
}

inline pulled()
{
	assert(!reading[4 * me + n % 2 * 2] && !reading[4 * me + n % 2 * 2 + 1]);
	d_step { buffer[4 * me + n % 2 * 2] = n; buffer[4 * me + n % 2 * 2 + 1] = n; landed[me] = n };
	flag[OTHER] = n;
	flag[me] >= n;
	read(OTHER, n % 2 * 2, n);
	read(me, n % 2 * 2 + 1, n);
#ifndef FAULT_AHEAD
	ahead = 0;
#endif
	n++
}

proctype rank(byte me)
{
	byte n = 1, k;
	bit ahead = 1;
	pushed();
	pulled();
	pushed()
}

active proctype link()
{
end:	do
	:: landed[0] < stored[0] -> landed[0] = stored[0]
	:: landed[1] < stored[1] -> landed[1] = stored[1]
	od
}

init { atomic { run rank(0); run rank(1) } }
