/* SPDX-License-Identifier: Apache-2.0 */
/* loom_last_noncoherent() (dev/after.h). D devices, which can only load and store shared memory, decrement a counter.
 * Exactly one device must find that it is the last. Each access to a shared word is a step. The workers of a device
 * have a lock, so a device is one process, which decrements the counter E times.
 *   FAULT=no_turns: a device decrements the counter without waiting for its turn
 *   FAULT=no_fence: a device reads the others' words before its own store is visible
 *   FAULT=lower_first: a device that gave way does not start again
 *   FAULT=no_higher: a device does not wait for higher devices
 *   FAULT=left_early: a device ends its turn before it has decremented the counter */
#include "fault.pml"
#ifndef D
#define D 3
#endif
#ifndef E
#define E 2
#endif
#define no_turns 1
#define no_fence 2
#define lower_first 3
#define no_higher 4
#define left_early 5

bit wants[D];
byte pending = D * E, last, ended;

proctype device(byte me)
{
	byte d, left, n;
	bit seen;
again:	n++;
	if
	:: FAULT == no_turns -> goto inside
	:: else
	fi;
begin:	d = 0;
	if
	:: FAULT == no_fence
	:: else -> wants[me] = 1
	fi;
	do
	:: d == D -> break
	:: d == me -> d++
	:: d < D && d != me && FAULT == no_higher && d > me -> d++
	:: d < D && d != me && !(FAULT == no_higher && d > me) ->
		seen = wants[d];
		if
		:: !seen -> d++
		:: seen && d > me -> wants[d] == 0; d++
		:: seen && d < me ->
			wants[me] = 0;
			wants[d] == 0;
			if
			:: FAULT == lower_first -> wants[me] = 1; d++
			:: else -> goto begin
			fi
		fi
	od;
	wants[me] = 1; /* with FAULT=no_fence the store becomes visible only here */
inside:
	left = pending - 1;
	if
	:: FAULT == left_early -> wants[me] = 0
	:: else
	fi;
	pending = left;
	last = last + (left == 0);
	wants[me] = 0;
	if
	:: n < E -> goto again
	:: else
	fi;
	ended++
}

init {
	byte i;
	atomic {
		do
		:: i < D -> run device(i); i++
		:: else -> break
		od
	};
	ended == D;
	assert(last == 1 && pending == 0)
}
