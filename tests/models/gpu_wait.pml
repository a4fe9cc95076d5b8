/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of plugins/sync_common/gpu_wait.dev.h, from sm_90 on. A producer stages an item of slot 0 in its memory, and
 * stores a flag. The flag of slot 1 has two halves, each with half of the item, which arrive in any order. A worker reads R rounds of both slots, and releases both after
 * each round. The monitor has one item at a time copied into the worker's place. An engine copies the item of slot 0,
 * and counts the bytes at the worker's barrier. The item of slot 1 comes from the two halves of its flag. If the place is
 * taken, the worker reads slot 0 where it is staged, and the halves of slot 1 until both have arrived. A wait may
 * also end at its deadline without an item, and is then repeated. The worker must read the items that were sent. A
 * state without a next step may be reached only when all processes have ended.
 *   FAULT=requested_early   the worker sets `pending` before its request is written
 *   FAULT=cleared_late      the monitor clears `pending` after it has resumed the worker
 *   FAULT=flag_first        the producer stores the flag before the item is staged
 *   FAULT=not_counted       the worker is resumed without its bytes
 *   FAULT=place_taken       an item is copied over one that is not released
 *   FAULT=place_kept        a wait that ends without its item keeps the place
 *   FAULT=parity_kept       the worker waits for the phase that is over
 *   FAULT=one_half          the monitor takes one half of a flag for the other
 *   FAULT=early_half        so does the worker that reads the flag itself */
#include "fault.pml"
#ifndef R
#define R 2
#endif
#define requested_early 1
#define cleared_late 2
#define flag_first 3
#define not_counted 4
#define place_taken 5
#define place_kept 6
#define parity_kept 7
#define one_half 8
#define early_half 9
#define NOTHING 2

byte staged[2], flag[2], released[2]; /* the last round of each slot that was staged, flagged and released */
byte low; /* the first half of slot 1's flag, which is the round; the second half is flag[1] */
/* the state of the request */
bool pending, delivers, timed_out;
byte word, want, held = NOTHING;
/* the barrier counts one arrival and the bytes of a phase */
bool phase, arrived;
byte bytes;
/* the worker's place, and the state of the engine */
byte place, copies, source;

inline turn_over()
{
	if
	:: arrived && bytes == 0 -> phase = !phase; arrived = 0
	:: else
	fi
}

active proctype producer()
{
	byte r = 0, s;
	do
	:: r < R ->
		s = 0;
		do
		:: s < 2 ->
			released[s] >= r;
			if
			:: FAULT == flag_first && s == 0 -> flag[s] = r + 1; staged[s] = 2 * (r + 1) + s
			:: FAULT != flag_first && s == 0 -> staged[s] = 2 * (r + 1) + s; flag[s] = r + 1
			:: s == 1 -> low = 2 * (r + 1) + s; flag[s] = r + 1
			:: s == 1 -> flag[s] = r + 1; low = 2 * (r + 1) + s
			fi;
			s++
		:: else -> break
		od;
		r++
	:: else -> break
	od
}

active proctype engine()
{
end:	do
	:: atomic { copies > 0 -> place = staged[source]; copies--;
		if
		:: bytes > 0 -> bytes--
		:: else
		fi;
		turn_over() }
	od
}

active proctype monitor()
{
	bool copy;
	byte at, first, second;
end:	do
	:: pending ->
		at = word;
		first = low;
		second = flag[at];
		/* A deadline may end the wait at any time. */
		if
		:: second < want || (at == 1 && delivers && FAULT != one_half && first / 2 < want) -> timed_out = 1
		:: else
		fi;
		copy = delivers && !timed_out && at == 0;
		if
		:: delivers && !timed_out && at == 1 -> place = first
		:: else
		fi;
		if
		:: FAULT != cleared_late -> pending = 0
		:: else
		fi;
		if
		:: copy -> atomic { source = at; copies++;
				if
				:: FAULT != not_counted -> bytes++
				:: else
				fi;
				arrived = 1; turn_over() }
		:: else -> atomic { arrived = 1; turn_over() }
		fi;
		if
		:: FAULT == cleared_late -> pending = 0
		:: else
		fi
	od
}

inline take(s, r)
{
	do
	:: if
	   :: FAULT == requested_early -> pending = 1
	   :: else
	   fi;
	   word = s;
	   want = r;
	   delivers = (held == NOTHING || FAULT == place_taken);
	   timed_out = 0;
	   if
	   :: delivers -> held = s
	   :: else
	   fi;
	   if
	   :: FAULT != requested_early -> pending = 1
	   :: else
	   fi;
	   phase != parity;
	   if
	   :: FAULT != parity_kept -> parity = !parity
	   :: else
	   fi;
	   if
	   :: delivers && timed_out && FAULT != place_kept -> held = NOTHING
	   :: else
	   fi;
	   here[s] = (held == s); /* the place from which the worker reads */
	   if
	   :: !timed_out -> break
	   :: else
	   fi
	od
}

inline read(s, r)
{
	if
	:: here[s] -> assert(place == 2 * r + s)
	:: !here[s] && s == 0 -> assert(staged[s] == 2 * r + s) /* the worker itself copies the item */
	:: !here[s] && s == 1 ->
		if
		:: FAULT != early_half -> flag[1] >= r && low / 2 >= r
		:: else
		fi;
		assert(low == 2 * r + 1)
	fi
}

active proctype worker()
{
	byte r = 1;
	bool parity, here[2];
	do
	:: r <= R ->
		if
		:: true -> take(0, r); take(1, r)
		:: true -> take(1, r); take(0, r)
		fi;
		read(0, r);
		read(1, r);
		if
		:: held == 0 -> held = NOTHING
		:: else
		fi;
		released[0] = r;
		if
		:: held == 1 -> held = NOTHING
		:: else
		fi;
		released[1] = r;
		r++
	:: else -> break
	od
}
