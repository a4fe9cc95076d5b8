/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel against fire, and completion against both (plugins/trigger_nic: list.c, nic.c): a fire makes the
 * post due, the engine runs it, a completion gives the place back; the host cancels at any moment and may
 * post anew in a place that was given back. A post runs, or is cancelled: never both, never neither; a
 * cancel that comes late hits no successor in the same place.
 *
 *   -DFAULT_LOCK: the host cancels without the lock
 *   -DFAULT_GENERATION: ids do not change when a place is used again */
mtype = { FREE, WAITS, SPENT };
mtype state = FREE;
byte generation, flying, due;
bool locked, fired;
byte ran[3], cancelled[3]; /* by post: the first, and its successor */
byte current;              /* which post the place holds */
byte late = 255;           /* what the second cancel of the first post said: 0 done */

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline give_back() { d_step { state = FREE; generation++ } }

proctype engine()
{
end:	do
	:: (fired && state == WAITS) || due > 0 ->
		lock();
		if
		:: fired && state == WAITS -> /* settle: the threshold is reached */
			skip;                 /* here a cancel without the lock comes between */
			state = SPENT;
			flying++;
			due++
		:: else
		fi;
		if
		:: due > 0 ->
			due--;
			ran[current]++;
			/* it completes some time later: the lock is let go in between */
			unlock();
			lock();
			flying--;
			if
			:: state == SPENT && flying == 0 -> give_back()
			:: else
			fi
		:: else
		fi;
		unlock()
	od
}

proctype worker()
{
	fired = true /* the FIFO's word: its own model */
}

inline cancel(id, result)
{
#ifndef FAULT_LOCK
	lock();
#endif
	if
#ifdef FAULT_GENERATION
	:: state == FREE -> result = 2
#else
	:: state == FREE || generation != id -> result = 2 /* LOOM_ENOENT */
#endif
	:: else ->
		if
		:: state == SPENT -> result = 1 /* LOOM_EBUSY */
		:: else ->
			cancelled[current]++;
			state = SPENT;
			if
			:: flying == 0 -> give_back()
			:: else
			fi;
			result = 0
		fi
	fi;
#ifndef FAULT_LOCK
	unlock()
#else
	skip
#endif
}

proctype host()
{
	byte id, said = 255;
	lock();
	d_step { state = WAITS; current = 0; id = generation };
	unlock();
	run worker();
	cancel(id, said);
	assert(said != 0 || cancelled[0] == 1);
	/* The place again, for another post; then the old id once more. */
	lock();
	if
	:: state == FREE ->
		d_step { state = WAITS; current = 1 };
		unlock();
		cancel(id, late);
		assert(late != 0) /* the old id is no name for the new post */
	:: else -> unlock()
	fi
}

init { atomic { run host(); run engine() } }

/* Never both ... */
ltl either { [] (ran[0] + cancelled[0] <= 1 && ran[1] + cancelled[1] <= 1) }
/* ... never neither. */
ltl settled { <> (ran[0] + cancelled[0] == 1) }
