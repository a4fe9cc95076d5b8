/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the detectors' models: workers that run tasks, create tasks, and steal. A queue is modelled by its
 * number of tasks. term_*.pml include this file and define N workers, at most T tasks, and
 *   term_idle(w), term_busy(w)
 *   term_done(w, verdict)     one call, which sets verdict when no task is left
 *   TERM_FAULT                a planted violation of the scheduler's promises, or none:
 *   idle_early       a victim is idle while a thief still copies
 *   completed_early  the steal is complete before the thief is busy */
#define no_fault 0
#define idle_early 1
#define completed_early 2

typedef worker_state {
	byte tasks, copying, stolen_out;
};
worker_state work[N];
byte made, steals;
#ifndef S
#define S 3 /* the maximum number of steals, without which tasks could move forever */
#endif

inline claim(w)
{
	if
	:: w != 0 -> v = 0
	:: w != 1 -> v = 1
	:: w != 2 && N > 2 -> v = 2
	:: w != 3 && N > 3 -> v = 3
	fi;
	if
	:: work[v].tasks && steals < S ->
		work[v].tasks--; work[v].copying++; steals++; took = 1;
#ifdef STEALS_COUNTED
		work[v].stolen_out++
#endif
	:: else -> v = 0
	fi
}

/* Each line that begins with :: is a step up to its first arrow or the end of its atomic part. */
proctype worker(byte w)
{
	byte v;
	bool idle, verdict, took;
#ifdef TERM_SCRATCH
	TERM_SCRATCH;
#endif
	do
	/* a task creates another task, or ends */
	:: atomic { work[w].tasks && made < T -> made++; work[w].tasks++ }
	:: atomic { work[w].tasks -> work[w].tasks-- }
	:: atomic { !work[w].tasks && !idle && (!work[w].copying || TERM_FAULT == idle_early) -> idle = 1 };
		term_idle(w)
	:: atomic { !work[w].tasks && steals < S -> claim(w) };
		if
		:: took ->
#if TERM_FAULT == completed_early
			work[v].copying--;
#endif
			if
			:: idle -> term_busy(w)
			:: else
			fi;
			atomic { idle = 0; work[w].tasks++ };
			atomic {
#if TERM_FAULT != completed_early
				work[v].copying--;
#endif
				v = 0;
				took = 0
			}
		:: else
		fi
	:: !work[w].tasks && idle && !verdict -> term_done(w, verdict)
	:: verdict -> break
	od;
	/* No worker may leave while a task exists, in a queue or in flight. */
	atomic {
		do
		:: v < N -> assert(!work[v].tasks && !work[v].copying); v++
		:: else -> break
		od
	}
}

init {
	byte w;
	atomic {
		work[0].tasks = 1;
		made = 1;
		do
		:: w < N -> run worker(w); w++
		:: else -> break
		od
	}
}
