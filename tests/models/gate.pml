/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that may join a sample late (plugins/device_cpu/gate.c: gate_admit(), gate_join(), gate_part()). The host
 * starts a sample with GO, and waits until the last worker that joined has left. After one worker has seen the sample's
 * end, no further worker may join. There are W workers and S samples of T tasks. Any worker runs a task. A sample must
 * end once, after all tasks have run, and without workers in it.
 *   -DSTOP                  a sample is stopped at any time, and tasks may be left
 *   FAULT=close_late      a worker that leaves lowers the count before it sets `closed`
 *   FAULT=unclosed        a worker that joins does not check `closed`
 *   FAULT=read_then_add   a worker that joins reads the word and increments it in two steps
 *   FAULT=phase_unread    a worker that joins does not check the sample in the word, which the host may not have set
 *                         yet
 *   FAULT=waits_for_good  a worker that waits for the host does not check whether its sample is over
 *   -DCALLER              the thread of the host executes worker 0 of some samples itself (caller.c), and is in the
 *                         sample from the start. The thread of worker 0 leaves those samples to it
 *   FAULT=unlocked        the host uses worker 0 although its thread may not have left the sample before
 *   FAULT=joins_too       the thread of worker 0 takes part, too
 *   FAULT=admits_none     the host executes worker 0, but does not count it as a member */
#include "fault.pml"
#ifndef W
#define W 2
#endif
#ifndef S
#define S 2
#endif
#ifndef T
#define T 2
#endif
#define close_late 1
#define unclosed 2
#define read_then_add 3
#define phase_unread 4
#define waits_for_good 5
#define unlocked 6
#define joins_too 7
#define admits_none 8

byte phase;    /* n for GO of sample n; S + 1 ends the workers */
byte team, members; /* fields of one word: the sample, the number of its workers, */
bool closed;   /* and whether a worker of the sample has seen its end */
byte done;     /* the last sample whose end was reported to the host */
byte left, ran, busy;
bool stop;
bool awaited;   /* the host executes worker 0 of this sample */
bool lock;      /* a thread uses worker 0 */
byte users;     /* only in the model: the number of threads that use worker 0 */
byte inside; /* only in the model: the number of workers that have joined and not left */

/* Executes the sample as a member, and leaves it. */
inline work(seen)
{
	busy++;
	do
	:: atomic { left > 0 && !stop -> left-- };
		assert(phase == seen);
		ran++
	:: left == 0 || stop -> break
	od;
	busy--;
	busy == 0 || stop; /* waits until the detector finds the end */
	if
	:: FAULT != close_late -> closed = 1
	:: else
	fi;
	atomic {
		assert(members > 0);
		members--;
		inside--;
		last = (members == 0)
	};
	if
	:: FAULT == close_late -> closed = 1
	:: else
	fi;
	if
	:: last ->
		assert(done < seen);
		done = seen
	:: else
	fi
}

/* caller_lock() and caller_unlock() */
inline use()
{
	atomic { !lock -> lock = 1 };
	users++;
	assert(users == 1)
}

inline release()
{
	users--;
	lock = 0
}

proctype worker(bool callers)
{
	byte seen, whose, count;
	bool shut, last;
	do
	:: atomic { phase != seen -> seen = phase }; /* models gate_park() */
		if
		:: seen > S -> break
		:: else
		fi;
		if
		:: callers && awaited && FAULT != joins_too -> goto past
		:: callers && !(awaited && FAULT != joins_too) -> use()
		:: else
		fi;
		atomic { whose = team; count = members; shut = closed };
join:
		if
		:: whose != seen && FAULT != phase_unread ->
			if
			:: FAULT == waits_for_good -> team == seen
			:: else -> team != whose || phase != seen
			fi;
			if
			:: phase != seen && FAULT != waits_for_good -> goto out
			:: else
			fi;
			atomic { whose = team; count = members; shut = closed };
			goto join
		:: else
		fi;
		if
		:: shut && FAULT != unclosed -> goto out
		:: else
		fi;
		atomic { /* a compare-and-exchange */
			if
			:: FAULT == read_then_add || (team == whose && members == count && closed == shut) ->
				members++;
				inside++;
				assert(done < seen)
			:: else -> whose = team; count = members; shut = closed; goto join
			fi
		};
		work(seen);
out:		if
		:: callers -> release()
		:: else
		fi;
past:		skip
	od
}

proctype host()
{
	byte n;
	bool last;
	for (n : 1 .. S) {
		left = T;
		ran = 0;
		stop = 0;
#ifdef CALLER
		if
		:: awaited = 0
		:: awaited = 1
		fi;
#endif
		phase = n;
		if
		:: awaited && FAULT != unlocked -> use()
		:: awaited && FAULT == unlocked -> users++; assert(users == 1)
		:: else
		fi;
		atomic { /* models gate_admit() */
			team = n;
			members = (awaited && FAULT != admits_none -> 1 : 0);
			inside = awaited;
			closed = 0
		};
		if
		:: awaited -> work(n); release()
		:: else
		fi;
		done == n;
		assert(inside == 0 && (ran == T || stop))
	}
	phase = S + 1
}

#ifdef STOP
active proctype somebody()
{
	stop = 1
}
#endif

init {
	atomic {
		byte i;
		run host();
		for (i : 1 .. W) {
#ifdef CALLER
			run worker(i == 1)
#else
			run worker(0)
#endif
		}
	}
}
