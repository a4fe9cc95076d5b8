/* SPDX-License-Identifier: Apache-2.0 */
/* term_hcounter: N workers on DEVICES devices, worker w on device w % DEVICES. A counter and how often it was
 * left are one word.
 *   -DTERM_FAULT=idle_early|completed_early: see work.pml
 *   FAULT=said_late: busy() does not wait until what it takes back was said
 *   FAULT=one_look: done() does not look again */
#ifndef N
#define N 4
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef T
#define T 3
#endif
#ifndef S
#define S 3 /* steals */
#endif
#ifndef TERM_FAULT
#define TERM_FAULT no_fault
#endif
#include "fault.pml"
#define said_late 1
#define one_look 2

byte inner[DEVICES], turn[DEVICES];
byte said[DEVICES], said_turn[DEVICES];

#define DEVICE(w) ((w) % DEVICES)
#define WORKERS (N / DEVICES)

inline term_idle(w)
{
	atomic { inner[DEVICE(w)]++; filled = (inner[DEVICE(w)] == WORKERS); seen = turn[DEVICE(w)] };
	if
	:: filled -> d_step { said[DEVICE(w)] = WORKERS; said_turn[DEVICE(w)] = seen; filled = 0; seen = 0 }
	:: else -> seen = 0
	fi
}

inline term_busy(w)
{
	atomic { filled = (inner[DEVICE(w)] == WORKERS); seen = turn[DEVICE(w)]; inner[DEVICE(w)]--; turn[DEVICE(w)]++ };
	if
	:: filled && (FAULT == said_late || (said[DEVICE(w)] == WORKERS && said_turn[DEVICE(w)] == seen)) ->
		d_step { said[DEVICE(w)] = WORKERS - 1; said_turn[DEVICE(w)] = seen + 1; filled = 0; seen = 0 }
	:: !filled -> seen = 0
	fi
}

/* The worker's device's word is its counter; the turns of the one that is looked at last do not count. */
inline term_look(w, sum, devices)
{
	atomic { filled = (inner[DEVICE(w)] == WORKERS); sum = turn[DEVICE(w)]; i = 1 };
	do
	:: atomic { i < devices && filled -> filled = (said[(DEVICE(w) + i) % DEVICES] == WORKERS);
		    sum = sum + (i + 1 < DEVICES -> said_turn[(DEVICE(w) + i) % DEVICES] : 0); i++ }
	:: atomic { i >= devices || !filled -> i = 0; break }
	od
}

inline term_done(w, verdict)
{
	if
	:: inner[DEVICE(w)] == WORKERS ->
		term_look(w, seen, DEVICES);
		if
		:: filled && FAULT != one_look -> term_look(w, again, DEVICES - 1)
		:: else -> again = seen
		fi;
		verdict = filled && seen == again;
		filled = 0; seen = 0; again = 0
	:: else
	fi
}

#define TERM_SCRATCH bool filled; byte seen, again, i
#include "work.pml"
