/* SPDX-License-Identifier: Apache-2.0 */
/* term_hcounter: N workers on DEVICES devices, worker w on device w % DEVICES.
 *   -DTERM_FAULT=idle_early|completed_early: see work.pml
 *   -DFAULT=outer_first: busy() asks whether the device is full before it lowers the inner counter */
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
#define none 0
#define outer_first 1
#ifndef FAULT
#define FAULT none
#endif

byte inner[DEVICES], outer; /* 255: minus one, for a moment */

#define DEVICE(w) ((w) % DEVICES)
#define WORKERS (N / DEVICES)

inline term_idle(w)
{
	atomic { inner[DEVICE(w)]++; filled = (inner[DEVICE(w)] == WORKERS) };
	if
	:: filled -> outer = (outer + 1) % 256
	:: else
	fi;
	filled = 0
}

inline term_busy(w)
{
	if
	:: FAULT == outer_first ->
		filled = (inner[DEVICE(w)] == WORKERS);
		inner[DEVICE(w)]--
	:: else -> atomic { filled = (inner[DEVICE(w)] == WORKERS); inner[DEVICE(w)]-- }
	fi;
	if
	:: filled -> outer = (outer + 255) % 256
	:: else
	fi;
	filled = 0
}

inline term_done(w, verdict)
{
	if
	:: inner[DEVICE(w)] == WORKERS -> verdict = (outer == DEVICES)
	:: else
	fi
}

#define TERM_SCRATCH bool filled
#include "work.pml"
