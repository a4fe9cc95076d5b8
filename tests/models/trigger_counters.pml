/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds on the device (plugins/trigger_common/nic: nic_fire in nic.dev.h). Fires of one tag are counted in the device's
 * memory. Two lanes of a wave that fire together use one addition. The fire that crosses a multiple of the threshold
 * sends the threshold to the NIC, through the FIFO of fifo.pml. An operation runs at each multiple, and must see all
 * writes before the fires that it waited for. Fires are ordered or not. A store may make visible the writes of its own
 * lane, those that were released to the lane, or none.
 *
 *   -DP=2 producers  -DF=2 fires of each lane  -DT=2 threshold  -DE=2 entries, a power of two
 *   -DFAULT_MERGE: two lanes count for one
 *   -DFAULT_SPLIT: the counter is read and written, not added to
 *   -DFAULT_CROSS: a fire sends only at a multiple, not when it passes one
 *   -DFAULT_OWN: the fire that crosses sends only its own count
 *   -DFAULT_RESET: the fire that crosses resets the counter to 0
 *   -DFAULT_ACQUIRE: an unordered fire that crosses does not acquire the writes of other fires
 *   -DFAULT_RELEASE: the fire that crosses acquires these writes and does not release them
 *   -DFAULT_ROOM, -DFAULT_LAP, -DFAULT_POLL, -DFAULT_OLD: as in fifo.pml */
#include "fifo.pml"
#ifndef F
#define F 2
#endif
#ifndef T
#define T 2
#endif
#define N (2 * P * F)

byte value;      /* the counter */
byte released;   /* the number of ordered fires whose writes become visible by a release of `value` */
byte due[N + 3]; /* due[n] is the number of ordered fires among the first n */

/* carries[i] is the number of ordered fires whose writes are visible to a reader of word i. */
byte carries[E];

byte sent, seen_by_nic, ran;

inline push(many)
{
	take_ticket();
	atomic { word[n % E] = many; carries[n % E] = carried; lap[n % E] = LAP(n) }
}

#ifdef FAULT_MERGE
#define ADDED 1
#else
#define ADDED lanes
#endif

inline fire(lanes)
{
	if
	:: ordered = 1
	:: ordered = 0
	fi;
#ifdef FAULT_SPLIT
	before = value;
	value = before + ADDED;
#endif
	atomic {
#ifndef FAULT_SPLIT
		before = value;
		value = before + ADDED;
#endif
		released = released + (ordered -> lanes : 0);
		carried = (ordered -> released : 0);
		/* An operation that runs at one of these counts must see the writes of these fires. */
		due[before + 1] = released;
		due[before + 2] = released
	};
	since = before % T + lanes;
	if
#ifdef FAULT_CROSS
	:: since == T ->
#else
	:: since >= T ->
#endif
#ifndef FAULT_ACQUIRE
		carried = released;
#endif
#ifdef FAULT_RELEASE
		carried = (ordered -> carried : 0);
#endif
#ifdef FAULT_RESET
		value = 0;
#endif
#ifdef FAULT_OWN
		push(lanes)
#else
		push(since / T * T)
#endif
	:: else
	fi
}

proctype producer()
{
	byte i, n, seen, before, since, carried;
	bool mine, ordered;
	do
	:: i < F ->
		if
		:: fire(2)
		:: fire(1); fire(1)
		fi;
		i++
	:: else -> break
	od
}

proctype nic()
{
	byte cursor, w, k;
	bool l;
	do
	:: ran < N / T ->
		d_step { w = word[cursor % E]; k = carries[cursor % E]; l = lap[cursor % E] };
		if
		:: filled(cursor) ->
			sent = sent + w;
			seen_by_nic = (k > seen_by_nic -> k : seen_by_nic);
			assert(sent <= N);
			do
			:: sent >= (ran + 1) * T ->
				ran++;
				assert(seen_by_nic >= due[ran * T])
			:: else -> break
			od;
			cursor++;
			tail = cursor
		:: else
		fi
	:: else -> break
	od;
	w = 0; k = 0
}

init {
	byte i;
	atomic {
		run nic();
		do
		:: i < P -> run producer(); i++
		:: else -> break
		od
	}
}

/* Under weak fairness every multiple is sent. */
ltl served { <> (ran == N / T) }
