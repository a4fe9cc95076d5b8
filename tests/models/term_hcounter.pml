/* SPDX-License-Identifier: Apache-2.0 */
/* term_hcounter: N workers on DEVICES devices, worker w on device w % DEVICES. One word of a device has its counter,
 * and a number that shows how often its workers became busy.
 * -DTERM_FAULT=idle_early|completed_early: see work.pml
 * FAULT=report_late: busy() does not wait for the report that it takes back
 * FAULT=one_scan: done() does not scan again */
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
#define S 3 /* the maximum number of steals */
#endif
#ifndef TERM_FAULT
#define TERM_FAULT no_fault
#endif
#include "fault.pml"
#define report_late 1
#define one_scan 2

byte inner[DEVICES], turn[DEVICES];
byte reported[DEVICES], reported_turn[DEVICES];

#define DEVICE(w) ((w) % DEVICES)
#define WORKERS (N / DEVICES)

inline term_idle(w)
{
	atomic { inner[DEVICE(w)]++; filled = (inner[DEVICE(w)] == WORKERS); seen = turn[DEVICE(w)] };
	if
	:: filled -> d_step { reported[DEVICE(w)] = WORKERS; reported_turn[DEVICE(w)] = seen; filled = 0; seen = 0 }
	:: else -> seen = 0
	fi
}

inline term_busy(w)
{
	atomic { filled = (inner[DEVICE(w)] == WORKERS); seen = turn[DEVICE(w)]; inner[DEVICE(w)]--; turn[DEVICE(w)]++ };
	if
	:: filled && (FAULT == report_late || (reported[DEVICE(w)] == WORKERS && reported_turn[DEVICE(w)] == seen)) ->
		d_step { reported[DEVICE(w)] = WORKERS - 1; reported_turn[DEVICE(w)] = seen + 1; filled = 0; seen = 0 }
	:: !filled -> seen = 0
	fi
}

/* Adds up the numbers in the words, except that of the last word. The word of the worker's own device is its
 * counter. */
inline term_scan(w, sum, devices)
{
	atomic { filled = (inner[DEVICE(w)] == WORKERS); sum = turn[DEVICE(w)]; i = 1 };
	do
	:: atomic { i < devices && filled -> filled = (reported[(DEVICE(w) + i) % DEVICES] == WORKERS);
		    sum = sum + (i + 1 < DEVICES -> reported_turn[(DEVICE(w) + i) % DEVICES] : 0); i++ }
	:: atomic { i >= devices || !filled -> i = 0; break }
	od
}

inline term_done(w, verdict)
{
	if
	:: inner[DEVICE(w)] == WORKERS ->
		term_scan(w, seen, DEVICES);
		if
		:: filled && FAULT != one_scan -> term_scan(w, again, DEVICES - 1)
		:: else -> again = seen
		fi;
		verdict = filled && seen == again;
		filled = 0; seen = 0; again = 0
	:: else
	fi
}

#define TERM_SCRATCH bool filled; byte seen, again, i
#include "work.pml"
