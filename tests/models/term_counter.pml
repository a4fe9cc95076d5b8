/* SPDX-License-Identifier: Apache-2.0 */
/* term_counter. No worker may leave while a task exists, and all must leave in the end.
 * -DTERM_FAULT=idle_early|completed_early: see work.pml */
#ifndef N
#define N 3
#endif
#ifndef T
#define T 5
#endif
#ifndef S
#define S 6 /* the maximum number of steals */
#endif
#ifndef TERM_FAULT
#define TERM_FAULT no_fault
#endif

byte idlers;

#define term_idle(w) idlers++
#define term_busy(w) idlers--
#define term_done(w, verdict) verdict = (idlers == N)

#include "work.pml"
