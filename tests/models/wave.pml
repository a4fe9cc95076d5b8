/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp's monitor (plugins/shared/sync/wave.dev.h), from sm_90 on, where devices are apart: a producer stages items
 * of two slots in its memory and stores flags, a worker takes R rounds of both before it releases either, and the
 * monitor has items brought into the worker's place for one: that of slot 0 by an engine that counts the bytes at the worker's
 * barrier, that of slot 1 from the two halves of its flag, which it carries.
 * A wait may also end without an item, at its deadline, and is then repeated. The worker must read what was sent, and
 * where nobody can move, all must be through.
 *   FAULT=asked_early     the worker asks before its post is written
 *   FAULT=answered_late   the monitor forgets the request after it has resumed the worker
 *   FAULT=flag_first      the producer raises the flag before the item is staged
 *   FAULT=not_counted     the worker is resumed without its bytes
 *   FAULT=place_taken     an item is copied over one that is not released
 *   FAULT=place_kept      a wait that ends without its item keeps the place
 *   FAULT=parity_kept     the worker waits for the phase that is over
 *   FAULT=one_half        the monitor believes one half of a flag of the other */
#include "fault.pml"
#ifndef R
#define R 2
#endif
#define asked_early 1
#define answered_late 2
#define flag_first 3
#define not_counted 4
#define place_taken 5
#define place_kept 6
#define parity_kept 7
#define one_half 8
#define NOTHING 2

byte staged[2], flag[2], released[2]; /* by slot; rounds */
byte low; /* the first half of slot 1's flag: the item, which says its round; the second is flag[1] */
/* the post */
bool asked, brings, timed_out;
byte word, want, held = NOTHING;
/* the barrier: one arrival and the bytes of a phase */
bool phase, arrived;
byte bytes;
/* the worker's place, and the engine */
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
			:: FAULT == flag_first -> flag[s] = r + 1; staged[s] = 2 * (r + 1) + s
			:: else ->
				staged[s] = 2 * (r + 1) + s;
				if
				:: s == 1 -> low = 2 * (r + 1) + s
				:: else
				fi;
				flag[s] = r + 1
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
	:: asked ->
		at = word;
		first = low;
		second = flag[at];
		/* Nobody is resumed in vain: a deadline comes when it likes. */
		if
		:: second < want || (at == 1 && brings && FAULT != one_half && first / 2 < want) -> timed_out = 1
		:: else
		fi;
		copy = brings && !timed_out && at == 0;
		if
		:: brings && !timed_out && at == 1 -> place = first
		:: else
		fi;
		if
		:: FAULT != answered_late -> asked = 0
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
		:: FAULT == answered_late -> asked = 0
		:: else
		fi
	od
}

inline take(s, r)
{
	do
	:: if
	   :: FAULT == asked_early -> asked = 1
	   :: else
	   fi;
	   word = s;
	   want = r;
	   brings = (held == NOTHING || FAULT == place_taken);
	   timed_out = 0;
	   if
	   :: brings -> held = s
	   :: else
	   fi;
	   if
	   :: FAULT != asked_early -> asked = 1
	   :: else
	   fi;
	   phase != parity;
	   if
	   :: FAULT != parity_kept -> parity = !parity
	   :: else
	   fi;
	   if
	   :: brings && timed_out && FAULT != place_kept -> held = NOTHING
	   :: else
	   fi;
	   here[s] = (held == s); /* where the worker is told to read */
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
	:: else -> assert(staged[s] == 2 * r + s) /* copied by the worker itself */
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
