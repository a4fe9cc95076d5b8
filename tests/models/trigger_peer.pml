/* SPDX-License-Identifier: Apache-2.0 */
/* A counter of trigger_peer (trigger_peer.dev.h). L lanes fire the counter and the host posts, concurrently. The lane
 * that finds `work` at 0 executes the operations that are due. Other lanes only add to `work`. The threshold of the
 * operation is the number of all fires. The operation runs once, and its stores in the other rank precede the arrival
 * word. Only releases order stores on the link. FAULT_FIRST: a lane executes operations for any value of `work`.
 * FAULT_LEAVE: the executing lane ends without a check for further additions. FAULT_TAKEN: a lane executes work that
 * another lane has taken. FAULT_POST: the host posts without executing operations that are already due. FAULT_ORDER: a
 * relaxed store increments the arrival word. */
#ifndef L
#define L 3
#endif
#define CLAIM 16

byte work, taken, value, servers, ran, paid;
bool posted;
bool data_leaves, word_leaves, data, word;

inline serve()
{
	servers++;
	assert(servers == 1);
	do
	:: posted && ran == 0 && value >= L ->
		assert(paid == L); /* the data of every lane are visible */
		ran++;
		data_leaves = true;
		word_leaves = true
	:: else ->
		seen = work;
		if
		:: seen != taken ->
			value = value + seen - taken;
			taken = seen
		:: else ->
			servers--;
			atomic {
#ifdef FAULT_LEAVE
				work = 0;
				break
#else
				if
				:: work == seen ->
					work = 0;
					break
				:: else -> servers++
				fi
#endif
			}
		fi
	od
}

active [L] proctype lane()
{
	byte found, seen;
	paid++;
	atomic {
		found = work;
		work++
	}
#ifndef FAULT_FIRST
	if
	:: found == 0 ->
#endif
		value++;
#ifndef FAULT_TAKEN
		taken = 1;
#endif
		serve()
#ifndef FAULT_FIRST
	:: else -> skip
	fi
#endif
}

active proctype host()
{
	byte seen;
#ifdef FAULT_POST
	posted = true
#else
	atomic {
		work == 0 -> work = CLAIM
	}
	taken = CLAIM;
	posted = true;
	serve()
#endif
}

active proctype link()
{
end:	do
	:: data_leaves ->
		data = true;
		data_leaves = false
#ifdef FAULT_ORDER
	:: word_leaves ->
#else
	:: word_leaves && !data_leaves ->
#endif
		word = true;
		word_leaves = false
	od
}

ltl served { <> (ran == 1 && word) }
ltl safe { [] (ran <= 1 && servers <= 1 && (!word || data)) }
