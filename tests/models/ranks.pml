/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that steal from each other by three operations on the victim's memory: an attempt, a read, and an addition to
 * the victim's completion count. Each rank has one worker and one of term_hcounter's words. The addition to a
 * completion count is posted, so it may arrive long after the thief's next steps. A thief may die between any two
 * steps. Then the other ranks are stopped.
 *
 * done() must never return 1 while a task has not run. If a rank dies with tasks, the run does not end by itself, but
 * it must not give a wrong count.
 * -DRMA: ranks access each other's memory by RMA only. Each rank has a part of the initial set and a word for it.
 * Other ranks claim from this part by a check and an add, also a worker that has reported idle.
 * FAULT=idle_early       a victim is idle while a thief still copies
 * FAULT=completed_early  the completion is posted before the thief is busy
 * FAULT=busy_posted      the report that the thief is busy is posted, and the completion overtakes it
 * FAULT=one_scan         done() does not scan again
 * FAULT=left_ignored     a worker is idle while initial tasks are unclaimed
 * FAULT=claimed_early    an idle worker claims before it is busy
 * FAULT=ignored_copies   the copies of a thief that died count as complete
 * FAULT=dead_is_idle     a rank that died counts as full */
#include "fault.pml"
#ifndef R
#define R 3
#endif
#ifndef T
#define T 3 /* the maximum number of tasks */
#endif
#ifndef I
#define I 1 /* the number of initial tasks, all of which are in the part of rank 0 */
#endif
#ifdef RMA
#define MINE w
#else
#define MINE 0
#endif
#ifndef S
#define S 2 /* the maximum number of steals */
#endif
#ifndef D
#define D 1 /* the maximum number of ranks that die */
#endif
#define idle_early 1
#define completed_early 2
#define busy_posted 3
#define one_scan 4
#define left_ignored 5
#define ignored_copies 6
#define dead_is_idle 7
#define claimed_early 8

byte left[R], made = I, ran, steals, deaths;
bool stop;
byte tasks[R], copying[R];
bool spent[R], reported[R]; /* whether the rank has no tasks, by its counter and by its word for other ranks */
byte turn[R], reported_turn[R];
byte posted[R];		/* the number of completions that were posted to the rank and have not arrived yet */
bool reporting[R], dead[R];

/* Posted operations arrive in any order, and the launcher detects a death. */
active proctype network()
{
end:	do
	:: atomic { posted[0] -> posted[0]--; copying[0]-- }
	:: atomic { posted[1] -> posted[1]--; copying[1]-- }
#if R > 2
	:: atomic { posted[2] -> posted[2]--; copying[2]-- }
#endif
	:: atomic { reporting[0] -> reporting[0] = 0; reported[0] = 0; reported_turn[0] = turn[0] }
	:: atomic { reporting[1] -> reporting[1] = 0; reported[1] = 0; reported_turn[1] = turn[1] }
#if R > 2
	:: atomic { reporting[2] -> reporting[2] = 0; reported[2] = 0; reported_turn[2] = turn[2] }
#endif
	:: atomic { deaths && !stop -> stop = 1 }
	od
}

/* A rank may die between two steps. */
inline may_die()
{
	if
	:: atomic { deaths < D -> deaths++; dead[w] = 1;
		    if
		    :: FAULT == ignored_copies && took -> copying[v]--
		    :: FAULT == dead_is_idle -> spent[w] = 1; reported[w] = 1
		    :: else
		    fi };
		goto gone
	:: true
	fi
}

/* Reads all words in sequence, the rank's own counter first, and adds up their numbers, except that of the last
 * word. */
inline scan(sum, upto)
{
	atomic { filled = spent[w]; sum = turn[w]; i = 1 };
	do
	:: atomic { i < upto && filled -> filled = reported[(w + i) % R];
		    sum = sum + (i + 1 < R -> reported_turn[(w + i) % R] : 0); i++ }
	:: atomic { i >= upto || !filled -> i = 0; break }
	od
}

inline become_busy()
{
	atomic { spent[w] = 0; turn[w]++ };
	if
	:: FAULT == busy_posted -> reporting[w] = 1
	:: else -> d_step { reported[w] = 0; reported_turn[w] = turn[w] }
	fi
}

inline claim()
{
	atomic { took = left[0] > 0; left[0] = left[0] - took }
}

inline complete()
{
	atomic { posted[v]++ }
}

proctype worker(byte w)
{
	byte v, i, seen, again;
	bool idle, took, filled, verdict;
	do
	/* a task creates another task, or ends */
	:: atomic { tasks[w] && made < T -> made++; tasks[w]++ }
	:: atomic { tasks[w] -> tasks[w]--; ran++ }
	/* a claim from the initial set is one addition, in whichever rank the word is */
	:: atomic { !tasks[w] && left[MINE] && !idle -> left[MINE]-- };
		may_die();
		tasks[w]++
#ifdef RMA
	:: !tasks[w] && !left[w] && w != 0 && left[0] ->
		if
		:: FAULT == claimed_early -> claim()
		:: else
		fi;
		may_die();
		if
		:: idle -> become_busy(); idle = 0
		:: else
		fi;
		may_die();
		if
		:: FAULT != claimed_early -> claim()
		:: else
		fi;
		may_die();
		atomic { tasks[w] = tasks[w] + took; took = 0 }
#endif
	:: tasks[w] && deaths < D -> may_die()
	:: atomic { !tasks[w] && !idle && (!left[MINE] || FAULT == left_ignored) && (!copying[w] || FAULT == idle_early) -> idle = 1; spent[w] = 1 };
		d_step { reported[w] = 1; reported_turn[w] = turn[w] }
	:: atomic { !tasks[w] && steals < S ->
		    if
		    :: v = (w + 1) % R
		    :: v = (w + 2) % R
		    fi;
		    if
		    :: v != w && tasks[v] -> tasks[v]--; copying[v]++; steals++; took = 1
		    :: else
		    fi };
		if
		:: took ->
			may_die();
			if
			:: FAULT == completed_early -> complete()
			:: else
			fi;
			if
			:: idle -> become_busy()
			:: else
			fi;
			may_die();
			atomic { idle = 0; tasks[w]++ };
			may_die();
			if
			:: FAULT != completed_early -> complete()
			:: else
			fi;
			atomic { v = 0; took = 0 }
		:: else -> v = 0
		fi
	:: !tasks[w] && idle && !verdict ->
		scan(seen, R);
		if
		:: filled && FAULT != one_scan -> scan(again, R - 1)
		:: else -> again = seen
		fi;
		verdict = filled && seen == again;
		filled = 0; seen = 0; again = 0
	:: verdict -> assert(ran == made && !left[0]); break
	:: stop -> break
	od;
gone:	skip
}

init {
	byte w;
	atomic {
		left[0] = I;
		do
		:: w < R -> run worker(w); w++
		:: else -> break
		od
	}
}
