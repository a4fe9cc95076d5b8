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
 *   FAULT=waits_for_good  a worker that waits for the host does not check whether its sample is over */
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

byte phase;    /* n for GO of sample n; S + 1 ends the workers */
byte team, members; /* fields of one word: the sample, the number of its workers, */
bool closed;   /* and whether a worker of the sample has seen its end */
byte done;     /* the last sample whose end was reported to the host */
byte left, ran, busy;
bool stop;
byte inside; /* only in the model: the number of workers that have joined and not left */

proctype worker()
{
	byte seen, whose, count;
	bool shut, last;
	do
	:: atomic { phase != seen -> seen = phase }; /* models gate_park() */
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
		atomic { /* a compare-and-exchange */
			if
			:: FAULT == read_then_add || (team == whose && members == count && closed == shut) ->
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
		atomic { team = n; members = 0; closed = 0 }; /* models gate_admit() */
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
