/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that may be late (plugins/device_cpu/gate.c: gate_admit(), gate_join(), gate_part()). The host begins a sample
 * with GO and waits for the last of those who joined. Who comes after one of them has seen the sample's end stays out.
 * W workers, S samples of T tasks, which anybody runs. A sample must end once, with all tasks run, and with nobody in it.
 *   -DSTOP                  somebody stops a sample at any time: then tasks may be left
 *   FAULT=close_late      who leaves counts itself out before it lets nobody in any more
 *   FAULT=unclosed        who comes does not look whether somebody has seen the end
 *   FAULT=look_then_add   who comes looks, and counts itself in later
 *   FAULT=phase_unread    who comes does not look of which sample the word is: the host may not have admitted it yet
 *   FAULT=waits_for_good  who waits to be admitted does not look whether its sample is over */
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
#define look_then_add 3
#define phase_unread 4
#define waits_for_good 5

byte phase;    /* GO of sample n is n; S + 1: leave for good */
byte team, members; /* one word: of which sample, how many are in it ... */
bool closed;   /* ... and one has seen its end */
byte done;     /* the sample that the host was told of last */
byte left, ran, busy;
bool stop;
byte inside; /* not in the code: who has joined and not left */

proctype worker()
{
	byte seen, whose, count;
	bool shut, last;
	do
	:: atomic { phase != seen -> seen = phase }; /* gate_park() */
		if
		:: seen > S -> break
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
		atomic { /* compare and exchange */
			if
			:: FAULT == look_then_add || (team == whose && members == count && closed == shut) ->
				members++;
				inside++;
				assert(done < seen)
			:: else -> whose = team; count = members; shut = closed; goto join
			fi
		};
		busy++;
		do
		:: atomic { left > 0 && !stop -> left-- };
			assert(phase == seen);
			ran++
		:: left == 0 || stop -> break
		od;
		busy--;
		busy == 0 || stop; /* the detector has found the end */
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
		fi;
out:		skip
	od
}

proctype host()
{
	byte n;
	for (n : 1 .. S) {
		left = T;
		ran = 0;
		stop = 0;
		phase = n;
		atomic { team = n; members = 0; closed = 0 }; /* gate_admit() */
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
			run worker()
		}
	}
}
